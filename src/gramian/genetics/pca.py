"""Principal components of genotypes, straight from the packed file."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
from array_api_compat import array_namespace
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.extmath import svd_flip
from sklearn.utils.validation import check_is_fitted

from gramian.compute.devices import is_tensor, refuse_beyond_device, resolve, to_device, to_numpy
from gramian.compute.memory import refuse_beyond_memory
from gramian.genetics.genotypes import (
    SCALES,
    aligned,
    as_genotypes,
    check_parameters,
    check_size,
    column_names,
    is_table,
    located,
    seed_of,
    standardise,
    usable,
)
from gramian.inputs.devices import like_input, store_like
from gramian.operators import GenotypeOperator, Operator, genotype_operator
from gramian.pca.tracy_widom import TracyWidomTable, tracy_widom_from_sums, tracy_widom_quantile, tracy_widom_statistics
from gramian.results import Spectrum
from gramian.sources.plink import Genotypes
from gramian.spectral import Krylov
from gramian.spectral.auto import HOPE, Choice, Facts, choose_spectral_solver, passes_to_go
from gramian.spectral.dense import eigen_of_gram
from gramian.spectral.krylov import History
from gramian.spectral.rayleigh import Triplets, finish, orthogonality, spectrum, thin_qr

__all__ = [
    "ALPHA",
    "Found",
    "GenotypePCA",
    "Noise",
    "Probes",
    "Problem",
    "Progress",
    "Tracker",
    "exact",
    "krylov",
    "least_squares_vectors",
    "rule",
    "teller",
    "untested",
]

STEP = 0.02  # of a pass between two calls: one for each of thousands of blocks would cost more than it tells


class Progress(NamedTuple):
    """Where a fit stands: what ``verbose`` is called with.

    Attributes
    ----------
    stage : str
        "counting", "iterating" or "exact".
    passes : float
        Passes over the genotypes so far, with the part of the present one.
    expected : float or None
        How many there may be in all, where that can be told.
    residual : float or None
        The largest residual waited for.
    """

    stage: str
    passes: float
    expected: float | None
    residual: float | None


def teller(verbose: Any) -> Callable[[Progress], Any]:
    """What to call with progress: the user's own function, a line on standard error, or nothing."""
    if callable(verbose):
        return verbose  # type: ignore[no-any-return]
    return _print if verbose else lambda _: None


class Tracker:
    """Turns finished blocks and residuals into progress, one call at a time whichever thread has done a block.

    Examples
    --------
    >>> from gramian.genetics.pca import Tracker
    >>> tracker = Tracker(print, "exact", 100)
    >>> tracker.block(50, 100)
    Progress(stage='exact', passes=0.5, expected=3.0, residual=None)
    """

    def __init__(self, say: Callable[[Progress], Any], solver: str, p: int) -> None:
        self.say, self.p = say, p
        self.stage = "exact" if solver == "exact" else "iterating"
        self.expected = 3.0 if solver == "exact" else None
        self.residual: float | None = None
        self._done, self._told = 0, 0.0
        self._lock = threading.Lock()

    def block(self, snps: int, _: int) -> None:
        """A block of SNPs was multiplied."""
        with self._lock:
            self._done += snps
            passes = self._done / self.p
            if passes - self._told >= STEP:
                self._told = passes
                self.say(Progress(self.stage, passes, self.expected, self.residual))

    def watch(self, history: History) -> None:
        """A residual is known."""
        self.residual = history[-1][1]


def _print(progress: Progress) -> None:
    residual = "" if progress.residual is None else f", residual {progress.residual:.1e}"
    sys.stderr.write(f"\rGenotypePCA: {progress.stage}, pass {progress.passes:.1f}{residual}   ")
    sys.stderr.flush()


Array = Any

PAIR_BYTES = 2**28  # of products of pairs of loadings that are multiplied in one pass
SHOWN = 5  # samples named in an error


