"""Multivariate control charts on a PCA: which new rows are unlike the training rows, and by which variables."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import chdtri
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gramian.analysis._cards import ground
from gramian.analysis._model import FittedPCA, feature_names, plain_scores, variable_scale
from gramian.analysis._scored import refuse_no_components, row_names
from gramian.analysis._training import Training, dense_rows, training_rows
from gramian.analysis.alarms import Alarms, Contributions
from gramian.analysis.limits import Q_RULES, T2_RULES, check_choice, q_limit, t2_limit
from gramian.sources import Source, memory_budget, open_source

__all__ = ["Alarms", "Contributions", "Monitor", "monitor"]

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

T2_WORDS = {
    "F": "k(n²−1)/(n(n−k)) · F(k, n−k): for rows that had no part in the fit",
    "beta": "(n−1)²/n · Beta(k/2, (n−k−1)/2): for the rows of the fit",
    "chi2": "χ²(k): for any row, where n is large",
}
Q_WORDS = {
    "exact": "P(Σ θ_i χ²_1 > q) = α solved for q, θ the variances left out",
    "jackson-mudholkar": "a power of Q taken as normal, from Σθ, Σθ², Σθ³ of the variances left out",
    "box": "(θ₂/θ₁) χ²(θ₁²/θ₂), two moments from the variances left out",
    "moments": "g χ²(h), g = s²/2m and h = 2m²/s² from mean and variance of Q over the training rows",
    "none": "all p components are kept: Q is 0 for every row and raises no alarm",
}


class MonitoredPCA(FittedPCA, Protocol):
    """A fitted PCA that gives the squared distance of rows from its plane."""

    def reconstruction_error(self, X: Any) -> Any:
        """Return ‖x − x̂‖² of the rows of X."""


@dataclass(frozen=True, repr=False, eq=False)
class Monitor:
    """Control limits of a fitted PCA; call it with new rows.

    Attributes
    ----------
    t2_limit, q_limit : float
        Limits of T² and Q.
    t2_rule, q_rule : str
        Where they come from, in words.
    alpha : float
        Share of normal rows above each limit.
    n_components : int
        k, the components in T².
    weight : float
        n = Σw, the rows of the fit.
    names : tuple of str
        The variables.
    """

    t2_limit: float
    q_limit: float
    t2_rule: str
    q_rule: str
    alpha: float
    n_components: int
    weight: float
    names: tuple[str, ...]
    _pca: MonitoredPCA

    def check(self, X: Any) -> Alarms:
        """Return T² and Q of the rows of X, and whether they exceed the limits.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows; large files are read in blocks.

        Returns
        -------
        Alarms
            Both statistics, row by row; the index of a frame names the rows.
        """
        source = open_source(ground(X))
        q = np.asarray(self._pca.reconstruction_error(source), dtype=np.float64)  # refuses rows with NaN by name
        q = q if self.n_components < len(self.names) else 0.0 * q
        t2 = np.sum(plain_scores(self._pca, source) ** 2 / _variances(self._pca), axis=1)
        return Alarms(t2, q, self.t2_limit, self.q_limit, row_names(X))

    __call__ = check

    def contributions(self, X: Any) -> Contributions:
        r"""Split T² and Q of each row between the variables.

        .. math:: T^2 = \|V\Lambda^{-1/2}z\|^2 = \sum_j c_j,\qquad Q = \|x-\hat x\|^2 = \sum_j (x-\hat x)_j^2

        Of the several decompositions of T² this is the complete one in the terms of Alcala and Qin (J. of Process
        Control 21, 2011): no part is negative, and their sum is T². A fault in one variable also spreads to variables
        correlated with it, so a large part is where to look first and no proof.

        Parameters
        ----------
        X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
            The rows to explain, as a rule those with an alarm.

        Returns
        -------
        Contributions
            Arrays of shape (n, p).
        """
        source = open_source(ground(X))
        n, p = source.shape
        if 4 * n * p * 8 > memory_budget():
            raise ValueError(
                f"Contributions of {n} rows and {p} variables do not fit the working memory: hand in only the rows "
                "with an alarm, or raise sklearn.set_config(working_memory=...)."
            )
        D, V = _deviations(self._pca, source), np.asarray(self._pca.components_, dtype=np.float64)
        Z = D @ V.T
        residuals = D - Z @ V if self.n_components < p else np.zeros((n, p))
        t2 = (Z / np.sqrt(_variances(self._pca)) @ V) ** 2
        return Contributions(t2, residuals**2, residuals, self.names, self.t2_limit, self.q_limit, row_names(X))

    def table(self) -> dict[str, list[Any]]:
        """Return one line for each statistic: statistic, limit, rule."""
        return {
            "statistic": ["T²", "Q"],
            "limit": [self.t2_limit, self.q_limit],
            "rule": [self.t2_rule, self.q_rule],
        }

    def __repr__(self) -> str:
        head = f"Monitor: {self.n_components} of {len(self.names)} components, n = {self.weight:g}, α = {self.alpha:g}"
        return f"{head}\n  T²  limit {self.t2_limit:.4g}  {self.t2_rule}\n  Q   limit {self.q_limit:.4g}  {self.q_rule}"


def monitor(
    pca: MonitoredPCA,
    X: Any,
    *,
    alpha: float = 0.01,
    sample_weight: Any = None,
    t2: str = "F",
    q: str = "exact",
) -> Monitor:
    r"""Set control limits on T² and Q from the rows a PCA was fitted on.

    .. math:: T^2 = \sum_{l\le k} z_l^2/\lambda_l,\qquad Q = \|x-\hat x\|^2

    T² says how far out a row lies in the plane of the components, Q how far off that plane. For Gaussian rows their
    limits are upper α points of known distributions (:func:`gramian.analysis.limits.t2_limit` and
    :func:`gramian.analysis.limits.q_limit`). The limits take the components as known: with few rows for the number of
    variables, new rows lie farther from the plane than α says.

    Parameters
    ----------
    pca : PCA
        A fitted PCA, of fewer components than the rank of the data, or of all p.
    X : array-like, sparse matrix, frame, tensor, path or Source of shape (n, p)
        The rows it was fitted on.
    alpha : float, default=0.01
        Share of normal rows above each of the two limits.
    sample_weight : array-like of shape (n,), optional
        The frequencies it was fitted with.
    t2 : {"F", "beta", "chi2"}, default="F"
        ``F`` for new rows, ``beta`` for the training rows themselves, ``chi2`` where n is large.
    q : {"exact", "jackson-mudholkar", "box", "moments"}, default="exact"
        The first three need all variances left out, and so one more exact fit. ``moments`` matches χ² to mean and
        variance of Q over the training rows (Nomikos and MacGregor, Technometrics 37, 1995): for data too large for
        their whole spectrum, or with residuals far from Gaussian.

    Returns
    -------
    Monitor
        The limits; its ``check`` and ``contributions`` take new rows.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.analysis.monitoring import monitor
    >>> X = np.random.default_rng(0).normal(size=(200, 4)) * [5, 3, 1, 1]
    >>> chart = monitor(PCA(n_components=2).fit(X), X)
    >>> alarms = chart.check([[0, 0, 0, 0], [30, 0, 0, 0], [0, 0, 9, 0]])
    >>> alarms.t2_alarm.tolist(), alarms.q_alarm.tolist()
    ([False, True, False], [False, False, True])
    >>> chart.contributions([[0, 0, 9, 0]]).q.argmax()
    np.int64(2)
    """
    check_is_fitted(pca)
    pca, X = ground(pca), ground(X)
    check_choice("t2", t2, T2_RULES)
    check_choice("q", q, (*Q_RULES, "moments"))
    refuse_no_components(pca)
    _refuse_without_variance(pca)
    training = training_rows(pca, X, sample_weight)
    k, n = pca.n_components_, float(pca._weight)
    whole = k == pca.n_features_in_
    return Monitor(
        t2_limit=t2_limit(k, n, alpha, t2),
        q_limit=0.0 if whole else _limit_of_q(pca, training, alpha, q),
        t2_rule=T2_WORDS[t2],
        q_rule=Q_WORDS["none" if whole else q],
        alpha=alpha,
        n_components=k,
        weight=n,
        names=feature_names(pca),
        _pca=copy.copy(pca),  # a later fit of the same object leaves these limits their model
    )


def _variances(pca: FittedPCA) -> Vector:
    return np.asarray(pca.explained_variance_, dtype=np.float64)


def _refuse_without_variance(pca: FittedPCA) -> None:
    if pca.rank_ < pca.n_components_:
        raise ValueError(
            f"T² divides by the variance of each component, and of the {pca.n_components_} components those from "
            f"{pca.rank_} on (from 0) have none. Fit PCA(n_components={max(1, pca.rank_)}) or fewer."
        )


def _limit_of_q(pca: MonitoredPCA, training: Training, alpha: float, rule: str) -> float:
    if rule != "moments":
        left_out = _residual_variances(pca, training)
        _refuse_no_residual(pca, float(left_out.sum()))
        return q_limit(left_out, alpha, rule)
    errors, w = np.asarray(pca.reconstruction_error(training.source), dtype=np.float64), training.weights
    total = training.total
    m = float(w @ errors) / total
    # what rounding leaves of nothing is no residual
    _refuse_no_residual(pca, m if pca.noise_variance_ > 1e-12 * float(_variances(pca)[0]) else 0.0)
    s2 = float(w @ (errors - m) ** 2) / (total - 1)
    return m if s2 < 1e-20 * m**2 else float(s2 / (2 * m) * chdtri(2 * m**2 / s2, alpha))


def _residual_variances(pca: MonitoredPCA, training: Training) -> Vector:
    """Eigenvalues beyond the k-th, from an exact fit of the same model; those beyond the rank are 0."""
    side = min(training.source.shape)
    if 8 * side**2 > memory_budget():
        raise ValueError(
            f"This limit of Q needs all {side} variances, and the matrix behind them does not fit the working memory. "
            "Use q='moments', or raise sklearn.set_config(working_memory=...)."
        )
    model = clone(pca).set_params(n_components=None, svd_solver="full", whiten=False)
    full = model.fit(training.source, sample_weight=training.weights)
    return _variances(full)[pca.n_components_ : full.rank_]


def _refuse_no_residual(pca: FittedPCA, variance: float) -> None:
    if variance <= 0.0:
        raise ValueError(
            f"The {pca.n_components_} components explain all variance of the training rows, so these do not say how "
            f"far from the plane a row may lie. Fit fewer than {pca.n_components_} components."
        )


def _deviations(pca: MonitoredPCA, source: Source) -> Matrix:
    """(x − x̄)/s of the rows, after the model has checked their columns and values."""
    pca.reconstruction_error(source)
    return (dense_rows(source) - np.asarray(pca.mean_, dtype=np.float64)) / variable_scale(pca)
