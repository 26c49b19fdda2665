"""What results about rows, columns and categories share: a table for each component, and a readable form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

__all__ = ["Elements", "component_names", "ratio", "text_table"]

Array = npt.NDArray[np.float64]

SHOWN = 10  # lines of a table that is printed


def component_names(k: int) -> tuple[str, ...]:
    """Names of components, counted from 0 as scikit-learn's ``get_feature_names_out`` does: pca0, pca1, …"""
    return tuple(f"pca{j}" for j in range(k))


def ratio(a: Any, b: Any) -> Array:
    """a/b, and 0 where b is 0: what has no variance, or lies at the centre, has no share of anything."""
    a, b = np.broadcast_arrays(np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))
    return np.asarray(np.divide(a, b, out=np.zeros(a.shape), where=b > 0))


def text_table(columns: Mapping[str, Any], limit: int = SHOWN) -> str:
    """Return columns of a table as lines of text, the first ``limit`` of them."""
    size = len(next(iter(columns.values())))
    cells = [[name, *(_cell(x) for x in list(values[:limit]))] for name, values in columns.items()]
    widths = [max(len(cell) for cell in column) for column in cells]
    lines = [
        "  ".join(_aligned(i, cell, widths[i]) for i, cell in enumerate(line)) for line in zip(*cells, strict=True)
    ]
    more = [f"... and {size - limit} more"] if size > limit else []
    return "\n".join(f"  {line}".rstrip() for line in [*lines, *more])


def _aligned(place: int, cell: str, width: int) -> str:
    """Names stand at the left of their column, numbers at the right."""
    return cell.ljust(width) if place == 0 else cell.rjust(width)


def _cell(x: Any) -> str:
    return f"{float(x):.4g}" if isinstance(x, (float, np.floating)) else str(x)


class Elements:
    """Things that lie in the space of the components, with some numbers for each of them on each component."""

    kind: ClassVar[str]
    # what a table calls a number, and the attribute that holds it
    per_component: ClassVar[dict[str, str]]
    overall: ClassVar[dict[str, str]]
    order: ClassVar[str]

    coordinates: Array

    def labels(self) -> Mapping[str, Sequence[Any]]:
        """Return the columns of the table that say which element a line is about."""
        names = getattr(self, "names", None)
        return {"name": list(range(len(self.coordinates)) if names is None else names)}

    def table(self, component: int | None = None) -> dict[str, Any]:
        """Return the numbers as columns, ready for ``pandas.DataFrame``.

        Parameters
        ----------
        component : int, optional
            One component, counted from 0, with the elements that matter most to it first. By default all components,
            side by side, and the elements in their own order.

        Returns
        -------
        dict
            Names of columns and their values.
        """
        if component is None:
            return self._wide()
        k = self.coordinates.shape[1]
        if not -k <= component < k:
            raise ValueError(f"component={component} does not exist: there are {k}, counted from 0.")
        key = getattr(self, self.per_component[self.order])[:, component]
        first = np.argsort(-np.abs(key), kind="stable")
        columns: dict[str, Any] = {name: [values[i] for i in first] for name, values in self.labels().items()}
        columns |= {name: getattr(self, of)[first, component] for name, of in self.per_component.items()}
        return columns | {name: getattr(self, of)[first] for name, of in self.overall.items()}

    def _wide(self) -> dict[str, Any]:
        columns: dict[str, Any] = dict(self.labels())
        for name, of in self.per_component.items():
            values = getattr(self, of)
            columns |= {f"{name}_{pc}": values[:, j] for j, pc in enumerate(component_names(values.shape[1]))}
        return columns | {name: getattr(self, of) for name, of in self.overall.items()}

    def __repr__(self) -> str:
        size, k = self.coordinates.shape
        head = f"{self.kind}: {size} on {k} component{'s' if k != 1 else ''}"
        if not size or not k:
            return head
        return f"{head}; on pca0, by {self.order}:\n{text_table(self.table(0))}"
