"""Block Krylov that waits for some components only, and its certificate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from gramian.operators import Data
from gramian.results import SpectralCertificate
from gramian.spectral import Krylov


def matrix(n: int = 300, p: int = 500, signal: tuple[float, ...] = (60.0, 55.0), seed: int = 0) -> np.ndarray:
    """Noise, whose singular values crowd below √n + √p = 40, and a few that stand out."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.normal(size=(size, len(signal))))[0] for size in (n, p))
    return np.asarray(rng.normal(size=(n, p)) + U * signal @ V.T)


class Recorder:
    """Waits for a fixed number, and keeps what it was shown."""

    def __init__(self, number: int) -> None:
        self.number, self.seen = number, []  # type: ignore[var-annotated]

    def __call__(self, values: np.ndarray, vectors: Callable[[], Any], passes: int) -> int:
        self.seen.append((values.copy(), np.asarray(vectors()), passes))
        return self.number


def test_components_waited_for_meet_the_tolerance_and_the_others_are_reported() -> None:
    A = matrix()
    found = Krylov(tol=1e-8).attempt(Data(A), 6, "asked for", count_required=Recorder(2))
    all_of = Krylov(tol=1e-8).attempt(Data(A), 6, "asked for")
    s = np.linalg.svd(A, compute_uv=False)
    np.testing.assert_allclose(found.values[:2], s[:2], rtol=1e-12)
    assert found.certificate.judged == 2
    assert found.certificate.converged
    assert found.certificate.passes < all_of.certificate.passes
    assert np.all(found.certificate.residuals[:2] <= 1e-8)
    assert found.certificate.residuals[5] > 1e-8
    assert np.all(np.abs(found.values[:, None] - s).min(axis=1) <= found.certificate.value_bounds)
    assert (all_of.certificate.judged, all_of.certificate.residuals.max() <= 1e-8) == (None, True)


def test_the_question_is_asked_of_eigenpairs_found_so_far() -> None:
    A = matrix()
    recorder = Recorder(2)
    Krylov(tol=1e-8).attempt(Data(A), 2, "asked for", count_required=recorder)
    values, vectors, passes = recorder.seen[-1]
    np.testing.assert_allclose(np.sum((A.T @ vectors) ** 2, axis=0), values)
    assert passes >= len(recorder.seen)


def test_none_waited_for_ends_at_once() -> None:
    found = Krylov(tol=1e-12).attempt(Data(matrix()), 3, "asked for", count_required=Recorder(0))
    assert found.certificate.converged
    assert found.certificate.passes <= 6


def test_a_start_block_is_where_the_iteration_begins() -> None:
    A = matrix()
    U, s, _ = np.linalg.svd(A, full_matrices=False)
    found = Krylov(tol=1e-9).attempt(Data(A), 4, "asked for", start=U[:, :4])  # the rows are the smaller side
    assert found.certificate.converged
    assert found.certificate.passes <= 4  # they are the answer, and no more is needed than to see it
    np.testing.assert_allclose(found.values, s[:4], rtol=1e-12)


@pytest.mark.parametrize(("judged", "converged"), [(None, False), (2, False), (1, True), (0, True)])
def test_a_certificate_judges_the_leading_triplets_alone(judged: int | None, converged: bool) -> None:
    values, residuals = np.array([3.0, 2.0, 1.0]), np.array([1e-9, 1e-3, 1e-2])
    certificate = SpectralCertificate("m", "r", 5, values, residuals, 3.0, 0.0, tolerance=1e-6, judged=judged)
    assert certificate.converged is converged
    assert certificate.as_dict()["judged"] == (3 if judged is None else judged)
    together = np.sqrt(np.cumsum(np.square(residuals)) / 2)
    np.testing.assert_allclose(certificate.value_bounds, 3.0 * together)  # of all, judged or not
    shown = dict(certificate.summary())["components"]
    assert shown == ("3" if judged is None else f"3, of which {judged} separate from the noise")


def test_not_a_number_never_converges() -> None:
    residuals = np.array([np.nan, 0.0])
    assert not SpectralCertificate("m", "r", 5, np.ones(2), residuals, 1.0, 0.0, tolerance=1e-6, judged=1).converged
