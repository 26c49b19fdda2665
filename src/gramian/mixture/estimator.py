"""Gaussian mixtures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import is_tensor, like, to_numpy
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_weights
from gramian.inputs.devices import convert_to_numpy, store_like
from gramian.inputs.opening import open_input
from gramian.mixture.binned import Bins, Goodness
from gramian.mixture.diagnose import Diagnosis, diagnose
from gramian.mixture.em import Fit
from gramian.mixture.errors import StandardErrors, standard_errors
from gramian.mixture.fitting import (
    FITTED,
    Stream,
    best_fit,
    changes,
    name_results,
    refuse_changes,
    warn_of,
    with_flatness,
)
from gramian.mixture.models import Maximiser
from gramian.mixture.options import PARAMETERS, attributes, check_parameters, maximiser_of, mixture_from, seeded
from gramian.mixture.parameters import Mixture, column_numbers, numbers, unmasked
from gramian.mixture.rows import Rows, located
from gramian.mixture.starts import expected_cells, starts
from gramian.sources import Source

__all__ = ["GaussianMixture", "MixtureQueries", "each_block", "on_rows", "open_data", "open_rows"]

Array = npt.NDArray[np.float64]

BLOCK_BYTES = 2**24  # of a block of rows and its densities
CARD_BYTES = 2**28  # the same on a card


def open_data(model: Any, X: Any, sample_weight: Any, *, reset: bool) -> Rows | Bins:
    """Rows or bins, checked against the fit, or with ``reset`` recorded on the estimator."""
    if isinstance(X, Bins):
        if sample_weight is not None:
            raise ValueError("The counts of bins are their weights: leave sample_weight out.")
        return _bins(model, X, reset)
    source = open_rows(model, X, reset=reset)
    w = None if sample_weight is None else check_weights(sample_weight, source.shape[0])
    return Rows.of(source, w, model.device)


def open_rows(model: Any, X: Any, *, reset: bool = False) -> Source:
    """The Source of X, which must be dense; masked cells are missing ones."""
    if isinstance(X, Bins):
        raise ValueError("Bins are counts: this asks about rows.")
    source = open_input(model, unmasked(X), reset=reset)
    if source.sparse:
        raise TypeError(
            "Sparse data was passed to GaussianMixture, which takes dense rows: means and densities of sparse rows are "
            "dense. Use X.toarray(), or reduce the columns with gramian.PCA first."
        )
    return source


def _bins(model: Any, X: Bins, reset: bool) -> Bins:
    d = len(X.origin)
    if reset:
        model.n_features_in_ = d
        vars(model).pop("feature_names_in_", None)
    elif d != model.n_features_in_:
        raise ValueError(f"The bins have {d} columns, but the mixture has {model.n_features_in_}.")
    return X


def each_block(source: Source, k: int, device: Any = None) -> Iterator[tuple[int, int, Any]]:
    """Blocks of rows in float64, so short that their densities under k components take little memory.

    They are NumPy's, or tensors on the device where the source is.
    """
    size = CARD_BYTES if getattr(device, "type", "cpu") == "cuda" else BLOCK_BYTES
    step = max(1, size // (8 * (2 * source.shape[1] + 4 * k)))
    for block in source.blocks(step):
        X = to_numpy(block.values, float) if device is None else block.values.double()
        infinite = abs(X) == np.inf
        if bool(infinite.any()):
            i, j = np.argwhere(to_numpy(infinite))[0]
            raise ValueError(f"Input X contains infinity (inf): the first is in row {block.start + i}, column {j}.")
        yield block.start, block.stop, X


def on_rows(model: Any, X: Any, function: Callable[[Any], Any], *, cells: bool = False) -> Any:
    """What a function says of every row, computed block by block where the model computes, beside the rows.

    With ``cells`` that is the CPU: the function looks at missing cells.
    """
    source, k = open_rows(model, X), model.mixture_.n_components
    there, device = located(source, "cpu" if cells else model.device)
    out: Any = None
    for start, stop, rows in each_block(there, k, device):
        part = function(rows)
        if out is None:
            shape = (source.shape[0], *part.shape[1:])
            out = np.empty(shape, part.dtype) if device is None else part.new_empty(shape)
        out[start:stop] = part
    return like(source, out)


class MixtureQueries:
    """Densities, clusters, criteria and errors of a fitted mixture."""

    @property
    def mixture_(self) -> Mixture:
        """The fitted distribution as one object; made anew where someone has set ``means_`` and the like."""
        check_is_fitted(self)
        mine = convert_to_numpy(self)
        fit = getattr(mine, "_fit", None)
        if fit is not None and fit.mixture.n_components == len(mine.weights_):
            known = attributes(fit.mixture, mine._kind)
            if all(np.array_equal(known[name], getattr(mine, name)) for name in PARAMETERS if name != "precisions_"):
                return fit.mixture  # type: ignore[no-any-return]
        return mixture_from(mine)

    def predict(self, X: Any) -> Any:
        """The component of largest responsibility, for each row."""
        mixture = self.mixture_
        return on_rows(self, X, lambda x: mixture.joint_log_density(x).argmax(1))

    def predict_proba(self, X: Any) -> Any:
        r"""Responsibilities :math:`\pi_kN(x;\mu_k,\Sigma_k)/p(x)` of the components, for each row."""
        return on_rows(self, X, self.mixture_.responsibilities)

    def score_samples(self, X: Any) -> Any:
        """Log-density ln p(x) of each row; of its observed cells where some are NaN."""
        return on_rows(self, X, self.mixture_.log_density)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Mean log-likelihood of a row, or of an observation that was counted in a bin."""
        height, weight = self._height(X, sample_weight)
        return height / weight

    def aic(self, X: Any, sample_weight: Any = None) -> float:
        """Akaike's information criterion −2ℓ + 2p: the lower the better."""
        return -2.0 * self._height(X, sample_weight)[0] + 2.0 * self._n_parameters()

    def bic(self, X: Any, sample_weight: Any = None) -> float:
        """Bayesian information criterion −2ℓ + p ln n, with n the sum of weights: the lower the better.

        mclust prints the same number with the other sign.
        """
        height, weight = self._height(X, sample_weight)
        return -2.0 * height + self._n_parameters() * float(np.log(weight))

    def icl(self, X: Any, sample_weight: Any = None) -> float:
        r"""Integrated complete-data likelihood: :math:`BIC-2\sum_iw_i\ln\max_kr_{ik}`, the lower the better.

        It asks for components that can be told apart, where BIC asks for a density (Biernacki, Celeux and Govaert
        2000; as in mclust, but for the sign).
        """
        mixture, data = self.mixture_, open_data(self, X, sample_weight, reset=False)
        if isinstance(data, Bins):
            singles = [replace(mixture.ordered([j]), weights=np.ones(1)) for j in range(mixture.n_components)]
            shares = np.stack([data.probabilities(one) for one in singles], axis=1) * mixture.weights
            taken = data.counts > 0
            blurred = float(data.counts[taken] @ np.log(shares[taken].max(axis=1) / shares[taken].sum(axis=1)))
        else:
            blurred = 0.0
            for start, stop, rows in each_block(data.source, mixture.n_components, data.device):
                R = mixture.responsibilities(rows)
                each = np.log(to_numpy(R.amax(1) if is_tensor(R) else R.max(axis=1)))
                blurred += float(each.sum() if data.sample_weight is None else data.sample_weight[start:stop] @ each)
        return self.bic(X, sample_weight) - 2.0 * blurred

    def sample(self, n_samples: int = 1) -> tuple[Any, Any]:
        """Draw rows from the mixture, and the component of each; sorted by component, as scikit-learn has them.

        They are tensors where the fit was to tensors. With ``random_state=None`` every call draws other rows.
        """
        if isinstance(n_samples, bool) or not isinstance(n_samples, Integral) or n_samples < 1:
            raise ValueError(f"n_samples must be a whole number of at least 1, got {n_samples!r}.")
        state = self.random_state
        rng = np.random.default_rng(None if state is None else seeded(state).randint(2**31 - 1))
        X, labels = self.mixture_.sample(int(n_samples), rng)
        order = np.argsort(labels, kind="stable")
        return like(self.means_, (X[order], labels[order]))

    def marginal(self, columns: Sequence[int | str]) -> Mixture:
        """The distribution of some columns, by number or name.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian.mixture.estimator import GaussianMixture
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
        >>> from gramian.mixture.estimator import GaussianMixture
        >>> x = np.linspace(0.0, 1.0, 50)
        >>> model = GaussianMixture().fit(np.column_stack([x, 3.0 * x + 0.1 * np.sin(40 * x)]))
        >>> model.conditional([0], [0.5]).means.round(2)
        array([[1.5]])
        """
        given = self._columns(columns)
        point = numbers("values", values).reshape(-1)
        if len(point) != len(given):
            raise ValueError(f"There are {len(given)} columns and {len(point)} values.")
        if len(given) >= self.n_features_in_:  # type: ignore[attr-defined]
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
            return on_rows(self, X, lambda x: expected_cells(x, mixture)[0], cells=True)
        both = on_rows(self, X, lambda x: np.concatenate(expected_cells(x, mixture), axis=1), cells=True)
        d = len(mixture.origin)
        return both[:, :d], both[:, d:]

    def standard_errors(self, X: Any, sample_weight: Any = None) -> StandardErrors:
        """Standard errors of weights, means and covariances from the observed information, by Louis's formula.

        Parameters
        ----------
        X, sample_weight
            The data of the fit. :func:`gramian.mixture.choose.bootstrap_mixture` resamples them instead.
        """
        data = open_data(self, X, sample_weight, reset=False)
        return standard_errors(data, self.mixture_, self.constraints)  # type: ignore[attr-defined]

    def goodness(self, bins: Bins) -> Goodness:
        """Deviance and X² of counts in bins against those expected, with their degrees of freedom."""
        data = open_data(self, bins, None, reset=False)
        if not isinstance(data, Bins):
            raise ValueError("Goodness of fit compares counts: give Bins (gramian.mixture.Bins.of).")
        return data.goodness(self.mixture_, self._n_parameters())

    def diagnose(self, X: Any, sample_weight: Any = None) -> tuple[Diagnosis, ...]:
        """Components that are empty or have collapsed on these data, each with a remedy; none where all is well."""
        data, mixture = open_data(self, X, sample_weight, reset=False), self.mixture_
        return diagnose(mixture, data.expect(mixture), self._maximiser(data).prior)  # type: ignore[attr-defined]

    def _height(self, X: Any, sample_weight: Any) -> tuple[float, float]:
        mixture = self.mixture_
        data: Rows | Bins = open_data(self, X, sample_weight, reset=False)
        return data.expect(mixture).log_likelihood, data.weight

    def _n_parameters(self) -> int:
        return int(getattr(self, "n_parameters_", None) or self.mixture_.free_parameters)

    def _columns(self, columns: Sequence[int | str]) -> list[int]:
        check_is_fitted(self)
        names = [str(name) for name in getattr(self, "feature_names_in_", [])]
        d = self.n_features_in_  # type: ignore[attr-defined]
        found: list[Any] = []
        for column in [columns] if isinstance(columns, (int, str)) else columns:
            if isinstance(column, str) and column not in names:
                raise ValueError(
                    f"There is no column {column!r}; there are {', '.join(names) or f'{d}, without names'}."
                )
            found.append(names.index(column) if isinstance(column, str) else column)
        return [int(j) for j in column_numbers(found, d)]


