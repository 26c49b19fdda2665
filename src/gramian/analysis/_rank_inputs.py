"""What the rules that look at the data share: the whole spectrum, weights, seeds and rows as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import to_device
from sklearn.base import clone
from sklearn.utils import check_random_state

from gramian.analysis._model import FittedPCA
from gramian.sources import Source

__all__ = ["WholeFit", "host", "refuse_missing", "rows_of", "seed_of", "whole_fit"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class WholeFit:
    """A PCA with all its components: Σw, means, what columns were divided by, eigenvalues and Vᵀ."""

    n: float
    mean: Vector
    scale: Vector | None
    eigenvalues: Vector
    components: Matrix

    @property
    def p(self) -> int:
        """Columns."""
        return len(self.mean)

    @property
    def variances(self) -> Vector:
        """Variances of the columns as decomposed: Σ λ v²."""
        return np.asarray(self.eigenvalues @ self.components**2)


def whole_fit(pca: FittedPCA, source: Source, sample_weight: Any) -> WholeFit:
    """Fit all components with the settings of ``pca``, its solver aside: a part of a spectrum shows no noise.

    Examples
    --------
    >>> import gramian
    >>> from gramian.analysis._rank_inputs import whole_fit
    >>> fit = whole_fit(gramian.PCA(1), gramian.open([[0.0, 1.0], [2.0, 1.0], [1.0, 4.0]]), None)
    >>> fit.eigenvalues.round(6).tolist(), fit.variances.round(6).tolist()
    ([3.0, 1.0], [1.0, 3.0])
    """
    refuse_missing(source)
    model = clone(pca).set_params(n_components=None, whiten=False, svd_solver="auto")
    model.fit(source, sample_weight=sample_weight)
    scale = None if model.scale_ is None else host(model.scale_)
    return WholeFit(
        float(model._weight), host(model.mean_), scale, host(model.explained_variance_), host(model.components_)
    )


def refuse_missing(source: Source) -> None:
    """Raise an error that names the first NaN: a fit would fill it in, and a rule would take that for data.

    Examples
    --------
    >>> import gramian
    >>> from gramian.analysis._rank_inputs import refuse_missing
    >>> refuse_missing(gramian.open([[1.0, 2.0], [3.0, float("nan")]]))
    Traceback (most recent call last):
    ValueError: Rules for the number of components need whole rows; row 1 has NaN in column 1 (from 0). ...
    """
    if source.sparse or not source.xp.isdtype(source.dtype, "real floating"):
        return
    for block in source.blocks():
        if not bool(source.xp.any(source.xp.isnan(block.values))):
            continue
        i, j = np.argwhere(np.isnan(host(block.values)))[0]
        name = f" ({source.feature_names[j]!r})" if source.feature_names else ""
        raise ValueError(
            f"Rules for the number of components need whole rows; row {block.start + i} has NaN in column {j}{name} "
            "(from 0). Leave such rows out, or fill them in with PCA(k).fit(X).impute(X) for a k of your choice."
        )


def host(x: Any) -> Any:
    """Return an array of any library, device or dtype as NumPy float64; sparse ones made dense."""
    x = x.toarray() if hasattr(x, "toarray") else x
    return np.asarray(to_device(x, "cpu"), dtype=np.float64)


def rows_of(values: Any, keep: npt.NDArray[np.bool_]) -> Matrix:
    """Return the rows of a block that are to be kept, as NumPy float64."""
    chosen = values[np.flatnonzero(keep)] if hasattr(values, "toarray") else host(values)[keep]
    return np.asarray(host(chosen))


def seed_of(random_state: Any) -> int:
    """Return a seed: 0 for None, so that answers repeat."""
    if random_state is None:
        return 0
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**31 - 1))
    return int(check_random_state(random_state).randint(2**31 - 1))
