r"""λ = 0: ordinary least squares, which does not care how its columns are scaled, or the solution of least norm.

Columns are brought to about length 1 before the rank is judged, those that are constant are left out. A small problem
of full rank is refined as Björck (1967) does it: with A = QR, the residuals of r + Ax = b and Aᵀr = 0 are taken in
extended precision and both r and x are corrected. Where the bound below is then still more than the rounding of the
answer, and the problem is very small, the same is done once more with residuals of twice as many digits, as sums of
two numbers (T. Dekker, Numerische Mathematik 18, 224, 1971): what remains is the rounding of the answer, whatever the
condition up to 1/ε.

**The bound.** With columns A = X̃D⁻¹ of length 1 and M = D⁻¹A⁺ the exact solution differs from B by (X̃ᵀX̃)⁺ times the
exact gradient, which differs from the measured G = X̃ᵀR by the rounding of R = Ỹ − X̃B, of at most ε(p+2)Σ|b_j|‖x̃_j‖ +
2ε‖ỹ‖, and by that of a product with it, ε(8+√n)√p‖R‖ for columns of length 1. So

.. math:: \|\hat w-w\| \le \|MM^TG\| + \|M\|\big(\|\delta R\| + \|A^+\|\,\|\delta G\|\big) + \varepsilon\|\hat w\|,

all norms of M and A⁺ enlarged by what the rounding of A, ε(8+√n)√p of its length √p, can take off its least singular
value. A wide X̃ of full rank has the solution of least norm, whose part outside the row space is rounding as well:
ε(8+√p)‖X̃‖/σ_r of its length. Where fewer directions stand out of rounding than the shape of X̃ allows, nothing proves
that the others are empty: then there is no bound. A componentwise bound, |MMᵀG| + |X̃⁺||δR| + |MMᵀ||δG|, is 1.7 to 4
times less on NIST's polynomials, at the cost of X̃⁺; that of residuals with twice the digits is 100 to 700 times less.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg as la

from gramian.compute.devices import to_numpy
from gramian.compute.factor import svd
from gramian.ridge.certificate import Gradient, RidgeFactor, column_norms, rounding_of_gradient
from gramian.ridge.path import augmented_triangle, decompose_wide
from gramian.ridge.problem import RidgeProblem, column_spreads

Array = npt.NDArray[np.float64]

EPS = 2.0**-52
SMALL = 2**18  # cells up to which products in extended precision, which no BLAS makes, cost next to nothing
ROUNDS = 8
DOUBLED = 2**14  # cells times targets up to which residuals of twice the digits are worth their price
EXACT = 2.0**-40  # of the length of the coefficients, that a bound may be without them

Wide = npt.NDArray[np.longdouble]


class Refined(NamedTuple):
    """B, R = Ỹ − X̃B and G = X̃ᵀR, with the relative rounding of the products behind them."""

    B: Array
    R: Array
    G: Array
    eps: float


@dataclass(frozen=True, eq=False)
class Pair:
    """Numbers as sums of two of extended precision, the second no more than the rounding of the first."""

    high: Wide
    low: Wide

    @classmethod
    def of(cls, values: Any) -> Pair:
        """Take numbers as they are."""
        high = np.asarray(values, dtype=np.longdouble)
        return cls(high, np.zeros_like(high))

    @classmethod
    def add_exactly(cls, a: Wide, b: Wide) -> Pair:
        """a + b without rounding (D. Knuth)."""
        high = a + b
        part = high - a
        return cls(high, (a - (high - part)) + (b - part))

    @classmethod
    def multiply_exactly(cls, a: Wide, b: Wide) -> Pair:
        """ab without rounding, by halves of their digits (T. Dekker)."""
        bits = np.finfo(np.longdouble).nmant + 1
        factor = np.longdouble(2.0) ** ((bits + 1) // 2) + 1
        sides = []
        for side in (a, b):
            far = factor * side
            top = far - (far - side)
            sides.append((top, side - top))
        (a1, a2), (b1, b2) = sides
        high = a * b
        return cls(high, ((a1 * b1 - high) + a1 * b2 + a2 * b1) + a2 * b2)

    def __add__(self, other: Pair) -> Pair:
        first, second = Pair.add_exactly(self.high, other.high), Pair.add_exactly(self.low, other.low)
        middle = Pair.add_exactly(first.high, first.low + second.high)
        return Pair.add_exactly(middle.high, middle.low + second.low)

    def __neg__(self) -> Pair:
        return Pair(-self.high, -self.low)

    def __sub__(self, other: Pair) -> Pair:
        return self + (-other)

    def __mul__(self, other: Pair) -> Pair:
        product = Pair.multiply_exactly(self.high, other.high)
        return Pair.add_exactly(product.high, product.low + (self.high * other.low + self.low * other.high))

    def __getitem__(self, at: Any) -> Pair:
        return Pair(self.high[at], self.low[at])

    def sum_rows(self) -> Pair:
        """Sum over the first axis, by halves."""
        whole = self
        while len(whole.high) > 1:
            half, odd = len(whole.high) // 2, len(whole.high) % 2
            rest = whole[2 * half :] if odd else None
            whole = whole[:half] + whole[half : 2 * half]
            if rest is not None:
                whole = Pair(np.concatenate([whole.high, rest.high]), np.concatenate([whole.low, rest.low]))
        return whole[0]

    def mean_rows(self) -> Pair:
        """Mean over the first axis."""
        count, total = np.longdouble(len(self.high)), self.sum_rows()
        high = total.high / count
        left = total - Pair.of(high) * Pair.of(count)
        return Pair.add_exactly(high, (left.high + left.low) / count)


class LeastSquaresFactor(RidgeFactor):
    """B = D⁻¹(X̃D⁻¹)⁺Ỹ where the columns are independent, else the solution of least norm.

    Attributes
    ----------
    lengths : ndarray of shape (p,)
        D: lengths of the columns of X̃ as powers of two, which round nothing; infinite for a constant column.
    basis : ndarray of shape (p, r)
        M with (X̃ᵀX̃)⁺ = MMᵀ.
    steepest : float
        1/σ of the least singular value kept, of columns of length 1.
    has_full_rank : bool
        Whether the rank is what the shape allows, which rounding cannot feign.
    """

    solver = "svd"

    def __init__(self, problem: RidgeProblem) -> None:
        self.problem, p, t = problem, problem.source.shape[1], problem.Y.shape[1]
        lengths = np.exp2(np.round(0.5 * np.log2(np.where(problem.varies, problem.diagonal, 1.0))))
        self.lengths = np.where(problem.varies, lengths, np.inf)
        rows, columns = problem.weights.rows - int(problem.intercept), int(np.count_nonzero(problem.varies))
        self.is_wide = columns > rows
        if self.is_wide:  # U, Σ, V of a wide X̃, cut to its rank
            found = decompose_wide(problem)
            self.rank = r = found.rank
            sigma = np.sqrt(found.squares[:r])
            self.method = f"{found.label}, least norm"
            self.condition = float(sigma[0] / sigma[-1]) if r else 1.0
            self.steepest = 1.0 / float(sigma[-1]) if r else 0.0
            self.basis = found.right_vectors(r) / sigma
            self.start = self.basis @ found.projections[:r]
        else:  # R of [X̃D⁻¹ Ỹ] = QR and the SVD of its first p columns
            d = self.lengths
            R = augmented_triangle(problem, d)
            U, s, Vt = svd(R[:p, :p])
            self.rank = r = int(np.count_nonzero(s > problem.rounding * max(s[0], 1e-300)))
            self.method = "QR of X̃ with columns of length 1" + ("" if r == p else ", least norm")
            self.condition = float(s[0] / s[r - 1]) if r else 1.0
            self.steepest = 1.0 / float(s[r - 1]) if r else 0.0
            self.basis = Vt[:r].T / d[:, None] / s[:r]
            if 0 < r < columns:  # of least norm: without a component along what X̃ does not see
                Q = la.orth(Vt[r:].T / d[:, None])
                self.basis = self.basis - Q @ (Q.T @ self.basis)
            self.start = self.basis @ (U[:, :r].T @ R[:p, p:])
        self.has_full_rank = self.rank == min(rows, columns)
        if (
            columns < p and self.has_full_rank and not self.is_wide
        ):  # what does not vary is to be constant to the last bit
            self.reads += 1
            spreads = column_spreads(problem.source, problem.weights.values, problem.intercept)
            self.has_full_rank = not np.any(spreads[~problem.varies])
        self.spread = float(np.linalg.norm(self.basis, 2)) if self.rank else 0.0  # ‖M‖
        self.floor = np.full(t, 1.0 / self.spread**2 if self.spread else np.inf)
        self.dof = np.full(t, float(self.rank))
        self.free = np.full(t, max(problem.weights.count - float(problem.intercept) - self.rank, 0.0))

    def coefficients(self) -> Array:
        """D⁻¹(X̃D⁻¹)⁺Ỹ."""
        return self.start

    def refine(self, B: Array, R: Array, G: Array) -> Array:
        """B + (X̃ᵀX̃)⁺G."""
        return np.asarray(B + self.basis @ (self.basis.T @ G))

    def inverse(self) -> tuple[Array, Array, Array]:
        """M, whose square is the (pseudo-)inverse."""
        return self.basis, np.ones((self.rank, len(self.dof))), np.zeros(len(self.dof))

    def bounds(self, problem: RidgeProblem, state: Gradient, eps: float) -> Array:
        """The bound of the module's docstring; ∞ where the rank is judged and not proved."""
        B, (n, p) = state.B, problem.source.shape
        # ‖A‖, ‖A⁺‖ with A of columns of length 1, or X̃ itself
        norm, inverse = (problem.total**0.5, self.spread) if self.is_wide else (1.5 * p**0.5, 1.5 * self.steepest)
        lost = problem.longer * EPS * (8 + max(n, p) ** 0.5) * norm * inverse  # of the least singular value
        # of a constant that is taken off sparse rows afterwards cancelled digits are left: a wide X̃ is solved with them
        dust = self.is_wide and problem.A.offset and np.any(to_numpy(problem.mean, float)[~problem.varies])
        if dust or not (self.has_full_rank and lost < 1.0):
            return np.full(B.shape[1], np.inf)
        residual, gradient = rounding_of_gradient(problem, state, eps)
        if self.is_wide:
            gradient = gradient * norm
        step = column_norms(self.basis @ (self.basis.T @ state.G)) / (1.0 - lost)
        outside = lost if self.is_wide else 0.0
        rounding = self.spread * (residual + inverse * gradient / (1.0 - lost)) + outside * column_norms(B)
        return np.asarray((step + rounding) / (1.0 - lost) + EPS * column_norms(B))

    def refine_fully(self) -> Refined | None:
        r"""B, R = Ỹ − X̃B and G = X̃ᵀR by Björck's refinement, for small data of full rank; else None.

        With f = b − r − Ax and g = −Aᵀr in extended precision, z = R⁻ᵀg and d = Qᵀf give dx = R⁻¹(d − z) and
        dr = f − Q(d − z).
        """
        problem, wide, varies = self.problem, np.longdouble, self.problem.varies
        n, p = problem.source.shape
        if self.is_wide or not self.has_full_rank or n * p > SMALL:
            return None
        X, Y, w = self._read() * problem.data_unit, problem.raw.astype(wide), problem.weights.values
        w = np.ones(n, wide) if w is None else w.astype(wide)
        if problem.intercept:  # about means taken in extended precision, of what rounded means leave over
            X, Y = X - to_numpy(problem.mean, float)[varies], Y - problem.level
            X, Y = X - w @ X / w.sum(), Y - w @ Y / w.sum()
        X = X if problem.divisor is None else X / problem.divisor[varies]
        X, Y = np.sqrt(w)[:, None] * X, np.sqrt(w)[:, None] * Y
        A = X / self.lengths[varies]
        Q, R = np.linalg.qr(A.astype(np.float64))
        sigma = np.linalg.svd(R, compute_uv=False)
        if np.any(sigma <= problem.rounding * np.max(sigma, initial=0.0)):
            self.has_full_rank = False  # what stood out was the rounding of means taken off sparse rows afterwards
            return None
        x, r, last = np.zeros((A.shape[1], Y.shape[1]), wide), np.zeros_like(Y), np.inf
        for _ in range(ROUNDS):
            f, g = (Y - r - A @ x).astype(np.float64), (-(A.T @ r)).astype(np.float64)
            d = Q.T @ f - la.solve_triangular(R, g, trans="T", check_finite=False)
            dx = la.solve_triangular(R, d, check_finite=False)
            size = float(np.max(np.abs(dx), initial=0.0))
            if not size < 0.5 * last:
                break
            x, r, last = x + dx, r + (f - Q @ d), size
        r = Y - A @ x
        found = self._fill(x, r, A.T @ r, float(np.finfo(wide).eps))
        if (w != w[0]).any() or problem.divisor is not None or n * A.shape[1] * Y.shape[1] > DOUBLED:
            return found
        state = Gradient(found.B, found.R, found.G, column_norms(found.R) ** 2, column_norms(found.R))
        if np.all(self.bounds(problem, state, found.eps) <= EXACT * column_norms(found.B)):
            return found
        return self._refine_doubly(Q, R, x, w[0])

    def _read(self) -> Wide:
        """The columns that vary, dense."""
        self.reads += 1
        blocks = (b.values.toarray() if self.problem.source.sparse else b.values for b in self.problem.source.blocks())
        rows = np.concatenate([np.array(to_numpy(block, float)) for block in blocks])
        return np.asarray(rows[:, self.problem.varies], dtype=np.longdouble)

    def _refine_doubly(self, Q: Array, R: Array, x: Wide, weight: Any) -> Refined:
        """The same with residuals of twice the digits of extended precision, from what that has found."""
        problem, wide, varies = self.problem, np.longdouble, self.problem.varies
        A = self._read()
        # powers of two, which round nothing
        pairs, target = Pair.of(A * problem.data_unit / self.lengths[varies]), Pair.of(problem.raw)
        if problem.intercept:
            pairs, target = pairs - pairs.mean_rows(), target - target.mean_rows()
        if weight != 1:
            root = np.sqrt(weight)
            half = (weight - root * root) / (2 * root)
            root = Pair(np.asarray(root), np.asarray(half))
            pairs, target = pairs * root, target * root

        turned = Pair(pairs.high.T, pairs.low.T)

        def multiply(side: Pair, v: Pair) -> Pair:
            """The products of rows of the transpose of ``side`` with each column of v."""
            columns = [(side * v[:, j : j + 1]).sum_rows() for j in range(v.high.shape[1])]
            return Pair(np.stack([c.high for c in columns], axis=1), np.stack([c.low for c in columns], axis=1))

        at, last = Pair.of(x), np.inf
        rest = target - multiply(turned, at)
        for _ in range(ROUNDS):
            f, g = target - rest - multiply(turned, at), -multiply(pairs, rest)
            d = Q.T @ f.high.astype(np.float64) - la.solve_triangular(
                R, g.high.astype(np.float64), trans="T", check_finite=False
            )
            dx = la.solve_triangular(R, d, check_finite=False)
            size = float(np.max(np.abs(dx), initial=0.0))
            if not size < 0.5 * last:
                break
            at, rest = at + Pair.of(dx), rest + (f - Pair.of(Q @ d))
            if size <= 2.0**-64 * float(np.max(np.abs(at.high), initial=0.0)):
                break
            last = size
        rest = target - multiply(turned, at)
        return self._fill(at.high, rest.high, multiply(pairs, rest).high, 16.0 * float(np.finfo(wide).eps) ** 2)

    def _fill(self, x: Wide, r: Wide, g: Wide, eps: float) -> Refined:
        """In the units of X̃, 0 for what does not vary; ``g`` is of columns of length 1."""
        varies = self.problem.varies
        B, G = np.zeros((2, len(varies), x.shape[1]))
        B[varies], G[varies] = x / self.lengths[varies, None], g * self.lengths[varies, None]
        return Refined(B, r.astype(np.float64), G, eps)
