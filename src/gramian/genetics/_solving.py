"""The two ways to the components of genotypes: block Krylov on packed data, and the whole Gram matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from gramian.analysis.eigenvalue_tests import TracyWidomTable, tracy_widom_statistics
from gramian.compute.devices import refuse_beyond_device
from gramian.compute.memory import refuse_beyond_memory
from gramian.genetics._noise import ALPHA, Noise, Probes, untested
from gramian.operators import DeviceGenotypeOperator, GenotypeOperator
from gramian.results import Spectrum
from gramian.spectral import Krylov
from gramian.spectral.auto import HOPE, Choice, Facts, choose, passes_to_go
from gramian.spectral.dense import eigen_of_gram
from gramian.spectral.krylov import History
from gramian.spectral.rayleigh import Triplets, epsilon, finish, orthogonality, small, spectrum, warn_unless_converged

__all__ = ["Found", "Problem", "exact", "krylov", "rule"]

Matrix = npt.NDArray[np.float64]
Array = Any
Genotyped = GenotypeOperator | DeviceGenotypeOperator

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

    A: Genotyped
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
    choice = choose(Facts(n=n, p=max(n, p), k=k, sparse=False, resident=True))  # it is n×n whatever p
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
    warn_unless_converged(certificate, remedy)
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
    warn_unless_converged(result.certificate, "Raise tol, or use precision='double'.")
    m = min(n - 1, p)
    noise = Noise(m, float(lam[:m].sum()), float(m * lam[:m].var()))
    table = _tested(lam[:m], 4 * np.sqrt(n) * epsilon(A))
    return Found(result, table, noise, min(table.significant(ALPHA), k), lam)


def _tested(lam: npt.NDArray[np.float64], rounding: float) -> TracyWidomTable:
    """Test all eigenvalues but those that are zero, as those of people who are in the data twice are."""
    lam = lam[lam > rounding * lam[0]]
    return tracy_widom_statistics(lam) if len(lam) > 1 else untested()


def _refuse_large(A: Genotyped, remedy: str) -> None:
    """Four n×n matrices must be had."""
    n = A.shape[0]
    nbytes, what = 32.0 * n * n, f"The exact way for {n} samples"
    if A.device is None:
        refuse_beyond_memory(nbytes, what, remedy)
    else:
        refuse_beyond_device(nbytes, A.device, what, remedy)


def _eigenvalues(A: Genotyped, K: Array) -> Matrix:
    """All eigenvalues of a symmetric matrix, ascending."""
    if A.device is None:
        return np.asarray(scipy.linalg.eigvalsh(K, check_finite=False))
    return small(A.xp.linalg.eigvalsh(K))


def _double(A: Genotyped, x: Array) -> Array:
    """An array of the operator's in float64."""
    return A.xp.asarray(x, dtype=A.xp.float64)


def _triplets(A: Genotyped, U: Array, values: Any, residuals: Any, problem: Problem) -> Triplets:
    """Both sides of the components, with the residuals of Z itself where K is ZZᵀ, else those of K."""
    if not problem.pairwise:
        flipped = finish(A.T, A.asarray(U), problem.k)
        return Triplets(flipped.values, flipped.left, flipped.right, flipped.residuals)
    V = A.rmatmat(A.asarray(U)) / A.asarray(np.where(values > 0, values, 1.0))
    return Triplets(values, V, U, residuals + 4 * epsilon(A))


def _shared_calls(A: Genotyped) -> Array:
    """How many genotypes each two samples both have."""
    N = A.seen().cogram()
    if not bool((N != 0).all()):
        i, j = np.argwhere(small(N) == 0)[0]
        names = A.source.samples.names
        raise ValueError(
            f"{names[i]} and {names[j]} have no genotype in common: missing='pairwise' has nothing to divide by. Use "
            "missing='mean', or leave one of them out."
        )
    return N
