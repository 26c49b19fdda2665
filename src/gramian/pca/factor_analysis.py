r"""Factor analysis by maximum likelihood: factors in common, and for each column a noise of its own.

For given noise variances ψ the best loadings are known (Lawley 1940): with θ and u the leading eigenvalues and
eigenvectors of ψ^{-1/2}Sψ^{-1/2} they are ψ^{1/2}u(θ − 1)^{1/2}. What is left is a function of ln ψ alone,

.. math:: f(\psi)=\sum_j\ln\psi_j+\sum_j\frac{S_{jj}}{\psi_j}+\sum_{i\le k,\ \theta_i>1}(\ln\theta_i+1-\theta_i),\qquad
    \frac{\partial f}{\partial\ln\psi_j}=\frac{\Sigma_{jj}-S_{jj}}{\psi_j},

which is minimised by a quasi-Newton method and, where columns are few, by Newton's with exact second derivatives
(Jöreskog 1967). EM, which is mostly used, ends long before it has arrived.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import minimize
from scipy.special import chdtrc
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import to_numpy
from gramian.inputs.checks import check_choice, check_integer, check_weights
from gramian.inputs.devices import convert_to_numpy, like_input, store_like
from gramian.inputs.opening import open_input, refuse_non_finite
from gramian.pca.problem import column_moments
from gramian.pca.rotation import METHODS, Rotation, rotate
from gramian.pca.solve import refuse_too_few, warn
from gramian.results import Optimum
from gramian.sources import Source

Array = npt.NDArray[np.float64]

FEW = 300  # columns up to which second derivatives are formed
MOST_CELLS = 2**28  # cells of rows that are kept where there are more columns than rows
NEWTON = 50  # steps at most
NEAR = 1e3  # times the floor, below which a variance may be on its way to 0
PPCA_SHARE = 0.5  # of each column's variance that is noise at the second start


@dataclass(frozen=True, eq=False)
class NoiseProfile:
    """The likelihood as a function of the noise alone, at one value of it."""

    psi: Array
    value: float
    slope: Array
    theta: Array
    vectors: Array
    others: tuple[Array, Array] | None  # further eigenvalues and vectors, where all were computed


class FactorAnalysis(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Factor analysis by maximum likelihood, with a certificate.

    .. math:: x = \mu + Lz + e,\qquad z\sim N(0,\Phi),\ e\sim N(0,\mathrm{diag}(\psi))

    A drop-in for :class:`sklearn.decomposition.FactorAnalysis` with what R's ``factanal`` adds: all its rotations and
    more, the test of the number of factors, and columns without noise (Heywood cases) named. The answer does not
    depend on the units of the columns.

    Parameters
    ----------
    n_components : int or None, default=None
        k, the number of factors; None is the number of columns.
    tol : float, default=1e-5
        Gradient to reach, in standard errors of the noise variances. (scikit-learn's is a gain of the likelihood.)
    copy : bool, default=True
        Accepted for scikit-learn's sake: X is never changed.
    max_iter : int, default=1000
        Most steps from each start.
    noise_variance_init : array-like of shape (p,), optional
        A start. By default there are two, R's and one with noise as half of each variance, and the better end is kept.
    svd_method, iterated_power
        Accepted for scikit-learn's sake: decompositions are exact.
    rotation : {"varimax", "quartimax", "equamax", "promax"} or None, default=None
        How to turn the factors: see :func:`gramian.analysis.rotate`. With "promax" they correlate.
    random_state : int, optional
        Accepted for scikit-learn's sake: nothing is random.
    normalize : bool, default=False
        Turn loadings of standardised columns, with Kaiser's normalisation: True is R's ``factanal``, False
        scikit-learn, where the rotation depends on the units of the columns.
    noise_floor : float, default=1e-6
        The share of a column's variance that its noise keeps at least; R's ``lower`` is 0.005.

    Attributes
    ----------
    components_ : ndarray of shape (k, p)
        Loadings Lᵀ, rotated if so asked.
    noise_variance_ : ndarray of shape (p,)
        ψ; R's uniquenesses times the variances of the columns.
    mean_ : ndarray of shape (p,)
        μ.
    loglike_ : list of float
        Log-likelihood after each step from the start that was kept.
    n_iter_ : int
        Number of these steps.
    rotation_ : Rotation or None
        The rotation, with the matrix, the correlations of the factors and its criterion.
    correlations_ : ndarray of shape (k, k)
        Φ: the identity unless the rotation is promax.
    statistic_, degrees_of_freedom_, p_value_ : float, int, float
        Bartlett's test that k factors suffice; the p-value is NaN where nothing is left to test.
    certificate_ : Optimum
        Method, steps, −ℓ after each, and the gradient at the end.
    n_features_in_ : int
        p.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import FactorAnalysis
    >>> rng, L = np.random.default_rng(1), [[3, 0, 2, 1, 4, 1], [0, 3, 2, 4, 1, 5]]
    >>> X = rng.normal(size=(500, 2)) @ L + rng.normal(size=(500, 6)) * [1, 1, 2, 2, 3, 3]
    >>> fa = FactorAnalysis(2, rotation="varimax").fit(X)
    >>> fa.certificate_.converged, fa.degrees_of_freedom_, bool(fa.p_value_ > 0.05)
    (True, 4, True)
    >>> np.sqrt(fa.noise_variance_).round(1)
    array([1. , 1. , 2. , 2. , 2.9, 3. ])
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        tol: float = 1e-5,
        copy: bool = True,
        max_iter: int = 1000,
        noise_variance_init: Any = None,
        svd_method: str = "randomized",
        iterated_power: int = 3,
        rotation: str | None = None,
        random_state: Any = 0,
        normalize: bool = False,
        noise_floor: float = 1e-6,
    ) -> None:
        self.n_components = n_components
        self.tol = tol
        self.copy = copy
        self.max_iter = max_iter
        self.noise_variance_init = noise_variance_init
        self.svd_method = svd_method
        self.iterated_power = iterated_power
        self.rotation = rotation
        self.random_state = random_state
        self.normalize = normalize
        self.noise_floor = noise_floor

    components_: Array
    noise_variance_: Array
    mean_: Array
    correlations_: Array
    rotation_: Rotation | None
    certificate_: Optimum

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> FactorAnalysis:
        """Find μ, L and ψ.

        Parameters
        ----------
        X : array-like, frame, tensor, path or Source of shape (n, p)
            Complete rows.
        y : ignored
            For scikit-learn's sake.
        sample_weight : array-like of shape (n,), optional
            Frequencies: a weight of 2 is the row twice.

        Returns
        -------
        FactorAnalysis
            The estimator itself.
        """
        check_choice("rotation", self.rotation, (None, *METHODS))
        check_choice("svd_method", self.svd_method, ("lapack", "randomized"))
        check_integer("max_iter", self.max_iter)
        if not 0.0 < self.noise_floor < 1.0 or not 0.0 <= self.tol < math.inf:
            raise ValueError(
                "noise_floor must lie between 0 and 1 and tol must not be negative, got "
                f"noise_floor={self.noise_floor!r}, tol={self.tol!r}."
            )
        source = _open_dense(self, X, reset=True)
        n, p = source.shape
        k = p if self.n_components is None else check_integer("n_components", self.n_components)
        if k > p:
            raise ValueError(f"n_components={k} must be <= n_features={p}.")
        w = None if sample_weight is None else check_weights(sample_weight, n)
        weight = float(n if w is None else w.sum())
        refuse_too_few(n, weight)
        wide = p > max(n, FEW) and n * p <= MOST_CELLS
        moments = column_moments(source, w, gram=not wide)
        mean = to_numpy(moments.mean) + to_numpy(moments.low)
        variances = np.maximum(to_numpy(moments.diagonal) / weight, 0.0)
        _refuse_extreme(variances, mean)
        varies = variances > (8 * np.finfo(float).eps * np.abs(mean)) ** 2
        scale = np.where(varies, np.sqrt(variances), 1.0)
        if varies.any():
            q, known = int(varies.sum()), list[Array]()
            if wide:
                Z = np.concatenate([(to_numpy(b.values, float) - mean)[:, varies] for b in source.blocks()])
                Z *= np.sqrt((np.ones(n) if w is None else w) / weight)[:, None] / scale[varies]
                profile = _profile_rows(Z, k)
            else:
                R = to_numpy(moments.scatter)[np.ix_(varies, varies)] / weight
                R /= np.outer(scale[varies], scale[varies])
                np.fill_diagonal(R, 1.0)
                profile = _profile_correlations(R, k)
                inverse = np.diag(np.linalg.pinv(R, hermitian=True))
                known.append((1 - 0.5 * min(k, q) / q) / np.maximum(inverse, 1.0))
            if self.noise_variance_init is not None:
                given = np.asarray(to_numpy(self.noise_variance_init), dtype=np.float64)
                if given.shape != (p,) or not (np.isfinite(given) & (given > 0)).all():
                    raise ValueError(f"noise_variance_init must be {p} positive numbers.")
                starts = [given[varies] / variances[varies]]
            else:
                starts = [*known, np.full(q, PPCA_SHARE)]
            ends = [_minimise(profile, s, self.noise_floor, self.tol, self.max_iter, weight) for s in starts]
            best = min(ends, key=lambda end: end.heights[-1])
        else:
            warn("FactorAnalysis: no column varies, so that there are no factors.")
            nothing = NoiseProfile(np.zeros(0), 0.0, np.zeros(0), np.zeros(0), np.zeros((0, 0)), None)
            best = _End(nothing, [0.0], 0.0, 0, True)
        self._name_results(best, k, mean, scale, varies, weight)
        store_like(self, X, ("components_", "noise_variance_", "mean_", "correlations_"))
        return self

    def _name_results(self, best: _End, k: int, mean: Array, scale: Array, varies: Any, weight: float) -> None:
        """Turn noise into loadings in the units of the columns, rotate them, and say how good they are."""
        p, q, at = len(mean), int(np.sum(varies)), best.at
        W = np.zeros((p, k))
        W[varies, : len(at.theta)] = (np.sqrt(at.psi)[:, None] * at.vectors) * np.sqrt(np.maximum(at.theta - 1, 0))
        signs = np.where(W[np.abs(W).argmax(axis=0), np.arange(k)] < 0, -1.0, 1.0)
        W *= signs
        constant = q * math.log(2 * math.pi) + 2 * float(np.log(scale[varies]).sum())
        heights = 0.5 * weight * (np.array(best.heights) + constant)
        free, floor = (p - k) ** 2 - p - k, at.psi <= self.noise_floor * (1 + 1e-9)
        notes, columns = [], np.flatnonzero(varies)
        named = getattr(self, "feature_names_in_", None)

        def name(columns: Any) -> str:
            listed = [repr(str(named[j])) if named is not None else str(j + 1) for j in columns[:5]]
            return f"column{'s' * (len(columns) > 1)} {', '.join(listed)}{' …' * (len(columns) > 5)}"

        if floor.any():
            notes.append(
                f"{name(columns[floor])}: no noise beside the factors (a Heywood case), kept at noise_floor of the "
                "variance; there may be too many factors, or too few rows"
            )
        if q < p:
            notes.append(f"{name(np.flatnonzero(~varies))}: constant, without loadings and without a density")
        if free < 0:
            notes.append(f"{k} factors of {p} columns have more parameters than covariances: many models fit as well")
        self.certificate_ = Optimum(
            best.method,
            f"maximum likelihood of {k} factor{'s' * (k > 1)}",
            1,
            best.steps,
            heights,
            best.gradient,
            best.determined and free >= 0,
            tolerance=self.tol,
            notes=tuple(notes),
        )
        self.mean_, self.noise_variance_ = mean, np.zeros(p)
        self.noise_variance_[varies] = at.psi * scale[varies] ** 2
        self.rotation_, L, self.correlations_ = None, W * scale[:, None], np.eye(k)
        if self.rotation is not None and k > 1 and np.linalg.matrix_rank(W) == k:
            unit = scale[:, None] if self.normalize else 1.0  # R turns loadings of standardised columns
            self.rotation_ = rotate(L / unit, self.rotation, normalize=self.normalize)
            L, self.correlations_ = self.rotation_.loadings * unit, self.rotation_.correlations
        self.components_ = np.ascontiguousarray(L.T)
        self.loglike_ = [-float(height) for height in heights]
        self.n_iter_ = max(best.steps, 1)  # a start may need none; scikit-learn counts from 1
        self.degrees_of_freedom_, self.statistic_, self.p_value_ = max(free // 2, 0), math.nan, math.nan
        if at.others is not None and q == p:
            values = np.concatenate([at.theta, at.others[0]])
            if values.min() > 1e-12 * values.max():
                excess = np.where((np.arange(q) < k) & (values > 1), 0.0, values - np.log(values) - 1)
                factor = weight - 1 - (2 * p + 5) / 6 - 2 * k / 3
                self.statistic_ = factor * float(excess.sum())
                if free > 0 and factor > 0:
                    self.p_value_ = float(chdtrc(free // 2, max(self.statistic_, 0.0)))
        for note in notes:
            warn(f"FactorAnalysis: {note}.")
        if not notes or best.determined:
            self.certificate_.with_(determined=True).warn_unless_converged(
                f"Raise max_iter={self.max_iter}." if best.steps >= self.max_iter else f"Raise tol={self.tol:g}."
            )

    @like_input
    def transform(self, X: Any) -> Any:
        r"""Factor scores :math:`E[z\mid x]=(\Phi^{-1}+L^T\psi^{-1}L)^{-1}L^T\psi^{-1}(x-\mu)`, of shape (n, k)."""
        check_is_fitted(self)
        source = _open_dense(self, X, reset=False)
        weights, inner, _ = self._precision_parts()
        map_ = np.linalg.solve(inner, (self.components_ * weights)).T
        Z = np.concatenate([D @ map_ for D in self._deviations(source)])
        return Z.astype(np.float32) if source.dtype == np.float32 else Z

    def get_covariance(self) -> Any:
        """Return Σ = LΦLᵀ + diag(ψ)."""
        check_is_fitted(self)
        L = to_numpy(self.components_).T
        return L @ to_numpy(self.correlations_) @ L.T + np.diag(to_numpy(self.noise_variance_))

    def get_precision(self) -> Any:
        """Return Σ⁻¹, by the inversion of a k × k matrix; there is none where a column is constant."""
        check_is_fitted(self)
        mine = self._numpy()
        if not (mine.noise_variance_ > 0).all():
            raise ValueError("A column is constant: the covariance is singular.")
        weights, inner, _ = mine._precision_parts()
        B = mine.components_ * weights
        return np.diag(weights) - B.T @ np.linalg.solve(inner, B)

    def score_samples(self, X: Any) -> Any:
        """Log-density of each row; constant columns, which have none, are left out."""
        return self._score_rows(X)

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-density of a row."""
        return float(np.mean(to_numpy(self.score_samples(X))))

    @like_input
    def _score_rows(self, X: Any) -> Any:
        check_is_fitted(self)
        source = _open_dense(self, X, reset=False)
        weights, inner, log_det = self._precision_parts()
        B, parts = self.components_ * weights, []
        for D in self._deviations(source):
            T = D @ B.T
            parts.append(D**2 @ weights - np.sum(T * np.linalg.solve(inner, T.T).T, axis=1))
        live = int(np.count_nonzero(weights))
        return -0.5 * (np.concatenate(parts) + live * math.log(2 * math.pi) + log_det)

    def _numpy(self) -> FactorAnalysis:
        return convert_to_numpy(self)  # type: ignore[no-any-return]

    def _precision_parts(self) -> tuple[Array, Array, float]:
        """1/ψ (0 where a column is constant), Φ⁻¹ + Lᵀψ⁻¹L, and ln|Σ|."""
        psi = self.noise_variance_
        live = psi > 0
        weights = np.divide(1.0, psi, out=np.zeros_like(psi), where=live)
        inner = np.linalg.inv(self.correlations_) + (self.components_ * weights) @ self.components_.T
        parts = np.linalg.slogdet(inner)[1] + np.linalg.slogdet(self.correlations_)[1]
        return weights, inner, float(np.log(psi[live]).sum() + parts)

    def _deviations(self, source: Source) -> Iterator[Array]:
        for block in source.blocks():
            yield to_numpy(block.values, float) - self.mean_

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def _refuse_extreme(variances: Array, mean: Array) -> None:
    """Refuse columns whose squares float64 has no room for: they would pass for constant or have no correlations."""
    small = (variances < np.finfo(float).tiny) & (mean != 0.0) & (np.abs(mean) < 1e-150)
    bad = np.flatnonzero(~np.isfinite(variances) | small)
    if len(bad):
        raise ValueError(
            f"The values of column {bad[0] + 1} are too {'small' if small[bad[0]] else 'large'} for variances in "
            "float64. Multiply the column by a constant."
        )


