"""A fitted model as JSON and tensors, and back: every name is looked up in the closed list, nothing is executed."""

from __future__ import annotations

import functools
import inspect
import math
import re
from collections.abc import Callable
from dataclasses import MISSING, fields, is_dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from array_api_compat import is_torch_array
from scipy import stats
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from gramian.kernels import Callable as FunctionKernel
from gramian.likelihood.families import Custom
from gramian.persistence.registry import CLASSES, ESTIMATORS, FUNCTIONS, NAMES, TYPES, function_name
from gramian.sources import DenseSource, TensorSource

Array = npt.NDArray[Any]
Packed = tuple[Array, dict[str, Any]]

# Types of tensors that a model file may hold, and what NumPy calls them; scalars are of the same types, or text.
_KINDS = {"U": ("uint", (8, 16, 32, 64)), "I": ("int", (8, 16, 32, 64)), "F": ("float", (16, 32, 64))}
TENSOR_TYPES = {f"{letter}{bits}": f"{name}{bits}" for letter, (name, sizes) in _KINDS.items() for bits in sizes}
TENSOR_TYPES["BOOL"] = "bool"
SCALARS = {name: np.dtype(name).type for name in TENSOR_TYPES.values()} | {"str": np.str_}
DTYPE = re.compile(r"[<>|](b1|[iu][1248]|f[248]|c8|c16|[mM]8(\[\d{0,4}[a-z]{1,2}\])?|[mM]8\[\d{0,4}[YMWD]\])")
WIDE = 1024  # bytes of a text array of fixed width for each byte in the file, beyond a first mebibyte


def read_dtype(code: Any) -> np.dtype[Any]:
    """A dtype from NumPy's code of it, such as ``<f8``; numbers, truth values and times only."""
    if not (isinstance(code, str) and DTYPE.fullmatch(code)):
        raise ValueError(f"{code!r} is no dtype of a model file")
    return np.dtype(code)


def pack(a: Array) -> Packed:
    """The array as a C-ordered tensor that safetensors knows, and the order of its axes and dtype where they differ."""
    order = list(range(a.ndim))
    if not a.flags.c_contiguous and 0 not in a.strides:  # axes from the longest stride to the shortest
        order.sort(key=lambda axis: (-abs(a.strides[axis]), axis))
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
    if kind == "StringDType":
        kind = np.dtypes.StringDType()
    elif isinstance(kind, str) and re.fullmatch(r"U\d{1,9}", kind):
        _check_width(len(texts), int(kind[1:]), len(raw) + ends.nbytes)
    elif kind != "object":
        raise ValueError(f"{kind!r} is no kind of text")
    return np.array(texts, dtype=kind).reshape(shape)


def _check_width(count: int, width: int, stored: int) -> None:
    if 4 * count * width > 2**20 + WIDE * stored:
        raise ValueError(f"{count} texts of {width} characters each are declared, and {stored} bytes are stored")


def state_of(value: Any) -> dict[str, Any]:
    """The attributes of an object, less what it can compute again (:class:`~functools.cached_property`)."""
    if is_dataclass(value):
        state = {field.name: getattr(value, field.name) for field in fields(value)}
        state |= {name: item for name, item in vars(value).items() if name not in state}
    else:  # __getstate__ is where estimators leave out what can be made again
        state = dict(value.__getstate__() or {})
    static = {name: inspect.getattr_static(type(value), name, None) for name in state}
    return {name: item for name, item in state.items() if not isinstance(static[name], cached_property)}


def rebuild(cls: type, state: dict[str, Any]) -> Any:
    """An object with these attributes; no code of the class runs, and no method can be hidden by a value."""
    for name in state:
        known = inspect.getattr_static(cls, name, None)
        is_data = name.isidentifier() and not name.startswith("__")
        if is_dataclass(cls):
            is_data = is_data and name in {field.name for field in fields(cls)}
        elif callable(known) or hasattr(known, "__get__"):
            is_data = False
        if not is_data:
            raise ValueError(f"{cls.__name__} has no attribute {name!r} that a file may set")
    if is_dataclass(cls):
        for field in fields(cls):
            if field.name in state:
                continue
            if field.default is not MISSING:
                state[field.name] = field.default
            elif field.default_factory is not MISSING:
                state[field.name] = field.default_factory()
            else:
                raise ValueError(f"{cls.__name__} lacks {field.name!r}")
    elif issubclass(cls, BaseEstimator):
        state = {**{name: state.get(name, default) for name, default in parameters_of(cls).items()}, **state}
    made: Any = object.__new__(cls)
    for name, value in state.items():
        object.__setattr__(made, name, value)
    return made


def parameters_of(cls: Any) -> dict[str, Any]:
    """The constructor's parameters and their defaults."""
    signature = inspect.signature(cls.__init__)
    return {name: item.default for name, item in signature.parameters.items() if name != "self"}


