"""scikit-learn's names of kernels and their parameters."""

from __future__ import annotations

import re
from functools import partial
from typing import Any

from gramian.kernels.base import Kernel
from gramian.kernels.custom import Callable, MatrixFunction, Precomputed
from gramian.kernels.distance import AdditiveChi2, Chi2, Gaussian, Laplacian
from gramian.kernels.inner_product import Cosine, Linear, Polynomial, Sigmoid


def as_kernel(
    kernel: Any, gamma: Any = None, degree: float | None = None, coef0: float | None = None, **kernel_params: Any
) -> Kernel:
    """Return the kernel meant by one of scikit-learn's names, a function of two rows, or a Kernel.

    Parameters
    ----------
    kernel : str, callable or Kernel
        A Kernel has its own parameters, and is returned as it is; so has one of scikit-learn's for Gaussian processes.
    gamma : float, "scale" or "median", optional
        For "rbf", "poly", "sigmoid", "laplacian" (1/p where not given) and "chi2" (1). The rules are for "rbf".
    degree, coef0 : float, optional
        For "poly" (3 and 1) and "sigmoid" (coef0 = 1).
    **kernel_params
        Keyword arguments for a callable.

    Returns
    -------
    Kernel
        The kernel.

    Examples
    --------
    >>> from gramian.kernels import as_kernel
    >>> as_kernel("rbf", gamma=0.5)
    Gaussian(gamma=0.5)
    >>> as_kernel("poly", degree=2)
    Polynomial(degree=2)
    """
    if isinstance(kernel, Kernel):
        return kernel
    if any(cls.__module__ == "sklearn.gaussian_process.kernels" for cls in type(kernel).__mro__):
        return MatrixFunction(kernel)
    if callable(kernel):
        return Callable(kernel, tuple(kernel_params.items()))
    coef0 = 1.0 if coef0 is None else coef0
    polynomial: Any = partial(Polynomial, 3 if degree is None else degree, coef0, gamma)  # type: ignore[arg-type]
    named: dict[Any, Any] = {
        "additive_chi2": AdditiveChi2,
        "chi2": partial(Chi2, 1.0 if gamma is None else gamma),
        "cosine": Cosine,
        "laplacian": partial(Laplacian, gamma),
        "linear": Linear,
        "poly": polynomial,
        "polynomial": polynomial,
        "precomputed": Precomputed,
        "rbf": partial(Gaussian, gamma),
        "sigmoid": partial(Sigmoid, gamma, coef0),
    }
    if kernel not in named:
        names = ", ".join(named)
        raise ValueError(f"kernel must be one of {names}, a Kernel, or a function of two rows; got {kernel!r}.")
    found: Kernel = named[kernel]()
    return found


def name_kernel(kernel: Any) -> str:
    """A kernel as it is written in pictures and reports: its numbers with five digits, which the model has whole.

    Examples
    --------
    >>> from gramian.kernels.names import name_kernel
    >>> name_kernel(Gaussian(bandwidth=170.1310203812782)), name_kernel(Gaussian(bandwidth=0.1))
    ('Gaussian(bandwidth=170.13)', 'Gaussian(bandwidth=0.1)')
    """
    return re.sub(r"\b\d+\.\d+(e[-+]?\d+)?\b", lambda number: f"{float(number[0]):.5g}", repr(kernel))
