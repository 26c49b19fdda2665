"""The largest singular triplets of data that are not centred."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import like, to_numpy
from gramian.inputs.checks import check_choice, check_integer, check_seed
from gramian.inputs.opening import open_input, refuse_non_finite
from gramian.operators import Data
from gramian.pca.problem import column_moments
from gramian.pca.solve import solve_constant
from gramian.results import SpectralCertificate
from gramian.sources.devices import source_to_device
from gramian.spectral import Auto, Krylov
from gramian.spectral.rayleigh import fix_signs

Array = Any

ALGORITHMS = ("randomized", "arpack")


class TruncatedSVD(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""The k largest singular triplets of X as it is, not centred, with a certificate.

    .. math:: X \approx U_k\Sigma_kV_k^T,\qquad Z = XV_k = U_k\Sigma_k

    A drop-in for :class:`sklearn.decomposition.TruncatedSVD`, which text analysis calls latent semantic analysis.
    Sparse data stay sparse; files, tensors and Sources are taken as by :class:`gramian.PCA`.

    Parameters
    ----------
    n_components : int, default=2
        k, at most the number of columns.
    algorithm : {"randomized", "arpack"}, default="randomized"
        The first takes the solver that the rule of :func:`gramian.spectral.auto.choose_spectral_solver` names, the
        second block Krylov. Both go on until the tolerance is met.
    n_iter, n_oversamples, power_iteration_normalizer
        Accepted for scikit-learn's sake: iterations end by residuals, not by their number.
    random_state : int, RandomState or None, default=None
        Seed of random starts; None is a fixed seed, so that fits repeat.
    tol : float, default=0.0
        Residual to reach. 0 means 1e-6 in float64 and 1e-4 in float32.
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md.

    Attributes
    ----------
    components_ : array of shape (k, p)
        V_kᵀ: orthonormal rows; the entry largest in size of each is positive.
    singular_values_ : array of shape (k,)
        σ.
    explained_variance_, explained_variance_ratio_ : array of shape (k,)
        Variances of the columns of Z about their means, divided by n; and their shares of that of X.
    n_features_in_ : int
        Columns.
    certificate_ : SpectralCertificate
        Method, passes, residuals, error bounds, and whether the tolerance was met.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import TruncatedSVD
    >>> X = np.diag([3.0, 2.0, 1.0])
    >>> svd = TruncatedSVD(n_components=2).fit(X)
    >>> svd.singular_values_, svd.certificate_.converged
    (array([3., 2.]), True)
    """

    def __init__(
        self,
        n_components: int = 2,
        *,
        algorithm: str = "randomized",
        n_iter: int = 5,
        n_oversamples: int = 10,
        power_iteration_normalizer: str = "auto",
        random_state: Any = None,
        tol: float = 0.0,
        device: Any = None,
    ) -> None:
        self.n_components = n_components
        self.algorithm = algorithm
        self.n_iter = n_iter
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer
        self.random_state = random_state
        self.tol = tol
        self.device = device

    components_: Array
    singular_values_: Array
    explained_variance_: Array
    explained_variance_ratio_: Array
    n_features_in_: int
    certificate_: SpectralCertificate

    def fit(self, X: Any, y: Any = None) -> TruncatedSVD:
        """Find the triplets of X; ``y`` is ignored."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Array:
        """Fit and return Z = XV, of shape (n, k)."""
        check_choice("algorithm", self.algorithm, ALGORITHMS)
        check_integer("n_components", self.n_components)
        if not 0.0 <= self.tol < np.inf:
            raise ValueError(f"tol must not be negative, got {self.tol!r}.")
        given = open_input(self, X, reset=True)
        source = given if self.device is None else source_to_device(given, self.device)
        refuse_non_finite(source)
        (n, p), xp = source.shape, source.xp
        if self.n_components > p:
            raise ValueError(f"n_components({self.n_components}) must be <= n_features({p}).")
        A, k = Data(source), min(int(self.n_components), n)
        moments = column_moments(source)
        squares = float(xp.sum(moments.diagonal)) + n * float(xp.sum(moments.mean**2))
        seed, tol = check_seed(self.random_state), self.tol or None
        if squares == 0.0:
            spectrum = solve_constant(source, k)
        elif self.algorithm == "arpack":
            spectrum = Krylov(tol, seed=seed)(A, k, "algorithm='arpack'")
        else:
            spectrum = Auto(tol, seed=seed)(A, k)
        V = xp.astype(fix_signs(xp, spectrum.right), A.dtype)
        Z = A.matmat(V)
        spread = xp.var(xp.astype(Z, xp.float64), axis=0)
        total = float(xp.sum(moments.diagonal)) / n
        self.components_, self.singular_values_ = like(given, V.T), like(given, spectrum.values)
        self.explained_variance_ = like(given, spread)
        self.explained_variance_ratio_ = like(given, spread / total if total > 0 else 0.0 * spread)
        self.certificate_ = spectrum.certificate.with_(passes=spectrum.certificate.passes + 2)
        return like(given, Z)

    def transform(self, X: Any) -> Array:
        """Z = XV of the rows of X."""
        check_is_fitted(self)
        given = open_input(self, X, reset=False)
        source = source_to_device(given, self.device)
        refuse_non_finite(source)
        A = Data(source)
        return like(given, A.matmat(A.asarray(like(source, self.components_).T)))

    def inverse_transform(self, X: Any) -> Array:
        """Rows ZVᵀ of scores Z."""
        check_is_fitted(self)
        Z = X if is_array_api_obj(X) else np.asarray(X)
        if Z.ndim != 2 or Z.shape[1] != self.components_.shape[0]:
            raise ValueError(f"Scores of shape {tuple(Z.shape)} do not fit {self.components_.shape[0]} components.")
        same = array_namespace(Z) is array_namespace(self.components_)
        return Z @ (self.components_ if same else like(Z, to_numpy(self.components_)))

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])
