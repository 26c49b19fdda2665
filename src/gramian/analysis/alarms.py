"""What a monitor says of rows: their T² and Q, and the parts of the variables in them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["Alarms", "Contributions"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False, eq=False)
class Alarms:
    """T² and Q of rows beside their limits.

    Attributes
    ----------
    t2, q : ndarray of shape (n,)
        T² = Σ z_l²/λ_l, the distance within the plane, and Q = ‖x − x̂‖², the squared distance from it.
    t2_limit, q_limit : float
        What they were held against.
    """

    t2: Vector
    q: Vector
    t2_limit: float
    q_limit: float

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
        """Return the columns row, t2, q, t2_alarm and q_alarm."""
        return {
            "row": np.arange(len(self.t2)),
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
        return "\n".join(lines)


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
    """

    t2: Matrix
    q: Matrix
    residuals: Matrix
    names: tuple[str, ...]

    def table(self) -> dict[str, Any]:
        """Return one line for each row and variable: row, variable, t2, q, residual."""
        n, p = self.t2.shape
        return {
            "row": np.repeat(np.arange(n), p),
            "variable": list(self.names) * n,
            "t2": self.t2.ravel(),
            "q": self.q.ravel(),
            "residual": self.residuals.ravel(),
        }

    def __repr__(self) -> str:
        n, p = self.t2.shape
        lines = [f"Contributions: {n} rows, {p} variables; the largest of the first rows"]
        for i in range(min(n, 10)):
            a, b = int(np.argmax(self.t2[i])), int(np.argmax(self.q[i]))
            lines.append(f"  row {i}  T²: {self.names[a]} {self.t2[i, a]:.4g}  Q: {self.names[b]} {self.q[i, b]:.4g}")
        return "\n".join(lines)