def _open_dense(model: Any, X: Any, *, reset: bool) -> Source:
    """The Source of X: dense, complete and finite."""
    source = open_input(model, X, reset=reset)
    if source.sparse:
        raise TypeError("Sparse data was passed to FactorAnalysis, which takes dense rows. Use X.toarray().")
    refuse_non_finite(source)
    return source


def _take_profile(psi: Array, theta: Array, U: Array, k: int, others: tuple[Array, Array] | None) -> NoiseProfile:
    """The concentrated likelihood of standardised columns and its slope, from leading eigenpairs."""
    gain = np.maximum(theta - 1.0, 0.0)
    value = float(np.log(psi).sum() + np.sum(1.0 / psi) + np.sum(np.log1p(gain) - gain))
    return NoiseProfile(psi, value, 1.0 - 1.0 / psi + (U**2 @ gain), theta, U, others)


def _profile_correlations(R: Array, k: int) -> Callable[[Array], NoiseProfile]:
    def profile(psi: Array) -> NoiseProfile:
        root = 1.0 / np.sqrt(psi)
        theta, U = np.linalg.eigh(R * np.outer(root, root))
        theta, U = theta[::-1], U[:, ::-1]
        return _take_profile(psi, theta[:k], U[:, :k], k, (theta[k:], U[:, k:]))

    return profile


