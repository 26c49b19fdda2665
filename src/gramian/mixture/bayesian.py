r"""Mixtures of normals with priors on all parameters, by variational inference.

Given shares r of the rows, the best approximate posterior is known, so that what is left to maximise is

.. math:: F(r) = -\sum_{ik}w_ir_{ik}\ln r_{ik} + G(T(r)),

with T the sufficient statistics and G, the logarithms of the normalisers, convex in them. The shares of one step are
those of a mixture whose constants hold expected logarithms (Bishop 2006, section 10.2), so that the passes over data
are those of every mixture, and steps are extrapolated in the same way.
"""

from __future__ import annotations

import math
import sys
import warnings
from dataclasses import dataclass, replace
from itertools import islice
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import betaln, digamma, gammaln
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import like
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_choice, check_integer, check_weights
from gramian.inputs.devices import convert_to_numpy, store_like
from gramian.inputs.opening import refuse_non_finite
from gramian.mixture.em import Maximiser, MixtureAscent, MixtureIterate
from gramian.mixture.estimator import STARTS, MixtureAnswers, make_random_state
from gramian.mixture.models import resolve_model
from gramian.mixture.parameters import Mixture, Prior, SufficientStatistics, as_floats, sklearn_attributes
from gramian.mixture.rows import MixtureRows
from gramian.mixture.starts import find_starts
from gramian.results import NumericalWarning, Optimum, caller_level
from gramian.sources import Source

Array = npt.NDArray[np.float64]

SHORT = 20  # steps from each start
FOLLOWED = 2  # starts that are followed to their ends
VARIED = 6  # starts of all components under "auto"
FEWER = (0.2, 0.4, 0.6, 0.8)  # of the components, in further starts
KINDS = ("full", "tied", "diag", "spherical")
CONCENTRATIONS = ("dirichlet_process", "dirichlet_distribution")


