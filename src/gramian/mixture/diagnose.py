"""Components that have gone wrong, named; and the distinct optima that several starts led to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment

from gramian.mixture.models import SPHERICAL, in_units, per_component, smallest_variances
from gramian.mixture.parameters import Mixture, Prior, SufficientStatistics

if TYPE_CHECKING:
    from gramian.mixture.em import MixtureFit

Array = npt.NDArray[np.float64]

AT_FLOOR = 1.5  # times the floor: a variance below this is held by it
EMPTY = 1e-6  # of the total weight
ROUNDING = 1e-6  # of a number of rows
NEAR = 0.05  # standard deviations between means of components that count as the same
A_PRIOR = ", or use a prior"  # the remedy that only some mixtures have
SAME = 1e-4  # standard deviations, or of the variance, between components that are one
LEVEL = 1e-2  # units of log-likelihood between optima that count as the same


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """What is wrong with a component.

    Attributes
    ----------
    component : int
        Which.
    kind : {"empty", "collapsed", "spurious"}
        No row belongs to it; it has shrunk to a point, a line or a plane, where the likelihood has no maximum; or it
        holds fewer rows than determine a covariance of its own, so that its density is as high as chance has made it.
    message : str
        The same as a sentence, with the remedy; one and the same where the columns are the reason.
    """

    component: int
    kind: str
    message: str


def diagnose(
    mixture: Mixture, stats: SufficientStatistics, prior: Prior | None, whole: SufficientStatistics | None = None
) -> tuple[Diagnosis, ...]:
    """Name the components that are empty, that only the floor keeps from collapsing, or that too few rows determine.

    Parameters
    ----------
    mixture : Mixture
        The parameters.
    stats : SufficientStatistics
        What the data say at them.
    prior : Prior or None
        The floor or the prior of the fit.
    whole : SufficientStatistics, optional
        Of all rows, where those of the components count some rows less or not at all.

    Returns
    -------
    tuple of Diagnosis
        One for each component that has something wrong.

    Examples
    --------
    >>> import numpy as np, gramian
    >>> from gramian.mixture import Mixture, MixtureRows, fit_mixture
    >>> data = MixtureRows.of(gramian.open(np.array([[0.0], [1.0], [2.0], [3.0], [9.0]])))
    >>> fit = fit_mixture(data, Mixture.of([0.5, 0.5], [[1.0], [9.0]], [1.0, 0.1], "V"))
    >>> [(item.component, item.kind) for item in fit.diagnoses]
    [(1, 'collapsed')]
    """
    empty, at_floor = stats.counts <= EMPTY * stats.weight, np.zeros(mixture.n_components, dtype=bool)
    S, floor, reason = mixture.covariances, np.ones(1), None
    if prior is not None and prior.hard:
        floor = prior.scale
        at_floor = smallest_variances(mixture.model, S, floor) < AT_FLOOR
        if mixture.model[1:] in ("VI", "VE", "VV", "EV"):  # shapes or axes of their own: by their scatter too
            N = np.maximum(stats.counts, np.finfo(float).tiny)
            S = stats.shift(mixture.centres).second / per_component(N, S)
            flat = smallest_variances(mixture.model, S, floor) < AT_FLOOR
            # a shape that all share is flat where each component is, along axes of its own that eigenvectors find to
            # rounding: of groups that do not vary in one of 11 columns, the covariance made of them lay 9000 floors up
            at_floor |= flat if mixture.model[1] == "V" else bool((flat | empty).all())
        every = stats if whole is None else whole
        reason = _degenerate_columns(mixture, every, floor) if at_floor.any() and every.counts.sum() > 0 else None
    least = 0 if prior is not None and prior.counts > 0 else rows_needed(mixture.model, len(mixture.origin))
    spurious = ~empty & ~at_floor & (stats.counts < least * (1 - ROUNDING))
    found = [
        Diagnosis(
            int(k),
            "spurious",
            f"component {k + 1} holds {stats.counts[k]:.3g} rows, and a covariance of its own takes {least}: its "
            f"likelihood is that of chance; fit fewer components, a model with shared covariances{A_PRIOR}",
        )
        for k in np.flatnonzero(spurious)
    ]
    for k in np.flatnonzero(empty | at_floor):
        rows = f"{stats.counts[k]:.3g}"
        if empty[k]:
            message = (
                f"component {k + 1} is empty (weight {stats.counts[k] / stats.weight:.2g}): fit fewer components, or "
                "start it elsewhere"
            )
        elif reason is not None:
            message = reason
        else:
            j = np.argmin(S[k] / floor) if mixture.diagonal else _flattest(S[k], floor)
            where = "" if len(mixture.origin) == 1 else f", mostly in column {j + 1}"
            message = (
                f"component {k + 1} has collapsed (it holds {rows} row{'s' * (rows != '1')}{where}): only the floor "
                "keeps its variance from 0, where the likelihood is unbounded; fit fewer components, a model with "
                f"shared covariances{A_PRIOR}, or start elsewhere"
            )
        found.append(Diagnosis(int(k), "empty" if empty[k] else "collapsed", message))
    return tuple(found)


def rows_needed(model: str, d: int) -> int:
    """How many rows determine what a component has of its own.

    A covariance takes d + 1, its directions alone d, since fewer rows leave two of them or more without variance, a
    variance 2, and what is shared none.

    Examples
    --------
    >>> from gramian.mixture.diagnose import rows_needed
    >>> rows_needed("VVV", 3), rows_needed("VVI", 3), rows_needed("EEV", 3)
    (4, 2, 3)
    """
    if model[2:] == "V":
        return d + (model[1] == "V")
    return 2 if "V" in model[:2] else 0


def find_coincident(mixture: Mixture) -> tuple[int, int] | None:
    """Two components that have the same mean and covariance, if there are any: there EM stands still on a saddle."""
    for k in range(mixture.n_components - 1):
        R, shift = mixture.roots[k], mixture.centres[k + 1 :] - mixture.centres[k]
        near = np.flatnonzero(np.sum((shift * R if mixture.diagonal else shift @ R.T) ** 2, axis=1) < SAME**2)
        for j in near[mixture.weights[k + 1 :][near] > 0] + k + 1:
            change = mixture.covariances[j] - mixture.covariances[k]
            if np.abs(R**2 * change if mixture.diagonal else R @ change @ R.T).max() < SAME and mixture.weights[k] > 0:
                return k, int(j)
    return None


def describe_coincident(same: tuple[int, int]) -> str:
    """Two components that are one, as a sentence."""
    return (
        f"components {same[0] + 1} and {same[1] + 1} are one and the same: nothing determines their weights, and the "
        "likelihood may rise where they part; start elsewhere (n_init, init_params) or fit fewer components"
    )


def _flattest(S: Array, floor: Array) -> int:
    """The column with the largest share in the direction of the smallest variance, in units of the floor."""
    return int(np.argmax(np.abs(np.linalg.eigh(in_units(S, floor))[1][:, 0])))


def _degenerate_columns(mixture: Mixture, stats: SufficientStatistics, floor: Array) -> str | None:
    """What is wrong with the columns themselves, where all rows together are held by the floor."""
    if mixture.model in SPHERICAL:
        return None
    N, d = stats.counts, len(mixture.origin)
    mean = N @ stats.centres / N.sum()
    S = stats.shift(np.broadcast_to(mean, stats.about.shape)).second.sum(axis=0) / N.sum()
    constant = np.flatnonzero((np.diag(S) if S.ndim == 2 else S) < AT_FLOOR * floor)
    if len(constant):
        several = len(constant) > 1
        return (
            f"column{'s' * several} {', '.join(map(str, constant + 1))} {'are' if several else 'is'} constant: no "
            f"component has a variance there but the floor's; leave {'them' if several else 'it'} out"
        )
    if S.ndim == 1 or not np.linalg.eigvalsh(in_units(S, floor))[0] < AT_FLOOR:
        return None
    if stats.weight <= d:
        return (
            f"{stats.weight:.3g} rows in {d} columns have no covariance matrix of full rank, and only the floor keeps "
            "it from being singular; use a diagonal or spherical model, or fewer columns (gramian.PCA)"
        )
    return (
        f"column {_flattest(S, floor) + 1} is a combination of others: no component has a variance in that direction, "
        "and only the floor keeps it from 0; leave it out"
    )


@dataclass(frozen=True, repr=False, eq=False)
class Landscape:
    """Distinct optima, by falling objective.

    Attributes
    ----------
    log_likelihoods : ndarray of shape (m,)
        Of each optimum, without the prior's share.
    counts : ndarray of shape (m,)
        How many starts led to it.
    converged : ndarray of shape (m,)
        Whether one of these met the tolerance.
    problems : tuple of str
        Components that are empty or have collapsed there; "" where all is well.
    mixtures : tuple of Mixture
        Their parameters.
    kept : int
        Which one the estimator has: the highest without such components, if there is one.
    """

    log_likelihoods: Array
    counts: npt.NDArray[np.int64]
    converged: npt.NDArray[np.bool_]
    problems: tuple[str, ...]
    mixtures: tuple[Mixture, ...]
    kept: int

    def table(self) -> dict[str, Any]:
        """Return one line for each optimum."""
        return {
            "log_likelihood": self.log_likelihoods,
            "starts": self.counts,
            "converged": self.converged,
            "problems": list(self.problems),
            "kept": np.arange(len(self.counts)) == self.kept,
        }

    def __repr__(self) -> str:
        m = len(self.counts)
        lines = [f"Landscape: {m} optim{'um' if m == 1 else 'a'} from {int(self.counts.sum())} starts"]
        for i in range(m):
            state = "" if self.converged[i] else ", not converged"
            what = f", {self.problems[i]}" if self.problems[i] else ""
            mark = " (kept)" if i == self.kept else ""
            lines.append(f"  log-likelihood {self.log_likelihoods[i]:.6g} from {self.counts[i]}{state}{what}{mark}")
        return "\n".join(lines)


def compare_optima(fits: Sequence[MixtureFit]) -> Landscape:
    """Distinct optima among fits, of which the first is the one that is kept."""
    groups: list[list[MixtureFit]] = []
    for i in np.argsort([fit.optimum.objective[-1] for fit in fits], kind="stable"):
        same = next((group for group in groups if _is_same_optimum(group[0], fits[i])), None)
        if same is None:
            groups.append([fits[i]])
        else:
            same.append(fits[i])
    heads = [fits[0] if fits[0] in group else group[0] for group in groups]
    return Landscape(
        np.array([fit.log_likelihood for fit in heads]),
        np.array([len(group) for group in groups], dtype=np.int64),
        np.array([any(fit.optimum.converged for fit in group) for group in groups]),
        tuple(", ".join(f"component {item.component + 1} {item.kind}" for item in fit.diagnoses) for fit in heads),
        tuple(fit.mixture for fit in heads),
        heads.index(fits[0]),
    )


def _is_same_optimum(a: MixtureFit, b: MixtureFit) -> bool:
    """Whether two fits are the same up to the order of components and what a tolerance leaves open."""
    if abs(float(a.optimum.objective[-1] - b.optimum.objective[-1])) > LEVEL:
        return False
    rows, _, distances = match_components(a.mixture, b.mixture)
    return bool((distances[a.mixture.weights[rows] > 0] <= NEAR).all())


def match_components(a: Mixture, b: Mixture) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp], Array]:
    """Components of a and those of b nearest to them, one for each; distances in a's standard deviations."""
    away = a.centres[:, None] - b.shift_origin(a.origin).centres[None]
    y = away * a.roots[:, None] if a.diagonal else np.einsum("kij,klj->kli", a.roots, away)
    squares = np.sum(y**2, axis=2)
    rows, columns = linear_sum_assignment(squares)
    return rows, columns, np.sqrt(squares[rows, columns])