def _profile_rows(Z: Array, k: int) -> Callable[[Array], NoiseProfile]:
    """The same from rows, where they are fewer than columns: eigenvectors of their Gram matrix."""

    def profile(psi: Array) -> NoiseProfile:
        Y = Z / np.sqrt(psi)
        theta, V = np.linalg.eigh(Y @ Y.T)
        theta, V = theta[::-1][:k], V[:, ::-1][:, :k]
        live = theta > max(1e-12 * theta[0], 0.0)
        theta, V = theta[live], V[:, live]
        return _take_profile(psi, theta, Y.T @ V / np.sqrt(theta), k, None)

    return profile


def _second_derivatives(at: NoiseProfile) -> Array:
    """∂²f/∂ln ψ ∂ln ψ, exactly: eigenvalues that agree among the first k do no harm."""
    assert at.others is not None
    live = at.theta > 1.0
    theta, U = at.theta[live], at.vectors[:, live]
    rest = np.concatenate([at.theta[~live], at.others[0]])
    V = np.concatenate([at.vectors[:, ~live], at.others[1]], axis=1)
    H = np.diag(1.0 / at.psi) - ((U * theta) @ U.T) * (U @ U.T)
    for i in range(len(theta)):
        gap = np.maximum(theta[i] - rest, 1e-12 * theta[i])
        H -= np.outer(U[:, i], U[:, i]) * ((V * ((theta[i] - 1.0) * (theta[i] + rest) / gap)) @ V.T)
    return np.asarray(0.5 * (H + H.T))


