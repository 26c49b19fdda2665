"""Kernels: functions k(x, z) that are inner products of features, and their algebra."""

from typing import TYPE_CHECKING

from gramian.lazy import lazy_names

if TYPE_CHECKING:
    from gramian.kernels.base import Kernel, OnColumns, Pairs, Product, Scaled, Sum
    from gramian.kernels.custom import Callable, MatrixFunction, Precomputed
    from gramian.kernels.distance import (
        AdditiveChi2,
        Chi2,
        Gaussian,
        Laplacian,
        Matern,
        RationalQuadratic,
        median_distance,
        scale_gamma,
    )
    from gramian.kernels.inner_product import Cosine, Linear, Polynomial, Sigmoid, monomials, polynomial_features
    from gramian.kernels.names import as_kernel
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "AdditiveChi2",
    "Callable",
    "Chi2",
    "Cosine",
    "Gaussian",
    "Kernel",
    "Laplacian",
    "Linear",
    "Matern",
    "MatrixFunction",
    "OnColumns",
    "Pairs",
    "Polynomial",
    "Precomputed",
    "Product",
    "RationalQuadratic",
    "Scaled",
    "Sigmoid",
    "Sum",
    "as_kernel",
    "median_distance",
    "monomials",
    "polynomial_features",
    "scale_gamma",
]
