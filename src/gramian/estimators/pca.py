"""Principal component analysis."""

from __future__ import annotations

from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian.analysis._cards import ground
from gramian.analysis.conditional import conditional_scores
from gramian.estimators._devices import home_of, placed, sent
from gramian.estimators._inputs import MissingValuesError, open_input, refuse_non_finite
from gramian.estimators._interpretation import Interpretation
from gramian.estimators._pca_fits import Fits
from gramian.estimators._probabilistic import ProbabilisticModel, as_like
from gramian.estimators._scores import score_like, scores, scores_and_errors
from gramian.results import Certificate, Optimum
from gramian.sources import Source
from gramian.sources.devices import to_host

__all__ = ["PCA"]

Array = Any


class PCA(Fits, Interpretation, ProbabilisticModel, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Principal component analysis: the directions of largest variance, with a certificate.

    .. math::
        S = \tfrac1{n-1}\sum_i (x_i-\bar x)(x_i-\bar x)^T = V\Lambda V^T,\qquad
        z = V_k^T(x-\bar x),\qquad \hat x = \bar x + V_k z

    A drop-in for :class:`sklearn.decomposition.PCA`: the same parameters, attributes and answers. Takes NumPy arrays,
    scipy.sparse matrices, data frames, torch tensors, paths of ``.npy`` and ``.csv`` files, memory maps and Sources.

    Parameters
    ----------
    n_components : int, float, str or None, default=None
        Number of components; a fraction of the variance to explain; or all; or the name of a rule: "mle" (Minka),
        "parallel", "parallel-gaussian", "tracy-widom", "gavish-donoho", "broken-stick", "cv"
        (see :func:`gramian.rank_advice`).
    copy : bool, default=True
        Accepted for scikit-learn's sake: the data are never changed, and never copied whole.
    whiten : bool, default=False
        Divide the scores by their standard deviations.
    svd_solver : {"auto", "full", "covariance_eigh", "arpack", "randomized", "krylov", "power"}, default="auto"
        ``auto`` follows the rule in :func:`gramian.spectral.auto.choose`. ``full`` factors the data themselves,
        ``covariance_eigh`` goes through the Gram matrix where that is safe; ``arpack`` and ``krylov`` are block Krylov;
        ``randomized`` is subspace iteration until the tolerance is met; ``power`` the power method with deflation.
    tol : float, default=0.0
        Residual to reach by iterative solvers, down to 1e-12. 0 means 1e-6 in float64 and 1e-4 in float32.
    iterated_power : int or "auto", default="auto"
        Most iterations of ``randomized`` and ``power``; too few for the tolerance is warned about.
    n_oversamples : int, default=10
        Vectors beyond ``n_components`` for ``randomized``.
    power_iteration_normalizer : {"auto", "QR", "LU", "none"}, default="auto"
        Accepted for scikit-learn's sake: iterations are always orthonormalised by QR.
    random_state : int, RandomState or None, default=None
        Seed of random starts; None is a fixed seed, so that fits repeat.
    scale : bool, default=False
        Divide columns by their standard deviations: PCA of the correlation matrix. Constant columns stay 0.
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a card if there is one.

    Attributes
    ----------
    components_ : array of shape (k, p)
        V_kᵀ: orthonormal rows, by descending variance; the entry largest in size of each is positive.
    explained_variance_, explained_variance_ratio_, singular_values_ : array of shape (k,)
        λ = σ²/(n−1), λ/Σλ, σ; in float64 whatever the data.
    mean_ : array of shape (p,)
        Column means, in float64.
    scale_ : array of shape (p,) or None
        What columns were divided by.
    noise_variance_ : float
        Mean of the eigenvalues left out.
    n_components_, n_samples_, n_features_in_, rank_ : int
        Components kept; rows (sum of the weights); columns; numerical rank seen among the components computed.
    certificate_ : Certificate or Optimum
        Method, passes, residuals, error bounds, and whether the tolerance was met; an Optimum where cells were missing.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> X = np.array([[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]])
    >>> pca = PCA(n_components=2).fit(X)
    >>> pca.explained_variance_ratio_.round(4)
    array([0.9924, 0.0076])
    >>> pca.certificate_.converged
    True
    """

    def __init__(
        self,
        n_components: int | float | str | None = None,
        *,
        copy: bool = True,
        whiten: bool = False,
        svd_solver: str = "auto",
        tol: float = 0.0,
        iterated_power: int | str = "auto",
        n_oversamples: int = 10,
        power_iteration_normalizer: str = "auto",
        random_state: Any = None,
        scale: bool = False,
        device: Any = None,
    ) -> None:
        self.n_components = n_components
        self.copy = copy
        self.whiten = whiten
        self.svd_solver = svd_solver
        self.tol = tol
        self.iterated_power = iterated_power
        self.n_oversamples = n_oversamples
        self.power_iteration_normalizer = power_iteration_normalizer
        self.random_state = random_state
        self.scale = scale
        self.device = device

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> PCA:
        """Find the components of X.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows.
        y : ignored
            For scikit-learn's sake.
        sample_weight : array-like of shape (n,), optional
            Frequencies: a weight of 2 is the row twice, 0 is the row left out. The variance is divided by Σw − 1.

        Returns
        -------
        PCA
            The estimator itself.
        """
        self._fit(self._opened(X), sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit and return the scores of X: the same as ``fit(X).transform(X)``."""
        given = self._opened(X)
        return sent(self._scores(self._fit(given, sample_weight)), home_of(given))

    def transform(self, X: Any) -> Array:
        r"""Scores z = V_kᵀ(x − x̄) of the rows of X, divided by their standard deviations if ``whiten``.

        A row with NaN cells gets the conditional expectation of its scores given the cells that are observed.
        """
        check_is_fitted(self)
        given = open_input(self, X, reset=False)
        return sent(self._scores(placed(given, self.device)), home_of(given))

    def inverse_transform(self, X: Any) -> Array:
        r"""Rows x̂ = x̄ + V_k z of scores z."""
        check_is_fitted(self)
        Z = X if is_array_api_obj(X) else np.asarray(X)
        xp = array_namespace(Z)
        if Z.ndim != 2 or Z.shape[1] != self.components_.shape[0]:
            raise ValueError(f"Scores of shape {tuple(Z.shape)} do not fit {self.components_.shape[0]} components.")
        Z = Z if xp.isdtype(Z.dtype, "real floating") else xp.astype(Z, xp.float64)
        D = (Z * self._deviations(Z) if self.whiten else Z) @ as_like(Z, self.components_)
        D = xp.astype(D, xp.float64)
        D = D if self.scale_ is None else D * as_like(D, self.scale_)
        return xp.astype(D + as_like(D, self.mean_), Z.dtype)

    def reconstruction_error(self, X: Any) -> Array:
        r"""Squared distance ‖x − x̂‖² of each row from its reconstruction, in the units of the components.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import PCA
        >>> X = np.array([[0.0, 0.0], [2.0, 0.0], [4.0, 0.0], [2.0, 1.0]])
        >>> PCA(n_components=1).fit(X).reconstruction_error(X).sum().round(6)
        np.float64(0.75)
        """
        check_is_fitted(self)
        given = open_input(self, X, reset=False)
        return sent(self._scores_and_errors(placed(given, self.device))[1], home_of(given))

    def _scores(self, source: Source) -> Array:
        """Scores of the rows of a source, beside them."""
        try:
            Z = scores(source, self.components_, self.mean_, self.scale_)
        except MissingValuesError:
            if source.sparse:
                raise
            Z = score_like(source, conditional_scores(ground(self), to_host(source)))
        return self._whitened(Z)

    def _whitened(self, Z: Array) -> Array:
        if not self.whiten:
            return Z
        xp, spread = array_namespace(Z), self._deviations(Z)
        safe = xp.where(spread > 0, spread, 1.0 + 0.0 * spread)
        return xp.where(spread > 0, Z / safe, 0.0 * Z)

    def _deviations(self, Z: Array) -> Array:
        """√λ, and 0 beyond the rank, beside Z; from σ, which cannot overflow where λ would."""
        sigma = as_like(Z, self.singular_values_) / (self._weight - 1.0) ** 0.5
        return sigma * as_like(Z, np.arange(len(self.singular_values_)) < self.rank_)

    def _scores_and_errors(self, source: Source) -> tuple[Array, Array]:
        refuse_non_finite(source)
        return scores_and_errors(source, self.components_, self.mean_, self.scale_)

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components_)

    certificate_: Certificate | Optimum
    _weight: float
