"""Standard errors of variances and components for many Gaussian rows, without resampling."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, ndtri
from sklearn.utils.validation import check_is_fitted

from gramian.inputs.checks import check_choice
from gramian.inputs.devices import convert_to_numpy
from gramian.pca.bootstrap import Interval
from gramian.pca.estimator import PCA
from gramian.pca.interpret import component_names, feature_names, had_missing_cells, refuse_no_components
from gramian.results import NumericalWarning

Array = npt.NDArray[np.float64]


TIED = 1e-12  # variances nearer than this share of them are equal


@dataclass(frozen=True, repr=False, eq=False)
class AsymptoticErrors:
    """Large-sample intervals of a PCA of Gaussian rows.

    Attributes
    ----------
    explained_variance : Interval of shape (k,)
        Of the variances λ.
    components : Interval of shape (k, p)
        Of the entries of the components; the bias is not known to this order and given as 0.
    level : float
        Coverage aimed at.
    weight : float
        n = Σw.
    names : tuple of str
        The variables.
    assumptions : str
        What must hold.
    """

    explained_variance: Interval
    components: Interval
    level: float
    weight: float
    names: tuple[str, ...]
    assumptions: str

    def table(self) -> dict[str, Any]:
        """Return one line for each component: estimate, lower, upper, error and bias of its variance."""
        return {"component": np.arange(len(self.explained_variance.estimate)), **self.explained_variance.table()}

    def __repr__(self) -> str:
        v, largest = self.explained_variance, self.components.error.max(axis=1)
        lines = [f"AsymptoticErrors: n = {self.weight:g}, {self.level:.0%} intervals"]
        for i in range(min(12, len(largest))):
            interval = f"{v.estimate[i]:.4g} ± {v.error[i]:.2g} [{v.lower[i]:.4g}, {v.upper[i]:.4g}]"
            lines.append(f"  component {i}  variance {interval}  entries within ± {largest[i]:.2g}")
        return "\n".join([*lines, f"  {self.assumptions}"])


@dataclass(frozen=True)
class EqualityTest:
    """A test of equal variances.

    Attributes
    ----------
    statistic : float
        Minus twice the log-likelihood ratio.
    freedom : float
        Degrees of freedom of its χ² distribution.
    p_value : float
        How often equal variances give as large a statistic.
    components : tuple of int
        Which components were compared.
    """

    statistic: float
    freedom: float
    p_value: float
    components: tuple[int, ...]

    def table(self) -> dict[str, list[Any]]:
        """Return one line: statistic, freedom, p_value."""
        return {"statistic": [self.statistic], "freedom": [self.freedom], "p_value": [self.p_value]}


def eigenvalue_errors(pca: PCA, level: float = 0.95, *, form: str = "ratio") -> AsymptoticErrors:
    r"""Standard errors and intervals of variances and components, for many Gaussian rows with distinct variances.

    .. math::
        \sqrt{\tfrac{n-1}2}\Big(\frac{\hat\lambda_l}{\lambda_l}-1\Big)\to N(0,1),\qquad
        \mathrm{cov}(\hat v_l) \approx
            \frac{\lambda_l}{n-1}\sum_{m\ne l}\frac{\lambda_m}{(\lambda_m-\lambda_l)^2}\,v_mv_m^T

    So the standard error of λ is λτ with τ = √(2/(n−1)), and the interval is λ/(1 + zτ) to λ/(1 − zτ), or λe^{±zτ} with
    ``form="log"``, which is the same for many rows and exists for few. To the next order λ̂ is too high by
    λ_l/(n−1) Σ_{m≠l} λ_m/(λ_l−λ_m), the bias given. (Girshick, Annals of Mathematical Statistics 10, 1939; Lawley,
    Biometrika 43, 1956; Anderson, Annals of Mathematical Statistics 34, 1963.) Variances left out are taken as all
    equal to ``noise_variance_``. Rows with heavier tails than Gaussian vary more, and the variances of a correlation
    matrix follow other formulas: use :func:`gramian.pca.bootstrap.bootstrap` for both.

    Parameters
    ----------
    pca : PCA
        A PCA without ``scale``, fitted to complete rows.
    level : float, default=0.95
        Coverage of the intervals.
    form : {"ratio", "log"}, default="ratio"
        Which of the two intervals of λ.

    Returns
    -------
    AsymptoticErrors
        Intervals of ``explained_variance_`` and ``components_``.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.pca.asymptotic import eigenvalue_errors
    >>> X = np.random.default_rng(0).normal(size=(800, 3)) * [3.0, 2.0, 1.0]
    >>> found = eigenvalue_errors(PCA().fit(X))
    >>> found.explained_variance.covers([9.0, 4.0, 1.0])
    array([ True,  True,  True])
    >>> bool(np.allclose(found.explained_variance.error, found.explained_variance.estimate * np.sqrt(2 / 799)))
    True
    """
    check_is_fitted(pca)
    pca = convert_to_numpy(pca)
    check_choice("form", form, ("ratio", "log"))
    _check(pca, level)
    lam, V, n = _variances(pca), np.asarray(pca.components_, dtype=np.float64), float(pca._weight)
    z, tau = -float(ndtri((1 - level) / 2)), math.sqrt(2 / (n - 1))
    lower, upper = _ends(lam, z * tau, form)
    everything, gaps = _gaps(pca, lam)
    _warn_of_equals(gaps)
    bias = lam * np.sum(everything / gaps, axis=1) / (n - 1)
    errors = np.sqrt(_entry_variances(lam, everything, gaps, V) / (n - 1))
    names, variables = component_names(len(lam)), feature_names(pca)
    variance = Interval(lam, lower, upper, lam * tau, bias, names)
    components = Interval(V, V - z * errors, V + z * errors, errors, 0.0 * V, names, variables)
    return AsymptoticErrors(variance, components, level, n, variables, _assumptions(pca))


def equality_test(pca: PCA, components: Sequence[int]) -> EqualityTest:
    r"""Test whether neighbouring variances are equal, so that their directions are arbitrary within a plane.

    .. math::
        -2\ln\Lambda = (n-1)\Big(q\ln\bar\lambda - \sum_l\ln\lambda_l\Big) \sim \chi^2\Big(\tfrac{(q-1)(q+2)}2\Big)

    for q neighbours with mean λ̄ of many Gaussian rows (Anderson 1963).

    Parameters
    ----------
    pca : PCA
        A PCA without ``scale``, fitted to complete rows.
    components : sequence of int
        Numbers of neighbouring components, from 0; two at least.

    Returns
    -------
    EqualityTest
        Statistic, degrees of freedom and p-value; a small p-value speaks against equality.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import PCA
    >>> from gramian.pca.asymptotic import equality_test
    >>> pca = PCA().fit(np.random.default_rng(0).normal(size=(500, 3)) * [5.0, 1.0, 1.0])
    >>> bool(equality_test(pca, [0, 1]).p_value < 1e-9), bool(equality_test(pca, [1, 2]).p_value > 0.05)
    (True, True)
    """
    check_is_fitted(pca)
    pca = convert_to_numpy(pca)
    _check(pca, 0.5)
    chosen = tuple(sorted(int(i) for i in components))
    first, k = (chosen or (0,))[0], pca.n_components_
    if len(chosen) < 2 or chosen != tuple(range(first, first + len(chosen))) or first < 0 or chosen[-1] >= k:
        raise ValueError(f"components must be two or more neighbours from 0 to {k - 1}, got {tuple(components)}.")
    lam, q = _variances(pca)[list(chosen)], len(chosen)
    # ln(λ/λ̄), by the difference so that nearly equal variances keep their digits
    statistic = -(float(pca._weight) - 1) * float(np.sum(np.log1p((lam - lam.mean()) / lam.mean())))
    freedom = (q - 1) * (q + 2) / 2
    return EqualityTest(max(statistic, 0.0), freedom, float(chdtrc(freedom, max(statistic, 0.0))), chosen)


def _check(pca: PCA, level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level!r}.")
    if had_missing_cells(pca):
        raise ValueError(
            "The model was fitted where cells were missing, and missing cells make these errors too small: use "
            "bootstrap(pca, X, scores=False), which resamples the rows as they are."
        )
    if pca.scale_ is not None:
        raise ValueError(
            "These formulas hold for a covariance matrix; this model scales its columns, and a correlation "
            "matrix follows others. Use the bootstrap."
        )
    refuse_no_components(pca)
    if pca.n_components_ > pca.rank_:
        raise ValueError(
            f"The model has {pca.n_components_} components, of which {pca.rank_} have variance. Fit "
            f"PCA(n_components={max(1, pca.rank_)}) or fewer."
        )
    if pca._weight <= pca.n_features_in_:
        warnings.warn(
            f"{pca._weight:g} rows are too few for {pca.n_features_in_} variables: the formulas are for many rows, and "
            "errors come out too small. Use the bootstrap.",
            NumericalWarning,
            stacklevel=3,
        )


def _variances(pca: PCA) -> Array:
    return np.asarray(pca.explained_variance_, dtype=np.float64)


def _ends(lam: Array, reach: float, form: str) -> tuple[Array, Array]:
    if form == "log":
        return lam * math.exp(-reach), lam * math.exp(reach)
    if reach >= 1:
        raise ValueError("Too few rows for the interval λ/(1 ± z√(2/(n−1))) at this level: use form='log'.")
    return lam / (1 + reach), lam / (1 - reach)


def _gaps(pca: PCA, lam: Array) -> tuple[Array, Array]:
    """All p variances λ_m, and the gaps λ_l − λ_m, l by row.

    The gap to itself is infinite, which leaves it out of sums over 1/gap; equal ones are NaN, and so are their sums.
    """
    everything = np.concatenate([lam, np.full(pca.n_features_in_ - len(lam), float(pca.noise_variance_))])
    gaps = lam[:, None] - everything[None, :]
    np.fill_diagonal(gaps, np.inf)
    return everything, np.where(np.abs(gaps) <= TIED * lam[:, None], np.nan, gaps)


def _entry_variances(lam: Array, everything: Array, gaps: Array, V: Array) -> Array:
    """λ_l Σ_{m≠l} λ_m/(λ_m−λ_l)² v_jm²; of the directions left out only Σ v_jm² = 1 − Σ_{m≤k} v_jm² is needed."""
    k = len(lam)
    terms = everything / gaps**2
    out = terms[:, :k] @ V**2
    if len(everything) > k:
        out = out + terms[:, k:][:, :1] * np.maximum(1 - np.sum(V**2, axis=0), 0.0)
    return np.asarray(lam[:, None] * out)


def _warn_of_equals(gaps: Array) -> None:
    tied = np.flatnonzero(np.isnan(gaps).any(axis=1))
    if len(tied):
        warnings.warn(
            f"The variances of components {', '.join(map(str, tied))} are equal to others: their directions are "
            "arbitrary, and their errors not defined.",
            NumericalWarning,
            stacklevel=3,
        )


def _assumptions(pca: PCA) -> str:
    left_out = pca.n_features_in_ - pca.n_components_
    rest = f"; the {left_out} variances left out taken as equal" if left_out > 1 else ""
    return f"for many Gaussian rows whose variances are distinct{rest}"
