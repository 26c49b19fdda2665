"""Folders of checkpoints, damaged: refused by the name of the record, or the fit has the bits it would have had."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gramian
from attack.harness import case_count, seed
from attack.test_files import mutate
from gramian.sources.checkpoint import CheckpointError, checkpoint

X = np.random.default_rng(5).normal(size=(120, 8)) @ np.diag(np.geomspace(10, 1, 8))
FITS: dict[str, Any] = {
    "krylov": lambda: gramian.PCA(3, svd_solver="krylov").fit(X).components_,
    "ridge": lambda: gramian.Ridge(solver="lsqr").fit(X, X[:, 1]).coef_,
    "EM": lambda: gramian.GaussianMixture(2, random_state=0).fit(X[:, :3]).means_,
    "cg": lambda: gramian.KernelRidge(kernel="rbf", solver="cg").fit(X, X[:, 0]).predict(X[:5]),
}


class StopError(Exception):
    """The end of a run."""


@pytest.mark.parametrize("fit", FITS)
def test_damaged_records_are_refused_or_right(fit: str, tmp_path: Path) -> None:
    whole, kept, copy = FITS[fit](), tmp_path / "kept", tmp_path / "damaged"
    with suppress(StopError), checkpoint(kept):
        FITS[fit]()
        raise StopError
    refused = 0
    for case in range(case_count(25)):
        rng = np.random.default_rng([seed(), case, *fit.encode()])
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(kept, copy)
        records = sorted(copy.glob("*.npz"))
        victim, other = (records[int(i)] for i in rng.integers(len(records), size=2))
        kind = rng.random()
        if kind < 0.1:
            victim.unlink()
        elif kind < 0.2:
            one, two = victim.read_bytes(), other.read_bytes()
            victim.write_bytes(two)
            other.write_bytes(one)
        else:
            victim.write_bytes(mutate(victim.read_bytes(), rng))
        try:
            with checkpoint(copy):
                np.testing.assert_array_equal(FITS[fit](), whole, err_msg=f"seed {seed()}, case {case}")
        except CheckpointError as error:
            assert ".npz" in str(error)  # noqa: PT017
            refused += 1
    assert refused
