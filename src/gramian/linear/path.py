r"""What λ does: every quantity of a ridge regression, for every λ, from one decomposition.

With rows multiplied by √w and centred where there is an intercept, X̃ = UΣVᵀ and c = Uᵀỹ. Then

.. math:: \hat\beta_\lambda = V\frac{\sigma}{\sigma^2+\lambda}c,\qquad
    \hat y_\lambda = U\frac{\sigma^2}{\sigma^2+\lambda}c,\qquad
    \mathrm{df}_\lambda=\sum_j\frac{\sigma_j^2}{\sigma_j^2+\lambda}

and kernel ridge regression is the same with K̃ = UΣ²Uᵀ, α = U c/(σ²+λ). Once σ and c are there, another λ costs
next to nothing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

CRITERIA = ("loo", "gcv", "marginal_likelihood")


@dataclass(frozen=True, eq=False)
class Filter:
    r"""The squares σ² and projections c = Uᵀỹ that every λ shares.

    Attributes
    ----------
    squares : ndarray of shape (r,)
        σ², none negative: of the data, or the eigenvalues of a kernel matrix.
    projections : ndarray of shape (r, t)
        c = Uᵀỹ, for t targets.
    rest : ndarray of shape (t,)
        ‖ỹ − UUᵀỹ‖²: what no λ can fit.
    count : float
        N, the number of observations: rows, or the sum of weights that are counts.
    mass : float
        Σw.
    intercept : bool
        Whether a constant was fitted without penalty.
    log_weights : float
        Σ ln w of weights that are precisions; 0 for counts.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.linear.path import Filter
    >>> f = Filter(np.array([4.0, 1.0]), np.array([[2.0], [1.0]]), np.zeros(1), 2.0, 2.0, False)
    >>> f.dof(np.array([0.0, 1.0, 4.0])).tolist()
    [2.0, 1.3, 0.7]
    """

    squares: Vector
    projections: Matrix
    rest: Vector
    count: float
    mass: float
    intercept: bool
    log_weights: float = 0.0

    def inverse(self, lam: Any) -> Matrix:
        """1/(σ²+λ), of shape (r, λs); 0 where both are 0, as in the pseudo-inverse."""
        total = self.squares[:, None] + np.atleast_1d(np.asarray(lam, dtype=np.float64))[None, :]
        return np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)

    def factors(self, lam: Any) -> Matrix:
        """σ/(σ²+λ), of shape (r, λs): what each direction of the data is multiplied by."""
        # eq: ridge-filter
        return np.asarray(np.sqrt(self.squares)[:, None] * self.inverse(lam))

    def shrinkage(self, lam: Any) -> Matrix:
        """σ²/(σ²+λ), of shape (r, λs): how much of each direction is kept."""
        return np.asarray(self.squares[:, None] * self.inverse(lam))

    def left(self, lam: Any) -> Matrix:
        """λ/(σ²+λ), of shape (r, λs): how much of each direction is left, without cancelling; 1 where both are 0."""
        lam = np.atleast_1d(np.asarray(lam, dtype=np.float64))
        total = self.squares[:, None] + lam[None, :]
        return np.asarray(np.divide(lam[None, :] + 0.0 * total, total, out=np.ones_like(total), where=total > 0))

    def free(self, lam: Any) -> Vector:
        """N − df, of shape (λs,), summed without cancelling.

        There are no more than N directions, or N − 1 with an intercept: of more σ the least are 0 but for rounding.
        """
        fixed = self.count - float(self.intercept) - len(self.squares)
        left = self.left(lam)
        if fixed < 0:
            left = left[np.sort(np.argsort(-self.squares, kind="stable")[: max(0, len(left) + math.floor(fixed))])]
        return np.asarray(max(fixed, 0.0) + left.sum(axis=0))

    def dof(self, lam: Any) -> Vector:
        """Effective degrees of freedom Σσ²/(σ²+λ), of shape (λs,), one more for an intercept."""
        # eq: ridge-dof
        return np.asarray(self.shrinkage(lam).sum(axis=0) + float(self.intercept))

    def solution(self, lam: Any) -> Matrix:
        """Coordinates σc/(σ²+λ) of the coefficients in the basis V, of shape (r, λs, t)."""
        return np.asarray(self.factors(lam)[:, :, None] * self.projections[:, None, :])

    def dual(self, lam: Any) -> Matrix:
        """Coordinates c/(σ²+λ) of the dual coefficients in the basis U, of shape (r, λs, t)."""
        # eq: ridge-dual
        return np.asarray(self.inverse(lam)[:, :, None] * self.projections[:, None, :])

    def rss(self, lam: Any) -> Matrix:
        """Weighted residual sum of squares, of shape (λs, t)."""
        # eq: ridge-objective
        return np.asarray(self.rest[None, :] + (self.left(lam) ** 2).T @ self.projections**2)

    def gcv(self, lam: Any) -> Matrix:
        """Generalised cross-validation (RSS/N)/(1 − df/N)², of shape (λs, t); infinite where df = N."""
        free, rss = self.free(lam)[:, None] / self.count, self.rss(lam)
        where = self._stands_out(free)
        safe = np.where(where, free, 1.0)
        return np.asarray(np.where(where, rss / self.count / safe / safe, np.inf))

    def noise(self, lam: Any) -> Matrix:
        """Estimate RSS/(N − df) of the variance of the errors, of shape (λs, t); NaN where df = N."""
        free, rss = self.free(lam)[:, None], self.rss(lam)
        return np.divide(rss, free, out=np.full_like(rss, np.nan), where=self._stands_out(free / self.count))

    def _stands_out(self, free: Matrix) -> npt.NDArray[np.bool_]:
        """Where 1 − df/N is known: always while U spans all of ỹ, as RSS has the same factors; else beyond rounding."""
        return np.asarray((free > 0) & ((free > 1e-12) | (self.rest == 0.0)))

    def scale(self, lam: Any) -> Matrix:
        r"""Most likely noise variance s of y ~ N(0, s(W⁻¹ + X Xᵀ/λ)), of shape (λs, t)."""
        return np.asarray(
            (self.rest[None, :] + self.left(lam).T @ self.projections**2) / (self.count - float(self.intercept))
        )

    def log_likelihood(self, lam: Any, scale: Any = None) -> Matrix:
        r"""Log marginal likelihood of y ~ N(b, s(W⁻¹ + X Xᵀ/λ)), of shape (λs, t).

        .. math:: -\tfrac12\Big[\nu\ln 2\pi s + \sum_j\ln\frac{\sigma_j^2+\lambda}{\lambda} + \frac{q}{s}\Big],
            \qquad q=\tilde y^T(I+\tilde X\tilde X^T/\lambda)^{-1}\tilde y

        with the most likely s if none is given; an intercept b has a flat prior and takes one observation: ν = N − 1.
        A target that is constant has no most likely s > 0, and the likelihood grows without bound: infinite.
        """
        lam = np.atleast_1d(np.asarray(lam, dtype=np.float64))
        nu = self.count - float(self.intercept)
        best = self.scale(lam)
        s = best if scale is None else np.broadcast_to(np.asarray(scale, dtype=np.float64), best.shape)
        with np.errstate(divide="ignore", invalid="ignore"):
            det = np.log1p(self.squares[:, None] / lam[None, :]).sum(axis=0)[:, None]
            constant = math.log(self.mass) if self.intercept else 0.0
            out = -0.5 * (nu * np.log(2 * np.pi * s) + det + nu * best / s + constant - self.log_weights)
        out = np.where((best == 0.0) & (s == 0.0), np.inf, out)
        return np.asarray(np.where(lam[:, None] > 0, out, -np.inf))


def leave_one_out(residuals: Matrix, leverage: Matrix, w: Vector | None, counts: bool) -> Matrix:
    r"""Errors of predictions of rows left out, e/(1 − H_ii), without fitting again.

    Weights that are counts leave out one of a row's w copies, of leverage H_ii/w; others the whole row. Either way this
    is exact, for H = X̃(X̃ᵀX̃+λI)⁻¹X̃ᵀ with the intercept's share w/Σw added.

    Parameters
    ----------
    residuals : ndarray of shape (n, λs, t)
        y − ŷ, without weights.
    leverage : ndarray of shape (n, λs)
        H_ii.
    w : ndarray of shape (n,) or None
        Positive weights.
    counts : bool
        Whether they are counts.

    Returns
    -------
    ndarray of shape (n, λs, t)
        Infinite where a row determines its own fit.
    """
    left = 1.0 - (leverage if w is None or not counts else leverage / w[:, None])
    alone = left <= 2.0**-44
    with np.errstate(divide="ignore", invalid="ignore"):
        out = residuals / np.where(alone, np.nan, left)[:, :, None]
    return np.asarray(np.where(alone[:, :, None], np.inf, out))


@dataclass(frozen=True, eq=False)
class RidgePath:
    """A ridge or kernel ridge regression for every λ asked for.

    Attributes
    ----------
    alphas : ndarray of shape (L,)
        λ, in the order given.
    singular_values : ndarray of shape (r,)
        σ of the centred, weighted data; of a kernel matrix the roots of its eigenvalues.
    filter_factors : ndarray of shape (r, L)
        σ/(σ²+λ).
    dof : ndarray of shape (L,)
        Effective degrees of freedom, the intercept included.
    coef : ndarray of shape (L, t, p)
        Coefficients; of a kernel ridge regression the dual ones, p = n.
    intercept : ndarray of shape (L, t)
        Intercepts.
    loo : ndarray of shape (L, t)
        Mean squared leave-one-out error.
    gcv, log_marginal_likelihood, noise_variance : ndarray of shape (L, t)
        Generalised cross-validation; log marginal likelihood; RSS/(N − df).
    """

    alphas: Vector
    singular_values: Vector
    filter_factors: Matrix
    dof: Vector
    coef: Matrix
    intercept: Matrix
    loo: Matrix
    gcv: Matrix
    log_marginal_likelihood: Matrix
    noise_variance: Matrix

    def score(self, criterion: str) -> Matrix:
        """Return the criterion as something to be made small, of shape (L, t)."""
        if criterion not in CRITERIA:
            raise ValueError(f"criterion must be one of {', '.join(CRITERIA)}; got {criterion!r}.")
        negative = {"loo": self.loo, "gcv": self.gcv, "marginal_likelihood": -self.log_marginal_likelihood}
        return np.asarray(negative[criterion])

    def best(self, criterion: str = "loo", *, per_target: bool = False) -> npt.NDArray[np.intp]:
        """Index of the best λ for each target; the same for all, by the sum over targets, unless ``per_target``."""
        score = np.where(np.isnan(self.score(criterion)), np.inf, self.score(criterion))
        if per_target:
            return np.asarray(np.argmin(score, axis=0))
        return np.full(score.shape[1], np.argmin(score.sum(axis=1)))

    def table(self) -> dict[str, Any]:
        """Return one row for each λ; targets are averaged."""
        names = ("loo", "gcv", "log_marginal_likelihood", "noise_variance")
        means = {name: np.mean(getattr(self, name), axis=1) for name in names}
        return {"alpha": self.alphas, "dof": self.dof, **means}

    def __repr__(self) -> str:
        best = int(self.best()[0])
        return (
            f"RidgePath({len(self.alphas)} values of λ from {self.alphas.min():.3g} to {self.alphas.max():.3g}; least "
            f"leave-one-out error {self.loo[best].mean():.4g} at λ = {self.alphas[best]:.3g}, "
            f"df = {self.dof[best]:.2f})"
        )
