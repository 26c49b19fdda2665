"""What a mixture is fitted to and asked about: rows of any kind, or counts in bins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.estimators._inputs import check_weights, open_input
from gramian.estimators._scores import beside
from gramian.likelihood.mixture import Bins, Rows
from gramian.likelihood.mixture.given import numbers, unmasked
from gramian.sources import Source

__all__ = ["each_block", "on_rows", "open_data", "open_rows"]

Array = npt.NDArray[np.float64]

BLOCK_BYTES = 2**24  # of a block of rows and its densities


def open_data(model: Any, X: Any, sample_weight: Any, *, reset: bool) -> Rows | Bins:
    """Rows or bins, checked against the fit, or with ``reset`` recorded on the estimator."""
    if isinstance(X, Bins):
        if sample_weight is not None:
            raise ValueError("The counts of bins are their weights: leave sample_weight out.")
        return _bins(model, X, reset)
    source = open_rows(model, X, reset=reset)
    w = check_weights(None if sample_weight is None else numbers("sample_weight", sample_weight), source)
    w = None if w is None else np.asarray(w, dtype=np.float64)
    if w is not None and not w.sum() > 0:
        raise ValueError("The sample weights of all rows are zero: there is nothing to fit.")
    return Rows.of(source, w)


def open_rows(model: Any, X: Any, *, reset: bool = False) -> Source:
    """The Source of X, which must be dense; masked cells are missing ones."""
    if isinstance(X, Bins):
        raise ValueError("Bins are counts: this asks about rows.")
    source = open_input(model, unmasked(X), reset=reset)
    if source.sparse:
        raise TypeError(
            "Sparse data was passed to GaussianMixture, which takes dense rows: means and densities of sparse rows are "
            "dense. Use X.toarray(), or reduce the columns with gramian.PCA first."
        )
    return source


def _bins(model: Any, X: Bins, reset: bool) -> Bins:
    d = len(X.origin)
    if reset:
        model.n_features_in_ = d
        vars(model).pop("feature_names_in_", None)
    elif d != model.n_features_in_:
        raise ValueError(f"The bins have {d} columns, but the mixture has {model.n_features_in_}.")
    return X


def each_block(source: Source, k: int) -> Iterator[tuple[int, int, Array]]:
    """Blocks of rows in float64, so short that their densities under k components take little memory."""
    step = max(1, BLOCK_BYTES // (8 * (2 * source.shape[1] + 4 * k)))
    for block in source.blocks(step):
        values = block.values.cpu() if hasattr(block.values, "cpu") else block.values
        X = np.asarray(values, dtype=np.float64)
        if np.isinf(X).any():
            i, j = np.argwhere(np.isinf(X))[0]
            raise ValueError(f"Input X contains infinity (inf): the first is in row {block.start + i}, column {j}.")
        yield block.start, block.stop, X


def on_rows(
    source: Source, k: int, function: Callable[[Array], Any], columns: int | None = None, dtype: Any = np.float64
) -> Any:
    """What a function says of every row, or in so many columns, computed block by block, beside the rows."""
    n = source.shape[0]
    out = np.empty(n if columns is None else (n, columns), dtype=dtype)
    for start, stop, X in each_block(source, k):
        out[start:stop] = function(X)
    return beside(source, out)
