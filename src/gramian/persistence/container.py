"""The file around a model: a safetensors file whose every declaration is checked before anything is read by it."""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from gramian.persistence.encode import TENSOR_TYPES
from gramian.sources.writing import write_whole


class ModelFileError(ValueError):
    """A file that is no model file, or is damaged, or was written by a newer version."""


Array = npt.NDArray[Any]

FORMAT = 1
KEY = "gramian"  # the one entry of the safetensors metadata
MOST = 2**25  # bytes of a header
NO_SUM = "0" * 64
BEFORE_SUM = b'\\"sha256\\":\\"'  # as it stands in the header: JSON in a string of JSON
CHUNK = 2**20


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; a pipe, which might be waited for, is no model file."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise ModelFileError(f"{path} is no model file of Gramian: it is a pipe or a device.")
    return path.open("rb")


@dataclass(frozen=True)
class Tensor:
    """Type, shape and place of a tensor, as declared."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Header:
    """What the beginning of a file declares.

    Attributes
    ----------
    path : Path
        The file.
    size : int
        Its size in bytes.
    raw : bytes
        The header as it stands.
    text : str
        The document as it stands.
    document : dict
        Checksum, format, version, kind, model and metadata.
    tensors : dict of str to Tensor
        By name.
    """

    path: Path
    size: int
    raw: bytes
    text: str
    document: dict[str, Any]
    tensors: dict[str, Tensor]


def write(path: Path, tensors: dict[str, Array], document: dict[str, Any]) -> None:
    """Write to a temporary folder next to the place, enter the checksum, and rename."""
    text = json.dumps({"sha256": NO_SUM, **document}, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    if len(text.encode("utf-8")) > MOST // 2:  # the header escapes it and adds the tensors
        raise ValueError(f"What is not in arrays takes {len(text)} characters, too many for a model file: use arrays.")
    with write_whole(path, overwrite=True) as part:
        part.touch()
        usual = part.stat().st_mode & 0o777  # safetensors makes files for their owner alone
        save_file(tensors, part, metadata={KEY: text})
        part.chmod(usual)
        with part.open("r+b") as file:
            header = read_header(file, part)
            file.seek(_checksum_offset(header))
            file.write(_digest(file, header).encode("ascii"))
            file.flush()
            os.fsync(file.fileno())


def _checksum_offset(header: Header) -> int:
    """Where in the file the digits of the checksum begin."""
    return 8 + header.raw.find(BEFORE_SUM) + len(BEFORE_SUM)


def _digest(file: BinaryIO, header: Header) -> str:
    """SHA-256 of the whole file with zeros for the digits of the checksum; leaves the file where it was."""
    back, place = file.tell(), _checksum_offset(header) - 8
    total = hashlib.sha256(len(header.raw).to_bytes(8, "little"))
    total.update(header.raw[:place] + NO_SUM.encode("ascii") + header.raw[place + 64 :])
    file.seek(8 + len(header.raw))
    while chunk := file.read(CHUNK):
        total.update(chunk)
    file.seek(back)
    return total.hexdigest()


def check_sum(file: BinaryIO, header: Header) -> None:
    """Read the whole file once and refuse it where it is not what was written."""
    place = _checksum_offset(header) - 8
    found = _digest(file, header)
    if header.raw[place : place + 64] != found.encode("ascii") or header.document["sha256"] != found:
        raise ModelFileError(
            f"{header.path} is damaged: its checksum is not that of its content. Save the model again."
        )


def read_tensors(header: Header) -> dict[str, Array]:
    """All tensors, by safetensors, from the file whose header was checked."""
    try:
        with safe_open(header.path, framework="np") as file:
            if file.metadata() != {KEY: header.text}:
                raise ModelFileError(f"{header.path} was replaced while it was read: load it again.")
            # copies, which their owner may change, at addresses such as NumPy's own arrays have
            return {name: np.array(file.get_tensor(name), copy=True) for name in header.tensors}
    except ModelFileError:
        raise
    except (SafetensorError, ValueError, OverflowError) as error:
        raise ModelFileError(f"{header.path} is damaged: {error}.") from None


def read_header(file: BinaryIO, path: Path) -> Header:
    """Read and check all that the file declares about itself."""
    size = os.fstat(file.fileno()).st_size
    file.seek(0)
    start = file.read(9)
    if len(start) < 9 or start[8:] != b"{":
        what = "it does not begin as a safetensors file does" if size else "it is empty"
        if start[:1] == b"\x80":
            what = "it seems to be a pickle, which may execute anything when it is read, and is never read here"
        raise ModelFileError(f"{path} is no model file of Gramian: {what}.")
    length = int.from_bytes(start[:8], "little")
    if length > size - 8:
        raise ModelFileError(f"{path} is damaged: it declares a header of {length} bytes and has {size} in all.")
    if length > MOST:
        raise ModelFileError(f"{path} declares a header of {length} bytes; model files have at most {MOST}.")
    file.seek(8)
    raw = file.read(length)
    declared = _parse_json(raw, path)
    metadata = declared.pop("__metadata__", None)
    if not (isinstance(metadata, dict) and isinstance(metadata.get(KEY), str)):
        raise ModelFileError(f"{path} is a safetensors file, but no model file of Gramian: it lacks the entry {KEY!r}.")
    text = metadata[KEY]
    document = _parse_json(text.encode("utf-8"), path)
    version, form = document.get("gramian"), document.get("format")
    if type(form) is int and form > FORMAT:
        raise ModelFileError(
            f"{path} has format {form}, written by Gramian {version}; this version reads formats up to {FORMAT}. "
            "Upgrade: pip install --upgrade gramian."
        )
    kinds = {"sha256": str, "format": int, "gramian": str, "kind": str, "model": dict, "metadata": dict}
    for name, kind in kinds.items():
        if type(document.get(name)) is not kind:
            raise ModelFileError(f"{path} is damaged: its header has no proper entry {name!r}.")
    if form != FORMAT:
        raise ModelFileError(f"{path} is damaged: there is no format {form}.")
    return Header(path, size, raw, text, document, _check_tensors(declared, size - 8 - length, path))


def _parse_json(raw: bytes, path: Path) -> dict[str, Any]:
    """JSON of an object, without repeated names and without NaN."""

    def no_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(made := dict(pairs)) != len(pairs):
            raise ValueError("a name is there twice")
        return made

    def no_constant(name: str) -> Any:
        raise ValueError(f"{name} is no JSON")

    try:
        content = json.loads(raw.decode("utf-8"), object_pairs_hook=no_repetition, parse_constant=no_constant)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{path} is damaged: its header cannot be read ({error}).") from None
    if not isinstance(content, dict):
        raise ModelFileError(f"{path} is damaged: its header is no JSON object.")
    return content


def _check_tensors(declared: dict[str, Any], size: int, path: Path) -> dict[str, Tensor]:
    """Check that the tensors lie one after another and fill the rest of the file, each as its type and shape say."""
    found = {name: _check_tensor(name, entry, path) for name, entry in declared.items()}
    places = sorted((tensor.start, tensor.stop, name) for name, tensor in found.items())
    for (_, end, before), (start, _, after) in pairwise([(0, 0, "the header"), *places]):
        if start != end:
            raise ModelFileError(
                f"{path} is damaged: tensor {after!r} begins at byte {start} and {before!r} ends at {end}."
            )
    last = places[-1][1] if places else 0
    if last != size:
        what = "is cut off" if size < last else "is damaged"
        raise ModelFileError(
            f"{path} {what}: its tensors take {last} bytes and {size} are there. Save the model again."
        )
    return found


def _check_tensor(name: str, entry: Any, path: Path) -> Tensor:
    try:
        dtype, shape, (start, stop) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
        whole = all(type(number) is int and number >= 0 for number in (start, stop, *shape))
        if whole and stop - start == math.prod(shape) * np.dtype(TENSOR_TYPES[dtype]).itemsize:
            return Tensor(dtype, shape, start, stop)
    except (KeyError, TypeError, ValueError):
        pass
    shown = repr(entry) if len(repr(entry)) < 200 else f"{repr(entry)[:200]}…"
    raise ModelFileError(f"{path} is damaged: tensor {name!r} is declared as {shown}, which is not possible.")