def least_squares_vectors(
    source: Genotypes, U: Array, singular_values: Array, components: Array, device: Any = None
) -> tuple[Array, Array]:
    r"""Scores that fit each sample's own genotypes best, as columns of length 1, and the lengths they had.

    .. math::
        c_i = \arg\min_c \sum_{j\ \text{seen}} (z_{ij} - v_j^Tc)^2 = (V_i^TV_i)^{-1} V^Tz_i,\qquad V^Tz_i = \Sigma u_i

    with V_i the rows of V at the SNPs that sample i has. The k×k matrices are products of the table of calls with the
    products of pairs of loadings: one pass, or more where there are so many pairs that they would fill the memory.
    """
    k = components.shape[0]
    a, b = np.triu_indices(k)
    options = {"dtype": components.dtype, "device": "cpu" if device is None else device}
    seen = genotype_operator(source, np.zeros(source.shape[1]), **options).calls()
    V, normal = components.T, np.empty((len(U), k, k))
    step = max(1, PAIR_BYTES // (V.shape[0] * V.dtype.itemsize))
    for i in range(0, len(a), step):
        first, second = a[i : i + step], b[i : i + step]
        sums = to_numpy(seen.matmat(seen.asarray(np.ascontiguousarray(V[:, first] * V[:, second]))))
        normal[:, first, second] = normal[:, second, first] = sums
    _refuse_undetermined(normal, source, float(np.finfo(components.dtype).eps))
    scores = np.linalg.solve(normal, (U * singular_values)[:, :, None])[:, :, 0]
    lengths = np.linalg.norm(scores, axis=0)
    return np.asarray(scores / lengths, dtype=U.dtype), lengths


def _refuse_undetermined(normal: Array, source: Genotypes, eps: float) -> None:
    """Name the samples whose genotypes are too few to fit k scores to."""
    values = np.linalg.eigvalsh(normal)
    bad = np.flatnonzero(~(values[:, 0] > 100 * eps))  # all genotypes make each matrix the identity
    if len(bad):
        names = ", ".join(source.samples.take(bad[:SHOWN]).names) + (", …" if len(bad) > SHOWN else "")
        raise ValueError(
            f"{len(bad)} of {len(normal)} samples have too few genotypes to fit {normal.shape[1]} scores to: {names}. "
            "Leave them out (gramian.genetics.Filters(max_sample_missing=0.5)), or use missing='mean'."
        )


Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

ALPHA = 0.001  # a component that noise exceeds less often than this is waited for
SEEN = 10  # passes after which a component below the edge of the noise is no longer waited for


@dataclass(frozen=True, eq=False)
class Noise:
    """Sums over all eigenvalues of ZZᵀ that are not zero by construction.

    Attributes
    ----------
    count : int
        How many there are.
    total : float
        Σλ, exact: the sum of squares of Z.
    deviation : float
        Σ(λ − λ̄)².
    error : float
        Standard error, relative, of this sum over the eigenvalues that were not computed, and so of the effective
        number of markers; 0 where all were.
    spread : float
        This sum.
    """

    count: int
    total: float
    deviation: float
    error: float = 0.0
    spread: float = 0.0

    def statistic_errors(self, eigenvalues: Vector) -> Vector:
        """Standard errors of the statistics: half the change from one error less to one more."""
        if self.error in (0.0, np.inf):
            return np.full(len(eigenvalues), self.error)
        shift = min(self.error, 0.9) * self.spread
        less, more = (replace(self, deviation=self.deviation + by).table(eigenvalues) for by in (-shift, shift))
        return np.asarray(np.abs(more.statistics - less.statistics) / 2)

    def table(self, eigenvalues: Vector) -> TracyWidomTable:
        """Test the leading eigenvalues as far as some are left to compare with."""
        few = eigenvalues[: self.count - 1]
        few = few[few > 0]
        return tracy_widom_from_sums(few, self.count, self.total, self.deviation) if len(few) else untested()


@dataclass(frozen=True, eq=False)
class Probes:
    r"""Random directions Ω and ZZᵀΩ, from which the spread of the eigenvalues is estimated without bias.

    For standard normal ω, :math:`E\|(ZZ^T - cI)\,\omega\|^2 = \sum_j(\lambda_j - c)^2`. With c the mean of the
    eigenvalues this is their spread itself, not a difference of two large numbers; with the components found projected
    out of ω and of the product, large eigenvalues, which would make it vary, are left out.

    Attributes
    ----------
    omega, product : array of shape (n, b)
        Ω, orthogonal to 1 as Z is, and ZZᵀΩ: in float64, where Z is multiplied.
    count : int
        Eigenvalues that are not zero by construction: the smaller of n − 1 and the number of SNPs.
    total : float
        Their sum, exact.
    """

    omega: Any
    product: Any
    count: int
    total: float

    @classmethod
    def draw(cls, A: Operator, columns: int, total: float, seed: int) -> Probes:
        """Multiply random directions, the same ones on every device: one pass."""
        n, p = A.shape
        drawn = np.random.default_rng(seed).standard_normal((n, columns))
        drawn -= drawn.mean(axis=0)
        omega = drawn if A.device is None else to_device(drawn, A.device)
        product = A.conormal(drawn if A.device is None else A.asarray(omega))
        return cls(omega, A.xp.asarray(product, dtype=omega.dtype), min(n - 1, p), total)

    def outside(self, U: Any) -> Outside:
        """What of the probes lies inside the span of components U (n, k), and outside."""
        inside, moved = U.T @ self.omega, U.T @ self.product
        omega, rest = self.omega - U @ inside, self.product - U @ moved
        sums = (to_numpy((x * y).sum(axis=0), float) for x, y in ((rest, rest), (rest, omega), (omega, omega)))
        return Outside(self, to_numpy(inside, float), to_numpy(moved, float), *sums)

    def noise(self, eigenvalues: Vector, U: Any) -> Noise:
        """The sums, with what lies outside the span of the components U (n, j) estimated from the probes."""
        return self.outside(U).noise(eigenvalues)

    def separated(self, eigenvalues: Vector, U: Any) -> int:
        """How many leading components lie above the edge of the noise that remains when they are taken out."""
        outside = self.outside(U)
        for j in range(len(eigenvalues)):
            if j >= self.count - 1:
                return j
            if not outside.statistic(eigenvalues[: j + 1]) > critical():
                return j
        return len(eigenvalues)

    def waited(self, eigenvalues: Vector, vectors: Callable[[], Any], passes: int) -> int:
        """All components at first; when they have had time to show, those that lie above the noise."""
        if passes < SEEN:
            return len(eigenvalues)
        xp = array_namespace(self.omega)
        return self.separated(eigenvalues, thin_qr(xp, xp.asarray(vectors(), dtype=self.omega.dtype))[0])

    def resolution(self, passes: int) -> float:
        r"""How far above the edge, relative to it, a component must lie to be found in so many passes.

        From b random directions among n the Chebyshev polynomial of degree q raises a component that lies a fraction γ
        above the rest by :math:`\tfrac12 e^{2q\sqrt\gamma}`; it leads when the square of this exceeds n/b.
        """
        n, b = self.omega.shape
        return float((np.log(4 * n / b) / (4 * max(passes, 1))) ** 2)


@dataclass(frozen=True, eq=False)
class Outside:
    r"""Probes apart from the components u₁ … u_k, in numbers as many as probes: large arrays are looked at once.

    With fewer components taken out, the parts along the others come back, which are orthogonal to the rest:

    .. math:: \|(I - U_jU_j^T)(ZZ^T - cI)\,\omega\|^2
        = \|r - c\,\omega_\perp\|^2 + \sum_{i>j} (u_i^TZZ^T\omega - c\,u_i^T\omega)^2

    Attributes
    ----------
    inside, moved : ndarray of shape (k, b)
        uᵀΩ and uᵀZZᵀΩ.
    rest, cross, omega : ndarray of shape (b,)
        Squared lengths and products of what is left of ZZᵀΩ and of Ω.
    """

    probes: Probes
    inside: Matrix
    moved: Matrix
    rest: Vector
    cross: Vector
    omega: Vector

    def noise(self, eigenvalues: Vector) -> Noise:
        """The sums, with what lies outside the span of the first j components estimated from the probes."""
        probes, j = self.probes, len(eigenvalues)
        count, total = probes.count, probes.total
        left = count - j
        mean = (total - eigenvalues.sum()) / left
        back = np.sum((self.moved[j:] - mean * self.inside[j:]) ** 2, axis=0)
        null = len(probes.omega) - 1 - count  # zero eigenvalues of fewer SNPs than samples lie c from the mean c
        each = self.rest - 2 * mean * self.cross + mean**2 * self.omega + back - null * mean**2
        spread, error = float(each.mean()), float(each.std(ddof=1) / np.sqrt(len(each)))
        squares = max(spread, 0.0) + left * mean**2 + float(np.sum(eigenvalues**2))
        deviation = squares - total**2 / count
        return Noise(count, total, deviation, error / spread if spread > 0 else np.inf, max(spread, 0.0))

    def statistic(self, eigenvalues: Vector) -> float:
        r"""The Tracy–Widom statistic of the last of the eigenvalues, as the largest of the m that follow the others.

        As :func:`tracy_widom_from_sums` has it, without the p-values, which take longer than a pass on a card:
        with their mean c and spread S₂ = Σ(λ − c)², :math:`n' = (m + 2)mc^2/S_2`.
        """
        before, last = eigenvalues[:-1], float(eigenvalues[-1])
        noise = self.noise(before)
        m = noise.count - len(before)
        mean = (noise.total - float(before.sum())) / m
        if not noise.spread > 8 * np.finfo(float).eps * m * mean**2 or last <= 0:
            return float("nan")
        n = max((m + 2) * m * mean**2 / noise.spread, 1.0 + 1e-9)
        a, b = np.sqrt(n - 1), np.sqrt(m)
        return float((last / mean - (a + b) ** 2 / n) / ((a + b) / n * np.cbrt(1 / a + 1 / b)))


def untested() -> TracyWidomTable:
    """The table where there is but one eigenvalue, and nothing to compare it with."""
    return TracyWidomTable(*(np.empty(0) for _ in range(4)))


@cache
def critical() -> float:
    """The Tracy–Widom statistic that noise exceeds with probability ALPHA."""
    return float(tracy_widom_quantile(ALPHA, upper=True))


NOISE_NOTE = "{which} inside the noise (below the Tracy–Widom edge at 0.001): {they} out of the rest of the spectrum."
UNWAITED_NOTE = (
    " Residuals there were not waited for (the largest is {worst:.1e}): programs that stop at such residuals each find "
    "other directions. A component more than {gap:.1%} above the edge would have shown."
)
PAIRWISE_NOTE = (
    "Eigenvectors of the matrix whose entries are divided by the calls that two samples share, as PLINK does; it is "
    "not ZZᵀ, so that the SNPs' loadings are orthogonal only nearly."
)


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be solved: k components of Z, to a tolerance, within some passes."""

    A: GenotypeOperator
    k: int
    total: float
    tol: float
    max_passes: int
    seed: int
    pairwise: bool = False
    watch: Callable[[History], None] = lambda _: None


@dataclass(frozen=True, eq=False)
class Found:
    """Triplets with their certificate, the test of the eigenvalues, and all eigenvalues of ZZᵀ where computed.

    ``separated`` is how many of the triplets stand out of the noise.
    """

    spectrum: Spectrum
    tracy_widom: TracyWidomTable
    noise: Noise
    separated: int
    all_eigenvalues: npt.NDArray[np.float64] | None = None


def rule(n: int, p: int, k: int) -> Choice:
    """The choice between the two: by what the Gram matrix of the samples costs in passes, and whether it fits."""
    choice = choose_spectral_solver(Facts(n=n, p=max(n, p), k=k, sparse=False, resident=True))  # it is n×n whatever p
    few = choice.solver == "exact" and p < n
    return replace(choice, reason=f"{n} samples make a small Gram matrix") if few else choice


def krylov(problem: Problem, choice: Choice) -> Found:
    """Few passes: probes first, which tell where the noise ends and are the start of the iteration."""
    A, k = problem.A, problem.k
    n = A.shape[0]
    columns = min(n, max(-(-(k + 2) // 8) * 8, 8))
    before = A.passes
    with A.session():
        probes = Probes.draw(A, columns, problem.total, problem.seed)
    solver = Krylov(problem.tol, max_passes=problem.max_passes - 1, seed=problem.seed, left=True)
    budget = n / (7.6 * columns)  # passes that the Gram matrix costs

    def abandon(history: History) -> bool:
        problem.watch(history)
        return choice.fallback and passes_to_go(history, problem.tol) > HOPE * budget

    found = solver.attempt(A, k, choice.reason, abandon, start=A.asarray(probes.product), waited=probes.waited)
    if not found.certificate.converged and choice.fallback:
        why = f"after {A.passes - before} passes of block Krylov the Gram matrix was the shorter way"
        result = exact(problem, why)
        certificate = result.spectrum.certificate.with_(passes=A.passes - before)
        return replace(result, spectrum=replace(result.spectrum, certificate=certificate))
    return _finished(problem, found, probes, A.passes - before)


def _finished(problem: Problem, found: Spectrum, probes: Probes, passes: int) -> Found:
    """Count and name the components that lie in the noise, and test the eigenvalues."""
    U, lam, k = _double(problem.A, found.left), found.eigenvalues, problem.k
    separated = probes.separated(lam, U)
    noise = probes.noise(lam[:separated], U[:, :separated])
    worst = float(found.certificate.residuals.max())
    # stopped while all were waited for, before they had had time to show: none may be called noise
    early = found.certificate.judged == k and not worst <= problem.tol
    certificate = found.certificate.with_(passes=passes, judged=k if early else separated)
    if separated < k and not early:
        unwaited = worst if worst > problem.tol else None
        note = _noise_note(separated, k, unwaited, probes.resolution(passes - 3))
        certificate = certificate.with_(notes=(note, *certificate.notes))
    remedy = f"Raise tol={problem.tol:g} or max_passes={problem.max_passes}, or use solver='exact'."
    certificate.warn_unless_converged(remedy)
    return Found(replace(found, certificate=certificate), noise.table(lam), noise, separated)


def _noise_note(separated: int, k: int, unwaited: float | None, gap: float) -> str:
    """Name the components in the noise, and say what is not known of them if the iteration ended before they did."""
    one = k - separated == 1
    which = f"Component {k} lies" if one else f"Components {separated + 1} to {k} lie"
    note = NOISE_NOTE.format(which=which, they="it does not stand" if one else "they do not stand")
    return note if unwaited is None else note + UNWAITED_NOTE.format(worst=unwaited, gap=gap)


def exact(problem: Problem, reason: str) -> Found:
    """Every eigenvalue, through the n×n matrix of the samples' products: one pass, n²M operations."""
    A, k = problem.A, problem.k
    n, p = A.shape
    remedy = "Use solver='krylov', which needs no such matrix" + (", and missing='mean'." if problem.pairwise else ".")
    _refuse_large(A, remedy)
    before = A.passes
    K = A.cogram()
    if problem.pairwise:
        K *= p / _shared_calls(A)
    lam = np.maximum(_eigenvalues(A, K)[::-1], 0.0)
    values, U, residuals = eigen_of_gram(A.xp, K, k)
    found = _triplets(A, U, values, residuals, problem)
    side = "ZZᵀ, each pair divided by its shared calls" if problem.pairwise else "ZZᵀ"
    result = spectrum(
        A,
        found,
        method=f"exact: eigenvectors of {side} ({str(A.dtype).removeprefix('torch.')})",
        reason=reason,
        passes=A.passes - before,
        tolerance=problem.tol,
        left=True,
    )
    if problem.pairwise:
        notes = (PAIRWISE_NOTE, *result.certificate.notes)
        result = replace(
            result, certificate=result.certificate.with_(orthogonality=orthogonality(A.xp, U), notes=notes)
        )
    result.certificate.warn_unless_converged("Raise tol, or use precision='double'.")
    m = min(n - 1, p)
    noise = Noise(m, float(lam[:m].sum()), float(m * lam[:m].var()))
    table = _tested(lam[:m], 4 * np.sqrt(n) * A.epsilon)
    return Found(result, table, noise, min(table.significant(ALPHA), k), lam)


def _tested(lam: npt.NDArray[np.float64], rounding: float) -> TracyWidomTable:
    """Test all eigenvalues but those that are zero, as those of people who are in the data twice are."""
    lam = lam[lam > rounding * lam[0]]
    return tracy_widom_statistics(lam) if len(lam) > 1 else untested()


def _refuse_large(A: GenotypeOperator, remedy: str) -> None:
    """Four n×n matrices must be had."""
    n = A.shape[0]
    nbytes, what = 32.0 * n * n, f"The exact way for {n} samples"
    if A.device is None:
        refuse_beyond_memory(nbytes, what, remedy)
    else:
        refuse_beyond_device(nbytes, A.device, what, remedy)


def _eigenvalues(A: GenotypeOperator, K: Array) -> Matrix:
    """All eigenvalues of a symmetric matrix, ascending."""
    if A.device is None:
        return np.asarray(scipy.linalg.eigvalsh(K, check_finite=False))
    return to_numpy(A.xp.linalg.eigvalsh(K), float)


def _double(A: GenotypeOperator, x: Array) -> Array:
    """An array of the operator's in float64."""
    return A.xp.asarray(x, dtype=A.xp.float64)


def _triplets(A: GenotypeOperator, U: Array, values: Any, residuals: Any, problem: Problem) -> Triplets:
    """Both sides of the components, with the residuals of Z itself where K is ZZᵀ, else those of K."""
    if not problem.pairwise:
        flipped = finish(A.T, A.asarray(U), problem.k)
        return Triplets(flipped.values, flipped.left, flipped.right, flipped.residuals)
    V = A.rmatmat(A.asarray(U)) / A.asarray(np.where(values > 0, values, 1.0))
    return Triplets(values, V, U, residuals + 4 * A.epsilon)


def _shared_calls(A: GenotypeOperator) -> Array:
    """How many genotypes each two samples both have."""
    N = A.calls().cogram()
    if not bool((N != 0).all()):
        i, j = np.argwhere(to_numpy(N, float) == 0)[0]
        names = A.source.samples.names
        raise ValueError(
            f"{names[i]} and {names[j]} have no genotype in common: missing='pairwise' has nothing to divide by. Use "
            "missing='mean', or leave one of them out."
        )
    return N


SINGLE = 1e11  # operations n²M of the exact way from which it is taken in float32: a second or two in float64
FINE = 1e-6  # tolerance that products in float32, which round to half of it, cannot be held to
DEVICE_FINE = 1e-5  # the same on a card, whose products in float32 have an error of up to 2e-6


class GenotypePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Principal components of 2-bit genotypes, in few passes over the packed file.

    .. math:: z_{ij} = \frac{g_{ij} - 2f_j}{s_j}\ (0\text{ where missing}),\qquad \tfrac1M ZZ^T u = \lambda u,\qquad
        Z = U\Sigma V^T

    with g copies of allele A1 in sample i at SNP j, f its frequency among the samples with a call, and M the SNPs used.
    Genotypes stay packed, two bits each, until the multiply.

    Parameters
    ----------
    n_components : int, default=10
        How many components.
    scaling : {"plink", "patterson", "smartpca", "none"}, default="plink"
        The divisor s: √(2f(1−f)); √(f(1−f)), with eigenvalues twice as large; √(q(1−q)) with smartpca's estimate
        q = (1+Σg)/(2+2n); or 1. The eigenvectors of the first two are the same.
    solver : {"auto", "exact", "krylov"}, default="auto"
        ``exact`` computes the n×n matrix ZZᵀ and all its eigenvalues; ``krylov`` iterates on the packed genotypes until
        every component that stands out of the noise meets the tolerance; ``auto`` takes the cheaper.
    missing : {"mean", "pairwise", "least-squares"}, default="mean"
        A missing genotype takes the mean of its SNP, so that z = 0, which draws the scores of samples with many of them
        towards 0. ``pairwise`` divides each entry of ZZᵀ by the number of SNPs at which both samples have calls instead
        of by M, as PLINK's exact ``--pca`` does (exact solver only): no longer a Gram matrix, and its eigenvalues are a
        little larger the more is missing. ``least-squares`` takes the components of the first, then fits each sample's
        scores to the genotypes it has and makes their columns of length 1, as smartpca does.
    chromosomes : {"autosomes", "all"}, default="autosomes"
        Whether SNPs on other chromosomes than 1 to 22 are left out, and counted in ``dropped_``.
    tol : float, default=1e-4
        Residual to reach, relative to the largest singular value.
    max_passes : int, default=200
        Passes after which ``krylov`` stops short, with a warning; two more certify what was found.
    precision : {"auto", "single", "double"}, default="auto"
        Of the multiplications; sums over blocks are in float64 always. ``auto`` is single for ``krylov``, and for the
        exact way where it would take long, unless the tolerance is below 1e-6 (1e-5 on a card).
    random_state : int, RandomState or None, default=0
        Seed of the start vectors.
    verbose : bool or callable, default=False
        Whether to show progress on standard error, or what to call with a :class:`Progress`: one call at a time, from
        any thread.
    device : str, torch.device or None, default=None
        Where to compute: see docs/gpu.md. None is where the data are, "auto" a card if there is one. Genotypes that do
        not fit on a card are streamed through it.

    Attributes
    ----------
    eigenvectors_ : ndarray of shape (n, k)
        U, columns of length 1: what ``.eigenvec`` files hold. The largest entry of each row of V is positive.
    eigenvalues_ : ndarray of shape (k,)
        λ, in the scale that ``eigenvalue_scale_`` names.
    singular_values_, components_ : ndarray of shape (k,), (k, p)
        Σ and Vᵀ, of the SNPs used.
    score_lengths_ : ndarray of shape (k,)
        What scores are divided by to be ``eigenvectors_``: Σ, or the lengths of scores fitted by least squares.
    explained_variance_ratio_ : ndarray of shape (k,)
        λ/Σλ.
    total_variance_ : float
        Σλ of all eigenvalues.
    all_eigenvalues_ : ndarray of shape (n,) or None
        Every λ, from the exact solver.
    mean_, scale_, allele_frequency_ : ndarray of shape (p,)
        2f, s and f of the SNPs used.
    samples_, snps_ : Samples, Snps
        Who and which, in the order of the rows of U and V.
    snp_mask_ : ndarray of bool of shape (n_features_in_,)
        Which of the SNPs given were used.
    dropped_ : dict of str to int
        How many SNPs were left out, and why.
    tracy_widom_ : TracyWidomTable
        Statistic, p-value and effective number of markers of each component (all of them from the exact solver).
    effective_markers_error_ : float
        Standard error of the effective number of markers after the separated components, relative; 0 if exact.
    statistic_errors_ : ndarray
        What this makes of the statistics in the table: their standard errors, 0 if exact.
    n_separated_ : int
        Components that stand out of the noise, as far as they were computed.
    certificate_ : SpectralCertificate
        Method, passes, residual of each component, and whether the tolerance was met.
    n_samples_, n_features_in_ : int
        Samples, and SNPs given.
    feature_names_in_ : ndarray of str
        Names of the columns, where a data frame was given.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian import GenotypePCA
    >>> rng = np.random.default_rng(0)
    >>> f = rng.uniform(0.1, 0.9, (2, 500))
    >>> G = rng.binomial(2, np.repeat(f, 20, axis=0))            # two populations of 20 people
    >>> pca = GenotypePCA(n_components=2).fit(G)
    >>> first = pca.eigenvectors_[:, 0]
    >>> bool(first[:20].max() < first[20:].min() or first[20:].max() < first[:20].min())
    True
    >>> pca.n_separated_, pca.certificate_.converged
    (1, True)
    """

    def __init__(
        self,
        n_components: int = 10,
        *,
        scaling: str = "plink",
        solver: str = "auto",
        missing: str = "mean",
        chromosomes: str = "autosomes",
        tol: float = 1e-4,
        max_passes: int = 200,
        precision: str = "auto",
        random_state: int = 0,
        verbose: Any = False,
        device: Any = None,
    ) -> None:
        self.n_components = n_components
        self.scaling = scaling
        self.solver = solver
        self.missing = missing
        self.chromosomes = chromosomes
        self.tol = tol
        self.max_passes = max_passes
        self.precision = precision
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    def fit(self, X: Any, y: Any = None) -> GenotypePCA:
        """Find the components.

        Parameters
        ----------
        X : path of a ``.bed`` file, Genotypes, or array of shape (n, p)
            Genotypes; an array holds 0, 1 or 2 copies of an allele, and NaN or −1 where missing.
        y : ignored
            For scikit-learn's sake.

        Returns
        -------
        GenotypePCA
            The estimator itself.
        """
        check_parameters(self)
        source, device = located(X, self.device, self.n_components)
        teller(self.verbose)(Progress("counting", 0.0, None, None))
        kept, mask, dropped = usable(source, self.chromosomes == "autosomes")
        check_size(*kept.shape, self.n_components)
        standard = standardise(kept.snp_counts(), self.scaling)
        found = self._solve(kept, standard, device)
        self.snp_mask_, self.dropped_ = mask, dropped
        self.n_samples_, self.n_features_in_ = source.shape
        self.samples_, self.snps_ = kept.samples, kept.snps
        self.mean_, self.scale_, self.allele_frequency_ = standard.mean, standard.scale, standard.frequency
        self._name(found, kept.shape[1])
        self._remember_columns(X)
        if self.missing == "least-squares":
            self._refit(kept, device)
        if self.verbose is True:
            sys.stderr.write("\n")
        store_like(self, X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> npt.NDArray[Any]:
        """Find the components and return the scores UΣ of the samples, in the scale of :meth:`transform`."""
        self.fit(X)
        return self.transform(X) if self.missing != "mean" else self.eigenvectors_ * self.singular_values_

    @like_input
    def transform(self, X: Any) -> npt.NDArray[Any]:
        """Scores ZVᵀ of samples at the same SNPs, standardised as the samples of the fit.

        Scores of new people shrink towards 0; :func:`gramian.genetics.project` corrects for it, and matches SNPs that
        are not the same.
        """
        check_is_fitted(self)
        unnamed = column_names(X) is None or not hasattr(self, "feature_names_in_")
        by_place = getattr(self, "_of_table", False) and is_table(X) and unnamed
        source = aligned(as_genotypes(X), self.snp_mask_, self.snps_, by_place)
        device = resolve(self.device, X if is_tensor(X) else source.values)
        options = {
            "dtype": self.components_.dtype,
            "device": "cpu" if device is None else device,
            "tolerance": self.tol,
        }
        A = genotype_operator(source, self.mean_, self.scale_, **options)
        return to_numpy(A.matmat(A.asarray(np.ascontiguousarray(self.components_.T))))

    @property
    def eigenvalue_scale_(self) -> str:
        """What ``eigenvalues_`` are the eigenvalues of."""
        check_is_fitted(self)
        pairs = "; each pair divided by the SNPs at which both have calls, not by M"
        return SCALES[self.scaling] + (pairs if self.missing == "pairwise" else "")

    @property
    def _n_features_out(self) -> int:
        return int(self.components_.shape[0])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # copies of an allele, not any numbers
        tags.input_tags.allow_nan = True
        tags.transformer_tags.preserves_dtype = []
        return tags

    def _solve(self, kept: Any, standard: Any, device: Any) -> Found:
        (n, p), pairwise = kept.shape, self.missing == "pairwise"
        choice = rule(n, p, self.n_components)
        if self.solver != "auto":
            choice = Choice(self.solver, "asked for")
        elif pairwise:
            choice = Choice("exact", "counts of pairs need the whole matrix")
        operations = float(n) * n * p if choice.solver == "exact" else np.inf
        fine = self.tol < (FINE if device is None else DEVICE_FINE)
        double = self.precision == "double" or (self.precision == "auto" and (operations <= SINGLE or fine))
        tracker, dtype = Tracker(teller(self.verbose), choice.solver, p), np.float64 if double else np.float32
        problem = Problem(
            A=_operator(kept, standard.mean, standard.scale, dtype, device, self.tol, tracker.block),
            k=self.n_components,
            total=float(standard.squares.sum()),
            tol=float(self.tol),
            max_passes=int(self.max_passes),
            seed=seed_of(self.random_state),
            pairwise=pairwise,
            watch=tracker.watch,
        )
        return exact(problem, choice.reason) if choice.solver == "exact" else krylov(problem, choice)

    def _name(self, found: Found, M: int) -> None:
        """Fitted attributes from what was found."""
        U, Vt = to_numpy(found.spectrum.left), to_numpy(found.spectrum.right).T
        self.eigenvectors_, self.components_ = svd_flip(U, np.ascontiguousarray(Vt), u_based_decision=False)
        self.singular_values_ = self.score_lengths_ = found.spectrum.values
        self.eigenvalues_ = found.spectrum.eigenvalues / M
        self.total_variance_ = found.noise.total / M
        self.explained_variance_ratio_ = self.eigenvalues_ / self.total_variance_
        self.all_eigenvalues_ = None if found.all_eigenvalues is None else found.all_eigenvalues / M
        table = found.tracy_widom
        self.tracy_widom_ = type(table)(table.eigenvalues / M, table.statistics, table.p_values, table.effective_n)
        self.n_separated_ = found.separated
        self.effective_markers_error_ = found.noise.error
        self.statistic_errors_ = found.noise.statistic_errors(table.eigenvalues)
        self.certificate_ = found.spectrum.certificate.with_(divisor=float(M))

    def _refit(self, kept: Any, device: Any) -> None:
        """Scores fitted to the genotypes seen, in place of those that take the mean for the others."""
        U, V = self.eigenvectors_, self.components_
        self.eigenvectors_, self.score_lengths_ = least_squares_vectors(kept, U, self.singular_values_, V, device)

    def _remember_columns(self, X: Any) -> None:
        """The names of a data frame's columns, as scikit-learn has them."""
        self._of_table, names = is_table(X), column_names(X)
        if names is not None:
            self.feature_names_in_ = np.asarray(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_


def _operator(source: Any, mean: Any, scale: Any, dtype: Any, device: Any, tol: float, progress: Any = None) -> Any:
    """Z on a device that is settled: None is NumPy, wherever the genotypes are."""
    where = "cpu" if device is None else device
    return genotype_operator(source, mean, scale, dtype=dtype, device=where, tolerance=tol, progress=progress)
