"""What partial_fit keeps between batches."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import linear_sum_assignment
from sklearn.exceptions import ConvergenceWarning

from gramian.mixture.binned import Bins
from gramian.mixture.diagnose import diagnose
from gramian.mixture.em import Fit, Stepwise, fit_mixture
from gramian.mixture.errors import is_flat
from gramian.mixture.models import Maximiser, Prior, step_length
from gramian.mixture.options import attributes, maximiser_of
from gramian.mixture.parameters import Mixture
from gramian.mixture.rows import Rows
from gramian.results import NumericalWarning, Optimum

__all__ = [
    "FITTED",
    "Landscape",
    "Stream",
    "best_fit",
    "changes",
    "landscape_of",
    "name_results",
    "refuse_changes",
    "warn_of",
    "with_flatness",
]

Array = npt.NDArray[np.float64]

NEAR = 0.05  # standard deviations between means of components that count as the same
LEVEL = 1e-2  # units of log-likelihood between optima that count as the same


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


def landscape_of(fits: Sequence[Fit], kept: int) -> Landscape:
    """Gather the fits into distinct optima; ``kept`` is the index of the one that was chosen."""
    order = sorted(range(len(fits)), key=lambda i: float(fits[i].optimum.objective[-1]))
    groups: list[list[int]] = []
    for i in order:
        home = next((group for group in groups if same_optimum(fits[group[0]], fits[i])), None)
        if home is None:
            groups.append([i])
        else:
            home.append(i)
    heads = [fits[kept] if kept in group else fits[group[0]] for group in groups]
    return Landscape(
        np.array([fit.log_likelihood for fit in heads]),
        np.array([len(group) for group in groups], dtype=np.int64),
        np.array([any(fits[i].optimum.converged for i in group) for group in groups]),
        tuple(_problems(fit) for fit in heads),
        tuple(fit.mixture for fit in heads),
        next(j for j, group in enumerate(groups) if kept in group),
    )


def same_optimum(a: Fit, b: Fit) -> bool:
    """Whether two fits are the same up to the order of components and what a tolerance leaves open."""
    if abs(float(a.optimum.objective[-1] - b.optimum.objective[-1])) > LEVEL:
        return False
    # distances between means in the standard deviations of a's components, best matched
    R = a.mixture.roots
    away = a.mixture.centres[:, None] - b.mixture.centres[None]
    y = away * R[:, None] if a.mixture.diagonal else np.einsum("kij,klj->kli", R, away)
    distances = np.sqrt(np.sum(y**2, axis=2))
    rows, columns = linear_sum_assignment(distances)
    live = a.mixture.weights[rows] > 0
    return bool((distances[rows, columns][live] <= NEAR).all())


def _problems(fit: Fit) -> str:
    return ", ".join(f"component {item.component} {item.kind}" for item in fit.diagnoses)


UNHELD = (
    "With reg_covar=0 nothing keeps a component from collapsing: leave it out, fit fewer components or use a prior."
)
FLAT = (
    "counts in {classes} do not determine {parameters}: other mixtures are as likely, and this one is only where "
    "the iterations ended; count in finer classes, fit fewer components or hold parameters (constraints)"
)
FITTED = (
    "weights_",
    "means_",
    "covariances_",
    "precisions_",
    "precisions_cholesky_",
    "converged_",
    "n_iter_",
    "lower_bound_",
    "lower_bounds_",
    "log_likelihood_",
    "n_parameters_",
    "certificate_",
    "landscape_",
    "_fit",
    "_kind",
    "_stream",
    "_numpy_attributes",
)


def best_fit(model: Any, data: Rows | Bins, origins: Iterable[Mixture], maximiser: Maximiser) -> list[Fit]:
    """Fit from every start; return the fits, the one to keep first.

    A component that has collapsed makes a likelihood large without meaning: such fits are kept only if there are none
    without.
    """
    fits = []
    for number, start in enumerate(origins):
        _say(model, f"Initialization {number}")
        fits.append(_one_fit(model, data, start, maximiser))
        state = "converged" if fits[-1].optimum.converged else "did not converge"
        _say(model, f"Initialization {state}: log-likelihood {fits[-1].log_likelihood:.6g}")
    return sorted(fits, key=lambda fit: (bool(fit.diagnoses), float(fit.optimum.objective[-1])))


def _one_fit(model: Any, data: Rows | Bins, start: Mixture, maximiser: Maximiser) -> Fit:
    options = {"tol": model.tol, "max_iterations": model.max_iter, "accelerate": model.accelerate}
    if maximiser.prior is not None and (maximiser.prior.hard or maximiser.prior.counts > 0):
        return fit_mixture(data, start, maximiser, **options, watch=_watcher(model))
    try:
        with np.errstate(all="ignore"):  # without a floor, what collapses overflows
            fit = fit_mixture(data, start, maximiser, **options, watch=_watcher(model))
    except (ValueError, np.linalg.LinAlgError) as error:
        raise ValueError(f"{error} {UNHELD if maximiser.prior is None else ''}".strip()) from error
    found = diagnose(fit.mixture, fit.statistics, Prior.floor(data))
    for item in found:
        if item.kind == "collapsed" and maximiser.prior is None:
            raise ValueError(f"Component {item.component} has collapsed. {UNHELD}")
    said = {item.message for item in fit.diagnoses}
    kept = tuple(note for note in fit.optimum.notes if note not in said)
    notes = tuple(item.message for item in found) + kept
    return replace(fit, diagnoses=found, optimum=fit.optimum.with_(notes=notes))


def name_results(model: Any, fits: list[Fit], weight: float, maximiser: Maximiser) -> None:
    """Give the results of the kept fit their scikit-learn names."""
    fit = fits[0]
    heights = -fit.optimum.objective / weight
    for name, value in attributes(fit.mixture, model.covariance_type).items():
        setattr(model, name, value)
    model.converged_ = fit.optimum.converged
    model.n_iter_ = fit.optimum.iterations
    model.lower_bound_ = float(heights[-1])
    model.lower_bounds_ = [float(h) for h in heights[1:]]
    model.log_likelihood_ = fit.log_likelihood
    model.n_parameters_ = maximiser.free_parameters(fit.mixture)
    model.certificate_ = fit.optimum
    model.landscape_ = landscape_of(fits, 0)
    model._fit = fit
    model._kind = model.covariance_type


def with_flatness(fits: list[Fit], data: Rows | Bins, maximiser: Maximiser) -> list[Fit]:
    """The kept fit with a note where counts in bins do not determine it: rows of full rank always do."""
    fit = fits[0]
    if not isinstance(data, Bins) or fit.diagnoses or not is_flat(data, fit.mixture, maximiser):
        return fits
    taken, p = int(np.count_nonzero(data.counts)), maximiser.free_parameters(fit.mixture)
    note = FLAT.format(classes=f"{taken} class{'es' * (taken != 1)}", parameters=f"{p} parameters")
    return [replace(fit, optimum=fit.optimum.with_(determined=False, notes=(*fit.optimum.notes, note))), *fits[1:]]


def warn_of(model: Any) -> None:
    """Say what a reader of the result must know: that it stopped short, or that a component is none."""
    optimum, tolerated = model.certificate_, model.reg_covar is not None or model.prior is not None
    said = [item.message for item in model._fit.diagnoses if item.kind == "empty" or not tolerated]
    problems = list(dict.fromkeys(said if optimum.determined else [*said, optimum.notes[-1]]))
    for message in problems:
        warnings.warn(f"GaussianMixture: {message}.", NumericalWarning, stacklevel=4)
    if not optimum.converged and model.max_iter > 0 and not problems:
        stopped = optimum.iterations >= model.max_iter
        remedy = f"raise max_iter={model.max_iter}" if stopped else "rounding hides the rest: raise tol"
        warnings.warn(
            f"GaussianMixture did not converge: after {optimum.iterations} iterations the gradient is "
            f"{optimum.gradient:.1e} standard errors and tol={model.tol:g}; {remedy}.",
            ConvergenceWarning,
            stacklevel=4,
        )


def _say(model: Any, text: str) -> None:
    if model.verbose:
        sys.stdout.write(f"{text}\n")


def _watcher(model: Any) -> Callable[[int, float], None] | None:
    """What is called after each round: one line every ``verbose_interval`` iterations."""
    if not model.verbose:
        return None
    seen = {"iteration": 0, "height": -np.inf}

    def watch(iteration: int, height: float) -> None:
        if iteration // model.verbose_interval > seen["iteration"] // model.verbose_interval:
            more = f"\tlog-likelihood {height:.6f}\tchange {height - seen['height']:.6f}" if model.verbose > 1 else ""
            _say(model, f"  Iteration {iteration}{more}")
        seen.update(iteration=iteration, height=height)

    return watch


def changes(model: Any) -> list[str]:
    """The parameters that decide what kind of mixture is fitted and that are not those of the fit any more."""
    mixture = model._fit.mixture
    found = ["n_components"] if model.n_components != mixture.n_components else []
    if model.covariance_type != model._kind:
        found.append("covariance_type")
    return found


def refuse_changes(model: Any) -> None:
    """Refuse to go on from a fit of another kind."""
    for name in changes(model):
        before = model._kind if name == "covariance_type" else model._fit.mixture.n_components
        raise ValueError(
            f"{name} was {before!r} in the batches so far and is {getattr(model, name)!r} now: batches go on with one "
            "kind of mixture. Set it back, or start anew with fit or a clone."
        )


class Stream:
    """Statistics of the batches so far, and the mixture they have led to."""

    def __init__(self, first: Fit, maximiser: Maximiser, decay: float) -> None:
        self.steps = Stepwise(maximiser, decay)
        self.mixture = first.mixture
        self.heights = [first.log_likelihood / first.statistics.weight]
        self.steps.step(first.mixture, first.statistics)  # the first batch, at its own optimum

    def take(self, model: Any, data: Rows | Bins) -> None:
        """One batch: its statistics at the mixture, and the next mixture; named on the estimator."""
        at = self.mixture
        batch = data.expect(at)
        if model.reg_covar:  # is a variance: its weight in the sums grows with theirs
            self.steps.maximiser = maximiser_of(model, replace(data, weight=self.steps.seen + data.weight))
        self.mixture = self.steps.step(at, batch)
        self.heights.append(batch.log_likelihood / batch.weight)
        length = step_length(at, self.mixture, batch.weight)
        optimum = Optimum(
            "stepwise EM over batches",
            "partial_fit",
            len(self.heights),
            len(self.heights),
            -np.array(self.heights) * batch.weight,
            length,
            tolerance=model.tol,
            notes=(
                "the gradient is the last step, in standard errors of the last batch; the log-likelihood is its own",
            ),
        )
        found = diagnose(self.mixture, batch, self.steps.maximiser.prior)
        name_results(model, [Fit(self.mixture, batch, optimum, found)], batch.weight, self.steps.maximiser)
