r"""Mixtures that bear outliers: components with Student's t-distribution, and a component of noise.

.. math:: p(x) = \frac{\pi_0}V + \sum_{k=1}^K\pi_k\,t_{\nu_k}(x;\mu_k,\Sigma_k)

A row counts with :math:`u_{ik}=(\nu_k+d)/(\nu_k+\delta_{ik})` in a mean and a scale matrix, δ its squared distance:
the expected precision of a normal whose precision has a gamma distribution (Peel and McLachlan 2000). The noise is
uniform over the smaller of two boxes about the data (Banfield and Raftery 1993). Covariance models, starts, and the
accelerated ascent are those of normal mixtures.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.spatial import cKDTree
from scipy.special import digamma, gammaln, logsumexp, polygamma, softmax
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import like, to_numpy
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_choice, check_integer, check_weights
from gramian.inputs.devices import store_like
from gramian.inputs.opening import MissingValuesError, refuse_non_finite
from gramian.mixture.diagnose import A_PRIOR, SAME, Diagnosis, describe_coincident, diagnose, find_coincident
from gramian.mixture.em import Maximiser, MixtureAscent, MixtureIterate, step_length
from gramian.mixture.estimator import STARTS, MixtureAnswers, make_random_state
from gramian.mixture.models import maximise_above, resolve_model
from gramian.mixture.parameters import Mixture, Prior, SufficientStatistics, as_floats
from gramian.mixture.rows import MixtureRows
from gramian.mixture.starts import find_starts
from gramian.results import NumericalWarning, Optimum, caller_level
from gramian.sources import Block, Source

Array = npt.NDArray[np.float64]

LEAST_TAIL, MOST_TAIL = 0.5, 1000.0  # of degrees of freedom that are estimated
FIRST_TAIL = 10.0
NEIGHBOURS = 10  # whose distance tells dense rows from sparse ones
SAMPLE = 2000  # rows among which neighbours are looked for
SPARSE = (0.0, 0.05, 0.2, 0.5)  # shares of the rows that starts leave out or give to the noise
SHOWN = 5  # columns that a message names
SHORT, FOLLOWED = 25, 2  # steps from each start; starts that are followed to their ends


@dataclass(frozen=True, eq=False, repr=False)
class HeavyMixture(Mixture):
    """Components with degrees of freedom, and a share of uniform noise.

    Attributes
    ----------
    weights, centres, covariances, model, origin
        As of a :class:`Mixture`; the weights sum to 1 − noise, and covariances are scale matrices Σ.
    tails : ndarray of shape (K,)
        ν; inf for a normal component.
    noise, log_volume : float
        π₀, 0 where there is none, and ln V.
    """

    tails: Array
    noise: float
    log_volume: float

    def distances(self, X: Array) -> Array:
        """Squared distances δ of shape (n, K)."""
        out, D = np.empty((len(X), self.n_components)), X - self.origin
        for k, (centre, root) in enumerate(zip(self.centres, self.roots, strict=True)):
            E = D - centre
            out[:, k] = np.sum((E * root if self.diagonal else E @ root.T) ** 2, axis=1)
        return out

    def weigh(self, distances: Array) -> tuple[Array, Array]:
        """ln of the joint densities, noise last where there is some, and the u of each row in each component."""
        d, nu = len(self.origin), np.where(np.isfinite(self.tails), self.tails, 1.0)
        heavy = np.isfinite(self.tails)
        with np.errstate(divide="ignore"):
            level = np.log(self.weights) - 0.5 * self.log_determinants
        tail = gammaln((nu + d) / 2) - gammaln(nu / 2) - 0.5 * d * np.log(nu * np.pi)
        each = np.where(
            heavy, tail - 0.5 * (nu + d) * np.log1p(distances / nu), -0.5 * (d * math.log(2 * math.pi) + distances)
        )
        joint, u = level + each, np.where(heavy, (nu + d) / (nu + distances), 1.0)
        if self.noise > 0.0:
            joint = np.column_stack([joint, np.full(len(joint), math.log(self.noise) - self.log_volume)])
        return joint, u

    def joint_log_density(self, X: Any) -> Any:
        """ln of the joint densities of rows and components, noise last where there is some."""
        return self.weigh(self.distances(to_numpy(X, float)))[0]

    def relative_log_density(self, X: Any) -> Any:
        """The same: heavy tails and noise do not underflow."""
        return self.joint_log_density(X)

    def responsibilities(self, X: Any) -> Any:
        """P(k | x), noise last where there is some."""
        return softmax(self.joint_log_density(X), axis=1)

    def log_density(self, X: Any) -> Any:
        """ln p(x) of every row."""
        return logsumexp(self.joint_log_density(X), axis=1)


@dataclass(frozen=True, eq=False)
class HeavyStatistics(SufficientStatistics):
    """Sums over rows, each counting with u in first and second moments.

    Attributes
    ----------
    pulls : ndarray of shape (K,)
        Σ r u.
    spreads : ndarray of shape (K,)
        Σ r E[ln τ − τ] with τ the latent precision.
    noise : float
        Σ r₀.
    """

    pulls: Array
    spreads: Array
    noise: float

    @property
    def masses(self) -> Array:
        """Counts, Σ r u and the share of the noise."""
        return np.concatenate([self.counts, self.pulls, [self.noise]])

    @property
    def centres(self) -> Array:
        """Means, from the origin; of an empty component, the point its sums are about."""
        U = self.pulls[:, None]
        return self.about + np.divide(self.first, U, out=np.zeros_like(self.first), where=U > 0)

    def shift(self, about: Array) -> HeavyStatistics:
        """The same sums about other points."""
        moved = replace(self, counts=self.pulls)
        plain = SufficientStatistics(*(getattr(moved, name) for name in SufficientStatistics.__dataclass_fields__))
        other = plain.shift(about)
        return replace(self, first=other.first, second=other.second, about=about)

    def scale(self, factor: float) -> HeavyStatistics:
        """The statistics of data that each count ``factor`` times."""
        return replace(self, **{name: factor * getattr(self, name) for name in HEAVY_SUMS})

    def merge(self, other: SufficientStatistics) -> HeavyStatistics:
        """The statistics of both sets of data together, about this one's points."""
        other = other if other.about is self.about else other.shift(self.about)
        return replace(self, **{name: getattr(self, name) + getattr(other, name) for name in HEAVY_SUMS})


