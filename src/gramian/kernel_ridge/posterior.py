r"""The variance of a prediction given *all* rows, with bounds from both sides, where no factor of all rows is made.

With :math:`A=K+\lambda W^{-1}`, after multiplication by √w on both sides :math:`A=B+\lambda I`, wanted is
:math:`v=k(x,x)-q`, :math:`q=b^TA^{-1}b`, :math:`b=\sqrt w\,k_x`. For any u with residual r = b − Au

.. math:: b^Tu+r^Tu\ \le\ q = b^Tu+r^Tu+r^TA^{-1}r\ \le\ b^Tu+r^Tu+r^TP^{-1}r,\qquad P=FF^T+\lambda I

since a factor F of B by pivoted Cholesky lies below it. With :math:`u=P^{-1}b` both ends are known before any product
with A, as :math:`A\preceq P+\operatorname{tr}(B-FF^T)I`: where the kernel is smooth, that is all that is needed.
Else conjugate gradients with the preconditioner P make the two ends
meet, for a block of points at once; started at :math:`P^{-1}b` they need one product where F tells most of B. The
eigenvalues of :math:`P^{-1/2}AP^{-1/2}` are at least 1, which is what Gauss–Radau quadrature with a node there rests on
too (G. Golub and G. Meurant, Matrices, Moments and Quadrature, 2010); the ends are evaluated from r itself, so that
rounding in the recurrences cannot move them.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gramian.inputs.kernels import kernel_diagonal, take_points
from gramian.kernel_ridge.problem import count_points
from gramian.kernels import Kernel
from gramian.linear.cg import ConjugateGradients
from gramian.operators import FeatureCentred, KernelOperator, Operator
from gramian.spectral.rpcholesky import rp_cholesky

Array = npt.NDArray[np.float64]

EPS = 2.0**-52
RANK = 8.0  # times √n, the rank of F: a factor costs less than a tenth of the one product with a block of 1,000 points
POINTS = 512  # at a time: six arrays of n × 512 numbers
WIDTH = 0.05  # of the variance of a new observation, between the two ends
STEPS = 100  # products at most
ROUNDING = 8.0  # of F and of what is made of it, in rounding units
ENTRY = {"float32": 1.2e-5, "float64": 2e-12}  # errors of k(x, z) and of products with it, of √(k(x,x)k(z,z))
LIKELY = 4.0  # times what errors of random sign come to
SHARE = 0.1  # of the width that rounding in float32 may take


@dataclass(frozen=True, eq=False)
class Bounds:
    """Ends of Var f/s, for each point."""

    lower: Array
    upper: Array

    @property
    def width(self) -> Array:
        """Their distance as a share of the variance of a new observation, 1 + Var f/s."""
        return np.asarray((self.upper - self.lower) / (1.0 + self.lower))


class BoundedPosterior:
    """The variance given all rows.

    Parameters
    ----------
    kernel, points : Kernel, array or list
        k, and the n rows.
    w : ndarray of shape (n,) or None
        Their weights.
    lam : float
        λ > 0.
    intercept : bool
        Whether there is one, with a flat prior.
    seed : int
        Of the pivots.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernels import Gaussian
    >>> from gramian.kernel_ridge.posterior import BoundedPosterior
    >>> X = np.random.default_rng(0).normal(size=(300, 2))
    >>> found = BoundedPosterior(Gaussian(0.5), X, None, 0.1, False, 0).bounds(X[:5])
    >>> bool(np.all(found.lower <= found.upper)), bool(found.width.max() < 0.05)
    (True, True)
    """

    def __init__(self, kernel: Kernel, points: Any, w: Array | None, lam: float, intercept: bool, seed: int) -> None:
        self.kernel, self.points, self.lam = kernel, points, lam
        self.last: tuple[Any, Bounds] = (None, Bounds(np.zeros(0), np.zeros(0)))
        n = count_points(points)
        self.root = None if w is None else np.sqrt(w)
        K = KernelOperator(kernel, points, dtype=np.float64, store=False)
        own = np.asarray(K.diagonal(), dtype=np.float64)
        found = rp_cholesky(own, K.columns, min(n, math.ceil(RANK * math.sqrt(n))), seed=seed)
        self.landmarks, F = found.indices, np.asarray(found.factor, dtype=np.float64)
        self.triangle = F[self.landmarks]  # before weights: f(x) = L⁻¹k_S(x)
        F = F if self.root is None else self.root[:, None] * F
        self.F = F
        largest = float(np.max(own if w is None else own * w, initial=0.0))
        # F is computed: B − FFᵀ may be as low as −η, which λ in P makes up for
        eta = ROUNDING * EPS * float(np.sum(F * F))
        self.below = lam - eta
        # A − P is semidefinite, and no eigenvalue of it is more than its trace
        trace = float(np.sum(own if w is None else own * w)) - float(np.sum(F * F))
        self.above = max(trace, 0.0) + 2 * eta
        if self.below <= 0.5 * lam:
            raise ValueError(
                f"alpha={lam:g} is too small for bounds on the variance of {n} rows: rounding of the kernel matrix may "
                f"be {eta:.1g}. Use a larger alpha, or return_std='subset'."
            )
        G = F.T @ F
        # a Gram matrix of columns that are all but dependent is definite with λ added
        G[np.diag_indices_from(G)] += self.below
        self.factor = scipy.linalg.cholesky(G, lower=True, overwrite_a=True, check_finite=False)
        self.wide: Operator = self._weigh(K)
        self.narrow: Operator | None = None
        if not kernel.takes_objects and largest < 1e30:
            self.narrow = self._weigh(KernelOperator(kernel, points, dtype=np.float32, store=False))
        self.lengths = np.sqrt(own if w is None else own * w)
        self.ones: Array | None = None
        if intercept:
            right = np.ones(n) if self.root is None else self.root
            solve = ConjugateGradients(tol=1e-10)(
                self.wide, right, lam, preconditioner=lambda R, _: self._precondition(R), warn=False
            )
            self.ones = np.asarray(solve.values, dtype=np.float64)
            self.ones_right = right
            left = right - (np.asarray(self.wide @ self.ones) + lam * self.ones)
            slip = float(self._slip(self.wide, self.ones[:, None])[0])
            self.ones_left = math.sqrt(max(float(left @ self._precondition(left[:, None])[:, 0]), 0.0))
            self.ones_left += slip / math.sqrt(self.below)  # ‖r‖ in A⁻¹, with the rounding of r

    def _weigh(self, K: KernelOperator) -> Operator:
        return K if self.root is None else FeatureCentred(K, self.root**2, centre=False)

    def _precondition(self, R: Array) -> Array:
        """P⁻¹R, in float64."""
        C = scipy.linalg.cho_solve((self.factor, True), self.F.T @ R, check_finite=False)
        return np.asarray((R - self.F @ C) / self.below)

    def _slip(self, A: Operator, V: Array) -> Array:
        """How long the error of the product of A with each column may be, of entries whose errors have random signs."""
        each = max(ENTRY[np.dtype(A.dtype).name], A.epsilon) * np.linalg.norm(self.lengths)
        return np.asarray(LIKELY * each * np.linalg.norm(self.lengths[:, None] * V, axis=0))

    def bounds(self, X: Any, width: float = WIDTH) -> Bounds:
        """Ends of Var(f(x) + b)/s for the rows of X, ``width`` of 1 + Var/s apart where rounding allows."""
        n = count_points(X)
        # an interval after a standard deviation asks for the same
        known = hashlib.sha256(X.tobytes()).digest() if isinstance(X, np.ndarray) and X.dtype != object else None
        if known is not None and self.last[0] == (known, width):
            return self.last[1]
        parts = [self._bounds(X[start : start + POINTS], width) for start in range(0, n, POINTS)]
        if not parts:
            return Bounds(np.zeros(0), np.zeros(0))
        both = Bounds(*(np.concatenate([getattr(part, end) for part in parts]) for end in ("lower", "upper")))
        again = np.flatnonzero(both.width > width)
        if self.narrow is not None and len(again):  # what rounding in float32 may have left
            wide = [
                self._bounds(take_points(X, some), width, exact=True)
                for some in np.array_split(again, -(-len(again) // POINTS))
            ]
            lower, upper = both.lower.copy(), both.upper.copy()
            lower[again] = np.maximum(lower[again], np.concatenate([part.lower for part in wide]))
            upper[again] = np.minimum(upper[again], np.concatenate([part.upper for part in wide]))
            both = Bounds(np.minimum(lower, upper), upper)
        if known is not None:
            self.last = (known, width), both
        return both

    def meets(self, X: Any, steps: int, width: float = WIDTH) -> bool:
        """Whether so many products make the ends for the rows of X meet."""
        return bool(np.all(self._bounds(X, width, most=steps).width <= width))

    def _bounds(self, X: Any, width: float, exact: bool = False, most: int | None = None) -> Bounds:
        lam = self.lam
        k = np.asarray(KernelOperator(self.kernel, self.points, X, dtype=np.float64, store=False).to_dense())
        own = np.asarray(kernel_diagonal(self.kernel, X), dtype=np.float64)
        f = scipy.linalg.solve_triangular(self.triangle, k[self.landmarks], lower=True, check_finite=False)
        b = k if self.root is None else self.root[:, None] * k
        e = b - self.F @ f  # what F does not tell of b
        Fe = self.F.T @ e
        H = scipy.linalg.cho_solve((self.factor, True), np.hstack([f, Fe]), check_finite=False)
        Hf, HFe = np.hsplit(H, 2)
        # rounding of k(x, x), and of the terms it is added to, by the condition of P
        each = 64 * EPS * (1.0 + float(np.sum(self.F * self.F)) / self.below) * own
        # P⁻¹b, in which FFᵀ/λ does not appear: nothing cancels where λ is small
        p = self.F @ (Hf - HFe / self.below) + e / self.below
        outside = np.maximum(np.sum(e * e, axis=0) - np.sum(Fe * HFe, axis=0), 0.0) / self.below
        told = np.sum(f * f, axis=0) - self.below * np.sum(f * Hf, axis=0) + 2 * np.sum(f * HFe, axis=0)
        lower = own - told - outside - each
        # without a product: bᵀP⁻¹b − ‖P⁻¹b‖² tr(A − P) ≤ q
        upper = np.minimum(own, own - told - outside + each + self.above * np.sum(p * p, axis=0))
        active = np.flatnonzero(upper - lower > width * (lam + np.maximum(lower, 0.0)))
        b, p = b[:, active], p[:, active]
        u, r, rz, slips, steps = np.zeros_like(b), b, np.sum(b * p, axis=0), np.zeros(len(active)), 0
        while len(active) and steps < (STEPS if most is None else most):
            Ap, slip = self._multiply(p, u, slips, 0.0 if exact else width * (lam + np.maximum(lower[active], 0.0)))
            curve = np.sum(p * Ap, axis=0)
            step = np.divide(rz, curve, out=np.zeros_like(rz), where=curve > 0)
            u, r, slips = u + step * p, r - step * Ap, slips + np.abs(step) * slip
            z = self._precondition(r)
            rest = np.maximum(np.sum(r * z, axis=0), 0.0)
            # the residual is known up to a vector of length slips, which P⁻¹ makes 1/√λ as long at most
            lengths = np.linalg.norm(u, axis=0)
            inside = np.sum(u * b, axis=0) + np.sum(u * r, axis=0)
            doubt = slips * lengths + each[active] + 4 * EPS * math.sqrt(len(b)) * lengths * np.linalg.norm(b, axis=0)
            above = (np.sqrt(rest) + slips / math.sqrt(self.below)) ** 2
            upper[active] = np.minimum(upper[active], own[active] - inside + doubt)
            lower[active] = np.maximum(lower[active], own[active] - inside - above - doubt)
            allowed = width * (lam + np.maximum(lower[active], 0.0))
            # columns that rounding keeps from what is asked for are not worked on any more
            left = (upper[active] - lower[active] > allowed) & (2 * doubt + slips**2 / self.below < allowed)
            steps += 1
            p, rz = z + np.divide(rest, rz, out=np.zeros_like(rest), where=rz > 0) * p, rest
            active, b, u, r, p = active[left], b[:, left], u[:, left], r[:, left], p[:, left]
            rz, slips = rz[left], slips[left]
        lower = np.maximum(np.minimum(lower, upper), 0.0)
        upper = np.maximum(upper, lower)
        if self.ones is None:
            return Bounds(lower / lam, upper / lam)
        # 1ᵀA⁻¹b = aᵀb + (1 − Aa)ᵀA⁻¹b with a ≈ A⁻¹1: the second is at most √(rᵀA⁻¹r)·√q
        k = k if self.root is None else self.root[:, None] * k
        middle = self.ones @ k
        doubt = self.ones_left * np.sqrt(np.maximum(own - lower, 0.0))
        doubt += 4 * EPS * math.sqrt(len(k)) * np.linalg.norm(self.ones) * np.linalg.norm(k, axis=0)
        total = float(self.ones_right @ self.ones)
        spread = self.ones_left * math.sqrt(abs(total)) * 2 + 4 * EPS * math.sqrt(len(k)) * total
        away = np.abs(1.0 - middle)
        least = np.maximum(away - doubt, 0.0) ** 2 / (total + spread)
        most = (away + doubt) ** 2 / max(total - spread, 1e-300)
        return Bounds((lower + least) / lam, (upper + most) / lam)

    def _multiply(self, V: Array, u: Array, slips: Array, allowed: Array | float) -> tuple[Array, Array]:
        """AV, in float32 where its rounding is a small part of the width that is ``allowed``; and how far it is off.

        Steps are at most 1, since no eigenvalue of P⁻¹A is less.
        """
        lengths, A = np.linalg.norm(V, axis=0), self.wide
        if self.narrow is not None:
            far = slips + self._slip(self.narrow, V)
            if np.all(far * (np.linalg.norm(u, axis=0) + lengths) + far**2 / self.below <= SHARE * allowed):
                A = self.narrow
        units = np.where(lengths > 0, lengths, 1.0)
        Y = np.asarray(A.matmat(A.asarray(V / units)), dtype=np.float64) * units
        return Y + self.lam * V, self._slip(A, V) + EPS * self.lam * lengths
