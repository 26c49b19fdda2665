"""What a mixture is fitted to and asked about: rows of any kind, or counts in bins."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.devices import host
from gramian.estimators._inputs import check_weights, open_input
from gramian.estimators._scores import beside
from gramian.likelihood.mixture import Bins, Rows
from gramian.likelihood.mixture.given import numbers, unmasked
from gramian.likelihood.mixture.rows import located
from gramian.sources import Source

__all__ = ["each_block", "on_rows", "open_data", "open_rows"]

Array = npt.NDArray[np.float64]

BLOCK_BYTES = 2**24  # of a block of rows and its densities
CARD_BYTES = 2**28  # the same on a card


def open_data(model: Any, X: Any, sample_weight: Any, *, reset: bool) -> Rows | Bins:
    """Rows or bins, checked against the fit, or with ``reset`` recorded on the estimator."""
    if isinstance(X, Bins):
        if sample_weight is not None:
            raise ValueError("The counts of bins are their weights: leave sample_weight out.")
        return _bins(model, X, reset)
    source = open_rows(model, X, reset=reset)
    w = check_weights(None if sample_weight is None else numbers("sample_weight", sample_weight), source)
    w = None if w is None else np.asarray(host(w), dtype=np.float64)
    if w is not None and not w.sum() > 0:
        raise ValueError("The sample weights of all rows are zero: there is nothing to fit.")
    return Rows.of(source, w, model.device)


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


def each_block(source: Source, k: int, device: Any = None) -> Iterator[tuple[int, int, Any]]:
    """Blocks of rows in float64, so short that their densities under k components take little memory.

    They are NumPy's, or tensors on the device where the source is.
    """
    size = CARD_BYTES if getattr(device, "type", "cpu") == "cuda" else BLOCK_BYTES
    step = max(1, size // (8 * (2 * source.shape[1] + 4 * k)))
    for block in source.blocks(step):
        X = np.asarray(host(block.values), dtype=np.float64) if device is None else block.values.double()
        infinite = abs(X) == np.inf
        if bool(infinite.any()):
            i, j = np.argwhere(host(infinite))[0]
            raise ValueError(f"Input X contains infinity (inf): the first is in row {block.start + i}, column {j}.")
        yield block.start, block.stop, X


def on_rows(model: Any, X: Any, function: Callable[[Any], Any], *, cells: bool = False) -> Any:
    """What a function says of every row, computed block by block where the model computes, beside the rows.

    With ``cells`` that is the CPU: the function looks at missing cells.
    """
    source, k = open_rows(model, X), model.mixture_.n_components
    there, device = located(source, "cpu" if cells else model.device)
    out: Any = None
    for start, stop, rows in each_block(there, k, device):
        part = function(rows)
        if out is None:
            shape = (source.shape[0], *part.shape[1:])
            out = np.empty(shape, part.dtype) if device is None else part.new_empty(shape)
        out[start:stop] = part
    return beside(source, out)