HEAVY_SUMS = ("counts", "first", "second", "log_likelihood", "weight", "pulls", "spreads", "noise")


@dataclass(frozen=True, eq=False)
class HeavyRows:
    """Rows as data for such a mixture."""

    rows: MixtureRows

    def expect(self, mixture: HeavyMixture) -> HeavyStatistics:
        """One expectation step: one pass over the data."""
        d, weights = len(mixture.origin), self.rows.sample_weight
        heavy = np.isfinite(mixture.tails)
        half = 0.5 * (np.where(heavy, mixture.tails, 1.0) + d)
        more = digamma(half) - np.log(half)

        def statistic(block: Block) -> HeavyStatistics:
            X = to_numpy(block.values, float)
            w = np.ones(len(X)) if weights is None else weights[block.start : block.stop]
            joint, u = mixture.weigh(mixture.distances(X))
            top = logsumexp(joint, axis=1)
            R = np.exp(joint - top[:, None]) * w[:, None]
            noise = float(R[:, -1].sum()) if mixture.noise > 0.0 else 0.0
            R = R[:, : mixture.n_components]
            P, D = R * u, X - mixture.origin
            first, second = np.empty(mixture.centres.shape), np.empty(mixture.covariances.shape)
            for k, centre in enumerate(mixture.centres):
                E = D - centre
                first[k] = P[:, k] @ E
                second[k] = P[:, k] @ E**2 if mixture.diagonal else (P[:, k][:, None] * E).T @ E
            spreads = np.sum(R * np.where(heavy, np.log(u) + more - u, 0.0), axis=0)
            return HeavyStatistics(
                R.sum(axis=0),
                first,
                second,
                float(w @ top),
                mixture.centres,
                mixture.origin,
                float(w.sum()),
                P.sum(axis=0),
                spreads,
                noise,
            )

        return self.rows.source.reduce(statistic, HeavyStatistics.merge)


