"""What every rule on eigenvalues does first: check them, and say where there is nothing to choose."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from gramian.analysis.rank_choice import RankChoice

__all__ = ["checked", "most", "nothing"]

Vector = npt.NDArray[np.float64]

ROUNDING = 64 * float(
    np.finfo(float).eps
)  # times √p: what an eigenvalue that is 0 may be computed as, beside the largest


def checked(eigenvalues: npt.ArrayLike, n: float | None = None, p: int | None = None) -> Vector:
    """Return the eigenvalues as an array, rounding put to 0; raise an error where they cannot be a whole spectrum.

    Examples
    --------
    >>> from gramian.analysis._spectrum import checked
    >>> checked([2.0, 1.0, -1e-17]).tolist()
    [2.0, 1.0, 0.0]
    """
    lam = np.asarray(eigenvalues, dtype=np.float64)
    if lam.ndim != 1 or len(lam) == 0:
        raise ValueError(f"eigenvalues must be a list of numbers, got shape {lam.shape}.")
    if not np.isfinite(lam).all():
        raise ValueError(f"eigenvalues must be finite: number {np.argmin(np.isfinite(lam))} (from 0) is not.")
    level = ROUNDING * math.sqrt(len(lam)) * max(float(lam[0]), 0.0)
    bad = np.flatnonzero(lam < -level)
    if len(bad):
        raise ValueError(
            f"eigenvalues of a covariance matrix are not negative; number {bad[0]} (from 0) is {lam[bad[0]]:g}."
        )
    rising = np.flatnonzero(np.diff(lam) > level)
    if len(rising):
        raise ValueError(
            f"eigenvalues must descend: number {rising[0] + 1} (from 0) exceeds the one before. Sort them."
        )
    if n is not None and p is not None:
        _refuse_partial(len(lam), n, p)
    return np.where(lam > level, lam, 0.0)


def _refuse_partial(count: int, n: float, p: int) -> None:
    if not (n >= 2 and p >= 1):
        raise ValueError(f"n={n!r} rows and p={p!r} columns have no covariance: two rows and a column are needed.")
    if count < most(n, p) or count > p:
        raise ValueError(
            f"{count} eigenvalues are not those of {n:g} rows and {p} columns: the rule needs all of them, from "
            f"{most(n, p)} to {p}. Fit with n_components=None."
        )


def most(n: float, p: int) -> int:
    """Return how many eigenvalues can differ from 0: min(n − 1, p)."""
    return int(min(n - 1 + 1e-9, p))


def nothing(rule: str, lam: Vector) -> RankChoice:
    """Return the answer where all rows are equal."""
    reason = "All rows are equal: there is no variance, and so no component."
    return RankChoice(rule, 0, reason, lam, np.full(len(lam), np.nan))
