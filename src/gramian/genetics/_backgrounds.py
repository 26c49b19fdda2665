"""Where simulated people come from, checked: places on a map, populations, or a mixture of populations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.genetics._frequencies import Frequencies, balding_nichols, map_features, smooth_field

__all__ = ["Background"]

Matrix = npt.NDArray[np.float64]


class Background:
    """People described by positions, groups or ancestry, and how their allele frequencies are drawn.

    Examples
    --------
    >>> from gramian.genetics._backgrounds import Background
    >>> Background(None, ["a", "b", "b"], None)
    3 people in 2 populations
    """

    def __init__(self, positions: Any, groups: Any, ancestry: Any) -> None:
        if (ancestry is not None) == (positions is not None or groups is not None):
            raise ValueError(
                "People need positions (with groups or without), or groups, or ancestry; give one of these."
            )
        self.positions = None if positions is None else _table(positions, "positions")
        self.ancestry = None if ancestry is None else _proportions(ancestry)
        self.groups = None if groups is None else _codes(groups)
        table = self.ancestry if self.positions is None else self.positions
        if self.groups is None and self.positions is not None:
            self.groups = np.unique(self.positions, axis=0, return_inverse=True)[1].reshape(-1)
        if table is not None and self.groups is not None and len(self.groups) != len(table):
            raise ValueError(
                f"There are {len(table)} positions and {len(self.groups)} groups: one of each for a person."
            )

    def __len__(self) -> int:
        return len(self.groups if self.ancestry is None else self.ancestry)  # type: ignore[arg-type]

    def __repr__(self) -> str:
        if self.ancestry is not None:
            return f"{len(self)} people mixed of {self.ancestry.shape[1]} populations"
        kinds = int(self.groups.max()) + 1  # type: ignore[union-attr]
        return f"{len(self)} people in {kinds} " + ("populations" if self.positions is None else "places on a map")

    def frequencies(self, fst: float, length: float | None, maf: tuple[float, float]) -> Frequencies:
        """How allele frequencies are drawn, given those of the ancestors."""
        if self.positions is not None and self.groups is not None:
            span = float(np.linalg.norm(np.ptp(self.positions, axis=0)))
            if not span:
                raise ValueError("positions are all the same place: frequencies cannot vary over it.")
            features = map_features(self.positions, span if length is None else length)
            return smooth_field(features, self.groups, fst, maf)
        if self.groups is not None:
            return balding_nichols(np.eye(int(self.groups.max()) + 1)[self.groups], fst)
        assert self.ancestry is not None
        return balding_nichols(self.ancestry, fst)


def _table(values: Any, name: str) -> Matrix:
    table = np.array(values, dtype=np.float64)
    if table.ndim != 2 or not table.size:
        raise ValueError(f"{name} have shape {table.shape}; a row for each person was expected.")
    bad = np.flatnonzero(~np.isfinite(table).all(axis=1))
    if len(bad):
        raise ValueError(f"{name}: person {bad[0]} has {table[bad[0]].tolist()}; numbers are needed.")
    return table


def _proportions(values: Any) -> Matrix:
    table = _table(values, "ancestry")
    bad = np.flatnonzero((table < 0).any(axis=1) | (np.abs(table.sum(axis=1) - 1) > 1e-6))
    if len(bad):
        raise ValueError(
            f"ancestry: person {bad[0]} has {table[bad[0]].tolist()}; proportions sum to 1, none negative."
        )
    return table


def _codes(labels: Sequence[Any]) -> npt.NDArray[np.intp]:
    """0, 1, … for the labels in sorted order."""
    if not len(labels):
        raise ValueError("groups are empty: one label for each person was expected.")
    return np.unique(np.asarray(labels).astype(str), return_inverse=True)[1].reshape(-1)