@dataclass(frozen=True, eq=False)
class _End:
    at: NoiseProfile
    heights: list[float]
    gradient: float
    steps: int
    determined: bool
    method: str = ""


def _minimise(
    profile: Callable[[Array], NoiseProfile], start: Array, floor: float, tol: float, max_iter: int, weight: float
) -> _End:
    """Quasi-Newton steps in ln ψ between the floor and the variance, then Newton's where there are few columns."""
    low = math.log(floor)
    seen: dict[bytes, NoiseProfile] = {}

    def at(x: Array) -> NoiseProfile:
        key = x.tobytes()
        if key not in seen:
            if len(seen) > 8:
                seen.pop(next(iter(seen)))
            seen[key] = profile(np.exp(x))
        return seen[key]

    def is_free(x: Array, slope: Array) -> Any:
        blur = 64 * np.finfo(float).eps * np.exp(-x)  # rounding of the slope
        return ~((x <= low) & (slope > -blur)) & ~((x >= 0.0) & (slope < 0))

    x = np.clip(np.log(start), low, 0.0)
    heights = [at(x).value]
    options = {
        "maxiter": max_iter,
        "maxfun": 20 * max_iter,
        "ftol": 0.0,
        "gtol": 0.1 * tol / math.sqrt(weight / 2),
    }
    search: Any = minimize
    found = search(
        lambda x: at(x).value,
        x,
        jac=lambda x: at(x).slope,
        method="L-BFGS-B",
        bounds=[(low, 0.0)] * len(x),
        callback=lambda x: heights.append(at(x).value),
        options=options,
    )
    x, steps = np.clip(np.asarray(found.x), low, 0.0), int(found.nit)
    here = at(x)
    heights = [heights[0], *(h for i, h in enumerate(heights[1:]) if h <= min(heights[: i + 1]))]
    # towards 0 the likelihood is flat in ln ψ: what is on its way there, and loses nothing, is taken there
    for j in np.flatnonzero((x > low) & (x < math.log(NEAR * floor))):
        there = at(np.where(np.arange(len(x)) == j, low, x))
        if there.value <= here.value + 8 * np.finfo(float).eps * float(np.sum(1.0 / there.psi)):
            x, here = np.log(there.psi), there
            x = np.where(np.abs(x - low) < 1e-12, low, x)
            heights.append(min(here.value, heights[-1]))
    method, determined = "L-BFGS on the noise variances", True
    root = math.sqrt(weight / 2)
    free = is_free(x, here.slope)
    gradient = root * float(np.linalg.norm(here.slope[free]))
    if len(x) <= FEW and here.others is not None:
        method = "L-BFGS and Newton's method on the noise variances"
        for _ in range(NEWTON):
            free = is_free(x, here.slope)
            H, g = _second_derivatives(here)[np.ix_(free, free)], here.slope[free]
            values, Q = np.linalg.eigh(H) if len(g) else (np.ones(0), np.zeros((0, 0)))
            sizes = np.abs(values)
            known = sizes > 1e-9 * max(float(sizes.max(initial=0.0)), 1.0)
            determined = bool((values > 0).all() and known.all())
            along = Q.T @ g
            # flat directions have no Newton step: there the gradient itself is measured
            steepness = np.where(known, sizes, 1.0)
            gradient = root * math.sqrt(float(np.sum(along**2 / steepness)))
            if gradient <= 0.01 * tol or steps >= max_iter:
                break
            step = np.zeros(len(x))
            step[free] = -(Q @ (along / steepness))
            for shorter in range(30):
                trial = np.clip(x + step / 2**shorter, low, 0.0)
                there = at(trial)
                hidden = 8 * np.finfo(float).eps * float(np.sum(1.0 / there.psi))  # rounding of the value
                smaller = np.linalg.norm(there.slope[free]) < 0.5 * np.linalg.norm(g)
                if there.value < here.value or (there.value < here.value + hidden and smaller):
                    break
            else:
                break  # rounding hides what is left
            x, here, steps = trial, there, steps + 1
            heights.append(min(here.value, heights[-1]))
    return _End(here, heights, gradient, steps, determined, method)
