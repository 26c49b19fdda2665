r"""Filling missing cells: once, by their expectation; or several times, by draws that carry the uncertainty on.

One draw of a multiple imputation first draws the model, by fitting it again to rows drawn with replacement, then
the missing cells from their conditional distribution under it. Estimates from m completed tables are pooled by Rubin's
rules (1987): with U the mean of their variances and B the variance of the estimates,

.. math:: T = U + (1 + 1/m)B,\qquad \nu = (m-1)\left(1 + \frac{U}{(1+1/m)B}\right)^2 .
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import stdtrit
from sklearn.base import clone

from gramian.analysis._cards import ground
from gramian.analysis._model import Model
from gramian.analysis._rank_inputs import seed_of
from gramian.analysis.conditional import condition, filled_rows
from gramian.sources import Source

__all__ = ["Imputations", "Pooled", "impute", "impute_to", "multiple_imputation", "pool"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Progress = Callable[[int, int], Any]

PARAMETERS = ("bootstrap", "fixed")
SHOWN = 20  # rows of a printed table


def impute(pca: Model, source: Source) -> Matrix:
    """Return the rows with missing cells at their conditional expectation; observed cells keep every bit."""
    return np.concatenate([filled for _, filled in filled_rows(pca, source)]).astype(_dtype(source), copy=False)


def impute_to(pca: Model, source: Source, out: str | os.PathLike[str]) -> Path:
    """Write the rows, filled as by :func:`impute`, to an ``.npy`` file, block by block: whole or not at all."""
    out = Path(out)
    if out.suffix != ".npy":
        raise ValueError(f"out={str(out)!r}: the completed table is written as .npy; give a name that ends so.")
    if out.exists():
        raise FileExistsError(f"{out} exists already. Choose another name or remove it.")
    name = out.parent / f".gramian-partial-{os.getpid()}-{out.name}"
    try:
        table = np.lib.format.open_memmap(name, "w+", dtype=_dtype(source), shape=source.shape)
        for start, filled in filled_rows(pca, source):
            table[start : start + len(filled)] = filled
        table.flush()
        del table
        os.replace(name, out)
    except BaseException:
        name.unlink(missing_ok=True)
        raise
    return out


def _dtype(source: Source) -> np.dtype[Any]:
    return np.dtype(np.float32) if source.dtype == source.xp.float32 else np.dtype(np.float64)


@dataclass(frozen=True, eq=False, repr=False)
class Pooled:
    """Estimates from several completed tables, pooled by Rubin's rules.

    Attributes
    ----------
    estimate, variance : ndarray
        Mean of the estimates; T = U + (1 + 1/m)B.
    within, between : ndarray
        U and B.
    degrees_of_freedom : ndarray
        ν, of the t-distribution that intervals are taken from.
    missing_information : ndarray
        (1 + 1/m)B/T, the share of the variance that is due to missing cells.
    """

    estimate: Vector
    variance: Vector
    within: Vector
    between: Vector
    degrees_of_freedom: Vector

    @property
    def missing_information(self) -> Vector:
        """Share of the variance that is due to missing cells."""
        return 1.0 - self.within / np.where(self.variance > 0, self.variance, 1.0)

    def table(self, level: float = 0.95) -> dict[str, Vector]:
        """Return the columns of a table of estimates: for ``pandas.DataFrame``."""
        lower, upper = self.interval(level)
        return {
            "estimate": self.estimate,
            "error": np.sqrt(self.variance),
            "lower": lower,
            "upper": upper,
            "missing_information": self.missing_information,
        }

    def __repr__(self) -> str:
        lines = ["     estimate        error        lower        upper  missing information"]
        for i, row in enumerate(zip(*self.table().values(), strict=True)):
            if i == SHOWN:
                lines.append(f"  … {len(self.estimate) - SHOWN} more")
                break
            lines.append("".join(f"{x:13.5g}" for x in row[:4]) + f"{row[4]:21.1%}")
        return "\n".join(lines)

    def interval(self, level: float = 0.95) -> tuple[Vector, Vector]:
        """Return the ends of the t-interval."""
        half = stdtrit(self.degrees_of_freedom, 0.5 + level / 2) * np.sqrt(self.variance)
        return self.estimate - half, self.estimate + half


def pool(estimates: Any, variances: Any) -> Pooled:
    """Pool estimates and their variances, one row per completed table, by Rubin's rules.

    Examples
    --------
    >>> from gramian.analysis.imputation import pool
    >>> pooled = pool([[1.0], [3.0]], [[1.0], [1.0]])
    >>> pooled.estimate, pooled.variance
    (array([2.]), array([4.]))
    """
    Q, V = np.asarray(estimates, dtype=np.float64), np.asarray(variances, dtype=np.float64)
    if Q.shape != V.shape or len(Q) < 2:
        raise ValueError(f"Estimates of shape {Q.shape} and variances of shape {V.shape}: need two or more of each.")
    m, U, B = len(Q), V.mean(axis=0), Q.var(axis=0, ddof=1)
    extra = (1 + 1 / m) * B
    ratio = np.divide(U, extra, out=np.full_like(U, 1e8), where=extra > 1e-8 * U)
    return Pooled(Q.mean(axis=0), U + extra, U, B, (m - 1) * (1 + ratio) ** 2)


@dataclass(frozen=True, eq=False, repr=False)
class Imputations:
    """Completed tables to iterate over, any number of times: each is computed when it is asked for.

    Attributes
    ----------
    n : int
        How many.
    """

    pca: Any
    source: Source
    weights: Vector | None
    n: int
    parameters: str
    seeds: tuple[np.random.SeedSequence, ...]
    progress: Progress | None = None

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        n, p = self.source.shape
        return f"Imputations({self.n} tables of {n} x {p}, parameters={self.parameters!r}: iterate, or pool(estimate))"

    def __iter__(self) -> Iterator[Matrix]:
        for i in range(self.n):
            yield self[i]
            if self.progress is not None:
                self.progress(i + 1, self.n)

    def __getitem__(self, i: int) -> Matrix:
        rng = np.random.default_rng(self.seeds[i])
        model = self.pca if self.parameters == "fixed" else _redrawn(self.pca, self.source, self.weights, rng)
        return condition(model, self.source).sample(rng)

    def pool(self, estimate: Callable[[Matrix], tuple[Any, Any]]) -> Pooled:
        """Pool ``estimate(table) = (estimates, their variances)`` over the completed tables."""
        pairs = [estimate(table) for table in self]
        return pool([np.atleast_1d(q) for q, _ in pairs], [np.atleast_1d(v) for _, v in pairs])


def multiple_imputation(
    pca: Model,
    source: Source,
    n: int = 20,
    *,
    parameters: str = "bootstrap",
    sample_weight: Vector | None = None,
    random_state: Any = None,
    progress: Progress | None = None,
) -> Imputations:
    """Draw several completions of a table from the model of a PCA that was fitted to it.

    Parameters
    ----------
    pca : fitted PCA
        The model.
    source : Source
        The rows it was fitted to; NaN cells are missing.
    n : int, default=20
        How many completed tables.
    parameters : {"bootstrap", "fixed"}, default="bootstrap"
        Whether each table has a model of its own, fitted to rows drawn with replacement. With "fixed" the uncertainty
        of the model is left out, and intervals come out too short.
    sample_weight : ndarray, optional
        Frequencies of the rows, as in the fit.
    random_state : int, RandomState, Generator or None, default=None
        Seed; None is a fixed one.
    progress : callable, optional
        Called with (done, n) after each table.

    Returns
    -------
    Imputations
        The tables, and :meth:`Imputations.pool` for estimates from them.
    """
    if parameters not in PARAMETERS:
        raise ValueError(f"parameters must be one of {', '.join(PARAMETERS)}; got {parameters!r}.")
    if n < 1:
        raise ValueError(f"n must be at least 1, got {n}.")
    seeds = tuple(np.random.SeedSequence(seed_of(random_state)).spawn(n))
    return Imputations(ground(pca), ground(source), sample_weight, n, parameters, seeds, progress)


def _redrawn(pca: Any, source: Source, w: Vector | None, rng: np.random.Generator) -> Any:
    """Fit the model again to as many rows, drawn with replacement; a draw that leaves a column empty is redrawn."""
    rows = source.shape[0]
    share = np.full(rows, 1.0 / rows) if w is None else w / w.sum()
    draws = rows if w is None else round(float(w.sum()))
    for _ in range(100):
        weights = rng.multinomial(draws, share).astype(np.float64)
        try:
            model = clone(pca).set_params(n_components=int(pca.n_components_))
            return model.fit_incomplete(source, method=pca._missing_method, sample_weight=weights)
        except ValueError as error:
            if "no observed value" not in str(error):
                raise
    raise ValueError(
        "Rows drawn with replacement leave some column without an observed value, a hundred times over: too little of "
        "it is observed for multiple imputation. Leave it out, or use parameters='fixed'."
    )
