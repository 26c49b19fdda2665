"""Save a fitted model, load it, and look at what is in a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from gramian.inputs.devices import convert_to_numpy
from gramian.persistence.container import (
    FORMAT,
    ModelFileError,
    check_sum,
    open_regular,
    read_header,
    read_tensors,
    write,
)
from gramian.persistence.encode import Encoder, ModelDecoder, refuse_model
from gramian.persistence.registry import ESTIMATORS
from gramian.persistence.summary import ModelFile, summary_of
from gramian.results import Certificate

PathLike = str | os.PathLike[str]

FINITE = ("coef_", "components_", "dual_coef_", "means_", "weights_")  # no fit leaves NaN in these
# what the attributes are that every model has under one name
KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("coef_", "components_", "dual_coef_", "means_", "weights_", "mean_"), (np.ndarray,)),
    **dict.fromkeys(("explained_variance_", "singular_values_", "eigenvalues_", "eigenvectors_"), (np.ndarray,)),
    **dict.fromkeys(("classes_", "feature_names_in_"), (np.ndarray,)),
    **dict.fromkeys(("n_features_in_", "n_components_", "n_samples_", "rank_"), (int, np.integer)),
    "certificate_": (Certificate, tuple),
    "intercept_": (float, np.floating, np.ndarray),
    "noise_variance_": (float, np.floating, np.ndarray),
}


def save(model: Any, path: PathLike, *, metadata: Mapping[str, Any] | None = None) -> None:
    """Save a fitted model in one file, which :func:`load` makes predict bit for bit the same.

    The file is written next to its place and renamed: it is whole or absent, and a file that was there is replaced.
    Everything is stored or the model is refused; only what can be computed again is left out.

    Parameters
    ----------
    model : estimator
        Any fitted estimator of Gramian.
    path : path-like
        Where to write; any ending will do.
    metadata : mapping of str to JSON values, optional
        What else the file should say: where the data came from, which command was given.

    Raises
    ------
    ValueError
        Where the model is not fitted, or holds what a file cannot hold: a Python function, say.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.persistence import load, save
    >>> X = np.random.default_rng(0).standard_normal((20, 3))
    >>> pca = PCA(2).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.gramian")
    ...     save(pca, path, metadata={"data": "noise"})
    ...     again = load(path)
    >>> bool(np.array_equal(again.transform(X), pca.transform(X)))
    True
    """
    refuse_model(model)
    model = convert_to_numpy(model)
    kind = type(model).__name__
    encoder = Encoder(kind)
    document = {
        "format": FORMAT,
        "gramian": version("gramian"),
        "kind": kind,
        "model": encoder.node(model),
        "metadata": _as_json(metadata),
    }
    write(Path(path), encoder.tensors, document)


def _as_json(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    try:
        made = json.loads(json.dumps(dict(metadata or {}), allow_nan=False))
        json.dumps(made, ensure_ascii=False).encode("utf-8")
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"metadata must be what JSON can say: names and texts, finite numbers, lists ({error})."
        ) from None
    return dict(made)


def load(path: PathLike) -> Any:
    """Load a model that :func:`save` wrote. Nothing in the file is executed, whatever it is.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    estimator
        The fitted model; arrays are NumPy's, where the fit had tensors of torch too.

    Raises
    ------
    ModelFileError
        Where the file is no model file, is damaged, or was written by a newer version.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gramian.persistence import load
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "m")
    ...     _ = path.write_bytes(b"0123456789")
    ...     load(path)
    Traceback (most recent call last):
    gramian.persistence.container.ModelFileError: ...m is no model file of Gramian: it does not begin as ...
    """
    with open_regular(Path(path)) as file:
        header = read_header(file, Path(path))
        check_sum(file, header)
        tensors = read_tensors(header)
    document, decoder = header.document, ModelDecoder(tensors)
    try:
        if document["kind"] not in ESTIMATORS:
            raise ValueError(f"{document['kind']!r} is unknown")
        model = decoder.value(document["model"])
        if type(model) is not ESTIMATORS[document["kind"]]:
            raise ValueError("its parts do not fit together")
        for name, kinds in KINDS.items():
            value = vars(model).get(name)
            if value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
                raise ValueError(f"{name} is a {type(value).__name__}, where {kinds[0].__name__} was expected")
        if decoder.tensors:
            raise ValueError("its parts do not fit together")
        for name in FINITE:
            value = vars(model).get(name)
            if isinstance(value, np.ndarray) and value.dtype.kind == "f" and not np.isfinite(value).all():
                raise ValueError(f"{name} holds NaN or infinity, with which nothing can be predicted")
    except Exception as error:  # of whatever kind: the file says something that cannot be
        raise ModelFileError(
            f"{header.path} cannot be read by Gramian {version('gramian')}: {_line(error)}. It was written by Gramian "
            f"{document['gramian']}: use that version or a newer one."
        ) from None
    return model


def inspect(path: PathLike, *, verify: bool = True) -> ModelFile:
    """Say what a model file holds; arrays are not kept in memory.

    Parameters
    ----------
    path : path-like
        The file.
    verify : bool, default=True
        Whether the whole file is read once to compare its checksum, as :func:`load` does.

    Returns
    -------
    ModelFile
        Kind, versions, parameters, attributes, metadata; printed, it is a summary.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from gramian import PCA
    >>> from gramian.persistence import inspect, save
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "model.gramian")
    ...     save(PCA(1).fit([[0.0, 1.0], [2.0, 2.0], [1.0, 5.0]]), path, metadata={"data": "three rows"})
    ...     found = inspect(path)
    >>> found.kind, found.attributes["components_"], found.metadata
    ('PCA', float64 (1, 2), {'data': 'three rows'})
    """
    with open_regular(Path(path)) as file:
        header = read_header(file, Path(path))
        if verify:
            check_sum(file, header)
    try:
        return summary_of(header)
    except Exception as error:
        raise ModelFileError(f"{path} is damaged: its header says what cannot be ({_line(error)}).") from None


def _line(error: Exception) -> str:
    """The error in one line."""
    name = type(error).__name__
    text = str(error) if isinstance(error, ValueError) else f"{name} {error}"
    return " ".join(text.split())[:300]
