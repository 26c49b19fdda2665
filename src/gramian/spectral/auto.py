"""The rule that chooses a solver: an object one can ask and a rule one can read."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sklearn import get_config

from gramian.operators.base import Operator
from gramian.results import Spectrum
from gramian.spectral.dense import SVD_ENTRIES, Dense
from gramian.spectral.krylov import History, Krylov
from gramian.spectral.rayleigh import check_k, default_tolerance

SKINNY = 1.9  # a flop of a product with a few columns takes this many times one of a large product
READ_FLOPS = 45  # reading a byte of a file takes as long as this many flops (2 GB/s, 90 GFLOP/s)
PATIENCE = 8  # Krylov needs about this many passes on a spectrum that falls fast
SPARSE_GRAM = 1000  # side up to which the Gram matrix of sparse data takes less time than a few passes and their bases
HOPE = 2.0  # Krylov converges faster and faster, so that extrapolating its rate overestimates by about this


@dataclass(frozen=True)
class SpectralFacts:
    """What the choice may depend on."""

    n: int
    p: int
    k: int
    sparse: bool
    resident: bool
    itemsize: int = 8

    @property
    def side(self) -> int:
        """The smaller dimension."""
        return min(self.n, self.p)

    @property
    def gram_cost(self) -> float:
        """Flops to form the smaller Gram matrix (symmetric, so n·p·side) and to read the data once."""
        return float(self.n) * self.p * self.side + self.read_cost

    @property
    def pass_cost(self) -> float:
        """Flops of one pass of block Krylov: 4·n·p·b, and reading."""
        block = -(-(self.k + 2) // 8) * 8
        return SKINNY * 4.0 * self.n * self.p * block + self.read_cost

    @property
    def read_cost(self) -> float:
        """Flop-equivalents of reading the data once from a file."""
        return 0.0 if self.resident else float(READ_FLOPS) * self.itemsize * self.n * self.p


@dataclass(frozen=True)
class Choice:
    """A solver, why it was chosen, and whether an exact one takes over if it is slow to converge.

    Attributes
    ----------
    solver : "exact" or "krylov"
        What to start with.
    reason : str
        Why.
    fallback : bool
        Whether to turn to the Gram matrix when that becomes the shorter way.
    gram : bool
        Whether the Gram matrix of the columns will be needed: it may then be summed with the statistics.
    """

    solver: str
    reason: str
    fallback: bool = False
    gram: bool = False


def choose_spectral_solver(facts: SpectralFacts) -> Choice:
    """Return the documented rule's choice.

    1. Few entries (250,000): LAPACK's SVD of the matrix, or the Gram matrix where the spectrum is flat enough for it to
       keep eleven digits of every variance.
    2. The Gram matrix of the smaller side and its eigenvectors do not fit in ``working_memory``, or the data are
       sparse and that side exceeds 2,000: block Krylov.
       All components of dense data in memory are found exactly whatever their number.
    3. A wide file: exactly, in memory, if it takes at most a quarter of ``working_memory``; otherwise block Krylov.
    4. Sparse data in memory whose smaller side is at most 1,000: exact, through the Gram matrix where safe.
    5. More than an eighth of all components, or forming the Gram matrix costs no more than 8 Krylov passes:
       exact, through the Gram matrix where safe.
    6. Otherwise block Krylov, and the Gram matrix if it turns out to be the shorter way.

    Examples
    --------
    >>> from gramian.spectral.auto import SpectralFacts, choose_spectral_solver
    >>> choose_spectral_solver(SpectralFacts(n=100_000, p=200, k=200, sparse=False, resident=True)).solver
    'exact'
    >>> choose_spectral_solver(SpectralFacts(n=5_000, p=20_000, k=20, sparse=False, resident=True)).solver
    'krylov'
    """
    m, tall = facts.side, facts.p <= facts.n
    if not facts.sparse and facts.n * facts.p <= SVD_ENTRIES:
        return Choice("exact", f"{facts.n} x {facts.p} is small", gram=tall)
    many = 8 * facts.k >= m
    too_large = 3 * 8 * m * m > get_config()["working_memory"] * 2**20 or (facts.sparse and m > 2000)
    if not tall and not facts.resident:
        fits = 8 * facts.n * facts.p <= get_config()["working_memory"] * 2**18
        return (
            Choice("exact", "a wide file that fits in memory")
            if fits
            else Choice("krylov", "a wide file, read by rows")
        )
    if too_large and not (many and facts.resident and not facts.sparse):
        what = "sparse data with many columns" if facts.sparse else f"a {m} x {m} Gram matrix is too large"
        return Choice("krylov", what)
    if many:
        return Choice("exact", f"{facts.k} of {m} components are asked for", gram=tall and not too_large)
    if facts.sparse and facts.resident and m <= SPARSE_GRAM:
        return Choice("exact", f"the {m} x {m} Gram matrix of sparse data is small", gram=tall)
    passes = facts.gram_cost / facts.pass_cost
    if passes <= PATIENCE:
        return Choice("exact", f"the {m} x {m} Gram matrix costs {passes:.0f} Krylov passes", gram=tall)
    return Choice("krylov", f"few components; the Gram matrix would cost {passes:.0f} passes", fallback=True)


@dataclass(frozen=True)
class Auto:
    """Choose by shape, rank asked, sparsity, where the data live, and how fast the first passes converge.

    Parameters
    ----------
    tol : float, optional
        Residual to reach; 1e-6 in float64 and 1e-4 in float32 where not given.
    max_passes : int, default=300
        For block Krylov.
    seed : int, default=0
        For random starts.
    left : bool, default=False
        Whether to return the left vectors.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.operators import Data
    >>> from gramian.spectral import Auto
    >>> A = Data(np.random.default_rng(0).standard_normal((300, 5)))
    >>> Auto().choose(A, 5).reason
    '300 x 5 is small'
    """

    tol: float | None = None
    max_passes: int = 300
    seed: int = 0
    left: bool = False

    def choose(self, A: Operator, k: int | None = None) -> Choice:
        """Return what would be done for k components of A, and why."""
        return choose_spectral_solver(facts_of(A, k))

    def __call__(self, A: Operator, k: int | None = None, choice: Choice | None = None) -> Spectrum:
        """Return the k largest triplets of A (all where k is not given)."""
        facts = facts_of(A, k)
        choice = choose_spectral_solver(facts) if choice is None else choice
        if choice.solver == "exact":
            return Dense(left=self.left)(A, facts.k, choice.reason)
        krylov = Krylov(self.tol, max_passes=self.max_passes, seed=self.seed, left=self.left)
        if not choice.fallback:
            return krylov(A, facts.k, choice.reason)
        return self._race(A, facts, choice, krylov)

    def _race(self, A: Operator, facts: SpectralFacts, choice: Choice, krylov: Krylov) -> Spectrum:
        """Krylov, until its rate of convergence says that the Gram matrix is the shorter way."""
        budget = facts.gram_cost / facts.pass_cost
        tol = default_tolerance(A) if krylov.tol is None else krylov.tol
        result = krylov.attempt(A, facts.k, choice.reason, lambda seen: passes_to_go(seen, tol) > HOPE * budget)
        if result.certificate.converged:
            return result
        spent = result.certificate.passes
        exact = Dense(left=self.left, tol=tol)(
            A,
            facts.k,
            f"block Krylov was slow to converge: after {spent} passes the Gram matrix was the shorter way",
        )
        certificate = exact.certificate.with_(passes=exact.certificate.passes + spent)
        return Spectrum(exact.values, exact.right, exact.left, certificate)


def passes_to_go(history: History, tol: float) -> float:
    """Extrapolate the fall of the worst residual over the last passes; 0 while there is too little to see."""
    if len(history) < 3 or history[-1][0] < PATIENCE:
        return 0.0
    (p0, r0), (p1, r1) = history[-3], history[-1]
    if r1 <= tol:
        return 0.0
    if r1 >= r0:
        return float("inf")
    return math.log(r1 / tol) / math.log(r0 / r1) * (p1 - p0)


def facts_of(A: Operator, k: int | None) -> SpectralFacts:
    """Collect the facts about an operator."""
    n, p = A.shape
    itemsize = 4 if A.dtype == A.xp.float32 else 8
    return SpectralFacts(n, p, min(n, p) if k is None else check_k(A, k), A.sparse, A.resident, itemsize)
