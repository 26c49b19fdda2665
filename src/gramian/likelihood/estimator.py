"""Maximum likelihood as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.base import BaseEstimator, DensityMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from gramian.inputs.checks import check_weights
from gramian.likelihood.families import Joint, as_family
from gramian.likelihood.families.joint import Categorical, MultivariateNormal
from gramian.likelihood.fit import fit
from gramian.likelihood.problem import close_window
from gramian.likelihood.sample import Sample, sample_like
from gramian.sources.arrays import to_numbers

Array = npt.NDArray[Any]


class MaximumLikelihood(DensityMixin, BaseEstimator):
    r"""A family of distributions fitted by maximum likelihood, to each column of X or to its rows.

    .. math:: \hat\theta = \arg\max_\theta \sum_iw_i\ln p_\theta(x_i)

    Families of numbers are fitted to every column by itself, the columns being independent; "multivariate normal" and
    other families of rows to the rows.

    Parameters
    ----------
    family : str, Family or scipy.stats distribution, default="normal"
        As in :func:`gramian.likelihood.fit`.
    truncated : tuple of two numbers, optional
        Only values in this range could be seen.
    fixed : dict of str to float, optional
        Parameters to hold.
    tol : float, default=1e-6
        Gradient to reach, in standard errors.
    max_iter : int, default=200
        Most steps of Newton's method; too few is warned about.

    Attributes
    ----------
    estimates_ : tuple of Estimate
        One for each column, or one for the rows: parameters, standard errors, intervals, goodness of fit.
    parameters_ : dict of str to ndarray
        The parameters by name, an entry for each column.
    loglik_ : float
        The maximum of the log-likelihood.
    certificate_ : tuple of Optimum
        How each maximum was found.
    n_features_in_ : int
        Columns seen.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.likelihood.estimator import MaximumLikelihood
    >>> model = MaximumLikelihood("gamma").fit(np.array([[1.0], [2.0], [3.0], [4.0]]))
    >>> model.parameters_["shape"].round(4)
    array([4.2654])
    >>> model.sample(2, random_state=0).shape
    (2, 1)
    """

    def __init__(
        self,
        family: Any = "normal",
        *,
        truncated: Any = None,
        fixed: dict[str, float] | None = None,
        tol: float = 1e-6,
        max_iter: int = 200,
    ) -> None:
        self.family = family
        self.truncated = truncated
        self.fixed = fixed
        self.tol = tol
        self.max_iter = max_iter

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> MaximumLikelihood:
        """Find the parameters of highest likelihood.

        Parameters
        ----------
        X : array-like of shape (n, p), or Sample
            The values; one column of any kind (:class:`~gramian.likelihood.Binned`, …) may come as a Sample.
        y : ignored
            For scikit-learn's sake.
        sample_weight : array-like of shape (n,), optional
            Frequencies: a weight of 2 is the row twice, 0 is the row left out.

        Returns
        -------
        MaximumLikelihood
            The estimator itself.
        """
        law = as_family(self.family)
        if self.truncated is not None and any(np.ndim(side) for side in self.truncated):
            raise ValueError(
                "truncated must be two numbers here: new rows to score would have no limits of their own. Limits for "
                "each record are for gramian.likelihood.fit."
            )
        if isinstance(X, Sample):
            columns: list[Any] = [X]
            self.n_features_in_ = 1
            self.__dict__.pop("feature_names_in_", None)
        else:
            values = self._read(X, reset=True)
            if _is_positive(law) and np.any(values < 0):
                i, j = np.argwhere(values < 0)[0]
                where = f"row {i + 1}, column {j + 1} is {values[i, j]:g}"
                raise ValueError(f"Negative values in data passed to MaximumLikelihood({law.name!r}): {where}.")
            sample_weight = None if sample_weight is None else check_weights(sample_weight, len(values))
            columns = [values] if isinstance(law, Joint) else list(values.T)
            if isinstance(law, MultivariateNormal) and law.columns is None:
                law = MultivariateNormal(getattr(self, "feature_names_in_", None))
        names = getattr(self, "feature_names_in_", range(len(columns)))
        options = {"truncated": self.truncated, "fixed": self.fixed, "tol": self.tol, "max_iter": self.max_iter}
        estimates = []
        for name, column in zip(names if len(columns) > 1 else [""], columns, strict=True):
            try:
                estimates.append(fit(law, column, sample_weight=sample_weight, **options))
            except ValueError as error:
                raise type(error)(f"Column {name!s}: {error}" if len(columns) > 1 else str(error)) from None
        self.estimates_ = tuple(estimates)
        self.loglik_ = float(sum(estimate.loglik for estimate in self.estimates_))
        self.certificate_ = tuple(estimate.certificate for estimate in self.estimates_)
        self.parameters_ = {name: np.array([e[name] for e in estimates]) for name in estimates[0].names}
        return self

    def score_samples(self, X: Any) -> Array:
        """ln p(x) of each row under the fitted distribution, summed over its columns; or of a Sample's records."""
        check_is_fitted(self)
        if isinstance(X, Sample):
            return self._score_records(X)
        values = self._read(X, reset=False)
        if isinstance(self.estimates_[0].family, Joint):
            return self.estimates_[0].log_density(values)
        parts = [estimate.log_density(column) for estimate, column in zip(self.estimates_, values.T, strict=True)]
        if self.truncated is None:
            return np.asarray(np.sum(parts, axis=0))
        c, d = (np.atleast_1d(np.asarray(side, dtype=np.float64)) for side in self.truncated)
        windows = [e.family.log_interval(*close_window(e.family, c, d), e.values)[0] for e in self.estimates_]
        outside = np.any((values < c) | (values > d), axis=1)
        return np.where(outside, -np.inf, np.sum(parts, axis=0) - sum(windows))

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """The mean of ln p(x) over the rows of X: larger is better."""
        found = self.score_samples(X)
        if isinstance(X, Sample):
            sample_weight = X.weight if sample_weight is None else check_weights(sample_weight, len(found)) * X.weight
            found = np.where(np.asarray(sample_weight) > 0, found, 0.0)
        return float(np.average(found, weights=sample_weight))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> Array:
        """Rows drawn from the fitted distribution.

        Parameters
        ----------
        n_samples : int, default=1
            How many.
        random_state : int, RandomState or None, default=None
            Seed of the draw.

        Returns
        -------
        ndarray of shape (n_samples, p)
            The rows; those of a truncated family as they would be without the truncation.
        """
        check_is_fitted(self)
        if n_samples < 1:
            raise ValueError(f"n_samples must be at least 1; got {n_samples!r}.")
        rng = np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))
        drawn = [np.asarray(estimate.draw(n_samples, rng)) for estimate in self.estimates_]
        return np.column_stack(drawn)

    def _score_records(self, X: Sample) -> Array:
        if self.n_features_in_ != 1 or isinstance(self.estimates_[0].family, Joint):
            raise ValueError("A Sample is one column of numbers: score rows for this model.")
        family, values = self.estimates_[0].family, self.estimates_[0].values
        records = sample_like(X, self.estimates_[0].sample)
        a, b, c, d = np.broadcast_arrays(records.lower, records.upper, records.left, records.right)
        c, d = close_window(family, c, d)
        with np.errstate(all="ignore"):
            inside = family.log_interval(np.maximum(a, c), np.minimum(b, d), values)
            points = family.log_density(np.where(records.exact, a, 0.0), values)
            window = family.log_interval(c, d, values) if records.truncated else 0.0
        return np.asarray(np.where(records.exact, points, inside) - window)

    def _read(self, X: Any, *, reset: bool) -> Array:
        if sp.issparse(X):
            raise TypeError("Sparse data was passed; maximum likelihood takes dense data: use X.toarray().")
        kind = None if isinstance(as_family(self.family), Categorical) else np.float64
        X = to_numbers(X) if kind is not None or np.ma.is_masked(X) else X
        return np.asarray(validate_data(self, X, reset=reset, dtype=kind))

    def __sklearn_tags__(self) -> Any:
        """Say what scikit-learn may expect."""
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = _is_positive(as_family(self.family))
        return tags


def _is_positive(law: Any) -> bool:
    return bool(getattr(law, "low", -np.inf) >= 0.0)
