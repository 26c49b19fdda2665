"""Gaussian mixtures: the estimator."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import is_tensor, like, to_numpy
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_choice, check_integer, check_weights
from gramian.inputs.devices import convert_to_numpy, store_like
from gramian.inputs.opening import open_input
from gramian.mixture import missing
from gramian.mixture.binned import BinnedGoodness, Bins
from gramian.mixture.diagnose import Diagnosis, Landscape, compare_optima, diagnose
from gramian.mixture.em import Maximiser, MixtureFit, Stepwise, fit_mixture, step_length
from gramian.mixture.errors import StandardErrors, is_flat, standard_errors
from gramian.mixture.models import resolve_model
from gramian.mixture.parameters import (
    SKLEARN_ATTRIBUTES,
    Constraints,
    Mixture,
    Prior,
    as_floats,
    invert_precisions,
    resolve_columns,
    sklearn_attributes,
)
from gramian.mixture.rows import MixtureRows, locate
from gramian.mixture.starts import find_starts, fit_one_normal
from gramian.results import NumericalWarning, Optimum, caller_level
from gramian.sources import Source

Array = npt.NDArray[np.float64]

BLOCK_BYTES = 2**24  # of a block of rows and its densities
BLOCK_BYTES_GPU = 2**28
MOST = float(np.finfo(float).max)
STATE = ("_fit", "_maximiser", "_kind", "_stepwise", "_numpy_attributes")
STARTS = ("auto", "kmeans", "k-means++", "random", "random_from_data", "hierarchical")
REMEDY = (
    "With reg_covar=0 nothing keeps a component from collapsing: leave it out, fit fewer components or use a prior."
)


class MixtureAnswers:
    """What every fitted mixture says of rows: their components and densities, block by block."""

    n_components: int
    device: Any

    def _densities(self) -> Mixture:
        """The components with their weights, as rows are compared with them."""
        raise NotImplementedError

    def _check_rows(self, n: int) -> None:
        """Refuse fewer rows than components."""
        least = max(2, self.n_components)
        if n < least:
            raise ValueError(
                f"Found array with {n} sample(s), n_samples={n}, while a minimum of {least} is required by "
                f"{type(self).__name__} with n_components={self.n_components}."
            )

    def _open_rows(self, X: Any, *, reset: bool = False) -> Source:
        """The Source of X, which must be dense; masked cells are missing ones."""
        if isinstance(X, Bins):
            raise ValueError("Bins are counts: this asks about rows.")
        source = open_input(self, X, reset=reset)
        if source.sparse:
            raise TypeError(
                f"Sparse data was passed to {type(self).__name__}, which takes dense rows: means and densities of "
                "sparse rows are dense. Use X.toarray(), or reduce the columns with gramian.PCA first."
            )
        return source

    def predict(self, X: Any) -> Any:
        """The component of largest responsibility, for each row."""
        mixture = self._densities()
        return self._on_rows(X, lambda x: mixture.relative_log_density(x).argmax(1))

    def predict_proba(self, X: Any) -> Any:
        r"""Responsibilities :math:`\pi_kN(x;\mu_k,\Sigma_k)/p(x)` of the components, for each row."""
        return self._on_rows(X, self._densities().responsibilities)

    def score_samples(self, X: Any) -> Any:
        """Log-density ln p(x) of each row; of its observed cells where some are NaN."""
        return self._on_rows(X, self._densities().log_density)

    def _on_rows(self, X: Any, function: Callable[[Any], Any], *, cells: bool = False) -> Any:
        """What a function says of every row, block by block where the model computes; it comes back where X lives.

        With ``cells`` that is the CPU: the function looks at missing cells.
        """
        source, k = self._open_rows(X), self._densities().n_components
        there, device = locate(source, "cpu" if cells else self.device)
        out: Any = None
        for start, stop, rows in make_blocks(there, k, device):
            part = function(rows)
            if out is None:
                shape = (source.shape[0], *part.shape[1:])
                out = np.empty(shape, part.dtype) if device is None else part.new_empty(shape)
            out[start:stop] = part
        return like(source, out)


class GaussianMixture(MixtureAnswers, DensityMixin, BaseEstimator):
    r"""A mixture of normal distributions, by maximum likelihood, with a certificate.

    .. math:: p(x) = \sum_{k=1}^K\pi_kN(x;\mu_k,\Sigma_k),\qquad \max\ \ell = \sum_iw_i\ln p(x_i)

    A drop-in for :class:`sklearn.mixture.GaussianMixture` with what mclust adds. Takes NumPy arrays, data frames, torch
    tensors, paths of ``.npy`` and ``.csv`` files, memory maps, Sources, and counts in bins. NaN cells are missing: the
    likelihood is that of the cells observed. No n×K matrix is formed.

    Parameters
    ----------
    n_components : int, default=1
        K.
    covariance_type : str, default="full"
        "full", "tied", "diag", "spherical"; or three letters of mclust's: volume, shape and orientation equal (E),
        varying (V) or those of a sphere or of the axes (I), from "EII" to "VVV"; "E" or "V" for one column.
    tol : float, default=1e-5
        Gradient to reach: the next step of EM, in standard errors. (scikit-learn's is a gain per row.)
    reg_covar : float or None, default=None
        None is a floor near rounding, 1e-22 of the variances of the data, which only a collapsing component feels, and
        which has no units. A number is a variance in the data's own units: added, as a penalty −½(nr/K)Σ tr Σ_k⁻¹, to
        each component of average size, as scikit-learn adds it to all. 0 is no regularisation.
    max_iter : int, default=1000
        Most iterations from each start.
    n_init : int, default=1
        Number of starts; the best optimum is kept, and ``landscape_`` tells of all.
    init_params : {"auto", "kmeans", "k-means++", "random", "random_from_data", "hierarchical"}, default="auto"
        How to start. "auto" partitions the rows by k-means of standardised, half white and white columns; where these
        differ, by Ward's linkage too, and goes on from the best after some steps of EM from each. With ``n_init``
        above 1, or where components collapse, more kinds of partitions are tried. Columns count in standard
        deviations unless the model is spherical.
        "hierarchical" is mclust's model-based agglomeration; starts beyond the first are then by k-means.
    weights_init, means_init, precisions_init : array-like, optional
        Parts of the start that are given; rows go to the nearest of given means.
    random_state : int, RandomState, Generator or None, default=None
        Seed of starts and samples; None is a fixed seed for fits, so that they repeat, and none for samples.
    warm_start : bool, default=False
        Start from the last fit.
    verbose, verbose_interval : int, default=0 and 10
        1 prints an iteration now and then, 2 its log-likelihood too.
    prior : "conjugate", Prior or None, default=None
        Maximum a posteriori: "conjugate" is mclust's default prior (Fraley and Raftery 2007).
    constraints : Constraints, optional
        Parameters that are held at their ``*_init``, or tied between components.
    accelerate : bool, default=True
        Extrapolate the steps of EM where that gains (SQUAREM); the path differs, the optimum does not.
    decay : float, default=0.6
        How fast :meth:`partial_fit` forgets: batch t counts (t + 1)^−decay; between 0.5 and 1.
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a GPU if there is one. Counts in bins and
        rows with missing cells are worked on by the CPU.

    Attributes
    ----------
    weights_, means_ : ndarray of shape (K,) and (K, d)
        π and μ.
    covariances_, precisions_, precisions_cholesky_ : ndarray
        Σ, Σ⁻¹ and C with Σ⁻¹ = CCᵀ, in scikit-learn's shapes for its four names, else of shape (K, d, d).
    converged_, n_iter_, lower_bound_, lower_bounds_
        As in scikit-learn, of the fit that was kept. The bound is the mean log-likelihood of a row, prior included.
    log_likelihood_, n_parameters_ : float, int
        ℓ, and how many parameters are free.
    certificate_ : Optimum
        Method, iterations, the objective after each, and the gradient at the end.
    landscape_ : Landscape
        The optima that the starts led to.
    mixture_ : Mixture
        The distribution as one object.
    n_features_in_, feature_names_in_
        Columns.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GaussianMixture
    >>> X = np.array([[1, 2], [1, 4], [1, 0], [10, 2], [10, 4], [10, 0]])
    >>> model = GaussianMixture(n_components=2, covariance_type="tied", random_state=0, reg_covar=1e-6).fit(X)
    >>> np.sort(model.means_[:, 0]).round(6)
    array([ 1., 10.])
    >>> bool(model.predict([[0, 0]]) == model.predict([[1, 3]])), model.certificate_.converged
    (True, True)
    """

    def __init__(
        self,
        n_components: int = 1,
        *,
        covariance_type: str = "full",
        tol: float = 1e-5,
        reg_covar: float | None = None,
        max_iter: int = 1000,
        n_init: int = 1,
        init_params: str = "auto",
        weights_init: Any = None,
        means_init: Any = None,
        precisions_init: Any = None,
        random_state: Any = None,
        warm_start: bool = False,
        verbose: int = 0,
        verbose_interval: int = 10,
        prior: Any = None,
        constraints: Any = None,
        accelerate: bool = True,
        decay: float = 0.6,
        device: Any = None,
    ) -> None:
        self.n_components = n_components
        self.covariance_type = covariance_type
        self.tol = tol
        self.reg_covar = reg_covar
        self.max_iter = max_iter
        self.n_init = n_init
        self.init_params = init_params
        self.weights_init = weights_init
        self.means_init = means_init
        self.precisions_init = precisions_init
        self.random_state = random_state
        self.warm_start = warm_start
        self.verbose = verbose
        self.verbose_interval = verbose_interval
        self.prior = prior
        self.constraints = constraints
        self.accelerate = accelerate
        self.decay = decay
        self.device = device

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GaussianMixture:
        """Fit the mixture.

        Parameters
        ----------
        X : array-like, frame, tensor, path, Source or Bins
            Rows of shape (n, d), of which any cells may be NaN; or counts in bins.
        y : ignored
            For scikit-learn's sake.
        sample_weight : array-like of shape (n,), optional
            Frequencies: a weight of 2 is the row twice.

        Returns
        -------
        GaussianMixture
            The estimator itself.
        """
        self._check_parameters()
        last = self.mixture_ if self.warm_start and "means_" in vars(self) and not self._changes() else None
        for name in [name for name in vars(self) if name in STATE or (name.endswith("_") and not name.startswith("_"))]:
            delattr(self, name)  # a refit that fails leaves no fit behind, rather than columns of one, means of another
        data = self._open_data(X, sample_weight, reset=True)  # rows or bins
        maximiser = self._choose_maximiser(data)  # covariance model, prior, constraints
        shape = (self.n_components, len(data.origin))
        warm = last is not None and last.model == maximiser.model and last.centres.shape == shape
        with quiet_blas():  # in the starts too: small products between passes
            starts: Any = [last] if warm else find_starts(self, data, maximiser, make_random_state(self.random_state))
            self._fit_from_starts(starts, data, maximiser)
        self._warn()
        store_like(self, X)
        return self

    def _fit_from_starts(
        self, starts: Iterable[Mixture], data: MixtureRows | Bins, maximiser: Maximiser, *, give_up: bool = False
    ) -> None:
        """Climb from each start, and keep the best; with ``give_up`` only until a component has collapsed."""
        fits: list[MixtureFit] = []
        for number, start in enumerate(starts):
            fits.append(self._fit_from(start, data, maximiser, number, give_up))
            sound = len(fits) if self.reg_covar else sum(not fit.diagnoses for fit in fits)
            if self.init_params == "auto" and sound >= self.n_init:
                break  # the others were there in place of such as collapse
        self._keep_best(fits, data, maximiser)

    def _keep_best(self, fits: list[MixtureFit], data: MixtureRows | Bins, maximiser: Maximiser) -> None:
        """Name the results of the best fit, and whether the data determine it."""
        # what has collapsed has a large likelihood without meaning: it is kept only if there is nothing without, unless
        # the user's own reg_covar bounds the likelihood
        fits.sort(key=lambda fit: (bool(fit.diagnoses) and not self.reg_covar, float(fit.optimum.objective[-1])))
        kept = fits[0]
        if isinstance(data, Bins) and not kept.diagnoses and is_flat(data, kept.mixture, maximiser):
            taken, p = int(np.count_nonzero(data.counts)), maximiser.constraints.free_parameters(kept.mixture)
            note = (
                f"counts in {taken} class{'es' * (taken != 1)} do not determine {p} parameters: other mixtures are as "
                "likely, and this one is only where the iterations ended; count in finer classes, fit fewer components "
                "or hold parameters (constraints)"
            )
            fits[0] = replace(kept, optimum=kept.optimum.with_(determined=False, notes=(*kept.optimum.notes, note)))
        self._name_results(fits[0], maximiser, compare_optima(fits), data.weight)

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit and return the component of each row: the same as ``fit(X).predict(X)``."""
        return self.fit(X, sample_weight=sample_weight).predict(X)

    def fit_binned(self, edges: Any, counts: Any) -> GaussianMixture:
        """Fit counts in bins: the likelihood of what was counted, not of midpoints.

        Parameters
        ----------
        edges : array-like of shape (m + 1,), or a sequence of one for each column
            Ends of the bins, rising; the first may be −inf and the last inf.
        counts : array-like of shape (m,), or (m₁, m₂, …)
            How many observations fell into each bin.

        Returns
        -------
        GaussianMixture
            The estimator itself.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import GaussianMixture
        >>> model = GaussianMixture().fit_binned([-np.inf, -1, 0, 1, np.inf], [16, 34, 34, 16])
        >>> bool(abs(model.means_[0, 0]) < 1e-6), bool(abs(model.covariances_[0, 0, 0] - 1) < 0.03)
        (True, True)
        """
        return self.fit(Bins.of(edges, counts))

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> GaussianMixture:
        """Learn from one more batch of rows, forgetting older ones slowly (stepwise EM, Cappé and Moulines 2009).

        After :meth:`fit`, its rows count as the first batch, and are gone on from. Else the first batch is fitted as
        :meth:`fit` does and must hold enough rows for that; each further one moves the statistics by a step that
        shrinks. The certificate is of the last batch alone.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.

        Returns
        -------
        GaussianMixture
            The estimator itself.
        """
        if "_fit" not in vars(self):  # the first batch is fitted as a whole
            self.fit(X, sample_weight=sample_weight)
            self._stepwise = self._begin_stepwise()
            return self
        self._check_parameters()
        for name, before in self._changes().items():
            raise ValueError(
                f"{name} was {before!r} in the batches so far and is {getattr(self, name)!r} now: batches go on with "
                "one kind of mixture. Set it back, or start anew with fit or a clone."
            )
        data, at = self._open_data(X, sample_weight, reset=False), self._fit.mixture
        steps = vars(self).get("_stepwise") or self._begin_stepwise()
        batch = data.expect(at)
        if self.reg_covar:  # is a variance: its weight in the sums grows with theirs
            steps.maximiser = self._choose_maximiser(replace(data, weight=steps.seen + data.weight))
        mixture = steps.step(at, batch)
        optimum = Optimum(
            "stepwise EM over batches",
            "partial_fit",
            len(steps.heights),
            len(steps.heights),
            -np.array(steps.heights) * batch.weight,
            step_length(at, mixture, batch.weight),
            tolerance=self.tol,
            notes=(
                "the gradient is the last step, in standard errors of the last batch; the log-likelihood is its own",
            ),
        )
        fit = MixtureFit(mixture, batch, optimum, diagnose(mixture, batch, steps.maximiser.prior))
        self._name_results(fit, steps.maximiser, compare_optima([fit]), batch.weight)
        self._stepwise = steps
        store_like(self, X)
        return self

    def _begin_stepwise(self) -> Stepwise:
        """Statistics that forget, with the fit's as those of the first batch, at its own optimum."""
        steps = Stepwise(self._maximiser, self.decay)
        steps.step(self._fit.mixture, self._fit.statistics)
        return steps

    def _check_parameters(self) -> None:
        """Raise an error that names the parameter, what it is, and what it may be."""
        for name, fewest in (("n_components", 1), ("max_iter", 0), ("n_init", 1), ("verbose_interval", 1)):
            check_integer(name, getattr(self, name), fewest)
        numbers = [("tol", self.tol), ("reg_covar", 0.0 if self.reg_covar is None else self.reg_covar)]
        for name, value in [*numbers, ("decay", self.decay)]:
            least, most, what = (0.5, 1.0, "between 0.5 and 1") if name == "decay" else (0.0, MOST, "of at least 0")
            if isinstance(value, bool) or not isinstance(value, Real) or not least <= float(value) <= most:
                raise ValueError(f"{name} must be a number {what}, got {value!r}.")
        check_choice("init_params", self.init_params, STARTS)
        if self.prior is not None and not isinstance(self.prior, Prior):
            check_choice("prior", self.prior, ("conjugate",))
        if self.prior is not None and self.reg_covar is not None:
            raise ValueError("reg_covar and prior both keep components from collapsing: give one of them.")
        if self.constraints is None:
            return
        if not isinstance(self.constraints, Constraints):
            raise ValueError(f"constraints must be a gramian.mixture.Constraints, got {self.constraints!r}.")
        for part, given in (("weights", "weights_init"), ("means", "means_init"), ("covariances", "precisions_init")):
            held = getattr(self.constraints, f"fixed_{part}")
            if held is not None and np.any(held) and getattr(self, given) is None:
                raise ValueError(f"constraints hold {part} that are not given: set {given}.")

    def _changes(self) -> dict[str, Any]:
        """What the parameters that decide what kind of mixture is fitted were at the fit, where they are others now."""
        if "_fit" not in vars(self):
            return {}
        were = {"n_components": self._fit.mixture.n_components, "covariance_type": self._kind}
        return {name: before for name, before in were.items() if getattr(self, name) != before}

    def _open_data(self, X: Any, sample_weight: Any, *, reset: bool) -> MixtureRows | Bins:
        """Rows or bins, checked against the fit, or with ``reset`` recorded on the estimator."""
        if isinstance(X, Bins):
            d = len(X.origin)
            if sample_weight is not None:
                raise ValueError("The counts of bins are their weights: leave sample_weight out.")
            if reset:
                self.n_features_in_ = d
            elif d != self.n_features_in_:
                raise ValueError(f"The bins have {d} columns, but the mixture has {self.n_features_in_}.")
            return X
        source = self._open_rows(X, reset=reset)
        n = source.shape[0]
        if reset:
            self._check_rows(n)
        w = None if sample_weight is None else check_weights(as_floats("sample_weight", sample_weight), n)
        return MixtureRows.of(source, w, self.device)

    def _choose_maximiser(self, data: MixtureRows | Bins) -> Maximiser:
        """The maximisation step that the constructor's arguments ask for, on these data."""
        letters, prior = resolve_model(self.covariance_type, len(data.origin)), None
        if isinstance(self.prior, Prior):
            prior = self.prior
        elif self.prior == "conjugate":
            if not data.weight > 1.0:
                raise ValueError(
                    "prior='conjugate' takes the covariance of the data with the divisor Σw − 1, and the weights sum "
                    f"to {data.weight:g}. Weights are frequencies: let them sum to the number of observations."
                )
            whole = fit_one_normal(data).mixture
            unbiased = whole.covariances[0] * (data.weight / (data.weight - 1.0))
            prior = Prior.conjugate(unbiased, whole.means[0], letters, self.n_components)
        elif self.reg_covar is None:
            prior = Prior.floor(data)
        elif self.reg_covar > 0.0:  # as much as scikit-learn adds to the variances, of components of average size
            prior = Prior(np.full(len(data.origin), self.reg_covar * data.weight / self.n_components))
        return Maximiser(letters, prior, Constraints() if self.constraints is None else self.constraints)

    def _fit_from(
        self, start: Mixture, data: MixtureRows | Bins, maximiser: Maximiser, number: int, give_up: bool
    ) -> MixtureFit:
        """One fit; without a floor, a component that has collapsed is an error."""
        last, last_height = 0, -np.inf

        def watch(iteration: int, height: float) -> None:
            """Print one line every ``verbose_interval`` iterations."""
            nonlocal last, last_height
            if iteration // self.verbose_interval > last // self.verbose_interval:
                more = f"\tlog-likelihood {height:.6f}\tchange {height - last_height:.6f}" if self.verbose > 1 else ""
                sys.stdout.write(f"  Iteration {iteration}{more}\n")
            last, last_height = iteration, height

        if self.verbose:
            sys.stdout.write(f"Initialization {number}\n")
        prior = maximiser.prior
        held = prior is not None and (prior.hard or prior.counts > 0)
        options: dict[str, Any] = {"tol": self.tol, "max_iter": self.max_iter, "accelerate": self.accelerate}
        options["give_up"] = give_up
        try:
            with np.errstate(all=None if held else "ignore"):  # without a floor, what collapses overflows
                fit = fit_mixture(data, start, maximiser, **options, watch=watch if self.verbose else None)
        except (ValueError, np.linalg.LinAlgError) as error:
            if held:
                raise
            raise ValueError(f"{error} {REMEDY if prior is None else ''}".strip()) from error
        if not held:
            found = diagnose(fit.mixture, fit.statistics, Prior.floor(data))
            for item in found:
                if item.kind == "collapsed" and prior is None:
                    raise ValueError(f"Component {item.component + 1} has collapsed. {REMEDY}")
            notes = (*(item.message for item in found), *fit.optimum.notes[len(fit.diagnoses) :])
            fit = replace(fit, diagnoses=found, optimum=fit.optimum.with_(notes=notes))
        if self.verbose:
            state = "converged" if fit.optimum.converged else "did not converge"
            sys.stdout.write(f"Initialization {state}: log-likelihood {fit.log_likelihood:.6g}\n")
        return fit

    def _name_results(self, fit: MixtureFit, maximiser: Maximiser, landscape: Landscape, weight: float) -> None:
        """Give the results of the kept fit their scikit-learn names."""
        heights = -fit.optimum.objective / weight
        self.__dict__.update(sklearn_attributes(fit.mixture, self.covariance_type))
        self.converged_ = fit.optimum.converged
        self.n_iter_ = fit.optimum.iterations
        self.lower_bound_ = float(heights[-1])
        self.lower_bounds_ = [float(h) for h in heights[1:]]
        self.log_likelihood_ = fit.log_likelihood
        self.n_parameters_ = maximiser.constraints.free_parameters(fit.mixture)
        self.certificate_ = fit.optimum
        self.landscape_ = landscape
        self._fit, self._maximiser, self._kind = fit, maximiser, self.covariance_type

    def _warn(self) -> None:
        """Say what a reader of the result must know: that it stopped short, or that a component is none."""
        optimum, tolerated = self.certificate_, self.reg_covar is not None or self.prior is not None
        said = ("empty",) if tolerated else ("empty", "collapsed")  # of what is spurious the certificate has a note
        messages = [item.message for item in self._fit.diagnoses if item.kind in said]
        messages += [] if optimum.determined else [optimum.notes[-1]]
        for message in dict.fromkeys(messages):
            warnings.warn(f"GaussianMixture: {message}.", NumericalWarning, stacklevel=caller_level())
        if self.max_iter > 0 and not messages:
            stopped = optimum.iterations >= self.max_iter
            optimum.warn_unless_converged(
                f"Raise max_iter={self.max_iter}." if stopped else f"Rounding hides the rest: raise tol={self.tol:g}."
            )

    @property
    def mixture_(self) -> Mixture:
        """The fitted distribution as one object; made anew where someone has set ``means_`` and the like."""
        check_is_fitted(self)
        mine = convert_to_numpy(self)
        fit = getattr(mine, "_fit", None)
        if fit is not None and fit.mixture.n_components == len(mine.weights_):
            known = sklearn_attributes(fit.mixture, mine._kind)
            names = [name for name in SKLEARN_ATTRIBUTES if name != "precisions_"]
            if all(np.array_equal(known[name], getattr(mine, name)) for name in names):
                return fit.mixture  # type: ignore[no-any-return]
        means = np.atleast_2d(np.asarray(mine.means_, dtype=np.float64))
        (k, d), kind = means.shape, getattr(mine, "_kind", mine.covariance_type)
        model, origin = resolve_model(kind, d), means.mean(axis=0)
        spread = invert_precisions(mine.precisions_cholesky_, kind, model, k, d, factored=True)
        return Mixture.of(mine.weights_, means - origin, spread, model, origin)

    def _densities(self) -> Mixture:
        return self.mixture_

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of a row, or of an observation that was counted in a bin."""
        height, weight = self._log_likelihood(X, sample_weight)
        return height / weight

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Akaike's information criterion −2ℓ + 2p: the lower the better."""
        return -2.0 * self._log_likelihood(X, sample_weight)[0] + 2.0 * self._n_parameters()

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion −2ℓ + p ln n, with n the sum of weights: the lower the better.

        mclust prints the same number with the other sign.
        """
        height, weight = self._log_likelihood(X, sample_weight)
        return -2.0 * height + self._n_parameters() * float(np.log(weight))

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        r"""Integrated complete-data likelihood: :math:`BIC-2\sum_iw_i\ln\max_kr_{ik}`, the lower the better.

        It asks for components that can be told apart, where BIC asks for a density (Biernacki, Celeux and Govaert
        2000; as in mclust, but for the sign).
        """
        blurred = sum_log_shares(self.mixture_, self._open_data(X, sample_weight, reset=False))
        return self.bic(X, sample_weight) - 2.0 * blurred

    def sample(self, n_samples: int = 1) -> Any:
        """Draw rows from the mixture, and the component of each; sorted by component, as scikit-learn has them.

        They are tensors where the fit was to tensors. With ``random_state=None`` every call draws other rows.
        """
        n_samples, state = check_integer("n_samples", n_samples), self.random_state
        rng = np.random.default_rng(None if state is None else make_random_state(state).randint(2**31 - 1))
        X, labels = self.mixture_.sample(n_samples, rng)
        order = np.argsort(labels, kind="stable")
        return like(self.means_, (X[order], labels[order]))

    def marginal(self, columns: Sequence[int | str]) -> Mixture:
        """The distribution of some columns, by number or name.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import GaussianMixture
        >>> X = np.random.default_rng(0).normal(size=(100, 3))
        >>> GaussianMixture().fit(X).marginal([0, 2])
        Mixture(VVV, 1 component, 2 columns): weights 1
        """
        return self.mixture_.marginal(self._columns(columns))

    def conditional(self, columns: Sequence[int | str], values: Any) -> Mixture:
        """The distribution of the other columns where these have these values: a regression with all its uncertainty.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian import GaussianMixture
        >>> x = np.linspace(0.0, 1.0, 50)
        >>> model = GaussianMixture().fit(np.column_stack([x, 3.0 * x + 0.1 * np.sin(40 * x)]))
        >>> model.conditional([0], [0.5]).means.round(2)
        array([[1.5]])
        """
        given = self._columns(columns)
        point = as_floats("values", values).reshape(-1)
        if len(point) != len(given):
            raise ValueError(f"There are {len(given)} columns and {len(point)} values.")
        if len(given) >= self.n_features_in_:
            raise ValueError("All columns are given: there is none left to have a distribution.")
        return self.mixture_.conditional(given, point)

    def impute(self, X: Any, *, return_std: bool = False) -> Any:
        """X with NaN cells replaced by their expectation given the row's other cells; and how uncertain they are.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows, of which some cells are NaN.
        return_std : bool, default=False
            Whether to return the standard deviations of the cells too, 0 where they are observed.
        """
        mixture = self.mixture_
        if not return_std:
            return self._on_rows(X, lambda x: missing.impute(x, mixture)[0], cells=True)
        both = self._on_rows(X, lambda x: np.concatenate(missing.impute(x, mixture), axis=1), cells=True)
        d = len(mixture.origin)
        return both[:, :d], both[:, d:]

    def standard_errors(self, X: Any, sample_weight: Any = None, kind: str = "information") -> StandardErrors:
        """Standard errors of weights, means and covariances from the observed information, by Louis's formula.

        Parameters
        ----------
        X, sample_weight
            The data of the fit. :func:`gramian.analysis.bootstrap_mixture` resamples them instead.
        kind : {"information", "sandwich"}, default="information"
            The second holds where the components are not normal, too: rows vary as they do, not as the model says.
        """
        data = self._open_data(X, sample_weight, reset=False)
        return standard_errors(data, self.mixture_, self.constraints, kind)

    def goodness(self, bins: Bins) -> BinnedGoodness:
        """Deviance and X² of counts in bins against those expected, with their degrees of freedom."""
        data = self._open_data(bins, None, reset=False)
        if not isinstance(data, Bins):
            raise ValueError("Goodness of fit compares counts: give Bins (gramian.mixture.Bins.of).")
        return data.goodness(self.mixture_, self._n_parameters())

    def diagnose(self, X: Any, sample_weight: Any = None) -> tuple[Diagnosis, ...]:
        """Components that are empty or have collapsed on these data, each with a remedy; none where all is well."""
        data, mixture = self._open_data(X, sample_weight, reset=False), self.mixture_
        return diagnose(mixture, data.expect(mixture), self._choose_maximiser(data).prior)

    def _log_likelihood(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        """Log-likelihood of data, and their weight."""
        mixture, data = self.mixture_, self._open_data(X, sample_weight, reset=False)
        return data.expect(mixture).log_likelihood, data.weight

    def _n_parameters(self) -> int:
        return int(getattr(self, "n_parameters_", None) or self.mixture_.free_parameters)

    def _columns(self, columns: Sequence[int | str]) -> list[int]:
        """Columns by number, given numbers or names."""
        check_is_fitted(self)
        names, d = [str(name) for name in getattr(self, "feature_names_in_", [])], self.n_features_in_
        given = [columns] if isinstance(columns, (int, str)) else list(columns)
        for column in given:
            if isinstance(column, str) and column not in names:
                raise ValueError(
                    f"There is no column {column!r}; there are {', '.join(names) or f'{d}, without names'}."
                )
        numbers = [names.index(column) if isinstance(column, str) else column for column in given]
        return [int(j) for j in resolve_columns(numbers, d)]

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def sum_log_shares(mixture: Mixture, data: MixtureRows | Bins) -> float:
    """Σw ln max_k r_k: 0 where every row belongs to one component alone."""
    if isinstance(data, Bins):
        singles = [replace(mixture.reorder([j]), weights=np.ones(1)) for j in range(mixture.n_components)]
        shares = np.stack([data.probabilities(one) for one in singles], axis=1) * mixture.weights
        taken = data.counts > 0
        return float(data.counts[taken] @ np.log(shares[taken].max(axis=1) / shares[taken].sum(axis=1)))
    total = 0.0
    for start, stop, rows in make_blocks(data.source, mixture.n_components, data.device):
        R = mixture.responsibilities(rows)
        each = np.log(to_numpy(R.amax(1) if is_tensor(R) else R.max(axis=1)))
        total += float(each.sum() if data.sample_weight is None else data.sample_weight[start:stop] @ each)
    return total


def make_blocks(source: Source, k: int, device: Any = None) -> Iterator[tuple[int, int, Any]]:
    """Blocks of rows in float64, so short that their densities under k components take little memory.

    They are NumPy's, or tensors on the device where the source is.
    """
    size = BLOCK_BYTES_GPU if getattr(device, "type", "cpu") == "cuda" else BLOCK_BYTES
    step = max(1, size // (8 * (2 * source.shape[1] + 4 * k)))
    for block in source.blocks(step):
        X = to_numpy(block.values, float) if device is None else block.values.double()
        infinite = abs(X) == np.inf
        if bool(infinite.any()):
            i, j = np.argwhere(to_numpy(infinite))[0]
            raise ValueError(
                f"Input X contains infinity (inf): the first is in row {block.start + i + 1}, column {j + 1}."
            )
        yield block.start, block.stop, X


def make_random_state(random_state: Any) -> np.random.RandomState:
    """The generator of a fit: None is a fixed seed, so that fits repeat."""
    if isinstance(random_state, np.random.Generator):
        return np.random.RandomState(int(random_state.integers(2**31 - 1)))
    try:
        return check_random_state(0 if random_state is None else random_state)  # type: ignore[no-any-return]
    except ValueError:
        raise ValueError(f"random_state must be None, a whole number or a generator, got {random_state!r}.") from None
