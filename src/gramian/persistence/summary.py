"""What a model file holds: parameters, attributes, metadata; arrays by their type and shape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from gramian.persistence.container import Header
from gramian.persistence.encode import SHARED, TENSOR_TYPES, parameters_of, read_dtype
from gramian.persistence.registry import CLASSES


@dataclass(frozen=True)
class UnreadValue:
    """Something that is in the file and was not read: what it is, and the shape of arrays.

    Examples
    --------
    >>> from gramian.persistence.summary import UnreadValue
    >>> UnreadValue("float64", (2, 3))
    float64 (2, 3)
    """

    kind: str
    shape: tuple[int, ...] | None = None

    def __repr__(self) -> str:
        return self.kind if self.shape is None else f"{self.kind} {self.shape}"


@dataclass(frozen=True, eq=False, repr=False)
class ModelFile:
    """The contents of a model file, arrays by their type and shape.

    Attributes
    ----------
    path : Path
        The file.
    kind : str
        Class of the model, such as "PCA".
    gramian : str
        Version that wrote it.
    format : int
        Version of the format.
    parameters : dict of str to value
        What the constructor was given.
    attributes : dict of str to value
        What was fitted: numbers and texts as they are, arrays and other objects as :class:`UnreadValue`.
    metadata : dict
        What was handed to :func:`gramian.save`.
    bytes : int
        Size of the file.
    sha256 : str
        Its checksum.
    """

    path: Path
    kind: str
    gramian: str
    format: int
    parameters: dict[str, Any]
    attributes: dict[str, Any]
    metadata: dict[str, Any]
    bytes: int
    sha256: str

    def __repr__(self) -> str:
        head = f"{self.kind} in {self.path.name}: {self.bytes:,} bytes, by Gramian {self.gramian}, format {self.format}"
        defaults = parameters_of(CLASSES[self.kind]) if self.kind in CLASSES else {}
        chosen = {k: v for k, v in self.parameters.items() if k not in defaults or repr(defaults[k]) != repr(v)}
        lines = [head, f"  {self.kind}({', '.join(f'{k}={v!r}' for k, v in chosen.items())})"]
        shown = {name: value for name, value in self.attributes.items() if not name.startswith("_")}
        width = max(map(len, shown), default=0)
        lines += [f"  {name:{width}}  {_short(value)}" for name, value in shown.items()]
        lines += [f"  metadata {name}: {_short(value)}" for name, value in self.metadata.items()]
        return "\n".join("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line) for line in lines)


def summary_of(header: Header) -> ModelFile:
    """Sort the state of the model into parameters and the rest."""
    document = header.document
    reader = _Reader(header)
    state = {name: reader.show(node) for name, node in document["model"].get("state", {}).items()}
    names = parameters_of(CLASSES[document["kind"]]) if document["kind"] in CLASSES else {}
    return ModelFile(
        header.path,
        document["kind"],
        document["gramian"],
        document["format"],
        {name: value for name, value in state.items() if name in names},
        {name: value for name, value in state.items() if name not in names},
        document["metadata"],
        header.size,
        document["sha256"],
    )


class _Reader:
    """Nodes as values where these are small, else as what they are."""

    def __init__(self, header: Header) -> None:
        self.tensors = header.tensors
        self.first = {
            node["id"]: node for node in _nodes(header.document["model"]) if "id" in node and node["$"] in SHARED
        }

    def show(self, node: Any) -> Any:
        """What a summary says of a node."""
        if isinstance(node, list):
            return [self.show(item) for item in node]
        if not isinstance(node, dict):
            return node
        shown: dict[str, Callable[[dict[str, Any]], Any]] = {
            "array": self._array,
            "dict": lambda node: {str(self.show(key)): self.show(item) for key, item in node["items"]},
            "float": lambda node: float(node["value"]),
            "ref": lambda node: self.show(self.first[node["id"]]),
            "scalar": lambda node: self.show(node["value"]),
            "sparse": lambda node: UnreadValue(f"sparse {node['format']}", tuple(node["shape"])),
            "texts": lambda node: UnreadValue("str", tuple(node["shape"])),
            "tuple": lambda node: tuple(self.show(item) for item in node["items"]),
        }
        if node["$"] in shown:
            return shown[node["$"]](node)
        return UnreadValue(str(node.get("class") or node.get("name") or node["$"]).rpartition(".")[2])

    def _array(self, node: dict[str, Any]) -> UnreadValue:
        tensor = self.tensors[node["tensor"]]
        dtype = read_dtype(node["dtype"]) if "dtype" in node else np.dtype(TENSOR_TYPES[tensor.dtype])
        shape = tensor.shape[:-1] if dtype.kind == "c" else tensor.shape
        axes = node.get("axes", list(range(len(shape))))
        return UnreadValue(dtype.name, tuple(shape[axes.index(axis)] for axis in range(len(shape))))


def _nodes(node: Any) -> Iterator[dict[str, Any]]:
    """All nodes in a document."""
    rest = [node]
    while rest:
        here = rest.pop()
        if isinstance(here, dict):
            if "$" in here:
                yield here
            rest.extend(here.values())
        elif isinstance(here, list):
            rest.extend(here)


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
