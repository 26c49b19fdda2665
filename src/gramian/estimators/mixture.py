"""Gaussian mixtures."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator, DensityMixin

from gramian.compute.threads import quiet_blas
from gramian.estimators._devices import home_of, settle
from gramian.estimators._mixture_fitting import FITTED, best_fit, name_results, warn_of, with_flatness
from gramian.estimators._mixture_inputs import open_data
from gramian.estimators._mixture_options import check_parameters, maximiser_of, seeded
from gramian.estimators._mixture_queries import MixtureQueries
from gramian.estimators._mixture_start import starts
from gramian.estimators._mixture_stream import Stream, changes, refuse_changes
from gramian.likelihood.mixture import Bins, Fit, Maximiser, Mixture, Rows

__all__ = ["GaussianMixture"]


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
        settle(self, home_of(X))
        return self

    def _fit_data(self, X: Any, sample_weight: Any) -> None:
        check_parameters(self)
        last = self._last()
        self._forget()  # a refit that fails leaves no fit behind, rather than columns of one and means of another
        data = self._open(X, sample_weight, reset=True)
        self._fit_opened(data, last)
        settle(self, home_of(X))

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