@dataclass(frozen=True, eq=False)
class HeavyMaximiser:
    """The maximisation step: one covariance model, and which degrees of freedom are found.

    Attributes
    ----------
    model : str
        One of the 14 covariance models.
    prior : Prior
        The floor that keeps components from collapsing.
    tails : {"own", "common"} or None
        Whether each component has degrees of freedom of its own, all have the same, or they are held.
    """

    model: str
    prior: Prior
    tails: str | None

    def log_prior(self, mixture: Mixture) -> float:
        """A floor adds nothing."""
        return 0.0

    def __call__(self, stats: HeavyStatistics, current: HeavyMixture) -> HeavyMixture:
        """The parameters that maximise the expected log-likelihood of the complete data."""
        centres = stats.centres
        scatter, N = stats.shift(centres).second, np.maximum(stats.counts, 1e-12 * stats.weight)
        scatter = 0.5 * (scatter + scatter.transpose(0, 2, 1)) if scatter.ndim == 3 else scatter
        spread = maximise_above(self.model, N, scatter, self.prior.scale, current.covariances)
        tails = current.tails
        if self.tails == "own":
            tails = np.array([find_tail(s / n) for s, n in zip(stats.spreads, N, strict=True)])
        elif self.tails == "common":
            tails = np.full(len(N), find_tail(float(stats.spreads.sum() / N.sum())))
        whole = float(stats.counts.sum()) + stats.noise
        return HeavyMixture(
            stats.counts / whole,
            centres,
            spread,
            self.model,
            stats.origin,
            tails,
            stats.noise / whole,
            current.log_volume,
        )


def find_tail(mean: float) -> float:
    """The ν at which 1 + ln(ν/2) − ψ(ν/2) + mean is 0, where mean is that of E[ln τ − τ].

    Examples
    --------
    >>> from scipy.special import digamma
    >>> import numpy as np
    >>> from gramian.mixture.robust import find_tail
    >>> round(find_tail(digamma(2.0) - np.log(2.0) - 1.0), 6)
    4.0
    """

    def slope(log_nu: float) -> float:
        half = 0.5 * math.exp(log_nu)
        return float(1.0 + math.log(half) - digamma(half) + mean)

    low, high = math.log(LEAST_TAIL), math.log(MOST_TAIL)
    if slope(low) <= 0.0:
        return LEAST_TAIL
    if slope(high) >= 0.0:
        return MOST_TAIL
    return float(math.exp(brentq(slope, low, high, xtol=1e-13, rtol=1e-13)))


class HeavyIterate(MixtureIterate):
    """A mixture, its statistics, and the next step, whose length counts noise and degrees of freedom too."""

    @cached_property
    def slope(self) -> float:
        """The length of the step, in standard errors of complete data."""
        at: Any = self.mixture
        to: Any = self.next
        square = step_length(at, to, self.stats.weight) ** 2
        if at.noise > 0.0:
            square += self.stats.weight * (to.noise - at.noise) ** 2 / at.noise
        live = np.isfinite(at.tails) & (at.tails != to.tails)
        nu, share = at.tails[live], at.weights[live]
        information = np.maximum(0.25 * polygamma(1, nu / 2) - 0.5 / nu, 0.0)
        square += self.stats.weight * float(np.sum(share * information * (to.tails[live] - nu) ** 2))
        return math.sqrt(square)


@dataclass(eq=False)
class HeavyAscent(MixtureAscent):
    """The ascent of the likelihood of such a mixture."""

    def evaluate(self, mixture: Mixture) -> MixtureIterate:
        """One pass over the data, at a mixture."""
        self.passes += 1
        stats = self.data.expect(mixture)
        return HeavyIterate(mixture, stats, stats.log_likelihood, self.maximise)


