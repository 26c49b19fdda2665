r"""Learning a kernel: a width for each feature and λ, by steps along the gradient of what they are chosen by.

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

M is N, less one with an intercept, and the amplitude of the Gaussian process is the most likely one. A radial kernel
f(u), u = Σ s_k²(x_k − z_k)², has ∂K/∂ln s_k = 2s_k² f′(u)(x_k − z_k)², so that all p derivatives cost one product of an
n × n matrix with the points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg as sl
import scipy.sparse as sp
from scipy.optimize import Bounds, minimize

from gramian.compute.devices import to_numpy
from gramian.inputs.kernels import take_points
from gramian.inputs.progress import Progress
from gramian.kernel_ridge.choose import held_out_rows
from gramian.kernel_ridge.problem import KernelProblem
from gramian.kernels import Gaussian, Kernel, Matern, RationalQuadratic
from gramian.kernels.distance import EqualRowsError, median_distance
from gramian.sources import Source

Array = npt.NDArray[np.float64]

FIRST, LAST = 1000, 3000  # rows that starts are compared on, and that the best is finished on
STEPS = (20, 60, 30)  # steps for one common width, for one of each feature, and of the best on more rows
REACH = (1e-3, 1e2)  # least and largest s_k, in units of one over the standard deviation of the feature
LAMBDAS = (1e-10, 1.0, 9)  # λ over Σw: least, largest, and how many are looked at where a search begins
SMOOTHER = 0.2  # of the scales of a start from which features drop out one after another
LEAST_GAIN = 1e-7  # of the logarithm of the criterion: a step that wins less is the last

Stretchable = Gaussian | Matern | RationalQuadratic  # kernels with widths that can be learned


def scales_of(kernel: Stretchable, p: int) -> Array:
    """s of p features, with which the kernel is f(Σ s_k²(x_k − z_k)²)."""
    return np.broadcast_to(np.asarray(kernel.formula(p).scale, dtype=np.float64), (p,))


def with_scales(kernel: Stretchable, s: Array) -> Stretchable:
    """The kernel of the same kind with other scales; with one number where they are all the same.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.kernel_ridge.learn import with_scales
    >>> from gramian.kernels import Gaussian
    >>> with_scales(Gaussian(1.0), np.array([1.0, 2.0]))
    Gaussian(gamma=(1.0, 4.0))
    """
    s = s[0] if len(s) and np.all(s == s[0]) else s
    if isinstance(kernel, Gaussian):
        return Gaussian(np.square(s))
    stretch = np.sqrt(2 * kernel.nu) if isinstance(kernel, Matern) else 1.0 / np.sqrt(2 * kernel.alpha)
    return replace(kernel, length_scale=stretch / s)


def evaluate_profile(kernel: Stretchable, u: Array) -> tuple[Array, Array]:
    """f(u) and f′(u); of e⁻ʳ 0 where u is, since f′(u)u is what counts."""
    if isinstance(kernel, Gaussian):
        f = np.exp(-u)
        return f, -f
    if isinstance(kernel, RationalQuadratic):
        f = (1.0 + u) ** -kernel.alpha
        return f, -kernel.alpha * f / (1.0 + u)
    r = np.sqrt(u)
    e = np.exp(-r)
    if kernel.nu == 0.5:
        return e, -0.5 * np.divide(e, r, out=np.zeros_like(r), where=r > 0)
    if kernel.nu == 1.5:
        return (1.0 + r) * e, -0.5 * e
    return (1.0 + r + u / 3.0) * e, -(1.0 + r) * e / 6.0


@dataclass(frozen=True, eq=False)
class Objective:
    """What is to be made small, as a function of a kernel's scales and λ, on some rows.

    Attributes
    ----------
    X, Y, w : ndarray of shape (n, p), (n, t), (n,)
        Points, targets and weights.
    intercept : bool
        Whether there is one.
    criterion : {"loo", "gcv", "marginal_likelihood"}
        As in :class:`gramian.KernelRidgeCV`; rows are left out whole.
    """

    X: Array
    Y: Array
    w: Array
    intercept: bool
    criterion: str

    def evaluate(self, kernel: Stretchable, lam: float) -> tuple[float, Array, float]:
        """The criterion, averaged over targets, and its derivatives by ln s_k and ln λ.

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
        n, t = self.Y.shape
        F = (self.X - self.X.mean(axis=0)) * scales_of(kernel, self.X.shape[1])
        squares = np.einsum("ij,ij->i", F, F)
        U = F @ F.T
        U *= -2.0
        U += squares[:, None]
        U += squares
        np.maximum(U, 0.0, out=U)
        np.fill_diagonal(U, 0.0)
        root = np.sqrt(self.w)
        A, slopes = evaluate_profile(kernel, U)
        A *= root[:, None]
        A *= root
        A.flat[:: n + 1] += lam
        factor, failed = sl.lapack.dpotrf(A, lower=1, overwrite_a=1, clean=0)
        if failed:
            raise np.linalg.LinAlgError("K + λI has a negative eigenvalue by rounding")
        log_det = 2.0 * float(np.sum(np.log(np.diag(factor))))
        C, _ = sl.lapack.dpotri(factor, lower=1, overwrite_c=1)
        C = np.tril(C) + np.tril(C, -1).T
        targets, M = root[:, None] * self.Y, float(n)
        if self.intercept:
            # the targets about their mean: C takes q away from both sides, and large means would hide what is left
            targets = root[:, None] * (self.Y - self.w @ self.Y / self.w.sum())
            a = C @ root
            within, M = float(root @ a), M - 1.0
            C -= np.outer(a, a / within)
            log_det += np.log(within)
        a = C @ targets
        if self.criterion == "loo":
            c = np.diag(C)[:, None].copy()
            E = a / c
            value = float(np.sum(E**2)) / (n * t)
            G = (C * np.sum(E**2 / c, axis=1)) @ C
            V = (C @ (E / c)) @ a.T
            G -= 0.5 * (V + V.T)
            G *= 2.0 / (n * t)
        elif self.criterion == "gcv":
            trace, sizes = float(np.trace(C)), np.sum(a**2, axis=0)
            values = n * sizes / trace**2
            value = float(np.mean(values))
            V = (C @ (a * (n / trace**2 / t))) @ a.T
            G = (C @ C) * (2.0 * value / trace) - V - V.T
        else:
            energy = np.maximum(np.einsum("ij,ij->j", targets, a), np.finfo(np.float64).tiny)
            value = 0.5 * float(M * np.mean(np.log(2 * np.pi * energy / M)) + M + log_det)
            value -= 0.5 * float(np.sum(np.log(self.w)))  # of √w y, whose density is that of y over √w
            G = 0.5 * C - (a * (0.5 * M / (t * energy))) @ a.T
        by_lam = lam * float(np.trace(G))
        G *= slopes
        G *= root[:, None]
        G *= root
        return value, 4.0 * (G.sum(axis=1) @ F**2 - np.einsum("ik,ik->k", F, G @ F)), by_lam

    def loss(self, kernel: Stretchable, lam: float) -> tuple[float, Array, float]:
        """What a search follows: the logarithm of an error, or the likelihood of a row, with its derivatives."""
        value, by_scale, by_lam = self.evaluate(kernel, lam)
        if self.criterion == "marginal_likelihood":
            n = len(self.Y)
            return value / n, by_scale / n, by_lam / n
        floor = 1e-24 * float(np.mean(self.Y**2)) + np.finfo(np.float64).tiny  # an error that is 0 has no logarithm
        return float(np.log(value + floor)), by_scale / (value + floor), by_lam / (value + floor)

    def take(self, rows: npt.NDArray[np.intp]) -> Objective:
        """The same of some of the rows."""
        return Objective(self.X[rows], self.Y[rows], self.w[rows], self.intercept, self.criterion)


