"""Principal component analysis."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from array_api_compat import array_namespace, is_array_api_obj
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import like
from gramian.compute.rowspace import RowSpace
from gramian.inputs.checks import check_choice, check_seed, check_weights
from gramian.inputs.devices import convert_to_numpy, store_like
from gramian.inputs.opening import MissingValuesError, open_input, refuse_non_finite
from gramian.pca import stream
from gramian.pca.asymptotic import AsymptoticErrors, eigenvalue_errors
from gramian.pca.bootstrap import Bootstrap, bootstrap
from gramian.pca.conditional import conditional_scores
from gramian.pca.interpret import Biplot, Reading, biplot, correlations, describe, loadings
from gramian.pca.missing import LIKELIHOOD, fit_incomplete
from gramian.pca.monitoring import Monitor, monitor
from gramian.pca.probabilistic import ProbabilisticModel, as_like
from gramian.pca.rank import DATA_RULES, SPECTRUM_RULES
from gramian.pca.rotation import Rotation, rotate, rotated_scores
from gramian.pca.scores import score_like, scores, scores_and_errors
from gramian.pca.solve import FITTED, Fitted, Options, fit
from gramian.pca.subspaces import principal_angles
from gramian.pca.supplementary import (
    Categories,
    SupplementaryColumns,
    SupplementaryRows,
    supplementary_categories,
    supplementary_columns,
    supplementary_rows,
)
from gramian.results import NumericalWarning, Optimum, SpectralCertificate, caller_level
from gramian.sources import Source
from gramian.sources.devices import source_to_device, source_to_numpy

__all__ = ["PCA", "Fits", "Interpretation"]

Matrix = npt.NDArray[np.float64]


class Interpretation:
    """Methods that hand a fitted PCA to the function of the same name in :mod:`gramian.analysis`."""

    def encode(self, X: Any) -> Any:
        """Return the codes of the rows: another name for ``transform``."""
        return self._fitted().transform(X)

    def decode(self, X: Any) -> Any:
        """Return the rows of codes: another name for ``inverse_transform``."""
        return self._fitted().inverse_transform(X)

    def loadings(self) -> Matrix:
        """Loadings V√λ of the variables: :func:`gramian.analysis.loadings`."""
        return loadings(self._fitted())

    def correlations(self, X: Any = None, sample_weight: Any = None) -> Matrix:
        """Correlations of the variables with the components: :func:`gramian.analysis.correlations`."""
        return correlations(self._fitted(), X, sample_weight)

    def describe(self, X: Any, sample_weight: Any = None, *, row_labels: Sequence[Any] | None = None) -> Reading:
        """Coordinates, contributions and cos² of rows and variables: :func:`gramian.analysis.describe`.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from gramian import PCA
        >>> X = load_iris().data
        >>> reading = PCA(n_components=2, scale=True).fit(X).describe(X)
        >>> reading.columns.contributions[:, 0].sum().round(6)
        np.float64(100.0)
        """
        return describe(self._fitted(), X, sample_weight, row_labels=row_labels)

    def supplementary_rows(self, X: Any, *, row_labels: Sequence[Any] | None = None) -> SupplementaryRows:
        """Place rows that took no part in the fit: :func:`gramian.analysis.supplementary_rows`."""
        return supplementary_rows(self._fitted(), X, row_labels=row_labels)

    def supplementary_columns(
        self, X: Any, Y: Any, names: Sequence[str] | None = None, sample_weight: Any = None
    ) -> SupplementaryColumns:
        """Correlate other variables with the components: :func:`gramian.analysis.supplementary_columns`."""
        return supplementary_columns(self._fitted(), X, Y, names, sample_weight)

    def supplementary_categories(self, X: Any, labels: Any, sample_weight: Any = None) -> Categories:
        """Place the categories of labels, with test values: :func:`gramian.analysis.supplementary_categories`."""
        return supplementary_categories(self._fitted(), X, labels, sample_weight)

    def rotate(
        self,
        method: str = "varimax",
        *,
        normalize: bool = True,
        power: float = 4.0,
        n_components: int | None = None,
        tol: float = 1e-10,
        max_iterations: int = 1000,
        n_starts: int = 1,
        random_state: int | None = None,
    ) -> Rotation:
        """Rotate the loadings towards simple structure: :func:`gramian.analysis.rotate`.

        Parameters
        ----------
        method : {"varimax", "quartimax", "equamax", "promax"}, default="varimax"
            The criterion; promax lets the factors correlate.
        normalize : bool, default=True
            Kaiser's normalisation: variables count equally.
        power : float, default=4
            Power of promax.
        n_components : int, optional
            Rotate the first so many components only; by default all that have variance.
        tol : float, default=1e-10
            Stationarity to reach.
        max_iterations : int, default=1000
            Most sweeps over all pairs of factors.
        n_starts : int, default=1
            Starts, the first from the loadings and others from random rotations, of which the best is kept.
        random_state : int, optional
            Seed of these starts; None is a fixed one.

        Returns
        -------
        Rotation
            Rotated loadings, the rotation, and whether it converged.
        """
        return rotate(
            self._fitted(), method, normalize=normalize, power=power, n_components=n_components, tol=tol,
            max_iterations=max_iterations, n_starts=n_starts, random_state=random_state,
        )  # fmt: skip

    def rotated_scores(self, X: Any, rotation: Rotation) -> Matrix:
        """Standardised scores of rotated factors: :func:`gramian.analysis.rotated_scores`.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (n, p)
            The rows.
        rotation : Rotation
            What :meth:`rotate` returned.

        Returns
        -------
        ndarray of shape (n, k)
            Scores.

        Examples
        --------
        >>> import numpy as np
        >>> from sklearn.datasets import load_iris
        >>> from gramian import PCA
        >>> X = load_iris().data
        >>> pca = PCA(n_components=2, scale=True).fit(X)
        >>> bool(np.allclose(np.cov(pca.rotated_scores(X, pca.rotate()).T), np.eye(2)))
        True
        """
        return rotated_scores(self._fitted(), X, rotation)

    def biplot(
        self, X: Any, alpha: float | str = 1.0, components: Sequence[int] = (0, 1), *, deviations: bool = False
    ) -> Biplot:
        """Coordinates of rows and variables in one plane: :func:`gramian.analysis.biplot`.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, path or Source of shape (n, p)
            The rows to draw.
        alpha : float or {"form", "covariance", "symmetric"}, default=1.0
            1 or "form" keeps distances between rows, 0 or "covariance" the covariances between variables; 0.5 is
            "symmetric".
        components : sequence of int, default=(0, 1)
            Which components, counted from 0.
        deviations : bool, default=False
            Use the standard deviations √λ in the place of the singular values.

        Returns
        -------
        Biplot
            Coordinates, with what may be read from them in words.
        """
        return biplot(self._fitted(), X, alpha, components, deviations=deviations)

    def monitor(
        self, X: Any, *, alpha: float = 0.01, sample_weight: Any = None, t2: str = "F", q: str = "exact"
    ) -> Monitor:
        """Control limits for T² and Q from the training rows: :func:`gramian.analysis.monitor`.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows of the fit.
        alpha : float, default=0.01
            Share of normal rows above each of the two limits.
        sample_weight : array-like of shape (n,), optional
            The frequencies of the fit.
        t2 : {"F", "beta", "chi2"}, default="F"
            ``F`` for new rows, ``beta`` for the training rows themselves, ``chi2`` where n is large.
        q : {"exact", "jackson-mudholkar", "box", "moments"}, default="exact"
            Where the limit of Q comes from: the variances left out, or with ``moments`` Q over the training rows.

        Returns
        -------
        Monitor
            The limits; its ``check`` and ``contributions`` take new rows.
        """
        return monitor(self._fitted(), X, alpha=alpha, sample_weight=sample_weight, t2=t2, q=q)

    def bootstrap(
        self,
        X: Any,
        *,
        n_replicates: int = 1000,
        level: float = 0.95,
        align: str = "order",
        method: str = "percentile",
        scores: bool = True,
        sample_weight: Any = None,
        random_state: Any = None,
        progress: Callable[[int, int], Any] | None = None,
    ) -> Bootstrap:
        """Bootstrap intervals of variances, components, loadings and scores: :func:`gramian.analysis.bootstrap`.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows of the fit.
        n_replicates : int, default=1000
            Samples to draw.
        level : float, default=0.95
            Coverage of the intervals.
        align : {"order", "rotation"}, default="order"
            How components are matched: ``order`` says how well each direction is known, ``rotation`` the plane.
        method : {"percentile", "bc"}, default="percentile"
            Quantiles of the replicates, or the bias-corrected ones.
        scores : bool, default=True
            Whether to find intervals for the scores too; not where the fit had missing cells.
        sample_weight : array-like of shape (n,), optional
            The frequencies of the fit.
        random_state : int, RandomState, Generator or None, default=None
            Seed; None is a fixed one.
        progress : callable, optional
            Called as ``progress(done, total)`` from time to time.

        Returns
        -------
        Bootstrap
            Intervals, standard errors and biases.
        """
        return bootstrap(
            self._fitted(), X, n_replicates=n_replicates, level=level, align=align, method=method, scores=scores,
            sample_weight=sample_weight, random_state=random_state, progress=progress,
        )  # fmt: skip

    def eigenvalue_errors(self, level: float = 0.95, *, form: str = "ratio") -> AsymptoticErrors:
        """Anderson's asymptotic standard errors: :func:`gramian.analysis.eigenvalue_errors`."""
        return eigenvalue_errors(self._fitted(), level, form=form)

    def principal_angles(self, other: Any) -> Matrix:
        """Angles between the subspaces of two fits: :func:`gramian.analysis.principal_angles`."""
        return principal_angles(self._fitted(), other)

    def _fitted(self) -> Any:
        check_is_fitted(self)
        return self


