"""Principal component analysis."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from array_api_compat import array_namespace, is_array_api_obj
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramian.analysis.conditional import conditional_scores
from gramian.analysis.rank_rules import DATA_RULES
from gramian.compute.rowspace import RowSpace
from gramian.estimators import _fitting as fitting
from gramian.estimators import _stream as stream
from gramian.estimators._devices import bring_home, grounded, home_of, placed, sent
from gramian.estimators._incomplete import LIKELIHOOD, fit_incomplete
from gramian.estimators._inputs import MissingValuesError, check_weights, open_input, refuse_non_finite
from gramian.estimators._interpretation import Interpretation
from gramian.estimators._parameters import check_parameters
from gramian.estimators._probabilistic import ProbabilisticModel, as_like
from gramian.estimators._scores import score_like, scores, scores_and_errors
from gramian.linear._caller import caller_level
from gramian.results import Certificate, NumericalWarning, Optimum
from gramian.sources import Source
from gramian.sources.devices import to_host

__all__ = ["PCA"]

Array = Any


class PCA(Interpretation, ProbabilisticModel, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
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

    def fit_incomplete(
        self,
        X: Any,
        y: Any = None,
        *,
        method: str = LIKELIHOOD,
        sample_weight: Any = None,
        tol: float | None = None,
        max_iterations: int = 2000,
    ) -> PCA:
        """Find the components of rows of which some cells are NaN, by a method of choice.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`; dense, in memory or in a file.
        method : {"likelihood", "regularised", "least-squares"}, default="likelihood"
            Maximum likelihood of the observed cells under probabilistic PCA, which is what :meth:`fit` does; or
            iterative PCA with shrinkage or without, which missMDA calls "Regularized" and "EM".
        tol : float, optional
            Gradient to reach (see :class:`gramian.results.Optimum`): 1e-5 standard errors by likelihood; by the others
            a last change of the filled cells of 1e-6 of their spread. :meth:`fit` takes the constructor's.
        max_iterations : int, default=2000
            Most iterations; too few for the tolerance is warned about.

        Returns
        -------
        PCA
            The estimator itself; ``certificate_`` is an :class:`~gramian.results.Optimum`.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import PCA
        >>> X = np.outer(np.arange(6.0), [1.0, 2.0, -1.0]) + 0.1 * np.sin(np.arange(18.0)).reshape(6, 3)
        >>> X[2, 1] = np.nan
        >>> pca = PCA(n_components=1).fit_incomplete(X, method="regularised")
        >>> bool(abs(pca.impute(X)[2, 1] - 4.0) < 0.2)
        True
        """
        given = self._opened(X)
        self._name(fit_incomplete(self, *_near(given, sample_weight), self._options(), method, tol, max_iterations))
        bring_home(self, home_of(given), fitting.FITTED)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit and return the scores of X: the same as ``fit(X).transform(X)``."""
        given = self._opened(X)
        return sent(self._scores(self._fit(given, sample_weight)), home_of(given))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> PCA:
        """Add rows to the fit; after the last block the answer is that of a fit on all rows.

        Exact while p rows of p numbers take no more than an eighth of ``working_memory``; otherwise only the leading
        directions are kept and the certificate bounds what that can have changed. The decomposition itself is made when
        a fitted attribute is first read. After :meth:`fit`, which keeps no rows, partial_fit starts anew. The rows that
        are kept are worked on by the CPU, whatever the device.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        PCA
            The estimator itself.
        """
        check_parameters(self)
        first = "_rowspace" not in vars(self)
        source = open_input(self, X, reset=first)
        w = check_weights(sample_weight, to_host(source))
        state = RowSpace.empty(source.shape[1]) if first else self._rowspace
        self._forget(rowspace=False)
        self._rowspace = stream.absorb(state, to_host(source), w, self._options())
        self._like = stream.template(source)
        return self

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

    def _opened(self, X: Any) -> Source:
        """Open the rows of a new fit, and forget the last one."""
        check_parameters(self)
        self._forget()
        return open_input(self, X, reset=True)

    def _fit(self, given: Source, sample_weight: Any) -> Source:
        """Fit where ``device`` says and bring the results home; return the rows where they were worked on."""
        source = placed(given, self.device)
        w, options, rule = check_weights(sample_weight, source), self._options(), self.n_components
        choice = None
        if isinstance(rule, str) and rule in DATA_RULES:
            choice = DATA_RULES[rule](self, *_near(given, sample_weight))
        try:
            self._name(fitting.fit(source, w, options, choice))
        except MissingValuesError:
            if source.sparse:
                raise
            self._name(fit_incomplete(self, *_near(given, sample_weight), options, LIKELIHOOD, options.tol))
        bring_home(self, home_of(given), fitting.FITTED)
        return source

    def _scores(self, source: Source) -> Array:
        """Scores of the rows of a source, beside them."""
        try:
            Z = scores(source, self.components_, self.mean_, self.scale_)
        except MissingValuesError:
            if source.sparse:
                raise
            Z = score_like(source, conditional_scores(grounded(self), to_host(source)))
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

    def _options(self) -> fitting.Options:
        rng = self.random_state
        seed = 0 if rng is None else int(check_random_state(rng).randint(2**31 - 1))
        cap = None if self.iterated_power == "auto" else int(self.iterated_power)
        return fitting.Options(
            self.n_components,
            self.svd_solver,
            self.tol or None,
            cap,
            self.n_oversamples,
            seed,
            self.scale,
            self.whiten,
        )

    def _name(self, result: fitting.Fitted) -> None:
        """Give the results their scikit-learn names, in the array type of the data."""
        for name, value in result.attributes.items():
            setattr(self, name, value)
        for message in result.warnings:
            warnings.warn(message, NumericalWarning, stacklevel=caller_level())

    def _forget(self, rowspace: bool = True) -> None:
        for name in fitting.FITTED:
            self.__dict__.pop(name, None)
        if rowspace:
            self.__dict__.pop("_rowspace", None)

    def __getattr__(self, name: str) -> Any:
        """Decompose what partial_fit gathered when a fitted attribute is first read."""
        if name in fitting.FITTED and "_rowspace" in vars(self):
            try:
                self._name(stream.conclude(self._rowspace, self._like, self._options()))
            except ValueError as error:  # too few rows so far, say: the attribute is not there yet
                raise AttributeError(str(error)) from error
            return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is something to transform with."""
        return "components_" in vars(self) or "_rowspace" in vars(self)

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
    _rowspace: RowSpace
    _like: Source
    _weight: float


def _near(given: Source, sample_weight: Any) -> tuple[Source, Array | None]:
    """Rows and weights for what is written in NumPy, and not for a card."""
    source = to_host(given)
    return source, check_weights(sample_weight, source)
