"""What feature transformers share."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import assert_all_finite

from gramian.estimators._inputs import open_input
from gramian.sources import DenseSource, Source, SparseSource

__all__ = ["Features", "check_count", "inverse_root"]


class Features(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Transformers of finite numbers in memory, sparse or not, that keep float32."""

    def _points(self, X: Any, reset: bool) -> Any:
        """Return the rows as an array or CSR matrix."""
        values = _in_memory(open_input(self, X, reset=reset))
        assert_all_finite(values, input_name="X", estimator_name=type(self).__name__)
        return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags


def _in_memory(source: Source) -> Any:
    """All values of a source, as an array or CSR matrix."""
    if isinstance(source, (DenseSource, SparseSource)):
        return source.values
    if source.sparse:
        return source.values  # type: ignore[attr-defined]
    return np.concatenate([np.array(block.values) for block in source.blocks()])


def check_count(name: str, value: Any) -> None:
    """Refuse what is not a positive whole number."""
    if not (isinstance(value, Integral) and int(value) >= 1):
        raise ValueError(f"{name} must be a positive whole number, got {value!r}.")


def inverse_root(K: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
    """K^(−1/2) on the eigenvectors that are not rounding, with the signs of an indefinite K."""
    values, Q = np.linalg.eigh(K)
    size = np.abs(values)
    kept = size > len(K) * np.finfo(float).eps * size.max(initial=0.0)
    roots = np.sign(values[kept]) / np.sqrt(size[kept])
    return np.asarray((Q[:, kept] * roots) @ Q[:, kept].T)
