"""Principal component analysis."""

from __future__ import annotations

import math
import os
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, is_array_api_obj
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import device_keyword, like, to_numpy
from gramian.compute.rowspace import RowSpace
from gramian.inputs.checks import check_choice, check_integer, check_weights
from gramian.inputs.devices import convert_to_numpy
from gramian.inputs.opening import MissingValuesError, has_missing, open_input, refuse_non_finite
from gramian.pca.interpret import loadings, refuse_lost_variances
from gramian.pca.missing import LIKELIHOOD, fit_missing
from gramian.pca.probabilistic import conditional_scores, draw_rows, impute, impute_to, log_densities, open_dense
from gramian.pca.problem import PCAFit, build_problem, scores, scores_and_errors
from gramian.pca.rank import DATA_RULES, SPECTRUM_RULES
from gramian.pca.solve import (
    absorb_rows,
    check_number,
    choose_solver,
    count_rows,
    cut_spectrum,
    empty_copy,
    refuse_too_few,
    solve,
    solve_constant,
    solve_stream,
)
from gramian.results import Optimum, SpectralCertificate
from gramian.sources import Source
from gramian.sources.devices import source_to_device, source_to_numpy

Array = Any

SOLVERS = ("auto", "full", "covariance_eigh", "arpack", "randomized", "krylov", "power")
RULES = ("mle", *SPECTRUM_RULES, *DATA_RULES)
OUTSIDE = 1e-9  # share of a row's squared distance from the mean beyond which it lies outside the span of the others
NORMALIZERS = ("auto", "QR", "LU", "none")
FITTED = (
    "certificate_",
    "components_",
    "explained_variance_",
    "explained_variance_ratio_",
    "mean_",
    "n_components_",
    "n_samples_",
    "noise_variance_",
    "rank_",
    "scale_",
    "singular_values_",
    "_missing_method",
    "_weight",
)


class PCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
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
        "parallel", "parallel-gaussian", "sign-flip", "tracy-widom", "gavish-donoho", "edge-differences", "screenot",
        "broken-stick", "cv", "bi-cv" (see :func:`gramian.rank_advice`). None with missing cells keeps all where the
        cells determine them, else as many as predict held-out cells best, which "cv" always does.
    copy : bool, default=True
        Accepted for scikit-learn's sake: the data are never changed, and never copied whole.
    whiten : bool, default=False
        Divide the scores by their standard deviations.
    svd_solver : {"auto", "full", "covariance_eigh", "arpack", "randomized", "krylov", "power"}, default="auto"
        ``auto`` follows the rule in :func:`gramian.spectral.auto.choose_spectral_solver`. ``full`` factors the data
        themselves, ``covariance_eigh`` goes through the Gram matrix where that is safe; ``arpack`` and ``krylov`` are
        block Krylov; ``randomized`` is subspace iteration until the tolerance is met; ``power`` the power method with
        deflation.
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
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a GPU if there is one.

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
    certificate_ : SpectralCertificate or Optimum
        Method, passes, residuals, error bounds, and whether the tolerance was met; an Optimum where cells were missing.

    See Also
    --------
    gramian.rank_advice : How many components, by every rule.
    gramian.analysis : Functions that take a fitted PCA. What it means: ``describe``, ``correlations``, ``biplot``,
        ``rotate``, ``rotated_scores``, ``supplementary_rows``, ``supplementary_columns``, ``supplementary_categories``.
        How far to trust it: ``bootstrap``, ``eigenvalue_errors``, ``equality_test``, ``monitor``,
        ``principal_angles``. Missing cells: ``fit_incomplete``, ``condition``, ``latent``, ``multiple_imputation``.

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

    components_: Array
    explained_variance_: Array
    explained_variance_ratio_: Array
    singular_values_: Array
    mean_: Array
    scale_: Array | None
    noise_variance_: float
    n_components_: int
    n_features_in_: int
    n_samples_: int
    rank_: int
    certificate_: SpectralCertificate | Optimum
    _weight: float
    _missing_method: str
    _rowspace: RowSpace
    _like: Source

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
        self._fit(self._open(X), sample_weight)
        return self

    def fit_transform(self, X: Any, y: Any = None, sample_weight: Any = None) -> Array:
        """Fit and return the scores of X: the same as ``fit(X).transform(X)``."""
        given = self._open(X)
        return like(given, self._scores(self._fit(given, sample_weight)))

    def _open(self, X: Any) -> Source:
        """Open the rows of a new fit, and forget the last one."""
        check_parameters(self)
        for name in (*FITTED, "_rowspace"):
            self.__dict__.pop(name, None)
        return open_input(self, X, reset=True)

    def _fit(self, given: Source, sample_weight: Any) -> Source:
        """Fit to rows; return them where they were worked on."""
        source = given if self.device is None else source_to_device(given, self.device)
        n, p = source.shape
        w = None if sample_weight is None else like(source, check_weights(sample_weight, n))
        weight = float(n if w is None else source.xp.sum(w))
        refuse_too_few(n, weight)
        try:
            k: int | None
            if isinstance(self.n_components, str) and self.n_components in DATA_RULES:  # a rule that looks at the rows
                if self.n_components == "cv":
                    refuse_non_finite(source)  # of rows with missing cells, other cells are held out
                found = DATA_RULES[self.n_components](self, source_to_numpy(given), to_numpy(w))
                k, reason = found.n_components, found.reason
            else:
                limit = min(count_rows(weight, n if w is None else int(source.xp.count_nonzero(w))), p)
                k, reason = check_number(self.n_components, limit, self.svd_solver), ""  # None: the spectrum decides
            choice = choose_solver(source, k, self)
            exact = choice.solver == "exact"
            problem = build_problem(source, w, scale=self.scale, gram=choice.gram, exact=exact, tol=self.tol)
            nothing_varies = problem.total == 0.0
            spectrum = solve_constant(source, k) if nothing_varies else solve(problem, k, choice, self)
            self._keep(cut_spectrum(spectrum, problem, source, k, self, reason), source, given)
        except MissingValuesError:  # found by the statistics, or by a rule
            if source.sparse:
                raise
            rows = source_to_numpy(given)
            fit = fit_missing(self, rows, to_numpy(w), LIKELIHOOD, self.tol or None)
            self._keep(fit, rows, given)
        return source

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
        w = self._check_weights(source, sample_weight)
        state = RowSpace.empty(source.shape[1]) if first else self._rowspace
        for name in FITTED:
            self.__dict__.pop(name, None)
        self._rowspace, self._like = absorb_rows(state, source_to_numpy(source), w, self), empty_copy(source)
        return self

    @staticmethod
    def _check_weights(source: Source, sample_weight: Any) -> Array | None:
        return None if sample_weight is None else check_weights(sample_weight, source.shape[0], all_zero=True)

    def __getattr__(self, name: str) -> Any:
        """Decompose what partial_fit gathered when a fitted attribute is first read."""
        if name in FITTED and "_rowspace" in vars(self):
            try:
                self._keep(solve_stream(self._rowspace, self._like, self), self._like, self._like)
            except ValueError as error:  # too few rows so far, say: the attribute is not there yet
                raise AttributeError(str(error)) from error
            return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _keep(self, fit: PCAFit, source: Source, given: Source) -> None:
        """Give the results their scikit-learn names, as arrays of the type that the rows came in."""
        float_dtype = source.xp.float32 if source.dtype == source.xp.float32 else source.xp.float64
        components = like(given, source.xp.astype(like(source, fit.components), float_dtype))
        # row by row in memory, so that a model file shows them to other readers as they are
        self.components_ = np.ascontiguousarray(components) if isinstance(components, np.ndarray) else components
        # eq: pca-variance
        self.explained_variance_ = like(given, fit.variances)
        self.explained_variance_ratio_ = like(given, fit.ratios)
        self.singular_values_ = like(given, fit.singular_values)
        self.mean_ = like(given, fit.mean)
        self.scale_ = like(given, fit.scale)
        self.noise_variance_ = fit.noise
        self.n_components_ = len(fit.variances)
        self.n_samples_ = count_rows(fit.weight)
        self.rank_ = fit.rank
        self.certificate_ = fit.certificate
        self._weight = fit.weight
        self._missing_method = fit.missing_method

    def transform(self, X: Any) -> Array:
        r"""Scores z = V_kᵀ(x − x̄) of the rows of X, divided by their standard deviations if ``whiten``.

        A row with NaN cells gets the conditional expectation of its scores given the cells that are observed.
        """
        check_is_fitted(self)
        given = open_input(self, X, reset=False)
        return like(given, self._scores(source_to_device(given, self.device)))

    def _scores(self, source: Source) -> Array:
        """Scores of the rows of a source, as an array of its type."""
        xp = source.xp
        try:
            Z = scores(source, self.components_, self.mean_, self.scale_)
        except MissingValuesError:
            if source.sparse:
                raise
            expected = conditional_scores(convert_to_numpy(self), source_to_numpy(source))
            Z = xp.astype(like(source, expected), xp.float32 if source.dtype == xp.float32 else xp.float64)
        if not self.whiten:
            return Z
        spread = self._deviations(Z)
        safe = xp.where(spread > 0, spread, 1.0 + 0.0 * spread)
        return xp.where(spread > 0, Z / safe, 0.0 * Z)

    def _deviations(self, Z: Array) -> Array:
        """√λ, and 0 beyond the rank, as an array like Z; from σ, which cannot overflow where λ would."""
        sigma = _convert(self.singular_values_, Z) / (self._weight - 1.0) ** 0.5
        return sigma * _convert(np.arange(len(self.singular_values_)) < self.rank_, Z)

    def inverse_transform(self, X: Any) -> Array:
        r"""Rows x̂ = x̄ + V_k z of scores z."""
        check_is_fitted(self)
        Z = X if is_array_api_obj(X) else np.asarray(X)
        xp = array_namespace(Z)
        if Z.ndim != 2 or Z.shape[1] != self.components_.shape[0]:
            raise ValueError(f"Scores of shape {tuple(Z.shape)} do not fit {self.components_.shape[0]} components.")
        Z = Z if xp.isdtype(Z.dtype, "real floating") else xp.astype(Z, xp.float64)
        D = (Z * self._deviations(Z) if self.whiten else Z) @ _convert(self.components_, Z)
        D = xp.astype(D, xp.float64)
        D = D if self.scale_ is None else D * _convert(self.scale_, D)
        # eq: pca-approximation
        return xp.astype(D + _convert(self.mean_, D), Z.dtype)

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
        return like(given, self._scores_and_errors(source_to_device(given, self.device))[1])

    def _scores_and_errors(self, source: Source) -> tuple[Array, Array]:
        return scores_and_errors(source, self.components_, self.mean_, self.scale_)

    def loadings(self) -> npt.NDArray[np.float64]:
        """Loadings V√λ of the variables: :func:`gramian.analysis.loadings`."""
        check_is_fitted(self)
        return loadings(self)

    def get_covariance(self) -> Array:
        r"""Covariance of the model, in the data's own units.

        Returns
        -------
        array of shape (p, p)
            diag(s)(Vᵀ diag(λ − σ²) V + σ²I)diag(s), s = 1 without ``scale``.
        """
        check_is_fitted(self)
        V, excess, noise = self._gaussian_model()
        return self._in_units((V.T * excess) @ V + noise * _identity(V), 1.0)

    def get_precision(self) -> Array:
        r"""Inverse of the covariance, by the matrix inversion lemma.

        Returns
        -------
        array of shape (p, p)
            (I − Vᵀ diag(1 − σ²/λ) V)/σ² with noise, Vᵀ diag(1/λ) V without.
        """
        check_is_fitted(self)
        self._refuse_singular()
        V, excess, noise = self._gaussian_model()
        if noise == 0.0:
            return self._in_units((V.T / excess) @ V, -1.0)
        return self._in_units((_identity(V) - (V.T * (1 - noise / (noise + excess))) @ V) / noise, -1.0)

    def score_samples(self, X: Any) -> Array:
        r"""Log-likelihood of each row under the model.

        .. math:: -\tfrac12\left(p\ln 2\pi + \ln|C| + (x-\mu)^TC^{-1}(x-\mu)\right)

        Parameters
        ----------
        X : array-like, path or Source of shape (n, p)
            The rows; of a row with NaN cells, the density of those that are observed.

        Returns
        -------
        array of shape (n,)
            Log-likelihoods. With all components of fewer rows than columns the rows have a density in their span
            alone, which is what is given; a row outside of it has −inf.
        """
        check_is_fitted(self)
        given = open_input(self, X, reset=False)
        source = source_to_device(given, self.device)
        missing = has_missing(source)
        if missing or self.rank_ == 0:
            self._refuse_singular()
        if missing:
            return like(given, log_densities(convert_to_numpy(self), source_to_numpy(source)))
        _, excess, noise = self._gaussian_model()
        Z, errors = self._scores_and_errors(source)
        xp, lam, p = array_namespace(Z), _convert(noise + excess, Z), self.n_features_in_
        if self._is_singular():  # the density within the span of the rows, and none outside
            span, size = self.rank_, xp.sum(Z**2, axis=1) + errors
            beyond = (errors + xp.sum(Z[:, span:] ** 2, axis=1)) / xp.where(size > lam[0], size, lam[0] + 0.0 * size)
            Z, lam, p = Z[:, :span], lam[:span], span
            errors, noise = xp.where(beyond > OUTSIDE, math.inf + 0.0 * size, 0.0 * size), 1.0
        distance, log_det = xp.sum(Z**2 / lam, axis=1), float(xp.sum(xp.log(lam)))
        if noise > 0.0:
            distance = distance + errors / noise
            log_det += (p - lam.shape[0]) * math.log(noise)
        if self.scale_ is not None:
            log_det += 2 * float(xp.sum(xp.log(_convert(self.scale_, Z))))
        return like(given, -0.5 * (p * math.log(2 * math.pi) + log_det + distance))

    def score(self, X: Any, y: Any = None) -> float:
        """Average log-likelihood of the rows of X."""
        return float(np.mean(to_numpy(self.score_samples(X))))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Draw rows from the model.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int or Generator, optional
            Of the draws; None draws anew each time.

        Returns
        -------
        array of shape (n_samples, p)
            Rows of N(mean, covariance), with the covariance of :meth:`get_covariance`, where the fitted attributes are.
        """
        check_is_fitted(self)
        check_integer("n_samples", n_samples, least=0)
        return like(self.components_, draw_rows(convert_to_numpy(self), n_samples, random_state))

    def impute(self, X: Any, out: str | os.PathLike[str] | None = None) -> Array:
        """Fill NaN cells with their conditional expectation.

        Parameters
        ----------
        X : array-like, path or Source of shape (n, p)
            The rows.
        out : path, optional
            An ``.npy`` file to write instead, block by block, for tables larger than memory.

        Returns
        -------
        array of shape (n, p), or the path
            The completed rows: a tensor where X is one.
        """
        check_is_fitted(self)
        given = open_dense(self, X)
        model, rows = convert_to_numpy(self), source_to_numpy(given)
        return like(given, impute(model, rows)) if out is None else impute_to(model, rows, out)

    def _gaussian_model(self) -> tuple[Array, Array, float]:
        """V and λ − σ² ≥ 0 in float64, and σ²: the covariance is Vᵀ diag(λ − σ²) V + σ²I."""
        refuse_lost_variances(self)
        xp, noise = array_namespace(self.components_), self.noise_variance_
        excess = xp.astype(self.explained_variance_, xp.float64) - noise
        return xp.astype(self.components_, xp.float64), xp.where(excess > 0, excess, 0.0 * excess), noise

    def _in_units(self, M: Array, power: float) -> Array:
        """diag(s^power) M diag(s^power)."""
        if self.scale_ is None:
            return M
        s = self.scale_**power
        return s[:, None] * M * s[None, :]

    def _is_singular(self) -> bool:
        k, p = self.components_.shape
        floor = max(p, 2) * np.finfo(float).eps * float(self.explained_variance_[0]) if k else 0.0
        return self.noise_variance_ == 0.0 and (k < p or float(self.explained_variance_[-1]) <= floor)

    def _refuse_singular(self) -> None:
        if self._is_singular():
            raise ValueError(
                "The model's covariance is singular: the noise variance is 0 and the components do not span all "
                f"{self.n_features_in_} features, so there is no precision. Fit with fewer n_components."
            )

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


def check_parameters(pca: PCA) -> None:
    """Raise an error that names the parameter, what it is, and what it may be."""
    check_choice("svd_solver", pca.svd_solver, SOLVERS)
    check_choice("power_iteration_normalizer", pca.power_iteration_normalizer, NORMALIZERS)
    if not 0.0 <= pca.tol < np.inf:
        raise ValueError(f"tol must not be negative, got {pca.tol!r}.")
    cap = pca.iterated_power
    if cap != "auto" and (not isinstance(cap, Integral) or int(cap) < 0):
        raise ValueError(f"iterated_power must be 'auto' or a number of iterations, got {cap!r}.")
    if isinstance(pca.n_components, str):
        check_choice("n_components", pca.n_components, RULES)
    check_choice("whiten", pca.whiten, (True, False))
    check_choice("scale", pca.scale, (True, False))
    check_integer("n_oversamples", pca.n_oversamples)


def _identity(V: Array) -> Array:
    return _convert(np.eye(V.shape[1]), V)


def _convert(x: Array, given: Array) -> Array:
    """Return x in the namespace, dtype and device of another array."""
    xp = array_namespace(given)
    return xp.asarray(x if array_namespace(x) is xp else to_numpy(x), dtype=given.dtype, **device_keyword(given))