class GaussianMixture(MixtureQueries, DensityMixin, BaseEstimator):
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
    init_params : {"kmeans", "k-means++", "random", "random_from_data", "hierarchical"}, default="kmeans"
        How to start. Columns count in standard deviations unless the model is spherical. "hierarchical" is mclust's
        model-based agglomeration; starts beyond the first are then by k-means.
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
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a card if there is one. Counts in bins and
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
        init_params: str = "kmeans",
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
        self._fit_data(X, sample_weight)
        return self

    def fit_predict(self, X: Any, y: Any = None, sample_weight: Any = None) -> Any:
        """Fit and return the component of each row: the same as ``fit(X).predict(X)``."""
        self._fit_data(X, sample_weight)
        return self.predict(X)

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
        check_parameters(self)
        known = "_fit" in vars(self)
        if known:
            refuse_changes(self)
        data = self._open(X, sample_weight, reset=not known)
        if known:
            stream = vars(self).get("_stream") or Stream(self._fit, self._maximiser(data), self.decay)
            stream.take(self, data)
        else:
            self._fit_opened(data)
            stream = Stream(self._fit, self._maximiser(data), self.decay)
        self._stream = stream
        store_like(self, X)
        return self

    def _fit_data(self, X: Any, sample_weight: Any) -> None:
        check_parameters(self)
        last = self._last()
        self._forget()  # a refit that fails leaves no fit behind, rather than columns of one and means of another
        data = self._open(X, sample_weight, reset=True)
        self._fit_opened(data, last)
        store_like(self, X)

    def _last(self) -> Mixture | None:
        """The last fit, where that is to be started from and is one of these settings."""
        if not self.warm_start or "means_" not in vars(self):
            return None
        fit: Fit | None = vars(self).get("_fit")
        changed = fit is not None and changes(self)
        return None if changed else self.mixture_

    def _open(self, X: Any, sample_weight: Any, *, reset: bool) -> Rows | Bins:
        data = open_data(self, X, sample_weight, reset=reset)
        if reset and isinstance(data, Rows):
            n = data.source.shape[0]
            if n < max(2, self.n_components):
                raise ValueError(
                    f"Found array with {n} sample(s), n_samples={n}, while a minimum of {max(2, self.n_components)} is "
                    f"required by GaussianMixture with n_components={self.n_components}."
                )
        return data

    def _fit_opened(self, data: Rows | Bins, last: Mixture | None = None) -> None:
        maximiser = self._maximiser(data)
        if last is not None and last.model == maximiser.model and last.centres.shape == self._shape(data):
            origins = iter([last])
        else:
            origins = starts(self, data, maximiser.model, seeded(self.random_state))
        with quiet_blas():  # in the starts too: small products between passes
            fits = best_fit(self, data, origins, maximiser)
        name_results(self, with_flatness(fits, data, maximiser), data.weight, maximiser)
        warn_of(self)

    def _shape(self, data: Rows | Bins) -> tuple[int, int]:
        return self.n_components, len(data.origin)

    def _maximiser(self, data: Rows | Bins) -> Maximiser:
        return maximiser_of(self, data)

    def _forget(self) -> None:
        for name in (*FITTED, "n_features_in_", "feature_names_in_"):
            self.__dict__.pop(name, None)

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