class RobustMixture(MixtureAnswers, DensityMixin, BaseEstimator):
    r"""A mixture with heavy tails and a component of noise, by maximum likelihood, with a certificate.

    .. math:: p(x) = \frac{\pi_0}V + \sum_{k=1}^K\pi_k\,t_{\nu_k}(x;\mu_k,\Sigma_k)

    With ``degrees_of_freedom=None`` and ``noise=True`` it is mclust's mixture with noise, with degrees of freedom the
    mixture of t-distributions of R's teigen. All fourteen covariance models; complete rows.

    Parameters
    ----------
    n_components : int, default=1
        K, the noise not counted.
    covariance_type : str, default="full"
        As in :class:`gramian.GaussianMixture`.
    degrees_of_freedom : {"own", "common"}, float or None, default="own"
        Whether each component has a ν of its own, all have one, or it is given; None is normal components.
        Estimates lie between 0.5 and 1,000.
    noise : bool or float, default=False
        Whether there is a component of noise, uniform over the smaller of two boxes, along the columns and along
        the principal components; a number is the volume V.
    tol : float, default=1e-5
        Gradient to reach: the next step of EM, in standard errors.
    max_iter : int, default=1000
        Most iterations from each start.
    n_init : int, default=1
        Starts of the kind ``init_params`` for each of four shares of rows that are left out as outlying.
    init_params : str, default="auto"
        How to start: see :class:`gramian.GaussianMixture`.
    random_state : int, RandomState, Generator or None, default=None
        Seed of starts and samples; None is a fixed seed for fits, and none for samples.
    accelerate : bool, default=True
        Extrapolate the steps of EM where that gains.

    Attributes
    ----------
    weights_ : ndarray of shape (K,)
        π; they sum to 1 − ``noise_weight_``.
    noise_weight_ : float
        π₀.
    means_ : ndarray of shape (K, d)
        μ.
    scale_matrices_ : ndarray of shape (K, d, d)
        Σ.
    degrees_of_freedom_ : ndarray of shape (K,)
        ν; inf for normal components.
    log_volume_ : float
        ln V; NaN without noise.
    log_likelihood_, n_parameters_ : float, int
        ℓ, and how many parameters are free; π₀ and V count as two, as in mclust.
    converged_, n_iter_, lower_bound_
        As in scikit-learn.
    certificate_ : Optimum
        Method, iterations, −ℓ after each, the gradient at the end, and notes on components that are empty, have
        collapsed or hold too few rows.
    n_features_in_, feature_names_in_
        Columns.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import RobustMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4, 1, (150, 2)), rng.normal(4, 1, (150, 2)), rng.uniform(-20, 20, (60, 2))])
    >>> model = RobustMixture(2, degrees_of_freedom=None, noise=True).fit(X)
    >>> bool(abs(model.noise_weight_ - 1 / 6) < 0.03), model.predict([[15.0, -15.0]]), model.certificate_.converged
    (True, array([-1]), True)
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        degrees_of_freedom: Any = "own",
        noise: Any = False,
        tol: float = 1e-5,
        max_iter: int = 1000,
        n_init: int = 1,
        init_params: str = "auto",
        random_state: Any = None,
        accelerate: bool = True,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.degrees_of_freedom = degrees_of_freedom
        self.noise = noise
        self.tol = tol
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.random_state = random_state
        self.accelerate = accelerate

    device: Any = "cpu"

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> RobustMixture:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like, frame, tensor, path or Source of shape (n, d)
            Complete rows.
        y : ignored
            For scikit-learn's sake.
        sample_weight : array-like of shape (n,), optional
            Frequencies: a weight of 2 is the row twice.

        Returns
        -------
        RobustMixture
            The estimator itself.
        """
        for name, fewest in (("n_components", 1), ("max_iter", 1), ("n_init", 1)):
            check_integer(name, getattr(self, name), fewest)
        check_choice("init_params", self.init_params, STARTS)
        nu = self.degrees_of_freedom
        named = isinstance(nu, str) and nu in ("own", "common")
        if not (nu is None or named or (_is_number(nu) and 0.0 < nu <= math.inf)):
            raise ValueError(f"degrees_of_freedom must be 'own', 'common', a positive number or None, got {nu!r}.")
        if not isinstance(self.noise, (bool, np.bool_)) and not (
            _is_number(self.noise) and 0.0 < self.noise < math.inf
        ):
            raise ValueError(f"noise must be True, False or a positive volume, got {self.noise!r}.")
        if not (_is_number(self.tol) and 0.0 <= self.tol < math.inf):
            raise ValueError(f"tol must be a number of at least 0, got {self.tol!r}.")
        source = self._open_rows(X, reset=True)
        n, d = source.shape
        self._check_rows(n)
        w = None if sample_weight is None else check_weights(as_floats("sample_weight", sample_weight), n)
        data = MixtureRows.of(source, w, "cpu")
        letters = resolve_model(self.covariance_type, d)
        with quiet_blas():
            self._box = _find_box(data) if self.noise is True else None
            if self.noise is not False and self.noise is not True:
                log_volume = math.log(self.noise)
            else:
                sides: Array = np.full(1, np.nan) if self._box is None else self._box[2] - self._box[1]
                log_volume = float(np.log(sides).sum()) if np.all(sides > 0) else math.nan
            if not (math.isfinite(log_volume) or self.noise is False):
                still = np.flatnonzero(~(data.variances > 0)) + 1
                which = ", ".join(map(str, still[:SHOWN])) + ", …" * (len(still) > SHOWN)
                what = f"column{'s' * (len(still) > 1)} {which} {'are' if len(still) > 1 else 'is'} constant"
                raise ValueError(
                    f"The data have no volume: {what if len(still) else 'a column follows from others'}. Leave it out, "
                    "or give the volume of the noise as a number (noise=V)."
                )
            rows, prior = HeavyRows(data), Prior.floor(data)
            step = HeavyMaximiser(letters, prior, nu if isinstance(nu, str) else None)
            tail = FIRST_TAIL if isinstance(nu, str) else math.inf if nu is None else float(nu)
            starts = self._find_starts(data, letters, tail, log_volume)
            tries = [self._climb(start, rows, step, SHORT) for start in starts]
            # what has collapsed has a large likelihood without meaning: it is kept only if there is nothing without
            tries.sort(key=_rank)
            ends = list[tuple[Any, ...]]()
            for found in tries:
                if len(ends) >= FOLLOWED and not all(_rank(end)[0] for end in ends):
                    break
                ends.append(self._climb(found[0].mixture, rows, step, self.max_iter - found[2]))
            before, best = min(zip(tries, ends, strict=False), key=lambda pair: _rank(pair[1]))
        heights, steps = [*before[1][:-1], *best[1]], before[2] + best[2]
        wrong = _diagnose_heavy(best[0].mixture, best[0].stats, prior, data)
        self._name_results(best[0], heights, steps, wrong, best[3])
        self._warn(wrong)
        store_like(self, X)
        return self

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        """Fit and return the component of each row, −1 for noise: the same as ``fit(X).predict(X)``."""
        return self.fit(X).predict(X)

    def _open_rows(self, X: Any, *, reset: bool = False) -> Source:
        """The Source of X, which must be dense and complete."""
        source = super()._open_rows(X, reset=reset)
        try:
            refuse_non_finite(source)
        except MissingValuesError as error:
            where = str(error).partition(" Here complete rows")[0]
            raise MissingValuesError(
                f"{where} RobustMixture takes complete rows: remove such rows, or fit GaussianMixture, which takes "
                "missing cells into the likelihood.",
                missing=True,
            ) from None
        return source

    def _find_starts(self, data: MixtureRows, letters: str, tail: float, log_volume: float) -> list[HeavyMixture]:
        """Normal mixtures of the rows in dense places, for several shares of the others."""
        rng, found = make_random_state(self.random_state), list[HeavyMixture]()
        n, w = data.source.shape[0], data.sample_weight
        counts = np.ones(n) if w is None else w
        if counts[counts > 0].min() < 1.0:  # no frequencies: as if they were, of as many rows
            counts = counts * (np.count_nonzero(counts) / counts.sum())
        far = np.round(_neighbour_distances(data, counts, rng), 10)
        order = np.argsort(-far, kind="stable")
        weight = float(counts.sum())
        for share in SPARSE:
            # rows as far as each other stay or go together, so that a weight of 2 is the row twice
            beyond = int(np.searchsorted(np.cumsum(counts[order]), math.floor(share * weight + 1e-9), side="right"))
            far_out = far > far[order[min(beyond, n - 1)]]
            kept = np.where(far_out, 0.0, 1.0 if w is None else w)
            if share and counts[~far_out].sum() < max(2 * self.n_components, weight // 4):
                continue
            core = MixtureRows.of(data.source, kept, "cpu") if share else data
            if not (core.variances > 0)[data.variances > 0].all():
                continue  # a column that varies in the others alone
            model = SimpleNamespace(
                n_components=self.n_components,
                init_params=self.init_params,
                n_init=self.n_init,
                weights_init=None,
                means_init=None,
                precisions_init=None,
                covariance_type=self.covariance_type,
            )
            normal = Maximiser(letters, Prior.floor(core))
            for start in islice(find_starts(model, core, normal, rng), self.n_init):
                moved = start.shift_origin(data.origin)
                noise = max(share, 0.02) if self.noise is not False else 0.0
                tails = np.full(self.n_components, tail)
                kept_parts = (moved.centres, moved.covariances, letters, data.origin, tails, noise, log_volume)
                found.append(HeavyMixture(moved.weights * (1 - noise), *kept_parts))
        return found

    def _climb(
        self, start: Mixture, rows: HeavyRows, step: HeavyMaximiser, most: int
    ) -> tuple[MixtureIterate, list[float], int, bool]:
        """The end of one ascent, the log-likelihood after each step, the number of steps, and if rounding ended it."""
        data: Any = rows
        maximise: Any = step
        ascent = HeavyAscent(data, maximise)
        at, heights, idle = ascent.run(start, self.tol, min(most, self.max_iter), self.accelerate, None)
        return at, heights, ascent.passes - 1, idle

    def _name_results(
        self, at: MixtureIterate, heights: list[float], steps: int, found: tuple[Diagnosis, ...], idle: bool
    ) -> None:
        fitted: Any = at.mixture
        notes = list(dict.fromkeys(item.message for item in found))
        if idle and at.slope > self.tol:
            notes.append("stopped where rounding hides what is left to gain")
        same = find_coincident(fitted)
        if same is not None:
            a, b = fitted.tails[list(same)]
            same = same if a == b or abs(a - b) < SAME * a else None
        if same is not None:
            notes.append(describe_coincident(same))
        self.weights_, self.means_, self.scale_matrices_ = fitted.weights, fitted.means, np.array(fitted.matrices)
        self.degrees_of_freedom_, self.noise_weight_ = fitted.tails, float(fitted.noise)
        self.log_volume_, self.log_likelihood_ = float(fitted.log_volume), float(at.height)
        free = {"own": self.n_components, "common": 1}.get(str(self.degrees_of_freedom), 0)
        self.n_parameters_ = int(fitted.free_parameters) + free + 2 * (self.noise is not False)
        kind = "normal" if self.degrees_of_freedom is None else "Student-t"
        what = f"maximum likelihood of a mixture of {self.n_components} {kind} components"
        self.certificate_ = Optimum(
            "EM, accelerated (SQUAREM on the statistics)" if self.accelerate else "EM",
            f"{what}{' and noise' * (self.noise is not False)}, model {fitted.model}",
            steps + 1,
            steps,
            -np.array(heights),
            at.slope,
            same is None,
            tolerance=self.tol,
            notes=tuple(notes),
        )
        self.converged_, self.n_iter_ = self.certificate_.converged, steps
        self.lower_bound_ = self.log_likelihood_ / at.stats.weight
        self._fitted = fitted

    def _warn(self, found: tuple[Diagnosis, ...]) -> None:
        """Say what a reader of the result must know, as :class:`gramian.GaussianMixture` does."""
        optimum = self.certificate_
        messages = [item.message for item in found if item.kind != "spurious"]  # of that the certificate has a note
        messages += [] if optimum.determined else [optimum.notes[-1]]
        for message in dict.fromkeys(messages):
            warnings.warn(f"RobustMixture: {message}.", NumericalWarning, stacklevel=caller_level())
        if not messages:
            stopped = optimum.iterations >= self.max_iter
            optimum.warn_unless_converged(
                f"Raise max_iter={self.max_iter}." if stopped else f"Rounding hides the rest: raise tol={self.tol:g}."
            )

    def diagnose(self, X: Any, sample_weight: Any = None) -> tuple[Diagnosis, ...]:
        """Name the components that are empty, that have collapsed, or that too few of these rows determine."""
        fitted = self._densities()
        source = self._open_rows(X)
        w = None if sample_weight is None else check_weights(as_floats("sample_weight", sample_weight), source.shape[0])
        data, at = MixtureRows.of(source, w, "cpu"), cast(HeavyMixture, fitted)
        return _diagnose_heavy(at, HeavyRows(data).expect(at), Prior.floor(data), data)

    @property
    def covariances_(self) -> Array:
        """Covariances of the components, Σν/(ν − 2); NaN where ν is not above 2."""
        check_is_fitted(self)
        fitted = self._fitted
        nu = fitted.tails
        with np.errstate(invalid="ignore", divide="ignore"):
            factor = np.where(np.isinf(nu), 1.0, np.where(nu > 2, nu / (nu - 2), np.nan))
        return np.asarray(factor[:, None, None] * fitted.matrices)

    def _densities(self) -> Mixture:
        check_is_fitted(self)
        return self._fitted  # type: ignore[no-any-return]

    def predict(self, X: Any) -> Any:
        """The component of largest responsibility, for each row; −1 for noise."""
        labels = super().predict(X)
        labels[labels == self.n_components] = -1
        return labels

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-density of a row."""
        return float(np.mean(to_numpy(self.score_samples(X))))

    def bic(self, X: Any) -> float:
        """Bayesian information criterion −2ℓ + p ln n: the lower the better. mclust's has the other sign."""
        each = to_numpy(self.score_samples(X))
        return -2.0 * float(each.sum()) + self.n_parameters_ * math.log(len(each))

    def aic(self, X: Any) -> float:
        """Akaike's information criterion −2ℓ + 2p: the lower the better."""
        return -2.0 * float(to_numpy(self.score_samples(X)).sum()) + 2.0 * self.n_parameters_

    def sample(self, n_samples: int = 1) -> Any:
        """Draw rows, and the component of each, −1 for noise; sorted by component."""
        check_is_fitted(self)
        n_samples, state, at = check_integer("n_samples", n_samples), self.random_state, self._fitted
        rng = np.random.default_rng(None if state is None else make_random_state(state).randint(2**31 - 1))
        if at.noise > 0.0 and self._box is None:
            raise ValueError("Noise whose volume was given by number has no place to be drawn from.")
        shares = np.append(at.weights, at.noise)
        labels = np.sort(rng.choice(len(shares), size=n_samples, p=shares / shares.sum()))
        Z, L = rng.standard_normal((n_samples, len(at.origin))), np.linalg.cholesky(at.matrices)
        for k in range(self.n_components):
            mine = labels == k
            nu = at.tails[k]
            precision = rng.chisquare(nu, mine.sum()) / nu if np.isfinite(nu) else np.ones(mine.sum())
            Z[mine] = at.origin + at.centres[k] + Z[mine] @ L[k].T / np.sqrt(precision)[:, None]
        mine = labels == self.n_components
        if self._box is not None and mine.any():
            rotation, low, high = self._box
            Z[mine] = at.origin + rng.uniform(low, high, size=(int(mine.sum()), len(low))) @ rotation.T
        labels[mine] = -1
        return like(self.means_, (Z, labels))


def _diagnose_heavy(mixture: Mixture, stats: Any, prior: Prior, data: MixtureRows) -> tuple[Diagnosis, ...]:
    """What is wrong with components; whether columns are the reason all rows tell, as far ones count little here."""
    found = diagnose(mixture, stats, prior)
    if any(item.kind == "collapsed" for item in found):
        one = np.zeros(data.source.shape[0], dtype=np.intp)
        found = diagnose(mixture, stats, prior, data.assign(one, 1, "VVI" if mixture.diagonal else "VVV"))
    return tuple(replace(item, message=item.message.replace(A_PRIOR, "")) for item in found)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def _rank(end: tuple[Any, ...]) -> tuple[bool, float]:
    """Ends of ascents whose components are sound before others, then the highest first."""
    at: MixtureIterate = end[0]
    return bool(diagnose(at.mixture, at.stats, at.maximise.prior)), -at.height


def _find_box(data: MixtureRows) -> tuple[Array, Array, Array]:
    """Axes, and the ends along them from the origin, of the smaller of the boxes by columns and by components."""
    source, d, weights = data.source, len(data.origin), data.sample_weight

    def centred(block: Block) -> tuple[Array, Array]:
        D = to_numpy(block.values, float) - data.origin
        if weights is None:
            return D, np.ones(len(D))
        w = weights[block.start : block.stop]
        return D[w > 0], w[w > 0]

    def scatter(block: Block) -> Any:
        D, w = centred(block)
        return (w[:, None] * D).T @ D  # the origin is the mean

    axes = (np.eye(d), np.linalg.eigh(source.reduce(scatter, np.add))[1])

    def ends(block: Block) -> Array:
        D, _ = centred(block)
        if not len(D):
            return np.full((2, 2, d), np.inf)
        return np.array([[(D @ Q).min(axis=0), -(D @ Q).max(axis=0)] for Q in axes])

    found = source.reduce(ends, np.minimum)
    with np.errstate(divide="ignore"):
        sizes = [float(np.log(-high - low).sum()) for low, high in found]
    # along components where the rows do not vary there is rounding alone, whose volume would make all rows noise
    rounding = 64 * d * np.finfo(float).eps * float(np.abs(found[0]).max())
    if not (-found[1][1] - found[1][0] > rounding).all():
        sizes[1] = math.inf
    best = int(np.argmin(sizes))
    return axes[best], found[best][0], -found[best][1]


def _neighbour_distances(data: MixtureRows, counts: Array, rng: np.random.RandomState) -> Array:
    """The distance of each row to one of its nearest among some rows, in standard deviations of the columns."""
    source, n = data.source, data.source.shape[0]
    unit = np.sqrt(np.where(data.variances > 0, data.variances, 1.0))
    every = np.flatnonzero(counts > 0)
    every = every if n <= SAMPLE else np.sort(rng.permutation(every)[:SAMPLE])
    parts = []
    for block in source.blocks():
        mine = every[(every >= block.start) & (every < block.stop)] - block.start
        parts.append((to_numpy(block.values, float)[mine] - data.origin) / unit)
    tree = cKDTree(np.concatenate(parts))
    k = min(NEIGHBOURS, len(every))
    far = []
    for block in source.blocks():
        away, which = tree.query((to_numpy(block.values, float) - data.origin) / unit, k=range(1, k + 1))
        enough = np.cumsum(counts[every][which], axis=1) >= NEIGHBOURS
        enough[:, -1] = True
        far.append(np.take_along_axis(np.asarray(away), enough.argmax(axis=1)[:, None], axis=1)[:, 0])
    return np.concatenate(far)
