"""Simulated genotypes of a chosen F_ST, over a map or between populations, written as PLINK files of any size."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from gramian.compute.genotypes import calls as unpack
from gramian.compute.genotypes import pack
from gramian.compute.threads import n_threads, parallel, quiet_blas
from gramian.genetics._backgrounds import Background
from gramian.genetics._drawing import draw_calls, erase, missing_rates
from gramian.genetics._frequencies import Frequencies
from gramian.genetics._genome import LENGTHS, Genome
from gramian.genetics.bed_writer import BedWriter
from gramian.sources.plink import Genotypes, Samples, Snps, open_bed

__all__ = ["Simulation", "simulate_genotypes"]

Vector = npt.NDArray[np.float64]

CHUNK = 2**18  # genotypes drawn together, from a generator of their own: they stay in a core's cache
PEOPLE, GENOME, CHUNKS = 0, 1, 2  # which generator draws what


@dataclass(frozen=True, eq=False, repr=False)
class Simulation:
    r"""Genotypes that are described and not yet drawn.

    People have one of three backgrounds:

    - ``positions``: frequencies vary smoothly over a map, alike within about ``length`` (isolation by distance). F_ST
      is the mean over pairs of ``groups``, or of places;
    - ``groups`` alone: separate populations, by the model of Balding and Nichols, with the same F_ST between any two;
    - ``ancestry``: such populations, mixed in each person in given proportions; F_ST is between the populations.

    Hudson's F_ST, :math:`E(f_a-f_b)^2/E(f_a(1-f_b)+f_b(1-f_a))`, is what is asked for in expectation.

    Parameters
    ----------
    n_snps : int
        SNPs.
    positions : array-like of shape (n, d), optional
        Where people live, in a plane: longitudes need to be multiplied by the cosine of a latitude.
    groups : sequence of n labels, optional
        Who belongs together.
    ancestry : array-like of shape (n, K), optional
        Proportions of K populations; rows sum to 1.
    fst : float, default=0.01
        From 0 to below 1; on a map, less.
    length : float, optional
        Distance, in the units of positions, over which frequencies are alike: exp(−d²/2ℓ²) is their correlation. By
        default the diagonal of the map, which makes nearly straight gradients.
    maf : pair of float, default=(0.05, 0.5)
        Ancestral frequencies of A1, the rarer allele, are uniform between these.
    missing : float, default=0.0
        Share of the genotypes that is missing.
    missing_spread : float, default=0.0
        Standard deviation, relative to the mean, of the rate of missing genotypes over SNPs and over people.
    ld : float, default=0.0
        r² of neighbouring SNPs that are as frequent, ρ²; those d apart have ρ²ᵈ, and where frequencies differ, f < h,
        this is multiplied by f(1 − h)/(h(1 − f)), which is the most that is possible.
    ld_block : int, default=20
        SNPs from one break of linkage to the next; chromosomes break it too.
    chromosomes : int, default=22
        How many chromosomes the SNPs are spread over.
    names : sequence of str, optional
        Names of the people, without spaces.
    seed : int, default=0
        The same seed gives the same genotypes, on any number of threads.

    Examples
    --------
    >>> from gramian.genetics.simulation import Simulation
    >>> study = Simulation(1000, groups=["a"] * 20 + ["b"] * 30, fst=0.1, missing=0.02)
    >>> study
    Simulation: 50 people in 2 populations, 1000 SNPs, F_ST 0.1, 2% missing
    >>> calls = study.calls(0, 1000)
    >>> calls.shape, int(calls.min()), int(calls.max())
    ((1000, 50), -1, 2)
    """

    n_snps: int
    _: KW_ONLY
    positions: npt.ArrayLike | None = None
    groups: Sequence[Any] | npt.NDArray[Any] | None = None
    ancestry: npt.ArrayLike | None = None
    fst: float = 0.01
    length: float | None = None
    maf: tuple[float, float] = (0.05, 0.5)
    missing: float = 0.0
    missing_spread: float = 0.0
    ld: float = 0.0
    ld_block: int = 20
    chromosomes: int = 22
    names: Sequence[str] | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        _check(self)
        len(self._people)  # bad people are refused now, not when they are drawn

    @cached_property
    def _people(self) -> Background:
        return Background(self.positions, self.groups, self.ancestry)

    @cached_property
    def _frequencies(self) -> Frequencies:
        with quiet_blas():
            return self._people.frequencies(self.fst, self.length, self.maf)

    @cached_property
    def _genome(self) -> Genome:
        return Genome(self.n_snps, self.chromosomes, self._generator(GENOME))

    @cached_property
    def _rates(self) -> Vector:
        return missing_rates(self.missing, self.missing_spread, len(self._people), self._generator(PEOPLE, 1))

    @cached_property
    def samples(self) -> Samples:
        """The people: named as asked, or numbered; half of them women; no phenotype."""
        n = len(self._people)
        plain = Samples.numbered(n)
        iid = plain.iid if self.names is None else np.array([*self.names, None], dtype=object)[:-1]
        if len(iid) != n:
            raise ValueError(f"{len(iid)} names are given for {n} people.")
        sex = self._generator(PEOPLE, 0).integers(1, 3, n, dtype=np.int8)
        return Samples(iid, iid, plain.father, plain.mother, sex, plain.phenotype)

    @property
    def shape(self) -> tuple[int, int]:
        """People and SNPs."""
        return len(self._people), self.n_snps

    def snps(self, start: int, stop: int) -> Snps:
        """The table of SNPs start to stop."""
        return self._genome.snps(start, min(stop, self.n_snps))

    def calls(self, start: int, stop: int) -> npt.NDArray[np.int8]:
        """Copies of A1 of SNPs start to stop × people, −1 where missing."""
        stop = min(stop, self.n_snps)
        chunks = range(start // self._rows, -(-stop // self._rows))
        packed = np.vstack(self._packed(chunks))[start - chunks.start * self._rows :][: stop - start]
        return unpack(packed, self.shape[0])

    def blocks(self) -> Iterator[tuple[npt.NDArray[np.uint8], Snps]]:
        """Yield packed genotypes and their SNPs, in order; each block is drawn by all threads."""
        together = 4 * n_threads()
        count = -(-self.n_snps // self._rows)
        for chunk in range(0, count, together):
            packed = self._packed(range(chunk, min(chunk + together, count)))
            start = chunk * self._rows
            stop = min(start + len(packed) * self._rows, self.n_snps)
            yield np.vstack(packed)[: stop - start], self.snps(start, stop)

    def write(
        self, path: str | os.PathLike[str], *, overwrite: bool = False, beside: Mapping[str, str] | None = None
    ) -> Genotypes:
        """Draw the genotypes into ``.bed``, ``.bim`` and ``.fam`` files, as :class:`BedWriter` does, and open them."""
        with BedWriter(path, self.samples, overwrite=overwrite, beside=beside) as writer:
            for packed, snps in self.blocks():
                writer.append_packed(packed, snps)
        return open_bed(writer.path)

    @property
    def _rows(self) -> int:
        """SNPs of a chunk: a whole number of linked blocks."""
        rows, whole = max(16, min(1024, CHUNK // self.shape[0])), self.ld_block if self.ld else 1
        return -(-rows // whole) * whole

    def _generator(self, *key: int) -> np.random.Generator:
        return np.random.Generator(np.random.SFC64(np.random.SeedSequence(self.seed, spawn_key=key)))

    def _packed(self, chunks: Sequence[int]) -> list[npt.NDArray[np.uint8]]:
        plan = self._frequencies, self._genome, self._rates  # made once, before threads ask for them
        with quiet_blas():
            parts = parallel(lambda share: [(chunk, self._chunk(chunk, *plan)) for chunk in share], chunks)
        found = dict(item for part in parts for item in part)
        return [found[chunk] for chunk in chunks]

    def _chunk(self, chunk: int, frequencies: Frequencies, genome: Genome, rates: Vector) -> npt.NDArray[np.uint8]:
        """Draw a chunk of SNPs, the last one whole too: what is drawn depends on the chunk alone."""
        rng, start = self._generator(CHUNKS, chunk), chunk * self._rows
        f = frequencies(rng.uniform(*self.maf, self._rows), rng)
        starts = genome.starts(start, start + self._rows)
        calls = draw_calls(f, rng, self.ld**0.5, self.ld_block, starts)
        if self.missing:
            erase(calls, rates, self.missing_spread, rng)
        return pack(calls)

    def __repr__(self) -> str:
        missing = f", {100 * self.missing:g}% missing" if self.missing else ""
        return f"Simulation: {self._people!r}, {self.n_snps} SNPs, F_ST {self.fst:g}{missing}"


def simulate_genotypes(
    path: str | os.PathLike[str], n_snps: int, *, overwrite: bool = False, **description: Any
) -> Genotypes:
    """Simulate genotypes and write them as PLINK files: ``.bed``, ``.bim``, ``.fam``.

    Parameters
    ----------
    path : path
        The ``.bed`` file; the others lie beside it.
    n_snps : int
        SNPs.
    overwrite : bool, default=False
        Whether files of these names may be replaced.
    **description
        As for :class:`Simulation`: who the people are (positions, groups or ancestry), fst, missing, ld, seed and more.

    Returns
    -------
    Genotypes
        The files, opened.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from gramian.genetics.simulation import simulate_genotypes
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     G = simulate_genotypes(Path(folder, "two.bed"), 500, groups=["a"] * 30 + ["b"] * 30, fst=0.05, seed=1)
    ...     G.shape
    (60, 500)
    """
    return Simulation(n_snps, **description).write(path, overwrite=overwrite)


def _check(plan: Simulation) -> None:
    """Refuse what cannot be drawn, by name."""
    low, high = plan.maf
    for name, good, wanted in (
        ("n_snps", plan.n_snps >= 1, "at least 1"),
        ("fst", 0 <= plan.fst < 1, "from 0 to below 1"),
        ("length", plan.length is None or plan.length > 0, "a positive distance"),
        ("maf", 0 < low <= high < 1, "two frequencies between 0 and 1, the smaller first"),
        ("missing", 0 <= plan.missing < 1, "from 0 to below 1"),
        ("missing_spread", 0 <= plan.missing_spread <= 5, "from 0 to 5"),
        ("ld", 0 <= plan.ld <= 1, "an r² from 0 to 1"),
        ("ld_block", 1 <= plan.ld_block <= 1000, "from 1 to 1000 SNPs"),
        ("chromosomes", 1 <= plan.chromosomes <= len(LENGTHS), f"from 1 to {len(LENGTHS)}"),
    ):
        if not good:
            raise ValueError(f"{name}={getattr(plan, name)!r} must be {wanted}.")