EXECUTE = "a model file holds nothing that can execute"


def refuse_model(model: Any) -> None:
    """Refuse what is none of our estimators, and what is not fitted."""
    kind = type(model).__name__
    if type(model) in ESTIMATORS.values():
        check_is_fitted(model, msg=f"This {kind} is not fitted: a model file holds a fitted model. Call fit first.")
        return
    known = f"Gramian saves {', '.join(sorted(ESTIMATORS))}"
    parents = [cls.__name__ for cls in ESTIMATORS.values() if isinstance(model, cls)]
    if parents:
        why = f"it is a class derived from {parents[0]}, whose code would not be in the file. Save a {parents[0]}."
    elif hasattr(model, "steps") or hasattr(model, "transformers") or hasattr(model, "best_estimator_"):
        why = f"save its parts, each in a file of its own (model[-1], best_estimator_, …). {known}."
    elif isinstance(model, BaseEstimator):
        why = f"it is no estimator of Gramian. {known}; see skops or ONNX for others."
    else:
        why = f"it is no estimator. {known}."
    raise ValueError(f"{kind} cannot be saved: {why}")


def unstorable(value: Any, where: str) -> ValueError:
    """The error for a value that a file cannot hold."""
    kind = type(value).__name__
    if isinstance(value, FunctionKernel):
        return unstorable(value.function, where)
    if isinstance(value, Custom):
        return ValueError(f"{where} is a family given by Python functions: {EXECUTE}. Use a family that has a name.")
    if isinstance(value, (np.random.RandomState, np.random.Generator, np.random.BitGenerator)):
        return ValueError(
            f"{where} is a {kind}, whose state is no seed. Give a whole number before saving, which predictions do "
            "not depend on: model.set_params(random_state=0)."
        )
    if (type(value).__module__, kind) == ("torch", "device"):
        return ValueError(
            f"{where} is {value!r}: a model file holds the names of devices. Give one before saving: "
            f"model.set_params(device={str(value)!r}), or device=None to open the model anywhere."
        )
    if callable(value) and not isinstance(value, type):
        name = getattr(value, "__qualname__", None) or kind
        part = where.partition(".")[2].partition(".")[0]
        remedy = (
            f"Set it to something else before saving: model.set_params({part}=…), which predictions do not depend on."
        )
        if part in ("kernel", "kernel_", "kernels_", "_model"):
            remedy = (
                "Use a kernel of gramian.kernels (sums, products and multiples of them are kernels too), or "
                "kernel='precomputed' with matrices that the function makes."
            )
        elif part.startswith("_") or part.endswith("_"):
            remedy = f"Remove it before saving: del model.{part}."
        return ValueError(f"{where} is a Python function ({name}): {EXECUTE}. {remedy}")
    if isinstance(value, np.ndarray):
        what = f"an array of dtype {value.dtype}"
        if type(value) not in (np.ndarray, np.memmap):
            what = f"a {kind}"
        elif value.dtype == object:
            what = "an array of Python objects that are not all texts"
        return ValueError(f"{where} is {what}: a model file holds numbers, truth values, times and texts.")
    return ValueError(
        f"{where} is a {kind} of {type(value).__module__}, which a model file cannot hold: it holds numbers, texts, "
        "arrays, scipy.sparse matrices in CSR or CSC, kernels, families and what our fits consist of."
    )


DEEPEST = 100  # levels of objects within objects
MOST_PARTS = 2**20  # of a model in which what is shared is counted each time it is met, beyond those in the file
SHARED = ("array", "object", "sparse", "texts")  # what can be referred to
NUMBERS = "biufcmM"
PLAIN = (bool, int, float, str, type(None))


class PartCounter:
    """Counts the parts of a model, and refuses one whose shared parts, each time they are met, are too many.

    A few objects, each of which holds the one before it twice, would be walked through for ever.
    """

    def __init__(self) -> None:
        self.all = self.stored = 0

    def add(self, where: str, again: int = 0) -> None:
        """Count one more, and the parts of what it refers to."""
        self.stored += 1
        self.all += 1 + again
        if self.all > MOST_PARTS + self.stored:
            raise ValueError(f"{where} holds the same parts again and again, more than {MOST_PARTS} times in all")