@dataclass(frozen=True, eq=False)
class LearnedKernel:
    """A kernel whose widths were learned.

    Attributes
    ----------
    kernel : Kernel
        With a width for each feature, or one for all where those did not predict rows held out better, or are worse by
        the criterion.
    kernels, alphas : list of Kernel, list of float
        What a choice is made of: the best kernel with a single width, and with one of each feature; their λ.
    per_feature : bool
        Whether it has a width for each feature.
    features : list of str
        Names of the columns.
    widths, shares : ndarray of shape (p,)
        Length scale of each feature, in its units; and how much of the squared distance between two rows it makes up.
    rows, evaluations : int
        Rows that the widths were learned on; how often the criterion and its gradient were computed.
    criterion, before, after : str, float, float
        What was made small, at the best kernel that was given, with the best of a few λ, and at the one learned, on
        these rows.
    """

    kernel: Kernel
    kernels: list[Kernel]
    alphas: list[float]
    per_feature: bool
    features: list[str]
    widths: Array
    shares: Array
    rows: int
    evaluations: int
    criterion: str
    before: float
    after: float

    def table(self) -> dict[str, Any]:
        """One row for each feature, the one with the largest share first."""
        order = np.argsort(-self.shares, kind="stable")
        names = np.array(self.features, dtype=object)[order]
        return {"feature": names, "width": self.widths[order], "share": self.shares[order]}

    @property
    def note(self) -> str:
        """What a certificate says of it."""
        which = "a width for each feature" if self.per_feature else "one width for all of them"
        change = f"{self.criterion} {self.before:.4g} to {self.after:.4g}"
        return f"kernel learned on {self.rows} rows, {which}: {change}, {self.evaluations} evaluations of the gradient"

    def __repr__(self) -> str:
        lines = [f"LearnedKernel({self.note})"]
        columns = self.table()
        wide = max(7, *(len(name) for name in columns["feature"][:20]))
        lines.append(f"{'feature':<{wide}}  {'width':>10}  share")
        for name, width, share in list(zip(*columns.values(), strict=True))[:20]:
            lines.append(f"{name:<{wide}}  {width:>10.4g}  {share:5.1%}")
        if len(self.features) > 20:
            lines.append(f"and {len(self.features) - 20} others")
        return "\n".join(lines)


