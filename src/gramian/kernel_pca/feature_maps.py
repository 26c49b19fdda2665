"""Features whose inner products are, or approximate, a kernel: Nyström, random Fourier, and the polynomial map."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import to_numpy
from gramian.inputs.checks import check_choice, check_integer
from gramian.inputs.opening import open_input
from gramian.kernels import Precomputed, as_kernel, polynomial_features, scale_gamma
from gramian.operators import Data, KernelOperator
from gramian.sources import DenseSource
from gramian.spectral.rpcholesky import rp_cholesky

Array = npt.NDArray[Any]


class FeatureMap(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Transformers of finite numbers in memory, sparse or not, that keep float32."""

    def _points(self, X: Any, reset: bool) -> Any:
        """Return the rows as an array or CSR matrix."""
        source: Any = open_input(self, X, reset=reset)
        if source.sparse or isinstance(source, DenseSource):
            values = source.values
        else:
            values = np.concatenate([np.array(block.values) for block in source.blocks()])
        assert_all_finite(values, input_name="X", estimator_name=type(self).__name__)
        return values if values.dtype in (np.float32, np.float64) else values.astype(np.float64)

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        return tags


class Nystroem(FeatureMap):
    r"""Nyström features φ̂(x) = K_LL^(−1/2) k(L, x) of landmarks L, with φ̂(x)·φ̂(z) ≈ k(x, z), exact on the landmarks.

    A drop-in for :class:`sklearn.kernel_approximation.Nystroem` that takes the kernels of :mod:`gramian.kernels` and
    can choose its landmarks by randomly pivoted Cholesky, which comes close to the best approximation of its rank.

    Parameters
    ----------
    kernel : str, callable or Kernel, default="rbf"
        A name of scikit-learn's, a function of two rows, or a Kernel.
    gamma, coef0, degree, kernel_params : optional
        Parameters of a kernel given by name, or of a function.
    n_components : int, default=100
        Number of landmarks; all rows where there are fewer.
    random_state : int, RandomState or None, default=None
        For the choice of landmarks.
    n_jobs : int, optional
        Accepted for scikit-learn's sake: the threads of BLAS are used.
    landmarks : {"uniform", "rpcholesky"}, default="uniform"
        Landmarks drawn evenly, the very rows scikit-learn draws, or by randomly pivoted Cholesky.

    Attributes
    ----------
    components_ : array of shape (k, p)
        The landmarks.
    component_indices_ : ndarray of shape (k,)
        Which rows they were.
    normalization_ : ndarray of shape (k, k)
        K_LL^(−1/2), on the directions that are not rounding.
    kernel_ : Kernel
        With every parameter found.
    trace_error_ : float or None
        tr(K − K̂) on the training rows, for "rpcholesky": it bounds the error of every eigenvalue.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_pca.feature_maps import Nystroem
    >>> X = np.arange(12.0).reshape(6, 2)
    >>> Z = Nystroem(gamma=0.1, n_components=6, random_state=0).fit_transform(X)
    >>> bool(np.allclose(Z @ Z.T, np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))))
    True
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: Any = None,
        coef0: float | None = None,
        degree: float | None = None,
        kernel_params: dict[str, Any] | None = None,
        n_components: int = 100,
        random_state: Any = None,
        n_jobs: int | None = None,
        landmarks: str = "uniform",
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.coef0 = coef0
        self.degree = degree
        self.kernel_params = kernel_params
        self.n_components = n_components
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.landmarks = landmarks

    def fit(self, X: Any, y: Any = None) -> Nystroem:
        """Choose the landmarks among the rows of X.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (n, p); a square kernel matrix if precomputed
            The rows.
        y : ignored
            For scikit-learn's sake.

        Returns
        -------
        Nystroem
            The estimator itself.
        """
        check_integer("n_components", self.n_components)
        check_choice("landmarks", self.landmarks, ("uniform", "rpcholesky"))
        points = self._points(X, reset=True)
        kernel = as_kernel(self.kernel, self.gamma, self.degree, self.coef0, **(self.kernel_params or {}))
        if isinstance(kernel, Precomputed) and points.shape[0] != points.shape[1]:
            raise ValueError(f"A precomputed kernel must be a square matrix to fit, got shape {points.shape}.")
        self.kernel_ = kernel.resolved(points)
        A = KernelOperator(self.kernel_, points, dtype=np.float64, store=False)
        k = min(int(self.n_components), points.shape[0])
        rng = check_random_state(self.random_state)
        if self.landmarks == "uniform":
            self.component_indices_, self.trace_error_ = rng.permutation(A.shape[0])[:k], None
        else:
            if not A.kernel.positive_semidefinite:
                raise ValueError(f"{A.kernel!r} is not positive semidefinite, which landmarks='rpcholesky' needs.")
            chosen = rp_cholesky(A.diagonal(), A.columns, k, seed=int(rng.randint(2**31 - 1)))
            self.component_indices_, self.trace_error_ = chosen.indices, chosen.trace
        self.components_ = points[self.component_indices_]
        # K_LL^(−1/2) on the eigenvectors that are not rounding, with the signs of an indefinite K
        values, Q = np.linalg.eigh(A.columns(self.component_indices_, self.component_indices_))
        size = np.abs(values)
        kept = size > k * np.finfo(float).eps * size.max(initial=0.0)
        roots = np.sign(values[kept]) / np.sqrt(size[kept])
        self.normalization_ = np.asarray((Q[:, kept] * roots) @ Q[:, kept].T).astype(points.dtype)
        return self

    def transform(self, X: Any) -> Array:
        """φ̂ of the rows of X; of their kernel with all training rows, if precomputed."""
        check_is_fitted(self)
        points = self._points(X, reset=False)
        if isinstance(self.kernel_, Precomputed):
            return np.asarray(points[:, self.component_indices_] @ self.normalization_.T)
        A = KernelOperator(self.kernel_, points, self.components_, store=False)
        return np.asarray(A.matmat(self.normalization_.T.astype(A.dtype)))

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = isinstance(self.kernel, Precomputed) or self.kernel == "precomputed"
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.normalization_.shape[0])


class RBFSampler(FeatureMap):
    r"""Random Fourier features √(2/D) cos(Wᵀx + b), whose inner products average to exp(−γ‖x − z‖²).

    Columns of W are drawn from N(0, 2γI) and b from U(0, 2π) (Rahimi and Recht, 2007); the error of an inner product
    falls as 1/√D. The same draws as :class:`sklearn.kernel_approximation.RBFSampler`.

    Parameters
    ----------
    gamma : float or "scale", default=1.0
        γ; "scale" is 1/(p·Var X).
    n_components : int, default=100
        D.
    random_state : int, RandomState or None, default=None
        For the draws.

    Attributes
    ----------
    random_weights_ : ndarray of shape (p, D)
        W.
    random_offset_ : ndarray of shape (D,)
        b.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_pca.feature_maps import RBFSampler
    >>> X = np.array([[0.0], [1.0]])
    >>> Z = RBFSampler(gamma=0.5, n_components=20000, random_state=0).fit_transform(X)
    >>> (Z @ Z.T).round(1)
    array([[1. , 0.6],
           [0.6, 1. ]])
    """

    def __init__(self, *, gamma: Any = 1.0, n_components: int = 100, random_state: Any = None) -> None:
        self.gamma = gamma
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> RBFSampler:
        """Draw W and b for the columns of X.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (n, p)
            The rows; of their values only "scale" takes note.
        y : ignored
            For scikit-learn's sake.

        Returns
        -------
        RBFSampler
            The estimator itself.
        """
        check_integer("n_components", self.n_components)
        points = self._points(X, reset=True)
        gamma = scale_gamma(points) if isinstance(self.gamma, str) and self.gamma == "scale" else self.gamma
        if isinstance(gamma, str) or not 0 < float(gamma) < np.inf:
            raise ValueError(f"gamma must be a positive number or 'scale', got {self.gamma!r}.")
        rng, D = check_random_state(self.random_state), int(self.n_components)
        weights = np.sqrt(2.0 * gamma) * rng.normal(size=(points.shape[1], D))
        offset = rng.uniform(0.0, 2.0 * np.pi, size=D)
        self.random_weights_, self.random_offset_ = (a.astype(points.dtype, copy=False) for a in (weights, offset))
        return self

    def transform(self, X: Any) -> Array:
        """√(2/D) cos(Wᵀx + b) of the rows of X."""
        check_is_fitted(self)
        points = self._points(X, reset=False)
        Z = np.asarray(Data(points).matmat(self.random_weights_.astype(points.dtype, copy=False)))
        Z += self.random_offset_.astype(Z.dtype, copy=False)
        np.cos(Z, out=Z)
        Z *= Z.dtype.type(np.sqrt(2.0 / self.n_components))
        return Z

    @property
    def _n_features_out(self) -> int:
        return int(self.random_weights_.shape[1])


class PolynomialMap(FeatureMap):
    r"""The feature map of the polynomial kernel: φ(x)·φ(z) = (γ x·z + c)^q, exactly.

    Unlike plain monomials, each column carries the square root of its multinomial coefficient, so that a linear method
    on these features is the kernel method. There are C(p + q, q) of them, or C(p + q − 1, q) with c = 0.

    Parameters
    ----------
    degree : int, default=2
        q.
    coef0 : float, default=1.0
        c ≥ 0.
    gamma : float, optional
        γ; 1/p where not given.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_pca.feature_maps import PolynomialMap
    >>> X = np.array([[1.0, 2.0], [3.0, 4.0]])
    >>> Z = PolynomialMap(degree=2, coef0=1, gamma=1).fit_transform(X)
    >>> (Z @ Z.T).round(6)
    array([[ 36., 144.],
           [144., 676.]])
    """

    def __init__(self, degree: int = 2, *, coef0: float = 1.0, gamma: float | None = None) -> None:
        self.degree = degree
        self.coef0 = coef0
        self.gamma = gamma

    def fit(self, X: Any, y: Any = None) -> PolynomialMap:
        """Count the columns of X.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (n, p)
            The rows.
        y : ignored
            For scikit-learn's sake.

        Returns
        -------
        PolynomialMap
            The estimator itself.
        """
        polynomial_features(np.ones((1, 1)), self.degree, self.coef0, self.gamma)  # refuses wrong parameters
        p = self._points(X, reset=True).shape[1]
        self.n_components_ = comb(p + self.degree - (self.coef0 == 0), self.degree)
        return self

    def transform(self, X: Any) -> Array:
        """φ of the rows of X, as a dense array."""
        check_is_fitted(self)
        points = self._points(X, reset=False)
        dense = to_numpy(points)
        return polynomial_features(dense, self.degree, self.coef0, self.gamma).astype(points.dtype, copy=False)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)
