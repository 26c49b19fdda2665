"""Many fits of a mixture, in processes if asked for, with progress."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.parallel import Parallel, delayed

from gramian.likelihood.mixture import Bins, Mixture
from gramian.likelihood.mixture.given import numbers
from gramian.results import NumericalWarning, Optimum
from gramian.sources import open_source

__all__ = [
    "FittedMixture",
    "Progress",
    "columns_of",
    "counted",
    "each",
    "entropy_of",
    "fitted",
    "quietly",
    "sample_size",
    "started_at",
    "total_weight",
]

Progress = Callable[[int, int], Any]
Vector = npt.NDArray[np.float64]


class FittedMixture(Protocol):
    """A Gaussian mixture, as :class:`gramian.GaussianMixture` is after ``fit``."""

    weights_: Vector
    means_: npt.NDArray[np.float64]
    covariances_: npt.NDArray[np.float64]
    precisions_: npt.NDArray[np.float64]
    log_likelihood_: float
    n_parameters_: int
    certificate_: Optimum
    landscape_: Any
    mixture_: Mixture
    n_components: int
    covariance_type: str

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit to rows or bins."""

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        """Integrated complete-data likelihood."""

    def set_params(self, **params: Any) -> Any:
        """Change constructor parameters."""


def each(
    work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]], n_jobs: int | None, progress: Progress | None
) -> list[Any]:
    """``work(*task)`` for every task, in order, by joblib: in this process unless ``n_jobs`` says otherwise.

    Fits of small data are Python's own time, which threads would share; so several jobs are several processes, unless
    joblib's configuration says otherwise. What fits warn of is read from their certificates and landscapes.
    """
    numbered = (delayed(_numbered)(i, work, task) for i, task in enumerate(tasks))
    out: list[Any] = [None] * len(tasks)
    with _silence():  # here, not in the tasks: filters belong to all threads, and processes are handed ours
        for done, (i, result) in enumerate(Parallel(n_jobs=n_jobs, return_as="generator_unordered")(numbered), 1):
            out[i] = result
            if progress is not None:
                progress(done, len(tasks))
    return out


def _numbered(i: int, work: Callable[..., Any], task: tuple[Any, ...]) -> tuple[int, Any]:
    return i, work(*task)


@contextmanager
def _silence() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NumericalWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


def fitted(model: Any, X: Any, sample_weight: Any = None) -> Any:
    """Fit a model, with weights where there are some."""
    return model.fit(X) if sample_weight is None else model.fit(X, sample_weight=sample_weight)


def quietly(model: Any, X: Any, sample_weight: Any = None) -> Any:
    """The same without warnings."""
    with _silence():
        return fitted(model, X, sample_weight)


def started_at(model: FittedMixture) -> Any:
    """An unfitted copy that starts from a fitted model's parameters."""
    start = {"weights_init": model.weights_, "means_init": model.means_, "precisions_init": model.precisions_}
    return clone(model).set_params(**start, n_init=1, warm_start=False, verbose=0)


def columns_of(X: Any) -> int:
    """How many columns data have."""
    return len(X.origin) if isinstance(X, Bins) else int(open_source(X).shape[1])


def total_weight(X: Any, sample_weight: Any) -> float:
    """Σw: how many observations there are."""
    if isinstance(X, Bins):
        return X.weight
    return float(open_source(X).shape[0] if sample_weight is None else np.sum(numbers("sample_weight", sample_weight)))


def sample_size(X: Any, sample_weight: Any) -> int:
    """How many observations a sample of such data has: Σw, rounded."""
    total = total_weight(X, sample_weight)
    if round(total) < 2:
        raise ValueError(
            f"The weights sum to {total:g}, so that samples would have {round(total)} rows. Weights are frequencies: "
            "let them sum to the number of observations."
        )
    return round(total)


def entropy_of(random_state: Any) -> int:
    """Where the seeds of replicates come from; None is a fixed number."""
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**63))
    return 0 if random_state is None else int(check_random_state(random_state).randint(2**31 - 1))


def counted(bins: Bins, n: int, shares: Vector, rng: np.random.Generator) -> Bins:
    """Bins with n observations counted anew, each in a box with these probabilities."""
    return Bins.intervals(bins.lower, bins.upper, rng.multinomial(n, shares / shares.sum()).astype(np.float64))
