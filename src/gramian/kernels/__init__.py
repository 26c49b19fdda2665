"""Kernels: functions k(x, z) that are inner products of features, one short file each, and their algebra."""

from gramian.kernels.bandwidth import median_distance, scale_gamma
from gramian.kernels.base import Kernel, Pairs
from gramian.kernels.chi2 import AdditiveChi2, Chi2
from gramian.kernels.combine import Product, Scaled, Sum
from gramian.kernels.cosine import Cosine
from gramian.kernels.custom import Callable, MatrixFunction, Precomputed
from gramian.kernels.feature_map import monomials, polynomial_features
from gramian.kernels.gaussian import Gaussian
from gramian.kernels.laplacian import Laplacian
from gramian.kernels.linear import Linear
from gramian.kernels.matern import Matern
from gramian.kernels.names import as_kernel
from gramian.kernels.polynomial import Polynomial
from gramian.kernels.rational_quadratic import RationalQuadratic
from gramian.kernels.sigmoid import Sigmoid

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