@dataclass(frozen=True, eq=False)
class VariationalStep:
    """The step from statistics to the approximate posterior, and to the mixture that gives the next shares.

    Attributes
    ----------
    kind : str
        One of scikit-learn's four covariance types.
    process : bool
        Whether weights are broken off a stick (a truncated Dirichlet process) or Dirichlet.
    concentration, mean_precision, degrees : float
        Priors γ, β₀ and ν₀.
    mean : ndarray of shape (d,)
        m₀, measured from the origin.
    spread : ndarray
        The prior's W₀⁻¹, in the shape of the kind.
    added : float
        ``reg_covar``: a variance added to each row.
    """

    kind: str
    process: bool
    concentration: float
    mean_precision: float
    degrees: float
    mean: Array
    spread: Array
    added: float

    def solve(self, stats: SufficientStatistics) -> dict[str, Any]:
        """Parameters of the best approximate posterior; covariances are scale matrices divided by ν."""
        N, x = stats.counts, stats.centres
        (k, d), own = x.shape, stats.shift(x).second
        beta, apart = self.mean_precision + N, x - self.mean
        m = (self.mean_precision * self.mean + N[:, None] * x) / beta[:, None]
        pull = N * self.mean_precision / beta
        nu: Any = self.degrees + (stats.weight / k if self.kind == "tied" else N)
        if self.kind in ("full", "tied"):
            own = own + pull[:, None, None] * apart[:, :, None] * apart[:, None, :]
            own = own + (N * self.added)[:, None, None] * np.eye(d)
            if self.kind == "tied":
                S = np.repeat(((self.spread + own.sum(axis=0) / k) / nu)[None], k, axis=0)
            else:
                S = (self.spread + own) / nu[:, None, None]
            S = 0.5 * (S + S.transpose(0, 2, 1))
        else:
            own = own + pull[:, None] * apart**2 + (N * self.added)[:, None]
            own = np.repeat(own.mean(axis=1, keepdims=True), d, axis=1) if self.kind == "spherical" else own
            S = (self.spread + own) / nu[:, None]
        if self.process:
            a, b = 1.0 + N, self.concentration + np.append(np.cumsum(N[:0:-1])[::-1], 0.0)
        else:
            a, b = self.concentration + N, np.zeros(0)
        return {"a": a, "b": b, "beta": beta, "centres": m, "nu": nu, "covariances": S}

    def __call__(self, stats: SufficientStatistics, current: Mixture | None = None) -> Mixture:
        """The mixture whose densities are those of the next shares; its weights do not sum to 1."""
        at = self.solve(stats)
        a, b, nu, d = at["a"], at["b"], at["nu"], len(self.mean)
        if self.process:
            both = digamma(a + b)
            logs = digamma(a) - both + np.append(0.0, np.cumsum(digamma(b) - both)[:-1])
        else:
            logs = digamma(a) - digamma(a.sum())
        levels = np.sum(digamma(0.5 * (np.atleast_1d(nu)[:, None] - np.arange(d))), axis=1) + d * math.log(2.0)
        logs = logs + 0.5 * (levels - d / at["beta"] - d * np.log(nu))
        model = resolve_model(self.kind, d)
        plain = Mixture(np.ones(len(a)), at["centres"], at["covariances"], model, stats.origin)
        if self.added:
            R = plain.roots
            logs = logs - 0.5 * self.added * np.sum(R**2, axis=tuple(range(1, R.ndim)))
        return Mixture(np.exp(logs), plain.centres, plain.covariances, model, stats.origin)

    def measure(self, stats: SufficientStatistics, mixture: Mixture) -> float:
        """F at the shares that a mixture gives; the constant of the priors is left out, as in scikit-learn."""
        about = stats.shift(mixture.centres).second
        R = mixture.roots
        whitened = R**2 * about if mixture.diagonal else np.einsum("kij,kjl,kil->ki", R, about, R)
        squares = whitened.sum(axis=1)
        live = stats.counts > 0
        logs = stats.counts[live] @ mixture.components.constants[live] - 0.5 * float(squares[live].sum())
        entropy = stats.log_likelihood - float(logs)
        at, d = self.solve(stats), len(self.mean)
        a, b, nu = at["a"], at["b"], np.atleast_1d(at["nu"])
        chosen = Mixture(np.ones(len(a)), at["centres"], at["covariances"], mixture.model, stats.origin)
        log_det = chosen.log_determinants[: len(nu)] + d * np.log(nu)
        wishart = 0.5 * nu * (d * math.log(2.0) - log_det) + gammaln(0.5 * (nu[:, None] - np.arange(d))).sum(axis=1)
        times = len(a) if self.kind == "tied" else 1
        weights = float(betaln(a, b).sum()) if self.process else float(gammaln(a).sum() - gammaln(a.sum()))
        return entropy + times * float(wishart.sum()) + weights - 0.5 * d * float(np.log(at["beta"]).sum())


@dataclass(eq=False)
class VariationalAscent(MixtureAscent):
    """The ascent of a mixture's likelihood, for the variational bound."""

    def evaluate(self, mixture: Mixture) -> MixtureIterate:
        """One pass over the data, at a mixture."""
        self.passes += 1
        stats, step = self.data.expect(mixture), self.maximise
        assert isinstance(step, VariationalStep)
        return MixtureIterate(mixture, stats, step.measure(stats, mixture), step)


