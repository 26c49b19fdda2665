"""The rows a model was fitted on, handed in again: opened, weighed, and checked to be the same."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.analysis._model import FittedPCA, feature_names, variable_scale
from gramian.analysis._weights import frequencies
from gramian.results import Optimum
from gramian.sources import Block, Source, open_source

__all__ = ["Training", "dense_rows", "float_rows", "training_rows"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

SAME = 1e-5  # means of the same rows agree to this share of their size and spread, float32 sums included


@dataclass(frozen=True, eq=False)
class Training:
    """Training rows as a source, and their frequencies."""

    source: Source
    weights: Vector

    @property
    def total(self) -> float:
        """Return Σw, the number of rows they stand for."""
        return float(self.weights.sum())


def float_rows(source: Source, block: Block) -> Any:
    """Values of a block in float64: a CSR matrix of a sparse source, else a NumPy array."""
    return block.values.astype(np.float64) if source.sparse else np.asarray(block.values, dtype=np.float64)


def dense_rows(source: Source) -> Matrix:
    """All rows in one float64 array; for few of them."""
    out = np.empty(source.shape)
    for block in source.blocks():
        rows = float_rows(source, block)
        out[block.start : block.stop] = rows.toarray() if source.sparse else rows
    return out


def refuse_incomplete_fit() -> None:
    """Refuse a model fitted to rows with missing cells: filled cells vary less than observed ones would."""
    raise ValueError(
        "The model was fitted where cells were missing, and this needs a fit to complete rows. A table filled by "
        "impute varies too little: draw tables with multiple_imputation, fit and look at each of them, or use the "
        "complete rows alone."
    )


def training_rows(pca: FittedPCA, X: Any, sample_weight: Any = None, *, incomplete: bool = False) -> Training:
    """Open X and make sure that the model was fitted on it: same columns, same Σw, same mean.

    A fit to rows with missing cells is refused, unless the caller can deal with it (``incomplete``).
    """
    missing = isinstance(getattr(pca, "certificate_", None), Optimum)
    if missing and not incomplete:
        refuse_incomplete_fit()
    source = open_source(X)
    if source.shape[1] != pca.n_features_in_:
        raise ValueError(f"X has {source.shape[1]} columns, but the model was fitted on {pca.n_features_in_}.")
    training = Training(source, frequencies(sample_weight, source.shape[0]))
    if not np.isclose(training.total, pca._weight, rtol=1e-9):
        raise ValueError(
            f"X has {training.total:g} rows (sum of the weights), but the model was fitted on {pca._weight:g}: "
            "hand in the rows, and the sample_weight, of the fit."
        )
    if not missing:
        _refuse_other_mean(pca, training)
    return training


def _refuse_other_mean(pca: FittedPCA, training: Training) -> None:
    expected = np.asarray(pca.mean_, dtype=np.float64)
    spread = variable_scale(pca) * np.sqrt(float(np.max(np.asarray(pca.explained_variance_), initial=0.0)))
    mean = _mean(training)
    other = np.flatnonzero(~(np.abs(mean - expected) <= SAME * (np.abs(expected) + spread)))  # NaN is other too
    if len(other):
        j = int(other[0])
        if not np.isfinite(mean[j]):
            raise ValueError(
                f"X has missing or infinite values in column {feature_names(pca)[j]!r}, and this needs complete rows."
            )
        raise ValueError(
            f"X is not what the model was fitted on: the mean of {feature_names(pca)[j]!r} is {mean[j]:g} and was "
            f"{expected[j]:g}. Hand in the rows, and the sample_weight, of the fit."
        )


def _mean(training: Training) -> Vector:
    source, w = training.source, training.weights

    def sums(block: Block) -> Vector:
        rows, part = float_rows(source, block), w[block.start : block.stop]
        used = part > 0  # rows without weight may hold anything
        return np.asarray(part[used] @ rows[used], dtype=np.float64)

    return np.asarray(source.reduce(sums, np.add) / training.total)