class Encoder:
    """Turns values into nodes; arrays become tensors under the name of the attribute that holds them.

    Attributes
    ----------
    tensors : dict of str to ndarray
        What the nodes name.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.tensors: dict[str, Array] = {}
        # what was met, kept alive so that its id stays its own, with its node, its number and how many parts it has
        self._first: dict[int, tuple[Any, dict[str, Any], int, int]] = {}
        self._inside: list[int] = []
        self._parts = PartCounter()

    def node(self, value: Any, path: str = "") -> Any:
        """The node of any value; arrays and objects that are met again become references to the first."""
        if type(value) in PLAIN:
            return self._plain(value, path)
        before = self._parts.all
        self._parts.add(self._where(path))
        if isinstance(value, TensorSource):
            value = DenseSource(_to_numpy(value.values, self._where(path)), value.feature_names)
        if type(value) in (list, tuple, dict):
            return self._within(value, path, self._container)
        if not (isinstance(value, np.ndarray) or is_torch_array(value) or sp.issparse(value) or type(value) in NAMES):
            return self._small(value, path)
        if id(value) in self._first:
            _, first, number, parts = self._first[id(value)]
            self._parts.add(self._where(path), parts)
            return {"$": "ref", "id": first.setdefault("id", number)}
        made: dict[str, Any] = self._within(value, path, self._large)
        self._first[id(value)] = value, made, len(self._first), self._parts.all - before
        return made

    def _where(self, path: str) -> str:
        return f"{self.kind}.{path}" if path else self.kind

    def _within(self, value: Any, path: str, encode: Any) -> Any:
        """Go one level down, unless that is too deep or comes round in a circle."""
        if id(value) in self._inside or len(self._inside) >= DEEPEST:
            raise ValueError(f"{self._where(path)} refers to itself, or is nested more than {DEEPEST} levels deep.")
        self._inside.append(id(value))
        node = encode(value, path)
        self._inside.pop()
        return node

    def _plain(self, value: Any, path: str) -> Any:
        if type(value) is float and not math.isfinite(value):
            return {"$": "float", "value": repr(value)}
        if type(value) is str and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise self._no_text(value, path)
        return value

    def _no_text(self, text: str, path: str) -> ValueError:
        return ValueError(f"{self._where(path)}: {text!r} has half a surrogate pair, which is no text in UTF-8.")

    def _container(self, value: Any, path: str) -> Any:
        if type(value) is dict:
            pairs = [[self.node(k, f"{path}.key"), self.node(v, _join(path, k))] for k, v in value.items()]
            return {"$": "dict", "items": pairs}
        items = [self.node(item, _join(path, i)) for i, item in enumerate(value)]
        return items if type(value) is list else {"$": "tuple", "items": items}

    def _small(self, value: Any, path: str) -> Any:
        """What has no parts: scalars of NumPy, types, distributions of scipy.stats, our own functions."""
        if isinstance(value, np.str_):
            return {"$": "scalar", "dtype": "str", "value": self.node(str(value), path)}
        if isinstance(value, np.generic) and value.dtype.kind in "biuf" and value.dtype.itemsize <= 8:
            return {"$": "scalar", "dtype": value.dtype.name, "value": self.node(value.item(), path)}
        if isinstance(value, np.dtype) and value.kind in NUMBERS:
            return {"$": "dtype", "name": value.str}
        if isinstance(value, type) and value in TYPES.values():
            return {"$": "type", "name": next(name for name, known in TYPES.items() if known is value)}
        if (name := _distribution(value)) is not None:
            return {"$": "distribution", "name": name}
        if isinstance(value, functools.partial) and function_name(value.func) and not value.keywords:
            arguments = [self.node(item, _join(path, i)) for i, item in enumerate(value.args)]
            return {"$": "partial", "function": function_name(value.func), "arguments": arguments}
        raise unstorable(value, self._where(path))

    def _large(self, value: Any, path: str) -> dict[str, Any]:
        if sp.issparse(value):
            return self._sparse(value, path)
        if isinstance(value, np.ndarray) or is_torch_array(value):
            return self._array(_to_numpy(value, self._where(path)), path)
        state = {name: self.node(item, _join(path, name)) for name, item in state_of(value).items()}
        return {"$": "object", "class": NAMES[type(value)], "state": state}

    def _array(self, a: Array, path: str) -> dict[str, Any]:
        if type(a) not in (np.ndarray, np.memmap):
            raise unstorable(a, self._where(path))
        if a.dtype.kind in NUMBERS and a.dtype.itemsize <= (16 if a.dtype.kind == "c" else 8):
            tensor, said = pack(a)
            return {"$": "array", "tensor": self._tensor(path, tensor), **said}
        if a.dtype.kind == "U" or (a.dtype.kind in "TO" and all(type(item) is str for item in a.ravel().tolist())):
            try:
                data, ends, said = pack_texts(a)
            except UnicodeEncodeError as error:
                raise self._no_text(error.object, path) from None
            names = {"tensor": self._tensor(path, data), "offsets": self._tensor(f"{path}.offsets", ends)}
            return {"$": "texts", **names, **said}
        raise unstorable(a, self._where(path))

    def _sparse(self, matrix: Any, path: str) -> dict[str, Any]:
        if matrix.format not in ("csr", "csc"):
            raise unstorable(matrix, self._where(path))
        parts = {name: self.node(getattr(matrix, name), _join(path, name)) for name in ("data", "indices", "indptr")}
        kind = "matrix" if sp.isspmatrix(matrix) else "array"
        return {"$": "sparse", "format": matrix.format, "kind": kind, "shape": [int(n) for n in matrix.shape], **parts}

    def _tensor(self, path: str, tensor: Array) -> str:
        name, number = path, 1
        while name in self.tensors or name == "__metadata__":
            number += 1
            name = f"{path}~{number}"
        self.tensors[name] = tensor
        return name


def _join(path: str, part: Any) -> str:
    return f"{path}.{part}" if path else str(part)


def _distribution(value: Any) -> str | None:
    """The name of a distribution of scipy.stats; none for one that a user made."""
    name = getattr(value, "name", None)
    known = isinstance(value, (stats.rv_continuous, stats.rv_discrete)) and isinstance(name, str)
    return name if known and getattr(stats, str(name), None) is value else None


def _to_numpy(values: Any, where: str) -> Array:
    """An array of NumPy, as it is; a tensor of torch as one."""
    if isinstance(values, np.ndarray):
        return values
    try:
        return np.asarray(values.detach().cpu().numpy())
    except TypeError as error:
        raise ValueError(f"{where} is a tensor of dtype {values.dtype}, which NumPy has not: {error}.") from None


FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


class ModelDecoder:
    """Turns nodes into values. A tensor serves one node, so that a small file cannot ask for much memory.

    Parameters
    ----------
    tensors : dict of str to ndarray
        By name; those that were used are taken out.
    """

    def __init__(self, tensors: dict[str, Array]) -> None:
        self.tensors = tensors
        self._known: dict[int, tuple[Any, int]] = {}  # what can be referred to, and how many parts it has
        self._depth = 0
        self._parts = PartCounter()
        self._makers: dict[str, Callable[[dict[str, Any]], Any]] = {
            "array": lambda node: unpack(self.tensors.pop(node["tensor"]), node),
            "dict": lambda node: {self.value(key): self.value(item) for key, item in node["items"]},
            "distribution": self._distribution,
            "dtype": lambda node: read_dtype(node["name"]),
            "float": lambda node: FLOATS[node["value"]],
            "object": self._object,
            "partial": lambda node: functools.partial(
                FUNCTIONS[node["function"]], *(self.value(item) for item in node["arguments"])
            ),
            "ref": self._reference,
            "scalar": lambda node: SCALARS[node["dtype"]](self.value(node["value"])),
            "sparse": self._sparse,
            "texts": lambda node: unpack_texts(
                self.tensors.pop(node["tensor"]), self.tensors.pop(node["offsets"]), node
            ),
            "tuple": lambda node: tuple(self.value(item) for item in node["items"]),
            "type": lambda node: TYPES[node["name"]],
        }

    def value(self, node: Any) -> Any:
        """The value that a node stands for."""
        if not isinstance(node, (dict, list)):
            return node
        if self._depth >= DEEPEST + 20:  # nodes of scalars and functions are levels here, and none when saved
            raise ValueError(f"it is nested more than {DEEPEST} levels deep")
        self._depth += 1
        before = self._parts.all
        self._parts.add("it")
        if isinstance(node, list):
            made: Any = [self.value(item) for item in node]
        elif node["$"] in self._makers:
            made = self._makers[node["$"]](node)
            if node["$"] in SHARED and "id" in node:
                self._known[node["id"]] = made, self._parts.all - before
        else:
            raise ValueError(f"{node['$']!r} is unknown")
        self._depth -= 1
        return made

    def _reference(self, node: dict[str, Any]) -> Any:
        made, parts = self._known[node["id"]]
        self._parts.add("it", parts)
        return made

    def _sparse(self, node: dict[str, Any]) -> Any:
        made = {"csr": (sp.csr_array, sp.csr_matrix), "csc": (sp.csc_array, sp.csc_matrix)}[node["format"]]
        parts = tuple(self.value(node[name]) for name in ("data", "indices", "indptr"))
        matrix: Any = made[node["kind"] == "matrix"](parts, shape=tuple(node["shape"]), copy=False)
        matrix.check_format(full_check=True)  # an index beyond the shape would be read from memory that is not ours
        return matrix

    def _distribution(self, node: dict[str, Any]) -> Any:
        found = getattr(stats, node["name"], None)
        if not isinstance(found, (stats.rv_continuous, stats.rv_discrete)):
            raise ValueError(f"scipy.stats has no distribution {node['name']!r}")
        return found

    def _object(self, node: dict[str, Any]) -> Any:
        if node["class"] not in CLASSES:
            raise ValueError(f"{node['class']!r} is unknown")
        state = {name: self.value(item) for name, item in node["state"].items()}
        return rebuild(CLASSES[node["class"]], state)
