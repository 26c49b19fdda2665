"""The input of every estimator as a Source, its columns recorded or checked, its missing and infinite cells named."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from array_api_compat import is_array_api_obj, is_numpy_array
from sklearn.utils.validation import check_array, validate_data

from gramian.compute.devices import to_numpy
from gramian.compute.executor import begin_fit
from gramian.sources import DenseSource, Source, SparseSource, open_source
from gramian.sources.arrays import frame_names, frame_to_array, is_frame, to_numbers
from gramian.sources.checkpoint import begin_checkpoint
from gramian.sources.dask_arrays import is_dask
from gramian.sources.errors import SourceError
from gramian.sources.streams import is_stream


class MissingValuesError(SourceError):
    """There are NaN cells in data that were to be complete."""


def open_input(estimator: Any, X: Any, *, reset: bool) -> Source:
    """Return the Source of X; with ``reset`` record its columns on the estimator, otherwise check them."""
    if reset:
        begin_fit()
    # NumPy's arrays, which are most, are not asked for protocols: that takes a third of a small fit
    array = type(X) is np.ndarray
    external = not array and (isinstance(X, (Source, str, os.PathLike, np.memmap)) or is_dask(X) or is_stream(X))
    if array and _is_plain(estimator, X, reset):
        source: Source = DenseSource(X)
        _check_columns(estimator, source, reset)
    elif external or (not array and is_array_api_obj(X) and not is_numpy_array(X)):
        source = open_source(X)
        _check_columns(estimator, source, reset)
    elif not array and is_frame(X):
        validate_data(estimator, X, skip_check_array=True, reset=reset)
        values = check_array(frame_to_array(X), dtype=None, ensure_all_finite=False, estimator=estimator)
        source = DenseSource(values, frame_names(X))
    else:
        # NaN and inf are found, and named, by the statistics that are needed anyway
        X = to_numbers(X)
        values = validate_data(estimator, X, reset=reset, dtype="numeric", accept_sparse=True, ensure_all_finite=False)
        source = SparseSource(values) if sp.issparse(values) else DenseSource(values)
    if source.shape[0] == 0:
        raise ValueError(f"Found array with 0 sample(s) (shape={source.shape}) while a minimum of 1 is required.")
    begin_checkpoint(estimator, source, "fit" if reset else "use")
    return source


def _is_plain(estimator: Any, X: np.ndarray[Any, Any], reset: bool) -> bool:
    """Whether scikit-learn's checks would let a NumPy array pass as it is: they take a sixth of a small fit."""
    plain = X.dtype.char in "df" and X.dtype.isnative and X.ndim == 2 and min(X.shape) > 0
    known = vars(estimator)
    # columns without names, where the fit had some, are warned of by scikit-learn
    return plain and (reset or ("n_features_in_" in known and "feature_names_in_" not in known))


def _check_columns(estimator: Any, source: Source, reset: bool) -> None:
    """Do what scikit-learn's ``validate_data`` does for arrays, for sources."""
    p = source.shape[1]
    if p == 0:
        raise ValueError(f"0 feature(s) (shape={source.shape}) while a minimum of 1 is required.")
    names = source.feature_names
    if reset:
        estimator.n_features_in_ = p
        vars(estimator).pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.asarray(names, dtype=object)
        return
    if p != estimator.n_features_in_:
        raise ValueError(
            f"X has {p} features, but {type(estimator).__name__} is expecting {estimator.n_features_in_} features "
            "as input."
        )
    known = getattr(estimator, "feature_names_in_", None)
    if names is not None and known is not None and list(known) != names:
        wrong = [f"{a!r} (was {b!r})" for a, b in zip(names, known, strict=True) if a != b]
        raise ValueError(f"The feature names should match those that were passed during fit: {', '.join(wrong[:5])}.")


def refuse_non_finite(source: Source) -> None:
    """Raise an error that names the first NaN or inf of a source, if there is one."""
    if source.resident and not source.sparse and isinstance(source.values, np.ndarray):
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(np.sum(source.values)):  # takes no memory, and settles it for all but the largest numbers
                return
    for block in source.blocks():
        values = block.values
        finite = source.xp.isfinite(values.data if source.sparse else values)
        if bool(source.xp.all(finite)):
            continue
        first = int(np.argmin(to_numpy(finite)))
        if source.sparse:
            row, j = int(np.searchsorted(values.indptr, first, side="right")) - 1, int(values.indices[first])
            value = float(values.data[first])
        else:
            row, j = divmod(first, source.shape[1])
            value = float(values[row, j])
        name = f" ({source.feature_names[j]!r})" if source.feature_names else ""
        where = f"the first is in row {block.start + row + 1}, column {j + 1}{name}, counted from 1."
        if np.isnan(value):
            raise MissingValuesError(
                f"Input X contains NaN: {where} Here complete rows are needed (PCA.fit, transform, score and impute "
                "take missing cells in dense data): remove such rows, or fill them in with PCA(k).fit(X).impute(X).",
                missing=True,
            )
        raise ValueError(f"Input X contains infinity (inf): {where} Remove such rows or replace the value.")


def has_missing(source: Source) -> bool:
    """Whether a dense source has NaN cells; infinities, and NaN in sparse data, are refused by name."""
    try:
        refuse_non_finite(source)
    except MissingValuesError:
        if source.sparse:
            raise
        return True
    return False
