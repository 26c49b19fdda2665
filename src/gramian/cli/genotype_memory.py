"""How much memory a genotype PCA will take, said before it is taken."""

from __future__ import annotations

from dataclasses import dataclass

import click

from gramian.cli.running import LOG
from gramian.compute.memory import gibibytes
from gramian.compute.threads import n_threads
from gramian.genetics._solving import rule
from gramian.sources import memory_budget
from gramian.sources.plink import Genotypes

__all__ = ["Plan", "planned", "predicted_memory"]

TILE = 2**22  # bytes of decoded genotypes, of which a thread holds a few
HELD = 4
LEAST_SNPS = 32  # of a tile
NAMES, TEXT, PEOPLE = 180, 460, 260  # bytes of a SNP's names, while its text is parsed, and of a sample's
COUNTS = 300  # bytes of a SNP's counts, mean, divisor and indices
VECTORS = 40  # blocks of vectors of a Krylov basis and of what is made of it
GRAM_ROWS = 1024  # SNPs decoded for one update of ZZᵀ
PINNED = 2**27  # bytes of a buffer that genotypes go to a card through


@dataclass(frozen=True)
class Plan:
    """The solver to ask for, and the bytes it will take beyond the program itself."""

    solver: str
    nbytes: int

    @property
    def text(self) -> str:
        """The prediction in words."""
        return f"predicted working memory {gibibytes(self.nbytes)}"


def predicted_memory(
    shape: tuple[int, int], file_shape: tuple[int, int], k: int, exact: bool, threads: int, on_card: bool = False
) -> int:
    r"""Bytes that a fit takes at its peak, beyond the program itself and without the mapped file.

    Names and counts of p SNPs, tiles of every thread, and either four n×n matrices or a Krylov basis of blocks of b
    vectors with what is computed from it:

    .. math:: \text{names} + (300 + 12b)\,p + \text{tiles} + \begin{cases}32n^2\\ \min(320\,nb,\ 3B)\end{cases}

    B being the quarter of the working memory that the basis may take. It errs on the large side. A card keeps tiles,
    matrices and basis to itself, and leaves two pinned buffers and a few vectors here.

    Examples
    --------
    >>> from gramian.cli.genotype_memory import predicted_memory
    >>> predicted_memory((3192, 500_568), (3192, 500_568), 10, exact=False, threads=2) < 2**30
    True
    """
    (n, p), (n_file, p_file) = shape, file_shape
    block = -(-(k + 2) // 8) * 8
    names = PEOPLE * n_file + NAMES * p_file
    tiles = threads * HELD * max(TILE, LEAST_SNPS * 4 * n)
    basis = min(8 * VECTORS * n * block, 3 * memory_budget() // 4)
    solving = 32 * n * n + 8 * GRAM_ROWS * n if exact else basis
    if on_card:
        tiles, solving = 2 * PINNED, 32 * n * block
    return int(max(names + (COUNTS + 12 * block) * p + tiles + solving, TEXT * p_file))


def planned(
    source: Genotypes, file_shape: tuple[int, int], k: int, solver: str, ceiling: int | None, on_card: bool = False
) -> Plan:
    """Choose the solver that keeps below the ceiling; exit code 2 where none does."""
    sizes = source.shape, file_shape, k
    least, most = (predicted_memory(*sizes, exact, n_threads(), on_card) for exact in (False, True))
    choice = rule(*source.shape, k)
    if solver == "auto" and ceiling is not None and most > ceiling:
        LOG.info("solver: krylov, as the exact way would take %s", gibibytes(most))
        solver = "krylov"
    may_be_exact = solver == "exact" or (solver == "auto" and (choice.solver != "krylov" or choice.fallback))
    need = most if may_be_exact else least
    if ceiling is not None and need > ceiling:
        remedy = " --solver krylov takes less." if may_be_exact and least <= ceiling else ""
        raise click.UsageError(
            f"--memory {gibibytes(ceiling)} is less than the {gibibytes(need)} that {source.shape[0]:,} samples "
            f"and {source.shape[1]:,} SNPs will take.{remedy}"
        )
    return Plan(solver, max(need, least))
