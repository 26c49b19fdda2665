"""Fits of a mixture from several starts: the best is kept, and what is wrong with it is said."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gramian.estimators._mixture_landscape import landscape_of
from gramian.estimators._mixture_names import attributes
from gramian.likelihood.mixture import Bins, Fit, Maximiser, Mixture, Prior, Rows, diagnose, fit_mixture, is_flat
from gramian.results import NumericalWarning

__all__ = ["FITTED", "best_fit", "name_results", "warn_of", "with_flatness"]

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
    "_on_host",
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
    return [replace(fit, optimum=fit.optimum.with_(notes=(*fit.optimum.notes, note))), *fits[1:]]


def warn_of(model: Any) -> None:
    """Say what a reader of the result must know: that it stopped short, or that a component is none."""
    optimum, tolerated = model.certificate_, model.reg_covar is not None or model.prior is not None
    said = [item.message for item in model._fit.diagnoses if item.kind == "empty" or not tolerated]
    problems = list(dict.fromkeys([*said, *(note for note in optimum.notes if FLAT.split("{parameters}")[1] in note)]))
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
