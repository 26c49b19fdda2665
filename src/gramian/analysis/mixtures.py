"""Which mixture, and how sure: choice of components and covariance model, likelihood-ratio tests, bootstrap errors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from gramian.analysis._mixture_choice import CRITERIA, MixtureChoice
from gramian.analysis._mixture_errors import MixtureBootstrap, bootstrap_mixture
from gramian.analysis._mixture_lrt import LikelihoodRatioTest, bootstrap_lrt
from gramian.analysis._mixture_tasks import Progress, columns_of, each, fitted, quietly, total_weight
from gramian.analysis.limits import check_choice
from gramian.likelihood.mixture import MODELS

__all__ = [
    "LikelihoodRatioTest",
    "MixtureBootstrap",
    "MixtureChoice",
    "bootstrap_lrt",
    "bootstrap_mixture",
    "select_mixture",
]

MOST = 9  # components tried unless said otherwise, as in mclust


def select_mixture(
    prototype: Any,
    X: Any,
    *,
    n_components: int | Iterable[int] | None = None,
    covariance_types: Sequence[str] | None = None,
    criterion: str = "bic",
    sample_weight: Any = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **test: Any,
) -> MixtureChoice:
    r"""Choose the number of components and the covariance model.

    .. math:: BIC=-2\ell+p\ln n,\qquad AIC=-2\ell+2p,\qquad ICL=BIC-2\sum_i\ln\max_kr_{ik}

    the lower the better; or by the bootstrap likelihood-ratio test, one component more as long as that is significant.
    A fit in which a component collapsed is not eligible: its likelihood can be made as large as one likes.

    Parameters
    ----------
    prototype : GaussianMixture
        An unfitted one with all other settings; it is cloned.
    X : array-like, frame, path, Source or Bins
    n_components : int or iterable of int, optional
        1 to 9 unless given.
    covariance_types : sequence of str, optional
        All 14 models unless given; E and V for one column.
    criterion : {"bic", "aic", "icl", "lrt"}, default="bic"
        What to choose by. "lrt" needs one covariance type.
    sample_weight : array-like of shape (n,), optional
    n_jobs, progress : optional
        How many processes, −1 for one for each core; what is called as ``progress(done, total)`` after each fit.
    **test
        ``n_replicates``, ``level`` and ``random_state`` of :func:`bootstrap_lrt`, for criterion "lrt".

    Returns
    -------
    MixtureChoice
        All values, and the best model, fitted.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianMixture
    >>> from gramian.analysis.mixtures import select_mixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (100, 2)), rng.normal(6, 1, (100, 2))])
    >>> choice = select_mixture(GaussianMixture(), X, n_components=(1, 2, 3), covariance_types=("EII", "VVV"))
    >>> choice.best.n_components, choice.best.covariance_type
    (2, 'EII')
    """
    check_choice("criterion", criterion, (*CRITERIA, "lrt"))
    sizes, models = _sizes(n_components), _models(covariance_types, columns_of(X))
    if test and criterion != "lrt":
        raise TypeError(f"{', '.join(test)} belong to criterion='lrt'.")
    if criterion == "lrt":
        return _by_test(prototype, X, sizes, models, sample_weight, n_jobs, progress, test)
    return _table(prototype, X, sizes, models, criterion, sample_weight, n_jobs, progress)


def _sizes(given: int | Iterable[int] | None) -> tuple[int, ...]:
    many = range(1, MOST + 1) if given is None else (given,) if isinstance(given, (int, np.integer)) else tuple(given)
    wrong: list[Any] = [k for k in many if not _is_size(k)]
    if wrong or not many:
        raise ValueError(f"n_components must be whole numbers of at least 1, got {wrong[0] if wrong else given!r}.")
    return tuple(sorted({int(k) for k in many}))


def _is_size(k: Any) -> bool:
    return isinstance(k, (int, np.integer)) and not isinstance(k, bool) and bool(k >= 1)


def _models(names: Sequence[str] | None, d: int) -> tuple[str, ...]:
    if names is None:
        return ("E", "V") if d == 1 else MODELS
    found = (names,) if isinstance(names, str) else tuple(names)
    if not found:
        raise ValueError("covariance_types is empty: name one or more.")
    return found


def _table(
    prototype: Any,
    X: Any,
    sizes: tuple[int, ...],
    models: tuple[str, ...],
    criterion: str,
    sample_weight: Any,
    n_jobs: int | None,
    progress: Progress | None,
) -> MixtureChoice:
    same = {(k, m): (k, _alike(m, k)) for k in sizes for m in models}
    wanted = sorted(set(same.values()))
    tasks = [(prototype, k, m, X, sample_weight) for k, m in wanted]
    found = dict(zip(wanted, each(_fitted, tasks, n_jobs, progress), strict=True))
    fits = [[found[same[k, m]] for m in models] for k in sizes]
    n = total_weight(X, sample_weight)
    ll, p, entropy, converged = (np.array([[fit[name] for fit in row] for row in fits]) for name in NAMES)
    bic = -2 * ll + p * np.log(n)
    values = {"bic": bic, "aic": -2 * ll + 2 * p, "icl": bic + entropy}
    problems = tuple(tuple(fit["problem"] for fit in row) for row in fits)
    good = np.array([[not text for text in row] for row in problems]) & np.isfinite(bic)
    if not good.any():
        raise ValueError(f"None of the {good.size} fits is eligible; the first says: {problems[0][0]}.")
    i, j = np.unravel_index(np.argmin(np.where(good, values[criterion], np.inf)), good.shape)
    best = fits[i][j]["model"].set_params(covariance_type=models[j])
    best = best if same[sizes[i], models[j]][1] == models[j] else quietly(clone(best), X, sample_weight)
    return MixtureChoice(
        criterion,
        sizes,
        models,
        **values,
        log_likelihood=ll,
        n_parameters=p,
        problems=problems,
        converged=converged.astype(bool),
        best=best,
    )


NAMES = ("log_likelihood", "n_parameters", "entropy", "converged")


def _alike(model: str, k: int) -> str:
    """The first of the models that are the same for one component: volumes and shapes have nobody to differ from."""
    if k > 1 or model not in MODELS:
        return model
    return {"II": "EII", "EI": "EEI", "VI": "EEI"}.get(model[1:], "EEE")


def _fitted(prototype: Any, k: int, model: str, X: Any, sample_weight: Any) -> dict[str, Any]:
    """One fit and what the table needs of it; a fit that cannot be made is a line that says why."""
    try:
        fit = fitted(clone(prototype).set_params(n_components=k, covariance_type=model), X, sample_weight)
    except ValueError as error:
        nothing = dict.fromkeys(NAMES[:3], np.nan) | {"converged": False}
        return nothing | {"model": None, "problem": str(error)}
    entropy = fit.icl(X, sample_weight) - fit.bic(X, sample_weight) if k > 1 else 0.0
    return {
        "log_likelihood": fit.log_likelihood_,
        "n_parameters": float(fit.n_parameters_),
        "entropy": entropy,
        "converged": fit.certificate_.converged,
        "model": fit,
        "problem": fit.landscape_.problems[fit.landscape_.kept],
    }


def _by_test(
    prototype: Any,
    X: Any,
    sizes: tuple[int, ...],
    models: tuple[str, ...],
    sample_weight: Any,
    n_jobs: int | None,
    progress: Progress | None,
    options: dict[str, Any],
) -> MixtureChoice:
    if len(models) != 1:
        raise ValueError(
            f"The likelihood-ratio test compares numbers of components in one covariance model; {len(models)} are "
            "given. Name one, chosen by BIC, say."
        )
    if sizes != tuple(range(sizes[0], sizes[-1] + 1)):
        raise ValueError(f"The likelihood-ratio test adds one component at a time; {list(sizes)} has gaps.")
    table = _table(prototype, X, sizes, models, "bic", sample_weight, n_jobs, None)
    found = bootstrap_lrt(
        clone(prototype).set_params(covariance_type=models[0]),
        X,
        first=sizes[0],
        most=sizes[-1],
        sample_weight=sample_weight,
        n_jobs=n_jobs,
        progress=progress,
        **options,
    )
    best = quietly(clone(prototype).set_params(covariance_type=models[0], n_components=found.chosen), X, sample_weight)
    fields = {name: getattr(table, name) for name in table.__dataclass_fields__}
    return MixtureChoice(**fields | {"criterion": "lrt", "best": best, "test": found})
