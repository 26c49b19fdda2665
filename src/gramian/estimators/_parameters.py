"""What the constructor of PCA accepts."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from gramian.analysis.rank import SPECTRUM_RULES
from gramian.analysis.rank_rules import DATA_RULES

__all__ = ["SOLVERS", "check_parameters", "one_of"]

SOLVERS = ("auto", "full", "covariance_eigh", "arpack", "randomized", "krylov", "power")
RULES = ("mle", *SPECTRUM_RULES, *DATA_RULES)
NORMALIZERS = ("auto", "QR", "LU", "none")


def check_parameters(pca: Any) -> None:
    """Raise an error that names the parameter, what it is, and what it may be."""
    one_of("svd_solver", pca.svd_solver, SOLVERS)
    one_of("power_iteration_normalizer", pca.power_iteration_normalizer, NORMALIZERS)
    if not 0.0 <= pca.tol < np.inf:
        raise ValueError(f"tol must not be negative, got {pca.tol!r}.")
    if pca.iterated_power != "auto" and not _whole(pca.iterated_power, 0):
        raise ValueError(f"iterated_power must be 'auto' or a number of iterations, got {pca.iterated_power!r}.")
    if isinstance(pca.n_components, str):
        one_of("n_components", pca.n_components, RULES)
    one_of("whiten", pca.whiten, (True, False))
    one_of("scale", pca.scale, (True, False))
    if not _whole(pca.n_oversamples, 1):
        raise ValueError(f"n_oversamples must be a positive integer, got {pca.n_oversamples!r}.")


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and int(value) >= least


def one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> None:
    """Raise an error unless the value is one of those allowed."""
    if not any(value is choice or value == choice for choice in allowed):
        raise ValueError(f"{name} must be one of {', '.join(map(str, allowed))}; got {value!r}.")
