"""Checks of what users hand in besides X: weights, seeds, targets, whole numbers and choices among names."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import _check_y

from gramian.compute.devices import is_tensor
from gramian.inputs.values import check_choice, check_integer, check_share, fetch_numbers, is_lazy
from gramian.sources.errors import SourceError

__all__ = ["check_choice", "check_integer", "check_interval", "check_labels", "check_penalties", "check_seed"]
__all__ += ["check_share", "check_targets", "check_weights", "fetch_numbers", "has_whole_weights", "is_lazy"]

Array = npt.NDArray[np.float64]


def check_weights(sample_weight: Any, n: int, name: str = "sample_weight", *, all_zero: bool = False) -> Array:
    """One weight for each of n rows, in NumPy: finite, none negative, and not all 0 unless ``all_zero`` permits it.

    None is a weight of 1 for every row, a number that weight for every row.

    Examples
    --------
    >>> from gramian.inputs.checks import check_weights
    >>> check_weights([2, 0, 1], 3)
    array([2., 0., 1.])
    """
    if sample_weight is None:
        return np.ones(n)
    w: Array = np.asarray(fetch_numbers(sample_weight, name), dtype=np.float64)
    w = np.full(n, float(w)) if w.ndim == 0 else w
    if w.shape != (n,):
        raise ValueError(f"{name} has shape {w.shape}; expected one weight for each of the {n} rows.")
    bad = np.flatnonzero(~(np.isfinite(w) & (w >= 0)))
    if len(bad):
        raise ValueError(f"{name} must be finite and not negative; row {bad[0] + 1} has {w[bad[0]]}.")
    if not (all_zero or w.any()):
        raise ValueError(f"{name} is zero for every row: nothing is left to fit.")
    return w


def has_whole_weights(w: Array | None) -> bool:
    """Whether weights count rows: all of them whole numbers."""
    return w is None or bool(np.all(w == np.floor(w)))


def check_seed(random_state: Any) -> int:
    """A seed drawn from ``random_state``: always 0 for None, so that answers repeat.

    Examples
    --------
    >>> from gramian.inputs.checks import check_seed
    >>> check_seed(None), check_seed(1)
    (0, 1791095845)
    """
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return int(check_random_state(random_state).randint(2**31 - 1))


def check_targets(y: Any, n: int) -> tuple[Array, bool]:
    """The targets as an (n, t) float64 array, and whether they came as a vector."""
    if y is None:
        raise ValueError("This estimator requires y to be passed, but the target y is None.")
    y = fetch_numbers(y, "y")
    values = None
    try:
        values = np.asarray(y, dtype=np.float64)
    except (TypeError, ValueError):
        pass  # scikit-learn says below what is wrong with what are no numbers
    else:
        bad = np.argwhere(~np.isfinite(values))
        if len(bad):
            where = f"row {bad[0][0] + 1}" + (f", target {bad[0][1] + 1}" if values.ndim > 1 else "")
            first = values[tuple(bad[0])]
            raise SourceError(
                f"Input y contains NaN or infinity: the first is {first} in {where}, counted from 1. Remove such rows.",
                missing=bool(np.isnan(first)),
            )
    if values is None or type(y) is not np.ndarray or y.ndim not in (1, 2) or not y.size:
        values = np.asarray(_check_y(y, multi_output=np.asarray(y).ndim != 1, y_numeric=True), dtype=np.float64)
    if len(values) != n:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n} rows, y {len(values)}."
        )
    return (values[:, None], True) if values.ndim == 1 else (values, False)


def check_labels(estimator: Any, y: Any) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """The classes, sorted, and the number of each label among them; a column of labels is taken for a vector."""
    if y is None:
        name = type(estimator).__name__
        raise ValueError(f"This {name} estimator requires y to be passed, but the target y is None.")
    y = _check_y(fetch_numbers(y, "y") if np.ma.is_masked(y) or is_lazy(y) else y, estimator=estimator)
    check_classification_targets(y)
    classes, labels = np.unique(y, return_inverse=True)
    return classes, np.asarray(labels, dtype=np.intp)


def check_penalties(alpha: Any, targets: int) -> Array:
    """λ for each target, finite and not negative.

    Examples
    --------
    >>> from gramian.inputs.checks import check_penalties
    >>> check_penalties(0.5, 2)
    array([0.5, 0.5])
    """
    if type(alpha) is float and 0.0 <= alpha < np.inf:
        return np.full(targets, alpha)
    given = np.asarray(fetch_numbers(alpha, "alpha") if is_tensor(alpha) or np.ma.isMaskedArray(alpha) else alpha)
    if given.dtype.kind not in "biuf" and not all(isinstance(value, Real) for value in given.ravel()):
        raise ValueError(f"alpha must be a number, or one for each target; got {alpha!r}.")
    lam: Array = given.astype(np.float64).ravel()
    if len(lam) not in (1, targets):
        raise ValueError(
            f"Number of targets and number of penalties do not correspond: {lam.size} != {targets}. Give one alpha, or "
            "one for each column of y."
        )
    bad = np.flatnonzero(~(np.isfinite(lam) & (lam >= 0)))
    if len(bad):
        raise ValueError(f"alpha must be finite and not negative; got {lam[bad[0]]}.")
    return np.broadcast_to(lam, (targets,)).copy()


def check_interval(level: Any, kind: str, method: str, training: Any, calibration: Any) -> None:
    """Raise an error where the arguments of a ``predict_interval`` do not go together."""
    check_choice("kind", kind, ("prediction", "mean"))
    check_choice("method", method, ("gaussian", "jackknife+", "conformal"))
    if not (isinstance(level, Real) and 0.0 < float(level) < 1.0):
        raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
    if kind == "mean" and method != "gaussian":
        raise ValueError(f"method={method!r} is about new observations: kind='mean' needs method='gaussian'.")
    for name, given in (("training", training), ("calibration", calibration)):
        if given is None:
            continue
        if method == "gaussian" or (name == "calibration" and method != "conformal"):
            use = "'conformal'" if name == "calibration" else "'jackknife+' or 'conformal'"
            raise ValueError(f"{name} is for method={use}, got method={method!r}.")
        if not isinstance(given, (tuple, list)) or len(given) != 2:
            raise ValueError(f"{name} must be a pair (X, y), got {type(given).__name__}.")
    if training is not None and calibration is not None:
        raise ValueError("Give training or calibration: one is the rows of the fit, the other rows it has not seen.")
