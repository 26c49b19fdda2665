"""Multivariate control charts on a PCA: which new rows are unlike the training rows, and by which variables."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq
from scipy.special import betainccinv, chdtri, fdtri, ndtri
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import to_numpy
from gramian.compute.threads import quiet_blas
from gramian.inputs.checks import check_choice, check_share, fetch_numbers
from gramian.inputs.devices import convert_to_numpy
from gramian.pca.estimator import PCA
from gramian.pca.interpret import (
    dense_rows,
    deviations,
    feature_names,
    open_training_rows,
    plain_scores,
    ratio,
    refuse_lost_variances,
    refuse_no_components,
    row_names,
    variable_scale,
)
from gramian.results.tables import SHOWN, Tabular
from gramian.sources import Source, memory_budget, open_source

Array = npt.NDArray[np.float64]


T2_RULES = ("F", "beta", "chi2")
Q_RULES = ("exact", "jackson-mudholkar", "box")

STEP, REACH = 0.05, 14.0  # of the trapezoidal rule, in widths of the saddle: 1e-12 of the value and better


def t2_limit(k: int, n: float, alpha: float = 0.01, rule: str = "F") -> float:
    r"""Upper α point of T² of k components estimated from n rows.

    .. math::
        F:\ \frac{k(n^2-1)}{n(n-k)}F_\alpha(k, n-k),\qquad
        \text{beta}:\ \frac{(n-1)^2}{n}\,\mathrm{Beta}_\alpha\!\Big(\frac k2, \frac{n-k-1}2\Big),\qquad
        \chi^2:\ \chi^2_\alpha(k)

    ``F`` is for rows that had no part in the fit, ``beta`` for the rows of the fit, whose T² is bounded by (n−1)²/n
    because each of them pulls mean and variances towards itself; both tend to ``chi2`` as n grows. They are exact for
    Gaussian rows where the k directions are fixed, as they are with all p components. (Tracy, Young and Mason, J. of
    Quality Technology 24, 1992.)

    Parameters
    ----------
    k : int
        Number of components.
    n : float
        Rows of the fit, Σw.
    alpha : float, default=0.01
        Share of normal rows that raise a false alarm.
    rule : {"F", "beta", "chi2"}, default="F"
        The distribution.

    Returns
    -------
    float
        The limit.

    Examples
    --------
    >>> from gramian.analysis import t2_limit
    >>> [round(t2_limit(2, 20, 0.05, rule), 3) for rule in ("F", "beta", "chi2")]
    [7.879, 5.361, 5.991]
    """
    check_choice("rule", rule, T2_RULES)
    check_share("alpha", alpha)
    needed = k + {"F": 0, "beta": 1, "chi2": 0}[rule]
    if k < 1 or not needed < n < math.inf:
        raise ValueError(
            f"The limit {rule!r} of T² needs 1 ≤ k components and more than {needed} rows; k={k}, n={n:g}."
        )
    if rule == "F":
        # the upper point of F(a, b) is one over the lower point of F(b, a), which keeps its digits for small α
        return float(k * (n**2 - 1) / (n * (n - k)) / fdtri(n - k, k, alpha))
    if rule == "beta":
        return float((n - 1) ** 2 / n * betainccinv(k / 2, (n - k - 1) / 2, alpha))
    return float(chdtri(k, alpha))


def q_limit(variances: Any, alpha: float = 0.01, rule: str = "exact") -> float:
    r"""Upper α point of Q = Σ θ_i χ²_1, the squared distance from the plane, with θ the variances left out.

    With :math:`\theta_r = \sum_i\theta_i^r` and :math:`h_0 = 1 - 2\theta_1\theta_3/3\theta_2^2`,

    .. math::
        \text{Jackson–Mudholkar}:\ \theta_1\Big(1 + \frac{\theta_2h_0(h_0-1)}{\theta_1^2}
            + \frac{z_\alpha h_0\sqrt{2\theta_2}}{\theta_1}\Big)^{1/h_0},\qquad
        \text{Box}:\ \frac{\theta_2}{\theta_1}\chi^2_\alpha\!\Big(\frac{\theta_1^2}{\theta_2}\Big)

    and ``exact`` solves :math:`P(Q > q) = \alpha` by :func:`weighted_chi2_tail`. Jackson and Mudholkar (Technometrics
    21, 1979) take a power of Q as normal: a few per cent too high, and far too high where one variance left out stands
    above the others and h₀ ≤ 0, which is refused. Box (Annals of Mathematical Statistics 25, 1954) matches two moments:
    a few per cent too low, more for small α.

    Parameters
    ----------
    variances : array-like of shape (m,)
        The variances left out, θ.
    alpha : float, default=0.01
        Share of normal rows that raise a false alarm.
    rule : {"exact", "jackson-mudholkar", "box"}, default="exact"
        How the point is found.

    Returns
    -------
    float
        The limit.

    Examples
    --------
    >>> from gramian.analysis import q_limit
    >>> [round(q_limit([5, 4, 3, 2, 1], 0.01, rule), 2) for rule in ("exact", "jackson-mudholkar", "box")]
    [50.3, 51.28, 49.3]
    """
    check_choice("rule", rule, Q_RULES)
    check_share("alpha", alpha)
    theta, unit = _positive(variances)
    t1, t2, t3 = (float(np.sum(theta**r)) for r in (1, 2, 3))
    if rule == "jackson-mudholkar":
        h0 = 1 - 2 * t1 * t3 / (3 * t2**2)
        base = 1 + t2 * h0 * (h0 - 1) / t1**2 - float(ndtri(alpha)) * h0 * math.sqrt(2 * t2) / t1
        if h0 <= 0 or base <= 0:
            raise ValueError(
                f"Jackson and Mudholkar's limit does not hold here (h₀ = {h0:.2f}): one of the variances left out "
                "stands above the others. Use 'exact' or 'box', or keep one component more."
            )
        return float(unit * t1 * base ** (1 / h0))
    box = t2 / t1 * float(chdtri(t1**2 / t2, alpha))
    if rule == "box":
        return unit * box

    def excess(log_q: float) -> float:
        return _tail(math.exp(log_q), theta) - alpha

    low = high = math.log(box)
    while excess(low) < 0:
        low -= 0.2
    while excess(high) > 0:
        high += 0.2
    return unit * math.exp(brentq(excess, low, high, xtol=1e-13) if high > low else low)


def weighted_chi2_tail(q: float, variances: Any) -> float:
    r"""P(Q > q) of Q = Σ θ_i χ²_1, to rounding.

    .. math:: P(Q > q) = \frac1{2\pi i}\int_{c-i\infty}^{c+i\infty} \frac{e^{K(s)-sq}}s\,ds,\qquad
        K(s) = -\tfrac12\sum_i\ln(1-2s\theta_i)

    The line is bent to the right around the singularities, along the path on which the integrand falls fastest from its
    saddle point c, and summed by the trapezoidal rule, which converges geometrically.

    Parameters
    ----------
    q : float
        A positive number.
    variances : array-like of shape (m,)
        The weights θ, none negative, some positive.

    Returns
    -------
    float
        The probability.

    Examples
    --------
    >>> from gramian.pca.monitoring import weighted_chi2_tail
    >>> import math
    >>> math.isclose(weighted_chi2_tail(3.0, [1.0, 1.0]), math.exp(-1.5))
    True
    """
    theta, unit = _positive(variances)
    return _tail(float(q) / unit, theta)


def _positive(variances: Any) -> tuple[Array, float]:
    """The variances that are not 0 over the largest, and that: their powers neither overflow nor vanish."""
    theta = np.asarray(fetch_numbers(variances, "variances"), dtype=np.float64).ravel()
    if not np.all(np.isfinite(theta) & (theta >= 0)) or not np.any(theta > 0):
        raise ValueError("variances must be finite and not negative, and some must be positive.")
    return theta[theta > 0] / theta.max(), float(theta.max())


def _tail(q: float, theta: Array) -> float:
    """P(Q > q) for weights whose largest is 1."""
    if q <= 0.0:
        return 1.0

    def slope(s: float) -> float:
        return float(np.sum(theta / (1 - 2 * s * theta))) - q

    # The saddle point, where K'(s) = Σ θ/(1 − 2sθ) is q: the largest weight alone gives K' ≥ 1/(1 − 2s), and left of 0
    # no term exceeds −1/2s. It is kept away from the pole at 0.
    c = float(brentq(slope, -len(theta) / (2 * q) - 1, 0.5 - 0.25 / q))
    apart = 0.4 / math.sqrt(2 * float(np.sum(theta**2)))
    c = c if abs(c) > apart else apart
    r = theta / (1 - 2 * c * theta)
    second, third = 2 * float(np.sum(r**2)), 8 * float(np.sum(r**3))
    width, bend = second**-0.5, third / (6 * second**1.5)
    t = np.arange(STEP / 2, REACH, STEP)  # the other half of the path gives the conjugate
    s = c + width * (1j * t + bend * t**2)
    K = -0.5 * np.sum(np.log(1 - 2 * np.multiply.outer(s, theta)), axis=1)
    f = np.exp(K - s * q) / s * width * (1 - 2j * bend * t)
    integral = float(np.sum(f.real)) * STEP / math.pi
    return integral if c > 0 else 1.0 + integral  # left of the pole at 0 its residue is missing


TOP = 3  # variables named for each row that is printed


@dataclass(frozen=True, repr=False, eq=False)
class Alarms(Tabular):
    """T² and Q of rows, and their limits.

    Attributes
    ----------
    t2, q : ndarray of shape (n,)
        T² = Σ z_l²/λ_l, the distance within the plane, and Q = ‖x − x̂‖², the squared distance from it.
    t2_limit, q_limit : float
        What they were held against.
    names : tuple of str or None
        The rows, where they have names: the index of a frame.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.analysis import Alarms
    >>> Alarms(np.array([1.0, 9.0, 1.0]), np.array([0.0, 0.5, 5.0]), 4.0, 2.0, ("mon", "tue", "wed"))
    Alarms: 2 of 3 rows
      T²  limit 4  above it 1  largest 9
      Q   limit 2  above it 1  largest 5
      row          T²        Q
      2 (tue)  9 alarm      0.5
      3 (wed)        1  5 alarm
    """

    t2: Array
    q: Array
    t2_limit: float
    q_limit: float
    names: tuple[str, ...] | None = None

    @property
    def t2_alarm(self) -> npt.NDArray[np.bool_]:
        """Whether T² is above its limit: a row far out in directions the model knows."""
        return np.asarray(self.t2 > self.t2_limit)

    @property
    def q_alarm(self) -> npt.NDArray[np.bool_]:
        """Whether Q is above its limit: a row that breaks with the correlations of the training rows."""
        return np.asarray(self.q > self.q_limit)

    @property
    def rows(self) -> npt.NDArray[np.intp]:
        """Return the indices of the rows with an alarm of either kind, which count from 0 as those of any array."""
        return np.flatnonzero(self.t2_alarm | self.q_alarm)

    def table(self) -> dict[str, Any]:
        """Return the columns row, counted from 1, name (where rows have names), t2, q, t2_alarm and q_alarm."""
        rows = {"row": np.arange(1, len(self.t2) + 1)} | ({} if self.names is None else {"name": list(self.names)})
        return rows | {"t2": self.t2, "q": self.q, "t2_alarm": self.t2_alarm, "q_alarm": self.q_alarm}

    def _title(self) -> str:
        lines = [f"Alarms: {len(self.rows)} of {len(self.t2)} rows"]
        for name, x, limit in (("T²", self.t2, self.t2_limit), ("Q", self.q, self.q_limit)):
            above, largest = int(np.count_nonzero(x > limit)), float(np.max(x, initial=0.0))
            lines.append(f"  {name:<2}  limit {limit:.4g}  above it {above}  largest {largest:.4g}")
        return "\n".join(lines)

    def _shown(self) -> dict[str, Any]:
        rows = self.rows
        return _judge_rows(rows, self.names, self.t2[rows], self.t2_limit, self.q[rows], self.q_limit)


def _judge_rows(
    rows: Any, names: tuple[str, ...] | None, t2: Array, t2_limit: float, q: Array, q_limit: float
) -> dict[str, Any]:
    """Columns of a printed table: some rows by their names, their T² and Q, and which of these are alarms."""
    return {
        "row": [str(i + 1) if names is None else f"{i + 1} ({names[i]})" for i in rows],
        "T²": [f"{x:.4g}{' alarm' * bool(x > t2_limit)}" for x in t2],
        "Q": [f"{x:.4g}{' alarm' * bool(x > q_limit)}" for x in q],
    }


@dataclass(frozen=True, repr=False, eq=False)
class Contributions(Tabular):
    """How much each variable adds to T² and Q of each row.

    Attributes
    ----------
    t2 : ndarray of shape (n, p)
        c_j = (e_jᵀVΛ^{-1/2}z)², the complete decomposition: Σ_j c_j = T².
    q : ndarray of shape (n, p)
        Squared residuals: Σ_j q_j = Q.
    residuals : ndarray of shape (n, p)
        x − x̂ in the units of the components (divided by ``scale_`` where the model scales), with their signs.
    names : tuple of str
        The variables.
    t2_limit, q_limit : float
        The limits of T² and Q, the sums of the parts.
    row_names : tuple of str or None
        The rows, where they have names.
    """

    t2: Array
    q: Array
    residuals: Array
    names: tuple[str, ...]
    t2_limit: float = np.inf
    q_limit: float = np.inf
    row_names: tuple[str, ...] | None = None

    @property
    def order(self) -> npt.NDArray[np.intp]:
        """Indices of the rows, those that are farthest beyond a limit first."""
        excess = np.maximum(ratio(self.t2.sum(axis=1), self.t2_limit), ratio(self.q.sum(axis=1), self.q_limit))
        return np.argsort(-excess, kind="stable")

    def table(self) -> dict[str, Any]:
        """Return one line for each row and variable: row, counted from 1, variable, t2, q, residual."""
        n, p = self.t2.shape
        names = {} if self.row_names is None else {"name": [name for name in self.row_names for _ in range(p)]}
        labels = {"row": np.repeat(np.arange(1, n + 1), p)} | names | {"variable": list(self.names) * n}
        return labels | {"t2": self.t2.ravel(), "q": self.q.ravel(), "residual": self.residuals.ravel()}

    def _title(self) -> str:
        n, p = self.t2.shape
        return f"Contributions: {n} rows, {p} variables; rows farthest beyond a limit first"

    def _shown(self) -> dict[str, Any]:
        order, columns = self.order, {}
        for name, parts in (("largest of T²", self.t2), ("largest of Q", self.q)):
            columns[name] = [
                ", ".join(f"{self.names[j]} {part[j]:.4g}" for j in np.argsort(-part, kind="stable")[:TOP])
                for part in parts[order[:SHOWN]]
            ]
        t2, q = self.t2.sum(axis=1)[order], self.q.sum(axis=1)[order]
        return _judge_rows(order, self.row_names, t2, self.t2_limit, q, self.q_limit) | columns


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


@dataclass(frozen=True, repr=False, eq=False)
class Monitor(Tabular):
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
    _pca: PCA

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
        source = open_source(convert_to_numpy(X))
        q = to_numpy(self._pca.reconstruction_error(source), float)  # refuses rows with NaN by name
        q = q if self.n_components < len(self.names) else 0.0 * q
        t2 = np.sum((plain_scores(self._pca, source) / deviations(self._pca)) ** 2, axis=1)
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
        source = open_source(convert_to_numpy(X))
        n, p = source.shape
        if 4 * n * p * 8 > memory_budget():
            raise ValueError(
                f"Contributions of {n} rows and {p} variables do not fit the working memory: hand in only the rows "
                "with an alarm, or raise sklearn.set_config(working_memory=...)."
            )
        self._pca.reconstruction_error(source)  # refuses other columns, and rows with NaN by name
        D = (dense_rows(source) - to_numpy(self._pca.mean_, float)) / variable_scale(self._pca)
        V = to_numpy(self._pca.components_, float)
        Z = D @ V.T
        residuals = D - Z @ V if self.n_components < p else np.zeros((n, p))
        t2 = (Z / deviations(self._pca) @ V) ** 2
        return Contributions(t2, residuals**2, residuals, self.names, self.t2_limit, self.q_limit, row_names(X))

    def table(self) -> dict[str, list[Any]]:
        """Return one line for each statistic: statistic, limit, rule."""
        return {"statistic": ["T²", "Q"], "limit": [self.t2_limit, self.q_limit], "rule": [self.t2_rule, self.q_rule]}

    def _title(self) -> str:
        kept = f"{self.n_components} of {len(self.names)} components"
        return f"Monitor: {kept}, n = {self.weight:g}, α = {self.alpha:g}"


@quiet_blas()
def monitor(
    pca: PCA, X: Any, *, alpha: float = 0.01, sample_weight: Any = None, t2: str = "F", q: str = "exact"
) -> Monitor:
    r"""Set control limits on T² and Q from the rows a PCA was fitted on.

    .. math:: T^2 = \sum_{l\le k} z_l^2/\lambda_l,\qquad Q = \|x-\hat x\|^2

    T² says how far out a row lies in the plane of the components, Q how far off that plane. For Gaussian rows their
    limits are upper α points of known distributions (:func:`gramian.pca.monitoring.t2_limit` and
    :func:`gramian.pca.monitoring.q_limit`). The limits take the components as known: with few rows for the number of
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
    >>> from gramian.analysis import monitor
    >>> X = np.random.default_rng(0).normal(size=(200, 4)) * [5, 3, 1, 1]
    >>> chart = monitor(PCA(n_components=2).fit(X), X)
    >>> alarms = chart.check([[0, 0, 0, 0], [30, 0, 0, 0], [0, 0, 9, 0]])
    >>> alarms.t2_alarm.tolist(), alarms.q_alarm.tolist()
    ([False, True, False], [False, False, True])
    >>> chart.contributions([[0, 0, 9, 0]]).q.argmax()
    np.int64(2)
    """
    check_is_fitted(pca)
    pca, X = convert_to_numpy(pca), convert_to_numpy(X)
    check_choice("t2", t2, T2_RULES)
    check_choice("q", q, (*Q_RULES, "moments"))
    refuse_no_components(pca)
    refuse_lost_variances(pca)
    k, n = pca.n_components_, float(pca._weight)
    if pca.rank_ < k:
        raise ValueError(
            f"T² divides by the variance of each component, and of the {k} components those from {pca.rank_} on (from "
            f"0) have none. Fit PCA(n_components={max(1, pca.rank_)}) or fewer."
        )
    source, weights = open_training_rows(pca, X, sample_weight)
    whole = k == pca.n_features_in_
    return Monitor(
        t2_limit=t2_limit(k, n, alpha, t2),
        q_limit=0.0 if whole else _find_q_limit(pca, source, weights, alpha, q),
        t2_rule=T2_WORDS[t2],
        q_rule=Q_WORDS["none" if whole else q],
        alpha=alpha,
        n_components=k,
        weight=n,
        names=feature_names(pca),
        _pca=copy.copy(pca),  # a later fit of the same object leaves these limits their model
    )


def _find_q_limit(pca: PCA, source: Source, w: Array, alpha: float, rule: str) -> float:
    """The limit of Q from the training rows, refused where these have no residuals."""
    if rule == "moments":
        errors, total = to_numpy(pca.reconstruction_error(source), float), float(w.sum())
        unit = float(np.max(errors, initial=0.0)) or 1.0  # the variance of squares is a fourth power
        errors /= unit
        m = float(w @ errors) / total
        s2 = float(w @ (errors - m) ** 2) / (total - 1)
        # what rounding leaves of nothing is no residual
        _refuse_no_residual(pca, m if pca.noise_variance_ > 1e-12 * float(pca.explained_variance_[0]) else 0.0)
        return unit * (m if s2 < 1e-20 * m**2 else float(s2 / (2 * m) * chdtri(2 * m**2 / s2, alpha)))
    side = min(source.shape)
    if 8 * side**2 > memory_budget():
        raise ValueError(
            f"This limit of Q needs all {side} variances, and the matrix behind them does not fit the working memory. "
            "Use q='moments', or raise sklearn.set_config(working_memory=...)."
        )
    # eigenvalues beyond the k-th, from an exact fit of the same model; those beyond the rank are 0
    model = clone(pca).set_params(n_components=None, svd_solver="full", whiten=False)
    full = model.fit(source, sample_weight=w)
    left_out = to_numpy(full.explained_variance_, float)[pca.n_components_ : full.rank_]
    _refuse_no_residual(pca, float(left_out.sum()))
    return q_limit(left_out, alpha, rule)


def _refuse_no_residual(pca: PCA, variance: float) -> None:
    if variance <= 0.0:
        raise ValueError(
            f"The {pca.n_components_} components explain all variance of the training rows, so these do not say how "
            f"far from the plane a row may lie. Fit fewer than {pca.n_components_} components."
        )