Array = Any


class Fits:
    """What stands between the parameters of a PCA and its fitted attributes."""

    n_components: Any
    whiten: bool
    svd_solver: str
    tol: float
    iterated_power: int | str
    n_oversamples: int
    random_state: Any
    scale: bool
    device: Any
    _rowspace: RowSpace
    _like: Source

    def fit_incomplete(
        self,
        X: Any,
        y: Any = None,
        *,
        method: str = LIKELIHOOD,
        sample_weight: Any = None,
        tol: float | None = None,
        max_iterations: int = 2000,
    ) -> Self:
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
        store_like(self, given, FITTED)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
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
        w = None if sample_weight is None else check_weights(sample_weight, source.shape[0], all_zero=True)
        state = RowSpace.empty(source.shape[1]) if first else self._rowspace
        self._forget(rowspace=False)
        self._rowspace = stream.absorb(state, source_to_numpy(source), w, self._options())
        self._like = stream.template(source)
        return self

    def _opened(self, X: Any) -> Source:
        """Open the rows of a new fit, and forget the last one."""
        check_parameters(self)
        self._forget()
        return open_input(self, X, reset=True)

    def _fit(self, given: Source, sample_weight: Any) -> Source:
        """Fit where ``device`` says and bring the results home; return the rows where they were worked on."""
        source = source_to_device(given, self.device)
        w, options, rule = _weights_of(sample_weight, source), self._options(), self.n_components
        choice = None
        if isinstance(rule, str) and rule in DATA_RULES:
            choice = DATA_RULES[rule](self, *_near(given, sample_weight))
        try:
            self._name(fit(source, w, options, choice))
        except MissingValuesError:
            if source.sparse:
                raise
            self._name(fit_incomplete(self, *_near(given, sample_weight), options, LIKELIHOOD, options.tol))
        store_like(self, given, FITTED)
        return source

    def _options(self) -> Options:
        seed = check_seed(self.random_state)
        cap = None if self.iterated_power == "auto" else int(self.iterated_power)
        return Options(
            self.n_components,
            self.svd_solver,
            self.tol or None,
            cap,
            self.n_oversamples,
            seed,
            self.scale,
            self.whiten,
        )

    def _name(self, result: Fitted) -> None:
        """Give the results their scikit-learn names, in the array type of the data."""
        for name, value in result.attributes.items():
            setattr(self, name, value)
        for message in result.warnings:
            warnings.warn(message, NumericalWarning, stacklevel=caller_level())

    def _forget(self, rowspace: bool = True) -> None:
        for name in FITTED:
            self.__dict__.pop(name, None)
        if rowspace:
            self.__dict__.pop("_rowspace", None)

    def __getattr__(self, name: str) -> Any:
        """Decompose what partial_fit gathered when a fitted attribute is first read."""
        if name in FITTED and "_rowspace" in vars(self):
            try:
                self._name(stream.conclude(self._rowspace, self._like, self._options()))
            except ValueError as error:  # too few rows so far, say: the attribute is not there yet
                raise AttributeError(str(error)) from error
            return vars(self)[name]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is something to transform with."""
        return "components_" in vars(self) or "_rowspace" in vars(self)


def _near(given: Source, sample_weight: Any) -> tuple[Source, Array | None]:
    """Rows and weights for what is written in NumPy, and not for a card."""
    source = source_to_numpy(given)
    return source, _weights_of(sample_weight, source)


def _weights_of(sample_weight: Any, source: Source) -> Array | None:
    """The weights of the rows, where the rows are."""
    if sample_weight is None:
        return None
    w = check_weights(sample_weight, source.shape[0])
    return w if source.xp is np else source.xp.asarray(w, device=source.device)


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
    certificate_ : SpectralCertificate or Optimum
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
        return like(given, self._scores(self._fit(given, sample_weight)))

    def transform(self, X: Any) -> Array:
        r"""Scores z = V_kᵀ(x − x̄) of the rows of X, divided by their standard deviations if ``whiten``.

        A row with NaN cells gets the conditional expectation of its scores given the cells that are observed.
        """
        check_is_fitted(self)
        given = open_input(self, X, reset=False)
        return like(given, self._scores(source_to_device(given, self.device)))

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
        return like(given, self._scores_and_errors(source_to_device(given, self.device))[1])

    def _scores(self, source: Source) -> Array:
        """Scores of the rows of a source, beside them."""
        try:
            Z = scores(source, self.components_, self.mean_, self.scale_)
        except MissingValuesError:
            if source.sparse:
                raise
            Z = score_like(source, conditional_scores(convert_to_numpy(self), source_to_numpy(source)))
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

    certificate_: SpectralCertificate | Optimum
    _weight: float


SOLVERS = ("auto", "full", "covariance_eigh", "arpack", "randomized", "krylov", "power")


RULES = ("mle", *SPECTRUM_RULES, *DATA_RULES)


NORMALIZERS = ("auto", "QR", "LU", "none")


def check_parameters(pca: Any) -> None:
    """Raise an error that names the parameter, what it is, and what it may be."""
    check_choice("svd_solver", pca.svd_solver, SOLVERS)
    check_choice("power_iteration_normalizer", pca.power_iteration_normalizer, NORMALIZERS)
    if not 0.0 <= pca.tol < np.inf:
        raise ValueError(f"tol must not be negative, got {pca.tol!r}.")
    if pca.iterated_power != "auto" and not _whole(pca.iterated_power, 0):
        raise ValueError(f"iterated_power must be 'auto' or a number of iterations, got {pca.iterated_power!r}.")
    if isinstance(pca.n_components, str):
        check_choice("n_components", pca.n_components, RULES)
    check_choice("whiten", pca.whiten, (True, False))
    check_choice("scale", pca.scale, (True, False))
    if not _whole(pca.n_oversamples, 1):
        raise ValueError(f"n_oversamples must be a positive integer, got {pca.n_oversamples!r}.")


def _whole(value: Any, least: int) -> bool:
    return isinstance(value, Integral) and int(value) >= least
