r"""Learning a kernel: every smooth number of it and λ, by steps along the gradient of what they are chosen by.

With A = √w K √w + λI and, where there is an intercept, its direction q = √w projected out,

.. math:: C=A^{-1}-\frac{A^{-1}qq^TA^{-1}}{q^TA^{-1}q},\qquad a=C\tilde y,\qquad dC=-C\,dA\,C,

every criterion is a function of C and a alone, and so has a differential tr(G dA) with a symmetric matrix G:

======================  ==================================  ====================================================
criterion               value                               G
======================  ==================================  ====================================================
leave-one-out           Σ eᵢ²/N, eᵢ = aᵢ/Cᵢᵢ                2/N (C diag(e²/c) C − ½(vaᵀ + avᵀ)), v = C(e/c)
GCV                     N‖a‖²/(tr C)²                       value·2 (C²/tr C − ½(Ca aᵀ + a aᵀC)/‖a‖²)
−log likelihood         ½(M ln(ỹᵀa/M) + ln det + …)         ½(C − M a aᵀ/ỹᵀa)
======================  ==================================  ====================================================

M is N, less one with an intercept, and the amplitude of the Gaussian process is the most likely one. What Σ G_ij ∂K_ij
is for each number of a kernel is told by :mod:`gramian.kernels.derivatives`.

Three objectives share this. :class:`Objective` forms C: exact, of up to thousands of rows. :class:`ProbedObjective`
knows C by its products with a few columns alone, found by block conjugate gradients: with fixed random signs z,
tr C ≈ mean zᵀCz and C² or C in G by Cz zᵀC or ½(Cz zᵀ + z zᵀC). :class:`LandmarkObjective` is that of the model of a
few landmarks, exact for that model, at n·m² operations.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl
import scipy.sparse as sp
from array_api_compat import array_namespace, is_numpy_array
from scipy.optimize import Bounds, minimize
from sklearn.exceptions import ConvergenceWarning

from gramian.compute.devices import like, to_device, to_numpy
from gramian.inputs.kernels import take_points
from gramian.inputs.progress import Progress
from gramian.kernel_ridge.choose import held_out_rows
from gramian.kernel_ridge.problem import KernelProblem
from gramian.kernel_ridge.solve import solve
from gramian.kernels import Gaussian, Kernel, Linear, Matern, RationalQuadratic, Scaled, Sum
from gramian.kernels.derivatives import (
    Stretchable,
    can_differentiate_on_devices,
    evaluate_with_derivatives,
    list_parameters,
    parts_of,
    scales_of,
    with_parameters,
    with_scales,
)
from gramian.kernels.distance import EqualRowsError, median_distance
from gramian.linear.systems import cholesky, triangular
from gramian.results import NumericalWarning
from gramian.sources import Source

__all__ = ["LearnedKernel", "Objective", "learn_kernel", "scales_of", "with_scales"]

Array = npt.NDArray[np.float64]

FIRST, LAST = 1000, 3000  # rows that starts are compared on, and that the best is finished on
LAST_GPU = 10_000  # ... on a GPU, where an evaluation of them takes less than a second
STEPS = (20, 60, 30)  # steps for one common width, for one of each feature, and of the best on more rows
REACH = (1e-3, 1e2)  # least and largest s_k, in units of one over the standard deviation of the feature
AMPLITUDES = (1e-4, 1e4)  # least and largest amplitude, rate or offset, in units of where it began
MIXTURES = (0.05, 50.0)  # least and largest α of a rational quadratic: beyond, it is a Gaussian kernel
LAMBDAS = (1e-10, 1.0, 9)  # λ over Σw: least, largest, and how many are looked at where a search begins
SMOOTHER = 0.2  # of the scales of a start from which features drop out one after another
SHAPES = (Matern(1.5), Matern(2.5), RationalQuadratic(1.0))
LEAST_GAIN = 1e-7  # of the logarithm of the criterion: a step that wins less is the last
PROBES, PROBED_STEPS = 16, 6  # random columns, and steps, where C is known by its products
MOST_PROBED, MOST_PROBED_GPU = 20_000, 200_000  # rows up to which they are made: minutes on two cores, or on a GPU
TOO_ROUGH = 0.1  # standard error of GCV, relative to it, that no step of a few per cent shows against
SOLVED = 1e-3  # of the residual of a column: the error of a gradient is far below that of the probes
MOST_ROWS, LANDMARKS = 50_000, 500  # rows and landmarks that the model of landmarks is learned on
JITTER = 1e-8  # of the mean of k(z, z): what keeps the factor of k(Z, Z) of landmarks that are alike
FEW = 64  # rows of a block of which only the diagonal is wanted


@dataclass(eq=False)
class Objective:
    """What is to be made small, as a function of a kernel and λ, on some rows.

    Attributes
    ----------
    X, Y, w : ndarray of shape (n, p), (n, t), (n,)
        Points, targets and weights.
    intercept : bool
        Whether there is one.
    criterion : {"loo", "gcv", "marginal_likelihood"}
        As in :class:`gramian.KernelRidgeCV`; rows are left out whole.
    device : torch.device or None
        Where the matrices are; None is NumPy on the CPU.
    """

    X: Array
    Y: Array
    w: Array
    intercept: bool
    criterion: str
    device: Any = None

    @cached_property
    def points(self) -> Any:
        """X where it is computed with."""
        return to_device(self.X, self.device, np.float64)

    @cached_property
    def known(self) -> dict[str, Any]:
        """Matrices of kernels without numbers to move."""
        return {}

    @property
    def count(self) -> float:
        """M: N, less one with an intercept."""
        return len(self.Y) - float(self.intercept)

    def evaluate(self, kernel: Kernel, lam: float) -> tuple[float, Array, float]:
        """The criterion, averaged over targets, and its derivatives by the logarithms of the kernel's numbers and of λ.

        Examples
        --------
        >>> import numpy as np
        >>> from gramian.kernel_ridge.learn import Objective
        >>> from gramian.kernels import Gaussian
        >>> x = np.linspace(0.0, 3.0, 12)[:, None]
        >>> objective = Objective(x, np.sin(x), np.ones(12), False, "loo")
        >>> value, by_scale, by_lam = objective.evaluate(Gaussian(1.0), 0.1)
        >>> moved = objective.evaluate(Gaussian(np.exp(2e-6)), 0.1)[0]  # s = √γ
        >>> bool(abs((moved - value) / 1e-6 - by_scale[0]) < 1e-4 * abs(by_scale[0]))
        True
        """
        (n, t), X = self.Y.shape, self.points
        xp = array_namespace(X)
        K, pull = evaluate_with_derivatives(kernel, X, known=self.known)
        root = like(X, np.sqrt(self.w))
        A = K * root[:, None]
        A *= root[None, :]
        i = np.arange(n) if is_numpy_array(X) else xp.arange(n, device=X.device)
        A[i, i] += lam
        if is_numpy_array(X):
            factor, failed = sl.lapack.dpotrf(np.asfortranarray(A.T), lower=1, overwrite_a=1, clean=0)
            if failed:
                raise np.linalg.LinAlgError("K + λI has a negative eigenvalue by rounding")
            log_det = 2.0 * float(np.sum(np.log(np.diag(factor))))
            C, _ = sl.lapack.dpotri(factor, lower=1, overwrite_c=1)
            C = np.tril(C) + np.tril(C, -1).T
        else:
            factor = cholesky(A)
            log_det = 2.0 * float(xp.sum(xp.log(xp.linalg.diagonal(factor))))
            C = triangular(factor, xp.eye(n, dtype=xp.float64, device=X.device))
            C = C.T @ C
        targets, M = like(X, np.sqrt(self.w)[:, None] * self.Y), self.count
        if self.intercept:
            # the targets about their mean: C takes q away from both sides, and large means would hide what is left
            targets = like(X, np.sqrt(self.w)[:, None] * (self.Y - self.w @ self.Y / self.w.sum()))
            a = C @ root
            within = float(root @ a)
            C -= a[:, None] * (a / within)[None, :]
            log_det += float(np.log(within))
        a = C @ targets
        if self.criterion == "loo":
            c = C[i, i][:, None]
            E = a / c
            value = float(xp.sum(E**2)) / (n * t)
            B = C * xp.sqrt(xp.sum(E**2 / c, axis=1))[None, :]
            G = B @ B.T
            V = (C @ (E / c)) @ a.T
            G -= 0.5 * (V + V.T)
            G *= 2.0 / (n * t)
        elif self.criterion == "gcv":
            trace, sizes = float(xp.sum(C[i, i])), xp.sum(a**2, axis=0)
            value = float(xp.mean(sizes)) * n / trace**2
            V = (C @ (a * (n / trace**2 / t))) @ a.T
            G = (C @ C.T) * (2.0 * value / trace) - V - V.T
        else:
            energy = np.maximum(to_numpy(xp.sum(targets * a, axis=0), float), np.finfo(np.float64).tiny)
            value = 0.5 * float(M * np.mean(np.log(2 * np.pi * energy / M)) + M + log_det)
            value -= 0.5 * float(np.sum(np.log(self.w)))  # of √w y, whose density is that of y over √w
            G = 0.5 * C - (a * like(X, 0.5 * M / (t * energy))) @ a.T
        by_lam = lam * float(xp.sum(G[i, i]))
        G *= root[:, None]
        G *= root[None, :]
        return value, pull(G), by_lam

    def loss(self, kernel: Kernel, lam: float) -> tuple[float, Array, float]:
        """What a search follows: the logarithm of an error, or the likelihood of a row, with its derivatives."""
        value, by_parameter, by_lam = self.evaluate(kernel, lam)
        if self.criterion == "marginal_likelihood":
            n = len(self.Y)
            return value / n, by_parameter / n, by_lam / n
        floor = 1e-24 * float(np.mean(self.Y**2)) + np.finfo(np.float64).tiny  # an error that is 0 has no logarithm
        return float(np.log(value + floor)), by_parameter / (value + floor), by_lam / (value + floor)

    def take(self, rows: npt.NDArray[np.intp]) -> Objective:
        """The same of some of the rows."""
        return Objective(self.X[rows], self.Y[rows], self.w[rows], self.intercept, self.criterion, self.device)


@dataclass(eq=False)
class ProbedObjective(Objective):
    """GCV or the likelihood with C known by its products with the targets and a few columns of random signs.

    The signs stay the same, so that the estimate is a smooth function; of GCV the gradient is that of the estimate. Of
    the likelihood the gradient alone is estimated, and its value by adding up the gradient from one evaluation to the
    next that is better. Leaving out rows is replaced by GCV, whose traces few columns tell.

    Attributes
    ----------
    seed : int
        Of the signs.
    error : float
        Standard error of the last value of GCV, relative to it; of the likelihood that of its derivative by ln λ.
    """

    seed: int = 0
    error: float = 0.0

    def __post_init__(self) -> None:
        if self.criterion == "loo":
            self.criterion = "gcv"
        self.signs = np.random.default_rng(self.seed).choice([-1.0, 1.0], (len(self.Y), PROBES))
        self._from: tuple[Array, float, Array] | None = None  # ln θ, the value there, and its gradient

    def columns(self, kernel: Kernel, lam: float) -> tuple[Array, Array, Array]:
        """a, C times the signs, and Ca."""
        t, root = self.Y.shape[1], np.sqrt(self.w)[:, None]
        w = None if np.all(self.w == 1.0) else self.w

        def times_inverse(Y: Array) -> Array:
            shifts = np.full(Y.shape[1], lam)
            problem = KernelProblem(kernel, self.X, Y, w, shifts, self.intercept, False, self.seed, self.device)
            return solve(problem, "cg", "learning", tol=SOLVED, max_iter=300).beta

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", NumericalWarning)
            found = times_inverse(np.column_stack([self.Y, self.signs / root]))
            a = found[:, :t]
            again = times_inverse(a / root) if self.criterion == "gcv" else a
        return a, found[:, t:], again

    def evaluate(self, kernel: Kernel, lam: float) -> tuple[float, Array, float]:
        """The estimate, and its derivatives by the logarithms of the kernel's numbers and of λ."""
        (n, t), X, M = self.Y.shape, self.points, self.count
        root, k = np.sqrt(self.w), self.signs.shape[1]
        a, U, again = self.columns(kernel, lam)
        each = np.einsum("ij,ij->j", self.signs, U)
        if self.criterion == "gcv":
            trace = float(np.mean(each))
            value = n * float(np.mean(np.sum(a**2, axis=0))) / trace**2
            self.error = 2.0 * float(np.std(each, ddof=1)) / np.sqrt(k) / trace
            left = np.hstack([U * (2.0 * value / trace / k), -again * (2.0 * n / trace**2 / t)])
            right = np.hstack([U, a])
        else:
            mean = self.w @ self.Y / self.w.sum() if self.intercept else 0.0
            energy = np.maximum(np.sum(root[:, None] * (self.Y - mean) * a, axis=0), np.finfo(np.float64).tiny)
            value = np.nan
            self.error = 0.5 * lam * float(np.std(each, ddof=1)) / np.sqrt(k)
            left = np.hstack([U * (0.5 / k), -a * (0.5 * M / (t * energy))])
            right = np.hstack([self.signs, a])
        by_lam, by_parameter = lam * float(np.sum(left * right)), np.zeros(0)
        left, right = (like(X, root[:, None] * side) for side in (left, right))
        step = max(1, (2**24 if self.device is None else 2**30) // (8 * n))
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            part = evaluate_with_derivatives(kernel, X[rows, :], X)[1](left[rows, :] @ right.T)
            by_parameter = by_parameter + part if len(by_parameter) else part
        if self.criterion == "marginal_likelihood":
            at = np.log([*(one.value for one in list_parameters(kernel, X.shape[1])), lam])
            gradient = np.append(by_parameter, by_lam)
            if self._from is None:
                value = 0.0
            else:
                before, last, slope = self._from
                value = last + 0.5 * float((slope + gradient) @ (at - before))
            if self._from is None or value < self._from[1]:
                self._from = (at, value, gradient)
        return value, by_parameter, by_lam


@dataclass(eq=False)
class LandmarkObjective(Objective):
    r"""The criterion of f(x) = k(x, Z)a + b with the same penalty, for a few rows Z, exact for that model.

    With A = √w k(X, Z), centred where there is an intercept, k(Z, Z) = LLᵀ, Φ = AL⁻ᵀ and M = ΦᵀΦ + λI the fit is
    Φc, c = M⁻¹Φᵀỹ, and its leverages are those of ΦM⁻¹Φᵀ. Instead of the likelihood of that model a bound on the exact
    one is made large (Titsias, 2009): −log likelihood ≤ that of ΦΦᵀ + λI, plus tr(K − ΦΦᵀ)/2λ.

    Attributes
    ----------
    landmarks : ndarray of shape (m,)
        Which rows.
    """

    landmarks: Any = None

    def evaluate(self, kernel: Kernel, lam: float) -> tuple[float, Array, float]:
        """The criterion, and its derivatives by the logarithms of the kernel's numbers and of λ."""
        (n, t), X, count = self.Y.shape, self.points, self.count
        xp = array_namespace(X)
        where = {} if is_numpy_array(X) else {"device": X.device}
        Z = X[xp.asarray(self.landmarks, **where), :]
        B, pull_inner = evaluate_with_derivatives(kernel, Z)
        A, pull_outer = evaluate_with_derivatives(kernel, X, Z)
        m = B.shape[0]
        i = xp.arange(m, **where)
        B = xp.asarray(B, copy=True)
        B[i, i] += JITTER * float(xp.mean(B[i, i]))
        L = cholesky(B)
        root, share = np.sqrt(self.w)[:, None], self.w / self.w.sum()
        Ys = like(X, root * (self.Y - share @ self.Y if self.intercept else self.Y))
        root, share = like(X, root), like(X, share)
        centre = share @ A if self.intercept else xp.zeros(m, dtype=xp.float64, **where)
        Phi = triangular(L, ((A - centre[None, :]) * root).T).T
        M = Phi.T @ Phi
        M[i, i] += lam
        R = cholesky(xp.asarray(M, copy=True))
        T = triangular(R, triangular(R, Phi.T), transposed=True).T  # ΦM⁻¹
        c = T.T @ Ys
        r = Ys - Phi @ c
        h = xp.sum(T * Phi, axis=1)
        if self.intercept:
            h = h + share
        if self.criterion == "marginal_likelihood":
            energy = np.maximum(to_numpy(xp.sum(Ys * r, axis=0), float) / lam, np.finfo(np.float64).tiny)
            log_det = 2.0 * float(xp.sum(xp.log(xp.linalg.diagonal(R)))) + (count - m) * np.log(lam)
            log_det += float(np.log(self.w.sum())) if self.intercept else 0.0
            away = to_numpy(triangular(L, centre[:, None])[:, 0], float)
            Whole = Phi + root * like(X, away)[None, :]  # without centring
            total = float(self.w @ kernel.diagonal(self.X))
            lost = (total - float(xp.sum(Whole * Whole))) / (2 * lam)
            value = 0.5 * float(count * np.mean(np.log(2 * np.pi * energy / count)) + count + log_det) + lost
            value -= 0.5 * float(np.sum(np.log(self.w)))
            each = like(X, 0.5 * count / (t * energy))
            outer = T - (2.0 / lam) * (r * each) @ c.T
            whole = Whole * (-1.0 / lam)
            eye = xp.eye(m, dtype=xp.float64, **where)
            inverse = triangular(R, triangular(R, eye), transposed=True)
            inner = 0.5 * (lam * inverse - eye) + (c * each) @ c.T + (0.5 / lam) * (Whole.T @ Whole)
            by_lam = 0.5 * (float(xp.sum(inverse[i, i])) + (count - m) / lam) - lost / lam
            by_lam += float(xp.sum(each * (xp.sum(c * c, axis=0) - like(X, energy)))) / lam
        else:
            whole = None
            if self.criterion == "loo":
                left = (1.0 - h)[:, None]
                E = r / left
                value = float(xp.sum(E * E)) / (n * t)
                g, q = -2.0 * E / left / (n * t), xp.sum(2.0 * E * E / left, axis=1) / (n * t)
            else:
                free = n - float(xp.sum(h))
                rss = xp.sum(r * r)
                value = n * float(rss) / free**2 / t
                g, q = r * (-2.0 * n / free**2 / t), xp.ones_like(h) * (2.0 * value / free)
            b = T.T @ g
            S = T.T @ (T * q[:, None])
            outer = g @ c.T + r @ b.T - (Phi @ b) @ c.T + 2.0 * T * q[:, None] - 2.0 * Phi @ S
            inner = -lam * (b @ c.T + S)
            by_lam = -float(xp.sum(b * c)) - float(xp.sum(S[i, i]))
        G = triangular(L, outer.T, transposed=True).T * root
        if self.intercept:
            G = G - share[:, None] * xp.sum(G, axis=0)[None, :]
        if whole is not None:
            G = G + triangular(L, whole.T, transposed=True).T * root
        inner = triangular(L, triangular(L, inner, transposed=True).T, transposed=True).T
        inner[i, i] += JITTER / m * float(xp.sum(inner[i, i]))
        by_parameter = pull_outer(G) + pull_inner(inner)
        if whole is not None and not kernel.normalised:  # of Σ w k(x, x)/2λ
            for start in range(0, n, FEW):
                block = X[start : start + FEW, :]
                some = np.diag(self.w[start : start + FEW] / (2.0 * lam))
                by_parameter = by_parameter + evaluate_with_derivatives(kernel, block)[1](like(X, some))
        return value, by_parameter, lam * by_lam


@dataclass(frozen=True, eq=False)
class LearnedKernel:
    """A kernel whose numbers were learned.

    Attributes
    ----------
    kernel : Kernel
        With a width for each feature, or one for all where those did not predict rows held out better, or are worse by
        the criterion.
    kernels, alphas : list of Kernel, list of float
        What a choice is made of: the best kernel with a single width, with one of each feature, and with a linear part;
        their λ.
    per_feature : bool
        Whether it has a width for each feature.
    features : list of str
        Names of the columns.
    widths, shares : ndarray of shape (p,)
        Length scale of each feature, in its units, of the first part that has any, else NaN; and its share in what the
        rows say: of the squared distance of two near rows, as the kernel measures it; of a sum, that of each term,
        times the term's share of the variance of the fitted function.
    parts : list of str
        The kernels that it is a sum of, with their amplitudes and widths; one where it is no sum.
    rows, evaluations : int
        Rows that it was learned on; how often the criterion and its gradient were computed.
    criterion, before, after : str, float, float
        What was made small, at the best kernel that was given, with the best of a few λ, and at the one learned, on
        these rows.
    refinement : str
        What was done on more rows, and its standard error; empty where nothing was.
    """

    kernel: Kernel
    kernels: list[Kernel]
    alphas: list[float]
    per_feature: bool
    features: list[str]
    widths: Array
    shares: Array
    parts: list[str]
    rows: int
    evaluations: int
    criterion: str
    before: float
    after: float
    refinement: str = ""

    def table(self) -> dict[str, Any]:
        """One row for each feature, the one with the largest share first."""
        order = np.argsort(-self.shares, kind="stable")
        names = np.array(self.features, dtype=object)[order]
        return {"feature": names, "width": self.widths[order], "share": self.shares[order]}

    @property
    def note(self) -> str:
        """What a certificate says of it."""
        which = "a width for each feature" if self.per_feature else "one width for all of them"
        which += f", a sum of {len(self.parts)} kernels" if len(self.parts) > 1 else ""
        change = f"{self.criterion} {self.before:.4g} to {self.after:.4g}"
        said = f"kernel learned on {self.rows} rows, {which}: {change}, {self.evaluations} evaluations of the gradient"
        return f"{said}; {self.refinement}" if self.refinement else said

    def __repr__(self) -> str:
        lines = [f"LearnedKernel({self.note})"]
        columns = self.table()
        wide = max(7, *(len(name) for name in columns["feature"][:20]))
        lines.append(f"{'feature':<{wide}}  {'width':>10}  share")
        for name, width, share in list(zip(*columns.values(), strict=True))[:20]:
            lines.append(f"{name:<{wide}}  {width:>10.4g}  {share:5.1%}")
        if len(self.features) > 20:
            lines.append(f"and {len(self.features) - 20} others")
        lines += [f"part {k}: {part}" for k, part in enumerate(self.parts, start=1)] if len(self.parts) > 1 else []
        return "\n".join(lines)


class Search:
    """Quasi-Newton steps on an :class:`Objective`, from kernel to kernel, counted and reported."""

    def __init__(self, spread: Array, mass: float, lams: tuple[float, float], progress: Progress | None) -> None:
        self.spread, self.progress, self.evaluations = spread, progress, 0
        centre = np.log(1.0 / np.where(spread > 0, spread, 1.0))
        self.low, self.high = centre + np.log(REACH[0]), centre + np.log(REACH[1])
        self.lams = (np.log(lams[0] * mass), np.log(lams[1] * mass))
        self.best = np.inf

    def loss(self, objective: Objective, kernel: Kernel, lam: float) -> tuple[float, Array, float]:
        """The objective's loss; worse than any other where rounding leaves no factor."""
        self.evaluations += 1
        try:
            found = objective.loss(kernel, lam)
        except np.linalg.LinAlgError:
            found = (np.inf, np.zeros(0), 0.0)
        if not (np.isfinite(found[0]) and np.all(np.isfinite(found[1]))):
            # a larger λ is the way out
            found = (1e10, np.zeros(len(list_parameters(kernel, objective.X.shape[1]))), -1.0)
        if self.progress is not None:
            self.best = min(self.best, found[0])
            limit = max(300, self.evaluations)
            self.progress(self.evaluations, limit, f"{len(objective.X)} rows, {objective.criterion} {found[0]:.4g}")
        return found

    def best_lam(self, objective: Objective, kernel: Kernel) -> tuple[float, float]:
        """The best of a few λ, and its loss."""
        tried = kernel_size(kernel, objective.X) * np.exp(np.linspace(*self.lams, LAMBDAS[2]))
        losses = [self.loss(objective, kernel, float(lam))[0] for lam in tried]
        return float(tried[int(np.argmin(losses))]), float(np.min(losses))

    def descend(
        self, objective: Objective, kernel: Kernel, lam: float, steps: int, *, together: bool = False
    ) -> tuple[float, Kernel, float]:
        """From a kernel and λ to better ones: loss, kernel, λ. ``together`` moves the widths of a part by one factor.

        A width of a column without spread stays as it is.
        """
        p, size = objective.X.shape[1], np.log(kernel_size(kernel, objective.X))
        numbers = list_parameters(kernel, p)
        start = np.log([one.value for one in numbers])
        low, high = start + np.log(AMPLITUDES[0]), start + np.log(AMPLITUDES[1])
        for j, one in enumerate(numbers):
            if one.kind == "scale":
                k = one.feature
                low[j], high[j] = (self.low[k], self.high[k]) if self.spread[k] > 0 else (start[j], start[j])
            elif one.kind == "mixture":
                low[j], high[j] = np.log(MIXTURES[0]), np.log(MIXTURES[1])
        start = np.clip(start, low, high)
        # one variable for each number; or for all widths of a part, of those that move
        names = [(one.kind, one.part, -1 if together else one.feature) for one in numbers]
        variables = list(dict.fromkeys(names))
        which = np.array([variables.index(name) for name in names], dtype=np.intp)
        moves = np.array([low[j] < high[j] for j in range(len(numbers))], dtype=np.float64)

        def kernel_at(theta: Array) -> Kernel:
            return with_parameters(kernel, p, np.exp(start + moves * theta[which]))

        def function(theta: Array) -> tuple[float, Array]:
            value, by_parameter, by_lam = self.loss(objective, kernel_at(theta), float(np.exp(theta[-1])))
            gradient = np.bincount(which, moves * by_parameter, len(variables)) if len(which) else np.zeros(0)
            return value, np.append(gradient, by_lam)

        ends = np.array([[-5.0, 5.0] if together else [0.0, 0.0] for _ in variables]).reshape(-1, 2)
        if not together:
            ends[which] = np.column_stack([low - start, high - start])
        lams = np.array(self.lams) + size
        first = np.append(np.zeros(len(variables)), np.clip(np.log(lam), *lams))
        bounds = Bounds(np.append(ends[:, 0], lams[0]), np.append(ends[:, 1], lams[1]))
        options: Any = {"maxiter": steps, "ftol": LEAST_GAIN, "maxfun": 3 * steps}
        found = minimize(function, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return float(found.fun), kernel_at(found.x), float(np.exp(found.x[-1]))


def kernel_size(kernel: Kernel, X: Array) -> float:
    """What λ is measured by: 1 where k(x, x) is, else the mean of k(x, x) over the rows less that of k(x, z)."""
    if kernel.normalised:
        return 1.0
    K = np.asarray(kernel(X[:FIRST]), dtype=np.float64)
    size = float(np.mean(np.diag(K)) - np.mean(K))
    return size if size > 0 else max(float(np.mean(np.diag(K))), np.finfo(np.float64).tiny)


def with_amplitudes(kernel: Kernel, X: Array) -> Kernel:
    """A sum with an amplitude for each term but the first: so that all are of one size, where none was given."""
    terms = kernel.terms
    if len(terms) == 1:
        return kernel
    sizes, out = [kernel_size(term, X) for term in terms], terms[0]
    for term, size in zip(terms[1:], sizes[1:], strict=True):
        out = out + (term if isinstance(term, Scaled) else Scaled(term, sizes[0] / size))
    return out


def learn_kernel(
    problem: KernelProblem,
    kernels: Sequence[Kernel],
    criterion: str,
    *,
    solver: str = "eigh",
    alphas: Any = "auto",
    shapes: bool = False,
    features: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> LearnedKernel:
    """Learn the smooth numbers of a kernel from rows and targets: widths, amplitudes, rates, offsets and λ.

    Each of ``kernels`` is a start, and each with one width gives two more, with the features brought to one size, and
    five times as wide; sums get an amplitude for each term. From each start λ, then one common factor of the widths,
    then all numbers are moved, on up to 1,000 rows. With a width for each feature a criterion can be made small by
    chance: they are kept only where they predict a fifth of the rows, which took no part, better than one width does;
    other shapes take the place of a Gaussian kernel, and a linear kernel is added to a radial one, where they predict
    these rows better by more than a standard error of the difference.
    What wins is finished on up to 3,000 rows, 10,000 on a GPU; of up to 1,000 rows so are those it won against.

    Of more rows it goes on with all of them, for a few steps: by "eigh" and "cg" with products alone
    (:class:`ProbedObjective`), up to 20,000 rows or 200,000 on a GPU; by "landmarks" for the model of 500 landmarks of
    up to 50,000 rows (:class:`LandmarkObjective`). Steps by products are kept where other random columns than those
    they followed agree that they are better, and not made where the estimate has a standard error of a tenth and more.

    Parameters
    ----------
    problem : KernelProblem
        Points, targets, weights and whether there is an intercept.
    kernels : sequence of Kernel
        Where to begin; those without numbers to move are left out.
    criterion : {"loo", "gcv", "marginal_likelihood"}
        What to make small, or likely.
    solver : {"eigh", "cg", "landmarks"}, default="eigh"
        What will fit the kernel that is chosen.
    alphas : "auto" or sequence of float
        λ stays between the smallest and the largest.
    shapes : bool, default=False
        Whether Matérn and rational quadratic kernels may take the place of a Gaussian one.
    features : sequence of str, optional
        Names of the columns.
    progress : callable, optional
        Called with (evaluations, how many are expected at most, message).

    Returns
    -------
    LearnedKernel
        What was learned.
    """
    if sp.issparse(problem.points):
        raise ValueError("learn= needs dense rows, since distances by feature are: give X.toarray(), or learn=None.")
    p = problem.points.shape[1] if hasattr(problem.points, "shape") else 0
    movable = [kernel for kernel in kernels if kernel.has_columns and list_parameters(with_unit_amplitude(kernel), p)]
    if not movable:
        raise ValueError(
            "learn= moves the widths of Gaussian, Matern, RationalQuadratic and Laplacian kernels, rates and offsets "
            f"of polynomials and amplitudes of sums, and {kernels[0]!r} has none: give one of these, or learn=None."
        )
    n = problem.n
    device = problem.device if all(can_differentiate_on_devices(kernel) for kernel in movable) else None
    last = LAST if device is None or device.type == "cpu" else LAST_GPU
    most = max(last, MOST_ROWS) if solver == "landmarks" else last
    order = np.random.default_rng(problem.seed).permutation(n)
    rows = np.sort(order[:most])
    if isinstance(problem.points, Source):
        parts = []
        for block in problem.points.blocks():
            within = rows[(rows >= block.start) & (rows < block.start + len(block.values))] - block.start
            parts.append(np.asarray(block.values[within], dtype=np.float64))
        X = np.concatenate(parts)
    else:
        X = np.asarray(to_numpy(take_points(problem.points, rows)), dtype=np.float64)
    every = Objective(X, problem.Y[rows], problem.frequencies[rows], problem.intercept, criterion, device)
    whole = every.take(np.flatnonzero(np.isin(rows, order[:last]))) if len(rows) > last else every
    few = whole.take(np.sort(np.random.default_rng(problem.seed).permutation(len(whole.X))[:FIRST]))
    spread = whole.X.std(axis=0)
    spread[spread <= 1e-12 * np.abs(whole.X).max(axis=0, initial=0.0)] = 0.0  # rounding of a constant column
    mass = float(np.mean(problem.frequencies))
    lams = (LAMBDAS[0] * n, LAMBDAS[1] * n)
    if not isinstance(alphas, str):
        lams = (float(np.min(alphas)) / mass, float(np.max(alphas)) / mass)
    search = Search(spread, mass, lams, progress)
    movable = [with_amplitudes(kernel, few.X) for kernel in movable]
    starts = [start for kernel in movable for start in _starts(kernel, few.X, spread)]

    # rows held out decide which widths of each feature are the best, and whether they are better than a single one
    fit, judge = held_out_rows(len(few.X), problem.seed)
    part, unseen = few.take(fit), few.take(judge)
    single, each = [], []
    for kernel in starts:
        lam, _ = search.best_lam(part, kernel)
        has_widths = p > 1 and any(one.kind == "scale" for one in list_parameters(kernel, p))
        single.append(search.descend(part, kernel, lam, STEPS[0 if has_widths else 1], together=True))
        if has_widths:
            each += [search.descend(part, *start, STEPS[1]) for start in ((kernel, lam), single[-1][1:])]
    chosen = [min(single, key=lambda found: found[0])]
    losses = [_held_out_losses(part, unseen, kernel, lam) for _, kernel, lam in [*chosen, *each]]
    tied, least = [True], losses[0]
    best = min(losses[1:], key=np.mean, default=least)
    if np.mean(best) < np.mean(least):
        chosen.append(each[[np.mean(loss) for loss in losses[1:]].index(np.mean(best))])
        tied, least = [*tied, False], best
    base = chosen[-1]
    if shapes and isinstance(base[1], Gaussian) and np.any(spread > 0):
        # rougher functions, which trust a row far from others less, with the widths found as a start
        others = []
        for shape in SHAPES:
            at = with_scales(shape, scales_of(base[1], p) * _stretch(shape))
            other = search.descend(part, at, base[2], STEPS[0] if tied[-1] else STEPS[1], together=tied[-1])
            others.append((other, tied[-1]))
            if tied[-1] and p > 1:
                others.append((search.descend(part, *other[1:], STEPS[1]), False))
        losses = [_held_out_losses(part, unseen, kernel, lam) for (_, kernel, lam), _ in others]
        k = int(np.argmin([np.mean(loss) for loss in losses]))
        if _is_better(losses[k], least):
            least, (base, together) = losses[k], others[k]
            chosen, tied = [*chosen, base], [*tied, together]
    if isinstance(base[1], Stretchable) and np.any(spread > 0):
        linear = Scaled(Linear(), 1.0 / kernel_size(Linear(), few.X))
        found = search.descend(part, base[1] + linear, base[2], STEPS[1], together=tied[-1])
        if _is_better(_held_out_losses(part, unseen, *found[1:]), least):
            chosen, tied = [*chosen, found], [*tied, tied[-1]]

    lam, before, given = min(((*search.best_lam(whole, kernel), kernel) for kernel in movable), key=lambda x: x[1])
    finished: list[tuple[float, Kernel, float, bool]] = []
    if len(whole.X) <= FIRST:
        finished.append((*search.descend(whole, given, lam, STEPS[2], together=True), True))
    else:  # the others have been beaten at rows held out, and each would take as long
        chosen, tied = chosen[-1:], tied[-1:]
    for (_, kernel, lam), together in zip(chosen, tied, strict=True):
        finished.append((*search.descend(whole, kernel, lam, STEPS[2], together=together), together))
    loss, kernel, lam, together = min(finished, key=lambda found: found[0])
    shown = (lambda x: x) if criterion == "marginal_likelihood" else np.exp
    learned = LearnedKernel(
        kernel,
        [kernel for _, kernel, _, _ in finished],
        [lam for _, _, lam, _ in finished],
        not together,
        list(features) if features is not None else [f"x{k}" for k in range(p)],
        *_widths_and_shares(kernel, lam, few, spread),
        [repr(term) for term in kernel.terms],
        len(whole.X),
        search.evaluations,
        criterion,
        float(shown(before)),
        float(shown(loss)),
    )
    if n > len(whole.X):
        learned = _refine(learned, lam, together, search, every, problem, solver)
    return learned


def with_unit_amplitude(kernel: Kernel) -> Kernel:
    """A sum whose terms can be told apart by an amplitude of their own."""
    return 1.0 * kernel if isinstance(kernel, Sum) else kernel


def _starts(kernel: Kernel, X: Array, spread: Array) -> list[Kernel]:
    """The kernel; and where its widths are one for all, with the features of one size, and five times as wide."""
    p = X.shape[1]
    numbers, starts = list_parameters(kernel, p), [kernel]
    values = np.array([one.value for one in numbers])
    fair = values.copy()
    size = np.where(spread > 0, spread, np.inf)
    try:
        ratio = median_distance(X) / median_distance(X / size)
    except EqualRowsError:
        return starts
    for k in {one.part for one in numbers if one.kind == "scale"}:
        mine = np.array([one.kind == "scale" and one.part == k for one in numbers])
        if np.ptp(values[mine]) == 0 and np.any(spread > 0):
            columns = np.array([one.feature for one in numbers])[mine]
            fair[mine] = np.where(spread[columns] > 0, values[mine] * ratio / size[columns], values[mine])
    scale = np.array([one.kind == "scale" for one in numbers], dtype=bool)
    if np.any(fair != values):
        # what that is to columns of size 1, and to smoother functions
        starts += [with_parameters(kernel, p, np.where(scale, c * fair, values)) for c in (1.0, SMOOTHER)]
    elif np.any(scale) and p == 1:
        starts.append(with_parameters(kernel, p, np.where(scale, SMOOTHER * values, values)))
    return starts


def _stretch(shape: Stretchable) -> float:
    """s·√2 of a kernel of length 1: what the scales of a Gaussian kernel are multiplied by for the same lengths."""
    return float(np.sqrt(2.0) * scales_of(shape, 1)[0])


def _widths_and_shares(kernel: Kernel, lam: float, rows: Objective, spread: Array) -> tuple[Array, Array]:
    """Length scales of the first part with any; and the share of each feature in the function fitted to some rows.

    The share of a term of a sum is that of the variance of its values f_g = K_g α; within a term it is that of the
    squared distance of two near rows, as the kernel measures it.
    """
    (n, p), terms = rows.X.shape, kernel.terms
    widths, shares, weights, alpha = np.full(p, np.nan), np.zeros(p), np.ones(1), np.zeros((n, 1))
    if len(terms) > 1:
        q = np.sqrt(rows.w)
        A = kernel(rows.X) * q[:, None] * q
        A.flat[:: n + 1] += lam
        mean = rows.w @ rows.Y / rows.w.sum()
        alpha = q[:, None] * np.linalg.solve(A, q[:, None] * (rows.Y - mean))
        weights = np.array([float(np.sum(np.var(term(rows.X) @ alpha, axis=0))) for term in terms])
    for term, weight in zip(terms, weights, strict=True):
        size, inner = np.zeros(p), term
        while isinstance(inner, Scaled):
            inner = inner.kernel
        parts = parts_of(inner)
        for one in list_parameters(inner, p):
            if one.kind != "scale":
                continue
            part = parts[one.part]
            size[one.feature] += (one.value * spread[one.feature]) ** 2
            if np.isnan(widths[one.feature]):
                stretch = 1.0
                if isinstance(part, Gaussian):
                    stretch = 1.0 / np.sqrt(2.0)
                elif isinstance(part, Matern):
                    stretch = np.sqrt(2 * part.nu)
                elif isinstance(part, RationalQuadratic):
                    stretch = 1.0 / np.sqrt(2.0 * part.alpha)
                widths[one.feature] = stretch / one.value
        if not np.any(size > 0):  # what has no widths, as a linear kernel: by how the term follows each feature
            size = np.var(rows.X, axis=0) * (spread > 0)
            if len(terms) > 1 and np.any(size > 0):
                centred = rows.X - rows.X.mean(axis=0)
                f = term(rows.X) @ alpha
                slopes = np.linalg.lstsq(centred, f - f.mean(axis=0), rcond=None)[0]
                size = size * np.sum(slopes**2, axis=1)
        total = float(size.sum())
        shares += weight * size / total if total > 0 else 0.0
    return widths, shares / max(float(shares.sum()), np.finfo(np.float64).tiny)


def _refine(
    learned: LearnedKernel,
    lam: float,
    together: bool,
    search: Search,
    every: Objective,
    problem: KernelProblem,
    solver: str,
) -> LearnedKernel:
    """A few steps more with all rows, from what some of them gave; what was learned before where that is no better."""
    n, device = problem.n, problem.device
    seed, criterion = problem.seed, every.criterion
    lam *= n / learned.rows  # noise stays what it is while rows add up
    if solver == "landmarks":
        kept = np.sort(np.random.default_rng(seed).permutation(len(every.X))[: min(LANDMARKS, len(every.X))])
        objective = LandmarkObjective(
            every.X, every.Y, every.w, every.intercept, criterion, every.device, landmarks=kept
        )
        lam *= len(every.X) / n
        before = search.loss(objective, learned.kernel, lam)[0]
        loss, kernel, lam = search.descend(objective, learned.kernel, lam, STEPS[2], together=together)
        shown = (lambda x: x) if criterion == "marginal_likelihood" else np.exp
        better = loss < before
        change = f"{criterion} {float(shown(before)):.4g} to {float(shown(loss)):.4g}"
        said = f"then on {len(every.X)} rows for a model of {len(kept)} landmarks: {change}"
        lam *= n / len(every.X)
    else:
        gpu = device is not None and device.type != "cpu"
        most = MOST_PROBED_GPU if gpu else MOST_PROBED
        if n > most or not learned.kernel.positive_semidefinite or isinstance(problem.points, Source):
            return replace(learned, refinement=f"the other {n - learned.rows} rows took no part in that")
        X = np.asarray(to_numpy(problem.points), dtype=np.float64)
        parts = X, problem.Y, problem.frequencies, problem.intercept, criterion, device
        if device is not None and not can_differentiate_on_devices(learned.kernel):
            parts = (*parts[:-1], None)
        first, fresh = ProbedObjective(*parts, seed=seed), ProbedObjective(*parts, seed=seed + 1)
        search.loss(first, learned.kernel, lam)
        if first.criterion == "gcv" and first.error > TOO_ROUGH:
            # a matrix so ill-conditioned that its trace is made by few rows takes minutes, and teaches nothing
            said = f"products of all {n} rows with {PROBES} random columns tell GCV to {first.error:.0%} only"
            return replace(learned, evaluations=search.evaluations, refinement=f"{said}; no steps were made")
        _, kernel, after = search.descend(first, learned.kernel, lam, PROBED_STEPS, together=together)
        ends = [search.loss(fresh, *end)[0] for end in ((learned.kernel, lam), (kernel, after))]
        lam, better = after, ends[1] < ends[0]
        if fresh.criterion == "gcv":
            change = f"GCV {np.exp(ends[0]):.4g} to {np.exp(ends[1]):.4g} (standard error {fresh.error:.1%})"
        else:
            change = f"−log likelihood changed by {(ends[1] - ends[0]) * n:.4g}"
            change += f" (standard error of its derivative by ln λ {fresh.error:.2g})"
        said = f"then on all {n} rows by products with {PROBES} random columns: {change}"
    if not better:
        return replace(learned, evaluations=search.evaluations, refinement=f"{said}; not kept")
    some = every.take(np.arange(min(len(every.X), FIRST)))
    widths, shares = _widths_and_shares(kernel, lam, some, search.spread)
    return replace(
        learned,
        kernel=kernel,
        kernels=[*learned.kernels, kernel],
        alphas=[*learned.alphas, lam],
        widths=widths,
        shares=shares,
        parts=[repr(term) for term in kernel.terms],
        evaluations=search.evaluations,
        refinement=said,
    )


def _is_better(losses: Array, before: Array) -> bool:
    """Whether rows held out are predicted better by more than one standard error of the difference, row by row."""
    gain = before - losses
    if not (len(gain) and np.all(np.isfinite(losses))):
        return False
    return bool(np.mean(gain) > np.std(gain) / np.sqrt(len(gain)))


def _held_out_losses(fit: Objective, judge: Objective, kernel: Kernel, lam: float) -> Array:
    """Squared error of each row of ``judge``, times its weight over the mean, of the regression that ``fit`` makes."""
    if not len(judge.X):
        return np.zeros(1)
    q = np.sqrt(fit.w)
    A = kernel(fit.X) * q[:, None] * q
    A.flat[:: len(A) + 1] += lam
    mean = fit.w @ fit.Y / fit.w.sum() if fit.intercept else np.zeros(fit.Y.shape[1])
    try:
        solved = sl.cho_solve(sl.cho_factor(A, lower=True), np.column_stack([q[:, None] * (fit.Y - mean), q]))
    except np.linalg.LinAlgError:
        return np.full(len(judge.X), np.inf)
    b = (q @ solved[:, :-1]) / (q @ solved[:, -1]) if fit.intercept else np.zeros(fit.Y.shape[1])
    alpha = q[:, None] * (solved[:, :-1] - np.outer(solved[:, -1], b))
    errors = judge.Y - mean - b - kernel(judge.X, fit.X) @ alpha
    return np.asarray(judge.w * np.sum(errors**2, axis=1) / judge.w.mean())
