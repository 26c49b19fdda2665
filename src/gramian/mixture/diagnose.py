"""Components that have gone wrong, named."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from gramian.mixture.models import Prior, in_units, lowest
from gramian.mixture.parameters import Mixture
from gramian.mixture.statistics import Statistics

__all__ = ["Diagnosis", "diagnose"]

Array = npt.NDArray[np.float64]

HELD = 1.5  # times the floor: a variance below this is held by it
NOBODY = 1e-6  # of the total weight


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What is wrong with a component.

    Attributes
    ----------
    component : int
        Which.
    kind : {"empty", "collapsed"}
        No row belongs to it, or it has shrunk to a point, a line or a plane, where the likelihood has no maximum.
    message : str
        The same as a sentence, with the remedy; one and the same where the columns are the reason.
    """

    component: int
    kind: str
    message: str


def diagnose(mixture: Mixture, stats: Statistics, prior: Prior | None) -> tuple[Diagnosis, ...]:
    """Name the components that are empty, or that only the floor keeps from collapsing.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.mixture import Mixture, Rows, fit_mixture
    >>> data = Rows.of(gramian.open(np.array([[0.0], [1.0], [2.0], [3.0], [9.0]])))
    >>> fit = fit_mixture(data, Mixture.of([0.5, 0.5], [[1.0], [9.0]], [1.0, 0.1], "V"))
    >>> [(item.component, item.kind) for item in fit.diagnoses]
    [(1, 'collapsed')]
    """
    empty = np.flatnonzero(stats.counts <= NOBODY * stats.weight)
    found = [Diagnosis(int(k), "empty", _empty(int(k), stats)) for k in empty]
    if prior is not None and prior.hard:
        held, column = _held(mixture, stats, prior.scale)
        shared = _degenerate(mixture, stats, prior) if held.any() else None
        found += [
            Diagnosis(int(k), "collapsed", shared or _collapsed(int(k), int(column[k]), mixture, stats))
            for k in np.flatnonzero(held)
            if k not in empty
        ]
    return tuple(sorted(found, key=lambda item: item.component))


def _held(mixture: Mixture, stats: Statistics, scale: Array) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.intp]]:
    """Which components the floor holds, by their covariance or, where its shape is their own, by their scatter."""
    model, S = mixture.model, mixture.covariances
    held = lowest(model, S, scale) < HELD
    if model[1] == "V":
        N = np.maximum(stats.counts, np.finfo(float).tiny)
        T = stats.scatter(mixture.centres) / N.reshape(-1, *(1,) * (S.ndim - 1))
        held |= lowest(model, T, scale) < HELD
        S = T
    if mixture.diagonal:
        return held, np.asarray(np.argmin(S / scale, axis=1))
    vectors = np.linalg.eigh(in_units(S, scale))[1]
    return held, np.asarray(np.argmax(np.abs(vectors[:, :, 0]), axis=1))


def _empty(k: int, stats: Statistics) -> str:
    share = stats.counts[k] / stats.weight
    return f"component {k} is empty (weight {share:.2g}): fit fewer components, or start it elsewhere"


def _collapsed(k: int, column: int, mixture: Mixture, stats: Statistics) -> str:
    d, rows = len(mixture.origin), f"{stats.counts[k]:.3g}"
    where = "" if d == 1 else f", mostly in column {column}"
    return (
        f"component {k} has collapsed (it holds {rows} row{'s' * (rows != '1')}{where}): only the floor keeps its "
        "variance from 0, where the likelihood is unbounded; fit fewer components, a model with shared covariances, or "
        "use a prior, or start elsewhere"
    )


def _degenerate(mixture: Mixture, stats: Statistics, prior: Prior) -> str | None:
    """What is wrong with the columns themselves, where all rows together are held by the floor."""
    N, d = stats.counts, len(mixture.origin)
    mean = N @ stats.centres / N.sum()
    S = stats.scatter(np.broadcast_to(mean, stats.about.shape)).sum(axis=0) / N.sum()
    flat = np.diag(S) if S.ndim == 2 else S
    constant = np.flatnonzero(flat < HELD * prior.scale)
    if mixture.model[1] == "I":
        return None
    if len(constant):
        several = len(constant) > 1
        return (
            f"column{'s' * several} {', '.join(map(str, constant))} {'are' if several else 'is'} constant: no "
            f"component has a variance there but the floor's; leave {'them' if several else 'it'} out"
        )
    if S.ndim == 1 or not np.linalg.eigvalsh(in_units(S, prior.scale))[0] < HELD:
        return None
    if stats.weight <= d:
        return (
            f"{stats.weight:.3g} rows in {d} columns have no covariance matrix of full rank, and only the floor keeps "
            "it from being singular; use a diagonal or spherical model, or fewer columns (gramian.PCA)"
        )
    j = int(np.argmax(np.abs(np.linalg.eigh(in_units(S, prior.scale))[1][:, 0])))
    return (
        f"column {j} is a combination of others: no component has a variance in that direction, and only the floor "
        "keeps it from 0; leave it out"
    )
