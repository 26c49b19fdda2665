"""JSON and tensors as a fitted model: every name is looked up in the closed list, and nothing is executed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy import stats

from gramian.persistence._arrays import read_dtype, unpack, unpack_texts
from gramian.persistence._encode import DEEPEST
from gramian.persistence._registry import CLASSES, FUNCTIONS, TYPES
from gramian.persistence._state import rebuild

__all__ = ["Decoder"]

Array = npt.NDArray[Any]
Said = dict[str, Any]
FLOATS = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
SCALARS = {np.dtype(code).name: np.dtype(code).type for code in ("b1", "f2", "f4", "f8", "i1", "i2", "i4", "i8")}
SCALARS |= {np.dtype(code).name: np.dtype(code).type for code in ("u1", "u2", "u4", "u8")} | {"str": np.str_}


class Decoder:
    """Turns nodes into values. A tensor serves one node, so that a small file cannot ask for much memory.

    Parameters
    ----------
    tensors : dict of str to ndarray
        By name; those that were used are taken out.
    """

    def __init__(self, tensors: dict[str, Array]) -> None:
        self.tensors = tensors
        self._known: dict[int, Any] = {}
        self._depth = 0
        self._makers: dict[str, Callable[[Said], Any]] = {
            "array": self._array,
            "dict": self._dict,
            "distribution": self._distribution,
            "dtype": lambda node: read_dtype(node["name"]),
            "float": lambda node: FLOATS[node["value"]],
            "object": self._object,
            "partial": self._partial,
            "ref": lambda node: self._known[node["id"]],
            "scalar": lambda node: SCALARS[node["dtype"]](self.value(node["value"])),
            "sparse": self._sparse,
            "texts": self._texts,
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
        made = [self.value(item) for item in node] if isinstance(node, list) else self._made(node)
        self._depth -= 1
        return made

    def _made(self, node: Said) -> Any:
        if node["$"] not in self._makers:
            raise ValueError(f"{node['$']!r} is unknown")
        made = self._makers[node["$"]](node)
        if "id" in node:
            self._known[node["id"]] = made
        return made

    def _dict(self, node: Said) -> dict[Any, Any]:
        return {self.value(key): self.value(item) for key, item in node["items"]}

    def _array(self, node: Said) -> Array:
        return unpack(self.tensors.pop(node["tensor"]), node)

    def _texts(self, node: Said) -> Array:
        return unpack_texts(self.tensors.pop(node["tensor"]), self.tensors.pop(node["offsets"]), node)

    def _sparse(self, node: Said) -> Any:
        made = {"csr": (sp.csr_array, sp.csr_matrix), "csc": (sp.csc_array, sp.csc_matrix)}[node["format"]]
        parts = tuple(self.value(node[name]) for name in ("data", "indices", "indptr"))
        matrix: Any = made[node["kind"] == "matrix"](parts, shape=tuple(node["shape"]), copy=False)
        matrix.check_format(full_check=True)  # an index beyond the shape would be read from memory that is not ours
        return matrix

    def _distribution(self, node: Said) -> Any:
        found = getattr(stats, node["name"], None)
        if not isinstance(found, (stats.rv_continuous, stats.rv_discrete)):
            raise ValueError(f"scipy.stats has no distribution {node['name']!r}")
        return found

    def _partial(self, node: Said) -> Any:
        return functools.partial(FUNCTIONS[node["function"]], *(self.value(item) for item in node["arguments"]))

    def _object(self, node: Said) -> Any:
        if node["class"] not in CLASSES:
            raise ValueError(f"{node['class']!r} is unknown")
        state = {name: self.value(item) for name, item in node["state"].items()}
        return rebuild(CLASSES[node["class"]], state)