class Search:
    """Quasi-Newton steps on an :class:`Objective`, from kernel to kernel, counted and reported."""

    def __init__(self, spread: Array, mass: float, lams: tuple[float, float], progress: Progress | None) -> None:
        self.spread, self.progress, self.evaluations = spread, progress, 0
        moving = spread > 0
        centre = np.log(1.0 / np.where(moving, spread, 1.0))
        self.low, self.high = centre + np.log(REACH[0]), centre + np.log(REACH[1])
        self.lams = (np.log(lams[0] * mass), np.log(lams[1] * mass))
        self.best = np.inf

    def loss(self, objective: Objective, kernel: Stretchable, lam: float) -> tuple[float, Array, float]:
        """The objective's loss; worse than any other where rounding leaves no factor."""
        self.evaluations += 1
        try:
            found = objective.loss(kernel, lam)
        except np.linalg.LinAlgError:
            found = (np.inf, np.zeros(objective.X.shape[1]), 0.0)
        if not (np.isfinite(found[0]) and np.all(np.isfinite(found[1]))):
            found = (1e10, np.zeros(objective.X.shape[1]), -1.0)  # a larger λ is the way out
        if self.progress is not None:
            self.best = min(self.best, found[0])
            limit = max(300, self.evaluations)
            self.progress(self.evaluations, limit, f"{len(objective.X)} rows, {objective.criterion} {found[0]:.4g}")
        return found

    def best_lam(self, objective: Objective, kernel: Stretchable) -> tuple[float, float]:
        """The best of a few λ, and its loss."""
        tried = np.exp(np.linspace(*self.lams, LAMBDAS[2]))
        losses = [self.loss(objective, kernel, float(lam))[0] for lam in tried]
        return float(tried[int(np.argmin(losses))]), float(np.min(losses))

    def descend(
        self, objective: Objective, kernel: Stretchable, lam: float, steps: int, *, together: bool = False
    ) -> tuple[float, Stretchable, float]:
        """From a kernel and λ to better ones, by all scales, or ``together`` by one factor of them: loss, kernel, λ."""
        p = objective.X.shape[1]
        start = np.log(scales_of(kernel, p))
        start = np.where(self.spread > 0, np.clip(start, self.low, self.high), start)
        still = np.flatnonzero(self.spread <= 0)

        def scales(theta: Array) -> Array:
            return start + theta[0] if together else np.where(self.spread > 0, theta[:-1], start)

        def function(theta: Array) -> tuple[float, Array]:
            value, by_scale, by_lam = self.loss(
                objective, with_scales(kernel, np.exp(scales(theta))), np.exp(theta[-1])
            )
            by_scale[still] = 0.0
            return value, np.append(by_scale.sum() if together else by_scale, by_lam)

        first = np.append(0.0 if together else start, np.clip(np.log(lam), *self.lams))
        # a column without spread stays as it is
        low = np.where(self.spread > 0, self.low, start)
        high = np.where(self.spread > 0, self.high, start)
        bounds = Bounds(
            np.append(-5.0 if together else low, self.lams[0]), np.append(5.0 if together else high, self.lams[1])
        )
        options: Any = {"maxiter": steps, "ftol": LEAST_GAIN, "maxfun": 3 * steps}
        found = minimize(function, first, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return float(found.fun), with_scales(kernel, np.exp(scales(found.x))), float(np.exp(found.x[-1]))


def learn_kernel(
    problem: KernelProblem,
    kernels: Sequence[Kernel],
    criterion: str,
    *,
    alphas: Any = "auto",
    features: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> LearnedKernel:
    """Learn the widths of a radial kernel from rows and targets.

    Each of ``kernels`` is a start, and each with one width gives two more, with the features brought to one size, and
    five times as wide. From each start λ, then one common factor of the widths, then all widths are moved, on up to
    1,000 rows. With a width for each feature a criterion can be made small by chance: they are kept only where they
    predict a fifth of the rows, which took no part, better than one width does. What wins is finished on up to 3,000
    rows.

    Parameters
    ----------
    problem : KernelProblem
        Points, targets, weights and whether there is an intercept.
    kernels : sequence of Kernel
        Where to begin; those that are not radial are left out.
    criterion : {"loo", "gcv", "marginal_likelihood"}
        What to make small, or likely.
    alphas : "auto" or sequence of float
        λ stays between the smallest and the largest.
    features : sequence of str, optional
        Names of the columns.
    progress : callable, optional
        Called with (evaluations, how many are expected at most, message).

    Returns
    -------
    LearnedKernel
        What was learned.
    """
    radial = [kernel for kernel in kernels if isinstance(kernel, Stretchable)]
    if not radial:
        raise ValueError(
            f"learn= moves the widths of Gaussian, Matern and RationalQuadratic kernels, and {kernels[0]!r} has none: "
            "give one of these, or learn=None."
        )
    if sp.issparse(problem.points):
        raise ValueError("learn= needs dense rows, since distances by feature are: give X.toarray(), or learn=None.")
    n = problem.n
    rows = np.sort(np.random.default_rng(problem.seed).permutation(n)[:LAST])
    if isinstance(problem.points, Source):
        parts = []
        for block in problem.points.blocks():
            within = rows[(rows >= block.start) & (rows < block.start + len(block.values))] - block.start
            parts.append(np.asarray(block.values[within], dtype=np.float64))
        X = np.concatenate(parts)
    else:
        X = np.asarray(to_numpy(take_points(problem.points, rows)), dtype=np.float64)
    p = X.shape[1]
    whole = Objective(X, problem.Y[rows], problem.frequencies[rows], problem.intercept, criterion)
    few = whole.take(np.sort(np.random.default_rng(problem.seed).permutation(len(rows))[:FIRST]))
    spread = X.std(axis=0)
    spread[spread <= 1e-12 * np.abs(X).max(axis=0, initial=0.0)] = 0.0  # rounding of a constant column
    mass = float(np.mean(problem.frequencies))
    lams = (LAMBDAS[0] * n, LAMBDAS[1] * n)
    if not isinstance(alphas, str):
        lams = (float(np.min(alphas)) / mass, float(np.max(alphas)) / mass)
    search = Search(spread, mass, lams, progress)

    starts = list(radial)
    for kernel in radial:
        scale = kernel.formula(p).scale
        try:
            if np.ndim(scale) == 0 and np.any(
                spread > 0
            ):  # what that is to columns of size 1, and to smoother functions
                size = np.where(spread > 0, spread, np.inf)
                fair = scale * median_distance(X) / (median_distance(X / size) * size)
                starts += [with_scales(kernel, c * np.where(spread > 0, fair, scale)) for c in (1.0, SMOOTHER)]
        except EqualRowsError:
            continue
    # rows held out decide which widths of each feature are the best, and whether they are better than a single one
    fit, judge = held_out_rows(len(few.X), problem.seed)
    part, unseen = few.take(fit), few.take(judge)
    single, each = [], []
    for kernel in starts:
        lam, _ = search.best_lam(part, kernel)
        single.append(search.descend(part, kernel, lam, STEPS[0], together=True))
        if p > 1:
            each += [search.descend(part, *start, STEPS[1]) for start in ((kernel, lam), single[-1][1:])]
    chosen = [min(single, key=lambda found: found[0])]
    errors = [_held_out_error(part, unseen, kernel, lam) for _, kernel, lam in [*chosen, *each]]
    per_feature = bool(np.min(errors[1:], initial=np.inf) < errors[0])
    if per_feature:
        chosen.append(each[int(np.argmin(errors[1:]))])

    lam, before, given = min(((*search.best_lam(whole, kernel), kernel) for kernel in radial), key=lambda x: x[1])
    finished = [search.descend(whole, given, lam, STEPS[2], together=True)]
    for (_, kernel, lam), together in zip(chosen, (True, False), strict=False):
        finished.append(search.descend(whole, kernel, lam, STEPS[2], together=together))
    loss, kernel, lam = min(finished, key=lambda found: found[0])
    s = scales_of(kernel, p)
    size = np.where(spread > 0, (s * spread) ** 2, 0.0)
    widths = 1.0 / (np.sqrt(2.0) * s) if isinstance(kernel, Gaussian) else np.asarray(kernel.length_scale)
    shown = (lambda x: x) if criterion == "marginal_likelihood" else np.exp
    return LearnedKernel(
        kernel,
        [kernel for _, kernel, _ in finished],
        [lam for _, _, lam in finished],
        per_feature and kernel is finished[-1][1],
        list(features) if features is not None else [f"x{k}" for k in range(p)],
        np.broadcast_to(widths, (p,)),
        size / max(float(size.sum()), np.finfo(np.float64).tiny),
        len(rows),
        search.evaluations,
        criterion,
        float(shown(before)),
        float(shown(loss)),
    )


def _held_out_error(fit: Objective, judge: Objective, kernel: Stretchable, lam: float) -> float:
    """Weighted mean squared error for rows of ``judge`` of the regression that ``fit`` determines."""
    if not len(judge.X):
        return 0.0
    q = np.sqrt(fit.w)
    A = kernel(fit.X) * q[:, None] * q
    A.flat[:: len(A) + 1] += lam
    mean = fit.w @ fit.Y / fit.w.sum() if fit.intercept else np.zeros(fit.Y.shape[1])
    solved = sl.cho_solve(sl.cho_factor(A, lower=True), np.column_stack([q[:, None] * (fit.Y - mean), q]))
    b = (q @ solved[:, :-1]) / (q @ solved[:, -1]) if fit.intercept else np.zeros(fit.Y.shape[1])
    alpha = q[:, None] * (solved[:, :-1] - np.outer(solved[:, -1], b))
    errors = judge.Y - mean - b - kernel(judge.X, fit.X) @ alpha
    return float(judge.w @ np.sum(errors**2, axis=1) / judge.w.sum())
