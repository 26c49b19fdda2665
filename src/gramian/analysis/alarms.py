"""What a monitor says of rows: their T² and Q, and the parts of the variables in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.analysis._elements import ratio

__all__ = ["Alarms", "Contributions"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

SHOWN = 10  # rows of a representation
TOP = 3  # variables named for each of them


@dataclass(frozen=True, repr=False, eq=False)
class Alarms:
    """T² and Q of rows beside their limits.

    Attributes
    ----------
    t2, q : ndarray of shape (n,)
        T² = Σ z_l²/λ_l, the distance within the plane, and Q = ‖x − x̂‖², the squared distance from it.
    t2_limit, q_limit : float
        What they were held against.
    names : tuple of str or None
        The rows, where they have names: the index of a frame.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis.alarms import Alarms
    >>> Alarms(np.array([1.0, 9.0, 1.0]), np.array([0.0, 0.5, 5.0]), 4.0, 2.0, ("mon", "tue", "wed"))
    Alarms: 2 of 3 rows
      T²  limit 4  above it 1  largest 9
      Q   limit 2  above it 1  largest 5
      row 1 (tue)  T² 9 alarm  Q 0.5
      row 2 (wed)  T² 1        Q 5 alarm
    """

    t2: Vector
    q: Vector
    t2_limit: float
    q_limit: float
    names: tuple[str, ...] | None = None

    @property
    def t2_alarm(self) -> npt.NDArray[np.bool_]:
        """Whether T² is above its limit: a row far out in directions the model knows."""
        return np.asarray(self.t2 > self.t2_limit)

    @property
    def q_alarm(self) -> npt.NDArray[np.bool_]:
        """Whether Q is above its limit: a row that breaks with the correlations of the training rows."""
        return np.asarray(self.q > self.q_limit)

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """Return the numbers of the rows with an alarm of either kind, counted from 0."""
        return np.flatnonzero(self.t2_alarm | self.q_alarm)

    def table(self) -> dict[str, Any]:
        """Return the columns row, name (where rows have names), t2, q, t2_alarm and q_alarm."""
        return {
            "row": np.arange(len(self.t2)),
            **({} if self.names is None else {"name": list(self.names)}),
            "t2": self.t2,
            "q": self.q,
            "t2_alarm": self.t2_alarm,
            "q_alarm": self.q_alarm,
        }

    def __repr__(self) -> str:
        lines = [f"Alarms: {len(self.rows)} of {len(self.t2)} rows"]
        for name, x, limit in (("T²", self.t2, self.t2_limit), ("Q", self.q, self.q_limit)):
            above, most = int(np.count_nonzero(x > limit)), float(np.max(x, initial=0.0))
            lines.append(f"  {name:<2}  limit {limit:.4g}  above it {above}  largest {most:.4g}")
        more = len(self.rows) - SHOWN
        return "\n".join([*lines, *self._alarmed(), *([f"  ... and {more} more rows with an alarm"] * (more > 0))])

    def _alarmed(self) -> list[str]:
        """The first rows with an alarm, and which statistic raised it."""
        cells = [
            (_row(i, self.names), _judged("T²", self.t2[i], self.t2_limit), _judged("Q", self.q[i], self.q_limit))
            for i in self.rows[:SHOWN]
        ]
        wide = [max(map(len, column)) for column in zip(*cells, strict=True)]
        return [f"  {row:<{wide[0]}}  {t2:<{wide[1]}}  {q}" for row, t2, q in cells]


def _row(i: int, names: tuple[str, ...] | None) -> str:
    return f"row {i}" if names is None else f"row {i} ({names[i]})"


def _judged(name: str, value: float, limit: float) -> str:
    return f"{name} {value:.4g}{' alarm' * bool(value > limit)}"


@dataclass(frozen=True, repr=False, eq=False)
class Contributions:
    """How much each variable adds to T² and Q of each row.

    Attributes
    ----------
    t2 : ndarray of shape (n, p)
        c_j = (e_jᵀVΛ^{-1/2}z)², the complete decomposition: Σ_j c_j = T².
    q : ndarray of shape (n, p)
        Squared residuals: Σ_j q_j = Q.
    residuals : ndarray of shape (n, p)
        x − x̂ in the units of the components (divided by ``scale_`` where the model scales), with their signs.
    names : tuple of str
        The variables.
    t2_limit, q_limit : float
        The limits of T² and Q, the sums of the parts.
    row_names : tuple of str or None
        The rows, where they have names.
    """

    t2: Matrix
    q: Matrix
    residuals: Matrix
    names: tuple[str, ...]
    t2_limit: float = np.inf
    q_limit: float = np.inf
    row_names: tuple[str, ...] | None = None

    @property
    def order(self) -> npt.NDArray[np.intp]:
        """Numbers of the rows, those that are farthest beyond a limit first."""
        excess = np.maximum(ratio(self.t2.sum(axis=1), self.t2_limit), ratio(self.q.sum(axis=1), self.q_limit))
        return np.argsort(-excess, kind="stable")

    def table(self) -> dict[str, Any]:
        """Return one line for each row and variable: row, variable, t2, q, residual."""
        n, p = self.t2.shape
        names = {} if self.row_names is None else {"name": [name for name in self.row_names for _ in range(p)]}
        return {
            "row": np.repeat(np.arange(n), p),
            **names,
            "variable": list(self.names) * n,
            "t2": self.t2.ravel(),
            "q": self.q.ravel(),
            "residual": self.residuals.ravel(),
        }

    def __repr__(self) -> str:
        n, p = self.t2.shape
        lines = [f"Contributions: {n} rows, {p} variables; rows farthest beyond a limit first"]
        for i in self.order[:SHOWN]:
            lines.append(f"  {_row(i, self.row_names)}")
            for name, parts, limit in (("T²", self.t2[i], self.t2_limit), ("Q", self.q[i], self.q_limit)):
                lines.append(f"    {_judged(name, parts.sum(), limit)}: {self._largest(parts)}")
        return "\n".join([*lines, *([f"  ... and {n - SHOWN} more rows"] * (n > SHOWN))])

    def _largest(self, parts: Vector) -> str:
        first = np.argsort(-parts, kind="stable")[:TOP]
        return ", ".join(f"{self.names[j]} {parts[j]:.4g}" for j in first)
