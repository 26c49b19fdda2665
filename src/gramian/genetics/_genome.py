"""Where simulated SNPs lie: on chromosomes of human size, in order, with alleles that no strand confuses."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from gramian.sources.plink import Snps

__all__ = ["Genome"]

# Chromosomes 1 to 22 of the human reference GRCh37, in thousands of base pairs.
FIRST_HALF = (249251, 243199, 198022, 191154, 180915, 171115, 159139, 146364, 141213, 135535, 135007)
SECOND_HALF = (133852, 115170, 107350, 102531, 90355, 81195, 78077, 59129, 63026, 48130, 51305)
LENGTHS = np.array([*FIRST_HALF, *SECOND_HALF])
# A/T and C/G look the same on both strands, and arrays avoid them
ALLELES = np.array(["AC", "AG", "CA", "CT", "GA", "GT", "TC", "TG"])
CM = 1e-6  # centimorgans of a base pair, on average


class Genome:
    """The places and alleles of p SNPs, spread evenly over the first chromosomes.

    Parameters
    ----------
    p : int
        SNPs.
    chromosomes : int
        How many chromosomes, up to 22.
    rng : Generator
        Draws places and alleles.

    Examples
    --------
    >>> import numpy as np
    >>> from gramian.genetics._genome import Genome
    >>> snps = Genome(4, 2, np.random.default_rng(0)).snps(0, 4)
    >>> snps.chromosome.tolist(), snps.id.tolist()
    (['1', '1', '2', '2'], ['sim1', 'sim2', 'sim3', 'sim4'])
    """

    def __init__(self, p: int, chromosomes: int, rng: np.random.Generator) -> None:
        lengths = LENGTHS[:chromosomes]
        self.ends = np.rint(p * np.cumsum(lengths) / lengths.sum()).astype(np.intp)
        self._shift = 0.75 * rng.random(p, dtype=np.float32)  # of the way to the next SNP: none meet
        self._alleles = rng.integers(0, len(ALLELES), p, dtype=np.uint8)

    def starts(self, start: int, stop: int) -> npt.NDArray[np.intp]:
        """Which of these SNPs are the first of a chromosome, counted from ``start``."""
        return np.asarray(self.ends[(self.ends >= start) & (self.ends < stop)] - start)

    def snps(self, start: int, stop: int) -> Snps:
        """The table of SNPs start to stop."""
        index = np.arange(start, stop)
        at = np.searchsorted(self.ends, index, side="right")
        first = np.concatenate([[0], self.ends])[at]
        step = 1000.0 * LENGTHS[at] / (self.ends[at] - first)
        position = ((index - first + self._shift[start:stop]) * step).astype(np.int64) + 1
        a1, a2 = ALLELES[self._alleles[start:stop]].astype("U2").view("U1").reshape(-1, 2).T
        names = np.array([f"sim{j + 1}" for j in range(start, stop)], dtype=object)
        text = np.array([str(c + 1) for c in at], dtype=object)
        return Snps(text, names, np.round(position * CM, 6), position, a1.astype(object), a2.astype(object))
