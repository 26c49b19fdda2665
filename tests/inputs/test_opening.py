"""Arrays that skip scikit-learn's checks are let through, refused and warned of exactly as these do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.utils.validation import validate_data

from gramian.inputs.opening import open_input

ROWS = np.arange(12.0).reshape(4, 3)
NAMED = pd.DataFrame(ROWS, columns=["a", "b", "c"])
ARRAYS = {
    "float64": ROWS,
    "float32": ROWS.astype(np.float32),
    "columns first": np.asfortranarray(ROWS),
    "strided": ROWS[::2],
    "other byte order": ROWS.astype(ROWS.dtype.newbyteorder()),
    "integers": ROWS.astype(np.int32),
    "a column less": ROWS[:, :2],
    "no rows": ROWS[:0],
    "no columns": ROWS[:, :0],
    "one row": ROWS[0],
    "three dimensions": ROWS[None],
    "complex": ROWS.astype(complex),
}


class Bare(BaseEstimator):
    """An estimator without parameters."""


def outcome(X: Any, seen: list[Any], ours: bool) -> tuple[Any, ...]:
    """Return what opening X after a fit to each of ``seen`` leaves behind: attributes, warnings, error."""
    estimator = Bare()
    for rows in seen:
        open_input(estimator, rows, reset=True)
    refused, values = False, None
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            if ours:
                values = open_input(estimator, X, reset=not seen).values
            else:
                checks: dict[str, Any] = {"dtype": "numeric", "accept_sparse": True, "ensure_all_finite": False}
                values = validate_data(estimator, X, reset=not seen, **checks)
        except ValueError:
            refused = True
    names = list(getattr(estimator, "feature_names_in_", []))
    known = None if refused else (getattr(estimator, "n_features_in_", None), names)
    warned = [w.category for w in caught if not refused]  # which of two objections comes first is not compared
    return known, warned, refused, None if values is None else values.tolist()


@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.parametrize("seen", [[], [ROWS], [NAMED], [NAMED, ROWS]], ids=["new", "array", "named", "named, array"])
def test_arrays_are_opened_as_scikit_learn_opens_them(name: str, seen: list[Any]) -> None:
    assert outcome(ARRAYS[name], seen, ours=True) == outcome(ARRAYS[name], seen, ours=False)


def test_a_plain_array_is_not_copied() -> None:
    assert open_input(Bare(), ROWS, reset=True).values is ROWS


def test_cells_that_are_not_finite_are_left_to_the_statistics() -> None:
    X = ROWS.copy()
    X[1, 1] = np.nan
    assert np.isnan(open_input(Bare(), X, reset=True).values[1, 1])