class BayesianGaussianMixture(MixtureAnswers, DensityMixin, BaseEstimator):
    r"""A mixture of normal distributions with priors on all parameters, by variational inference, with a certificate.

    A drop-in for :class:`sklearn.mixture.BayesianGaussianMixture`, with the same priors, formulas and bound. Components
    that the data do not need are left with weights near 0. Takes what :class:`gramian.GaussianMixture` takes, files,
    tensors and weights too; cells may not be missing.

    Parameters
    ----------
    n_components : int, default=1
        The most components.
    covariance_type : {"full", "tied", "diag", "spherical"}, default="full"
        As in scikit-learn.
    tol : float, default=1e-5
        Gradient to reach: the next step, in standard errors. (scikit-learn's is a gain of the bound.)
    reg_covar : float, default=0.0
        A variance added to that of each row; the prior alone keeps covariances from collapsing. scikit-learn's default
        is 1e-6, whatever the units.
    max_iter : int, default=1000
        Most iterations from each start.
    n_init : int, default=1
        Number of starts; the one with the highest bound is kept.
    init_params : str, default="auto"
        How to start: see :class:`gramian.GaussianMixture`.
    weight_concentration_prior_type : {"dirichlet_process", "dirichlet_distribution"}, default="dirichlet_process"
        A truncated process that breaks a stick, or a Dirichlet distribution.
    weight_concentration_prior : float, optional
        γ: the lower, the fewer components. By default 1/n_components.
    mean_precision_prior : float, optional
        β₀, how many rows the prior of a mean counts as. By default 1.
    mean_prior : array-like of shape (d,), optional
        By default the mean of the data.
    degrees_of_freedom_prior : float, optional
        ν₀ > d − 1; by default d.
    covariance_prior : array-like, optional
        By default the covariance of the data, with the divisor Σw − 1.
    random_state : int, RandomState, Generator or None, default=None
        Seed of starts and samples; None is a fixed seed for fits, and none for samples.
    warm_start : bool, default=False
        Start from the last fit.
    verbose, verbose_interval : int, default=0 and 10
        1 prints an iteration now and then, 2 its bound too.
    accelerate : bool, default=True
        Extrapolate steps where that gains.
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md.

    Attributes
    ----------
    weights_, means_, covariances_, precisions_, precisions_cholesky_ : ndarray
        Means of the approximate posterior, in scikit-learn's shapes.
    weight_concentration_, mean_precision_, degrees_of_freedom_
        Its other parameters; of a process, the first is a pair of arrays.
    weight_concentration_prior_, mean_precision_prior_, mean_prior_, degrees_of_freedom_prior_, covariance_prior_
        The priors as they were used.
    lower_bound_, lower_bounds_ : float, list of float
        scikit-learn's bound on the evidence, without the constant of the priors: at the end, and after each step.
    converged_, n_iter_
        As in scikit-learn.
    certificate_ : Optimum
        Method, iterations, minus the bound after each, and the gradient at the end.
    n_features_in_, feature_names_in_
        Columns.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import BayesianGaussianMixture
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(-4, 1, (100, 2)), rng.normal(4, 1, (200, 2))])
    >>> model = BayesianGaussianMixture(n_components=5).fit(X)
    >>> np.sort(model.weights_).round(2)[-2:], model.certificate_.converged
    (array([0.33, 0.67]), True)
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-5,
        reg_covar: float = 0.0,
        max_iter: int = 1000,
        n_init: int = 1,
        init_params: str = "auto",
        weight_concentration_prior_type: str = "dirichlet_process",
        weight_concentration_prior: float | None = None,
        mean_precision_prior: float | None = None,
        mean_prior: Any = None,
        degrees_of_freedom_prior: float | None = None,
        covariance_prior: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        accelerate: bool = True,
        device: Any = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weight_concentration_prior_type = weight_concentration_prior_type
        self.weight_concentration_prior = weight_concentration_prior
        self.mean_precision_prior = mean_precision_prior
        self.mean_prior = mean_prior
        self.degrees_of_freedom_prior = degrees_of_freedom_prior
        self.covariance_prior = covariance_prior
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.accelerate = accelerate
        self.device = device

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> BayesianGaussianMixture:
        """Find the approximate posterior.

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
        BayesianGaussianMixture
            The estimator itself.
        """
        for name, fewest in (("n_components", 1), ("max_iter", 1), ("n_init", 1), ("verbose_interval", 1)):
            check_integer(name, getattr(self, name), fewest)
        check_choice("covariance_type", self.covariance_type, KINDS)
        check_choice("init_params", self.init_params, STARTS)
        check_choice("weight_concentration_prior_type", self.weight_concentration_prior_type, CONCENTRATIONS)
        for name in ("tol", "reg_covar"):
            if not 0.0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} must be a number of at least 0, got {getattr(self, name)!r}.")
        source = self._open_rows(X, reset=True)
        n = source.shape[0]
        self._check_rows(n)
        w = None if sample_weight is None else check_weights(as_floats("sample_weight", sample_weight), n)
        data = MixtureRows.of(source, w, self.device)
        with quiet_blas():
            step = self._choose_step(data)
            last = vars(self).get("_densities_kept") if self.warm_start else None
            shape = (self.n_components, len(data.origin))
            if last is not None and last.centres.shape == shape and self._kind == self.covariance_type:
                starts = [last.shift_origin(data.origin)]
            else:
                starts = self._find_starts(data)
            tries = [self._climb(one, data, step, SHORT, number) for number, one in enumerate(starts)]
            # the best after some steps are followed to their ends
            tries.sort(key=lambda found: -found[0].height)
            ends = [
                self._climb(found[0].mixture, data, step, self.max_iter - found[2], None) for found in tries[:FOLLOWED]
            ]
            before, best = max(zip(tries, ends, strict=False), key=lambda pair: pair[1][0].height)
        heights, steps = [*before[1][:-1], *best[1]], before[2] + best[2]
        self._name_results(best[0], heights, steps, step)
        self.certificate_.warn_unless_converged(
            f"Raise max_iter={self.max_iter}."
            if self.n_iter_ >= self.max_iter
            else f"Rounding hides the rest: raise tol={self.tol:g}."
        )
        store_like(self, X)
        return self

    def fit_predict(self, X: Any, y: Any = None) -> Any:
        """Fit and return the component of each row: the same as ``fit(X).predict(X)``."""
        return self.fit(X).predict(X)

    def _open_rows(self, X: Any, *, reset: bool = False) -> Source:
        """The Source of X, which must be dense and complete."""
        source = super()._open_rows(X, reset=reset)
        refuse_non_finite(source)
        return source

    def _choose_step(self, data: MixtureRows) -> VariationalStep:
        """The priors, where they are not given from the data."""
        d, k, kind = len(data.origin), self.n_components, self.covariance_type

        def positive(name: str, value: Any, default: float, least: float = 0.0) -> float:
            if value is None:
                return default
            if isinstance(value, bool) or not least < value < math.inf:
                raise ValueError(f"{name} must be greater than {least:g}, got {value!r}.")
            return float(value)

        self.weight_concentration_prior_ = positive(
            "weight_concentration_prior", self.weight_concentration_prior, 1.0 / k
        )
        self.mean_precision_prior_ = positive("mean_precision_prior", self.mean_precision_prior, 1.0)
        self.degrees_of_freedom_prior_ = positive(
            "degrees_of_freedom_prior", self.degrees_of_freedom_prior, float(d), d - 1.0
        )
        self.mean_prior_ = data.origin if self.mean_prior is None else as_floats("mean_prior", self.mean_prior)
        if self.mean_prior_.shape != (d,):
            raise ValueError(f"mean_prior must have shape ({d},), got {self.mean_prior_.shape}.")
        if self.covariance_prior is None:
            if not data.weight > 1.0:
                raise ValueError("The weights sum to 1 or less: give covariance_prior.")
            whole = data.assign(np.zeros(data.source.shape[0], dtype=int), 1, "VVV" if kind in KINDS[:2] else "VVI")
            spread = whole.second[0] / (data.weight - 1.0)
            if not (np.diagonal(spread) > 0 if kind in ("full", "tied") else spread > 0).all():
                raise ValueError(
                    "The data are no prior, as a column is constant: leave it out or give covariance_prior."
                )
            if kind in ("full", "tied") and not np.linalg.eigvalsh(spread)[0] > 1e-14 * np.trace(spread):
                spread = spread + 1e-6 * np.diag(np.diagonal(spread))
                warnings.warn(
                    "BayesianGaussianMixture: the covariance of the data is singular, so that it is no prior; a "
                    "millionth of the variances was added. Give covariance_prior, or leave out columns that others "
                    "determine.",
                    NumericalWarning,
                    stacklevel=caller_level(),
                )
            spread = spread.mean() if kind == "spherical" else spread
        else:
            spread = as_floats("covariance_prior", self.covariance_prior)
        shape = {"diag": (d,), "spherical": ()}.get(kind, (d, d))
        if np.shape(spread) != shape:
            raise ValueError(f"covariance_prior must have shape {shape}, got {np.shape(spread)}.")
        if not (np.linalg.eigvalsh(spread) > 0).all() if len(shape) == 2 else not np.all(spread > 0):
            raise ValueError("covariance_prior must be positive definite.")
        self.covariance_prior_ = float(spread) if kind == "spherical" else np.asarray(spread)
        return VariationalStep(
            kind,
            self.weight_concentration_prior_type == "dirichlet_process",
            self.weight_concentration_prior_,
            self.mean_precision_prior_,
            self.degrees_of_freedom_prior_,
            self.mean_prior_ - data.origin,
            np.asarray(spread, dtype=np.float64),
            float(self.reg_covar),
        )

    def _find_starts(self, data: MixtureRows) -> list[Mixture]:
        """Mixtures to start from, largest component first, as sticks are broken; "auto" adds such of fewer."""
        k, rng, letters = (
            self.n_components,
            make_random_state(self.random_state),
            resolve_model(self.covariance_type, len(data.origin)),
        )
        auto = self.init_params == "auto"
        fewer = sorted({max(1, round(k * share)) for share in FEWER}) if auto else []
        found = list[Mixture]()
        for size in [k, *(size for size in fewer if size < k)]:
            model = SimpleNamespace(
                n_components=size,
                init_params=self.init_params,
                n_init=max(self.n_init, VARIED) if auto and size == k else self.n_init,
                weights_init=None,
                means_init=None,
                precisions_init=None,
                covariance_type=self.covariance_type,
            )
            some = islice(find_starts(model, data, Maximiser(letters, Prior.floor(data)), rng), model.n_init)
            for start in some:
                order = np.argsort(-start.weights, kind="stable")
                padded = start.reorder([*order, *[order[0]] * (k - size)])
                weights = np.append(start.weights[order], np.zeros(k - size))
                found.append(replace(padded, weights=weights))
        return found

    def _climb(
        self, start: Mixture, data: MixtureRows, step: VariationalStep, most: int, number: int | None
    ) -> tuple[MixtureIterate, list[float], int]:
        """The end of one ascent, the bound after each step, and the number of steps."""

        def watch(iteration: int, height: float) -> None:
            if iteration % self.verbose_interval == 0:
                sys.stdout.write(f"  Iteration {iteration}" + f"\tbound {height:.6f}" * (self.verbose > 1) + "\n")

        if self.verbose and number is not None:
            sys.stdout.write(f"Initialization {number}\n")
        ascent = VariationalAscent(data, step)  # type: ignore[arg-type]
        told = watch if self.verbose else None
        at, heights, _ = ascent.run(start, self.tol, min(most, self.max_iter), self.accelerate, told)
        return at, heights, ascent.passes - 1

    def _name_results(self, at: MixtureIterate, heights: list[float], steps: int, step: VariationalStep) -> None:
        """Give the results their scikit-learn names."""
        found = step.solve(at.stats)
        a, b = found["a"], found["b"]
        if step.process:
            rest = b / (a + b)
            weights = a / (a + b) * np.append(1.0, np.cumprod(rest[:-1]))
            self.weight_concentration_ = (a, b)
        else:
            weights, self.weight_concentration_ = a, a
        posterior = Mixture(
            weights / weights.sum(), found["centres"], found["covariances"], at.mixture.model, at.mixture.origin
        )
        self.__dict__.update(sklearn_attributes(posterior, self.covariance_type))
        self.mean_precision_, self.degrees_of_freedom_ = found["beta"], found["nu"]
        self.lower_bound_, self.lower_bounds_ = heights[-1], [float(height) for height in heights]
        self.certificate_ = Optimum(
            "variational inference, accelerated (SQUAREM on the statistics)"
            if self.accelerate
            else "variational inference",
            f"the posterior of a mixture of {self.n_components} normals, {self.weight_concentration_prior_type}",
            steps + 1,
            steps,
            -np.array(heights),
            at.slope,
            tolerance=self.tol,
        )
        self.converged_, self.n_iter_ = self.certificate_.converged, steps
        self._densities_kept, self._mixture_kept, self._kind = step(at.stats), posterior, self.covariance_type

    @property
    def mixture_(self) -> Mixture:
        """The mixture of the posterior means."""
        check_is_fitted(self)
        return self._mixture_kept

    def _densities(self) -> Mixture:
        check_is_fitted(self)
        return self._densities_kept

    def score(self, X: Any, y: Any = None) -> float:
        """Mean of :meth:`score_samples`."""
        return float(np.mean(convert_to_numpy(self.score_samples(X))))

    def sample(self, n_samples: int = 1) -> Any:
        """Draw rows from the mixture of the posterior means, and the component of each; sorted by component."""
        n_samples, state = check_integer("n_samples", n_samples), self.random_state
        rng = np.random.default_rng(None if state is None else make_random_state(state).randint(2**31 - 1))
        X, labels = self.mixture_.sample(n_samples, rng)
        order = np.argsort(labels, kind="stable")
        return like(self.means_, (X[order], labels[order]))
