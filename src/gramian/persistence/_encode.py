"""A fitted model as JSON and tensors."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from array_api_compat import is_torch_array
from scipy import stats

from gramian.persistence._arrays import pack, pack_texts
from gramian.persistence._refusals import unstorable
from gramian.persistence._registry import NAMES, TYPES, function_name
from gramian.persistence._state import state_of
from gramian.sources import DenseSource, TensorSource

__all__ = ["DEEPEST", "Encoder"]

Array = npt.NDArray[Any]
Node = Any  # what JSON can say

DEEPEST = 100  # levels of objects within objects
NUMBERS = "biufcmM"
PLAIN = (bool, int, float, str, type(None))


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
        self._first: dict[
            int, tuple[Any, dict[str, Any], int]
        ] = {}  # what was met, kept alive so that its id stays its own
        self._inside: list[int] = []

    def node(self, value: Any, path: str = "") -> Node:
        """The node of any value; arrays and objects that are met again become references to the first."""
        if type(value) in PLAIN:
            return self._plain(value, path)
        if isinstance(value, TensorSource):
            value = DenseSource(_host(value.values, self._where(path)), value.feature_names)
        if type(value) in (list, tuple, dict):
            return self._within(value, path, self._container)
        if not (isinstance(value, np.ndarray) or is_torch_array(value) or sp.issparse(value) or type(value) in NAMES):
            return self._small(value, path)
        if id(value) in self._first:
            _, first, number = self._first[id(value)]
            return {"$": "ref", "id": first.setdefault("id", number)}
        made: dict[str, Any] = self._within(value, path, self._large)
        self._first[id(value)] = value, made, len(self._first)
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

    def _plain(self, value: Any, path: str) -> Node:
        if type(value) is float and not math.isfinite(value):
            return {"$": "float", "value": repr(value)}
        if type(value) is str and any("\ud800" <= letter <= "\udfff" for letter in value):
            raise self._no_text(value, path)
        return value

    def _no_text(self, text: str, path: str) -> ValueError:
        return ValueError(f"{self._where(path)}: {text!r} has half a surrogate pair, which is no text in UTF-8.")

    def _container(self, value: Any, path: str) -> Node:
        if type(value) is dict:
            pairs = [[self.node(k, f"{path}.key"), self.node(v, _join(path, k))] for k, v in value.items()]
            return {"$": "dict", "items": pairs}
        items = [self.node(item, _join(path, i)) for i, item in enumerate(value)]
        return items if type(value) is list else {"$": "tuple", "items": items}

    def _small(self, value: Any, path: str) -> Node:
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
            return self._array(_host(value, self._where(path)), path)
        state = {name: self.node(item, _join(path, name)) for name, item in state_of(value).items()}
        return {"$": "object", "class": NAMES[type(value)], "state": state}

    def _array(self, a: Array, path: str) -> dict[str, Any]:
        if type(a) not in (np.ndarray, np.memmap):
            raise unstorable(a, self._where(path))
        if a.dtype.kind in NUMBERS and a.dtype.itemsize <= (16 if a.dtype.kind == "c" else 8):
            tensor, said = pack(a)
            return {"$": "array", "tensor": self._tensor(path, tensor), **said}
        if a.dtype.kind == "U" or (a.dtype.kind in "TO" and all(type(item) is str for item in a.ravel().tolist())):
            return self._texts(a, path)
        raise unstorable(a, self._where(path))

    def _texts(self, a: Array, path: str) -> dict[str, Any]:
        try:
            data, ends, said = pack_texts(a)
        except UnicodeEncodeError as error:
            raise self._no_text(error.object, path) from None
        names = {"tensor": self._tensor(path, data), "offsets": self._tensor(f"{path}.offsets", ends)}
        return {"$": "texts", **names, **said}

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


def _host(values: Any, where: str) -> Array:
    """An array of NumPy: tensors of torch are brought to the host."""
    if isinstance(values, np.ndarray):
        return values
    try:
        return np.asarray(values.detach().cpu().numpy())
    except TypeError as error:
        raise ValueError(f"{where} is a tensor of dtype {values.dtype}, which NumPy has not: {error}.") from None
