"""Arrays as tensors: what safetensors has no word for is said beside the tensor, in JSON."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["TENSOR_TYPES", "Packed", "pack", "pack_texts", "read_dtype", "unpack", "unpack_texts"]

Array = npt.NDArray[Any]
Packed = tuple[Array, dict[str, Any]]

# Types of tensors that a model file may hold, and what NumPy calls them.
TENSOR_TYPES = {
    "BOOL": "bool",
    "U8": "uint8",
    "I8": "int8",
    "U16": "uint16",
    "I16": "int16",
    "U32": "uint32",
    "I32": "int32",
    "U64": "uint64",
    "I64": "int64",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
}
DTYPE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|c8|c16|[mM]8(\[\d{0,4}[a-z]{1,2}\])?|[mM]8\[\d{0,4}[YMWD]\])")
WIDE = 1024  # bytes of a text array of fixed width for each byte in the file, beyond a first mebibyte


def read_dtype(code: Any) -> np.dtype[Any]:
    """A dtype from NumPy's code of it, such as ``<f8``; numbers, truth values and times only."""
    if not (isinstance(code, str) and DTYPE.fullmatch(code)):
        raise ValueError(f"{code!r} is no dtype of a model file")
    return np.dtype(code)


def pack(a: Array) -> Packed:
    """The array as a C-ordered tensor that safetensors knows, and the order of its axes and dtype where they differ."""
    order = _memory_order(a)
    dense = np.asarray(a.transpose(order), order="C")
    tensor = np.asarray(dense, dtype=a.dtype.newbyteorder("<"))
    said: dict[str, Any] = {}
    if a.dtype.kind == "c":
        tensor = tensor[..., None].view(f"<f{a.dtype.itemsize // 2}")
    elif a.dtype.kind in "mM":
        tensor = tensor.view("<i8")
    if a.dtype.kind in "cmM" or not a.dtype.isnative:
        said["dtype"] = a.dtype.str
    if order != list(range(a.ndim)):
        said["axes"] = order
    return tensor, said


def _memory_order(a: Array) -> list[int]:
    """Axes from the one with the longest stride to the one with the shortest."""
    if a.flags.c_contiguous or any(step == 0 for step in a.strides):
        return list(range(a.ndim))
    return sorted(range(a.ndim), key=lambda axis: (-abs(a.strides[axis]), axis))


def unpack(tensor: Array, said: dict[str, Any]) -> Array:
    """The array that :func:`pack` was given, laid out in memory in the same order."""
    a = tensor
    if "dtype" in said:
        dtype = read_dtype(said["dtype"])
        little = dtype.newbyteorder("<")
        if dtype.kind == "c" and a.shape[-1:] != (2,):
            raise ValueError(f"complex numbers have two parts, and the tensor has shape {a.shape}")
        a = a.view(little) if dtype.kind in "cmM" else a
        a = a[..., 0] if dtype.kind == "c" else a
        a = a.astype(dtype)
    if "axes" in said:
        axes = said["axes"]
        if sorted(axes) != list(range(a.ndim)):
            raise ValueError(f"axes {axes!r} do not fit {a.ndim} dimensions")
        a = a.transpose(np.argsort(axes))
    return a


def pack_texts(a: Array) -> tuple[Array, Array, dict[str, Any]]:
    """Texts as their UTF-8 bytes one after another, where each begins and ends, and the shape and kind of the array."""
    parts = [text.encode("utf-8") for text in a.ravel().tolist()]
    ends = np.cumsum([0, *map(len, parts)], dtype=np.int64)
    kind = {"U": f"U{a.dtype.itemsize // 4}", "T": "StringDType"}.get(a.dtype.kind, "object")
    if a.dtype.kind == "U":
        _check_width(a.size, a.dtype.itemsize // 4, int(ends[-1]) + ends.nbytes)
    data = np.frombuffer(b"".join(parts), dtype=np.uint8)
    return data, ends, {"shape": list(a.shape), "kind": kind}


def unpack_texts(data: Array, ends: Array, said: dict[str, Any]) -> Array:
    """The array that :func:`pack_texts` was given."""
    shape, kind = tuple(said["shape"]), said["kind"]
    steps = np.diff(ends)
    count = int(np.prod(shape, dtype=object)) if shape else 1
    if data.dtype != np.uint8 or data.ndim != 1 or ends.dtype != np.int64 or ends.shape != (count + 1,):
        raise ValueError("texts and their offsets do not fit the shape of the array")
    if ends[0] != 0 or ends[-1] != len(data) or np.any(steps < 0):
        raise ValueError("offsets of texts do not rise from 0 to the end of their bytes")
    raw, places = data.tobytes(), ends.tolist()
    texts = [raw[i:j].decode("utf-8") for i, j in pairwise(places)]
    return _text_array(texts, kind, len(raw) + ends.nbytes).reshape(shape)


def _text_array(texts: list[str], kind: Any, stored: int) -> Array:
    if kind == "object":
        out = np.empty(len(texts), dtype=object)
        out[:] = texts
        return out
    if kind == "StringDType":
        return np.array(texts, dtype=np.dtypes.StringDType())
    if not (isinstance(kind, str) and re.fullmatch(r"U\d{1,9}", kind)):
        raise ValueError(f"{kind!r} is no kind of text")
    _check_width(len(texts), int(kind[1:]), stored)
    return np.array(texts, dtype=kind)


def _check_width(count: int, width: int, stored: int) -> None:
    if 4 * count * width > 2**20 + WIDE * stored:
        raise ValueError(f"{count} texts of {width} characters each are declared, and {stored} bytes are stored")
