"""Filters at work: a view of the genotypes that grows smaller, and a line of the report for each of them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from gramian.genetics._filter_report import Filtered, Step
from gramian.genetics._id_lists import few
from gramian.genetics._regions import genome_order
from gramian.genetics._tallies import Tallies, tally
from gramian.sources.plink import Genotypes

__all__ = ["SLACK", "Sieve"]

Mask = npt.NDArray[np.bool_]

SLACK = 1e-12  # a rate that equals its threshold passes, however both were rounded


@dataclass(eq=False)
class Sieve:
    """Genotypes on their way through filters."""

    source: Genotypes
    steps: list[Step] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.shape = self.source.shape
        self._tallies: Tallies | None = None

    @property
    def tallies(self) -> Tallies:
        """Counts among the samples and SNPs left: one pass, again only after something was removed."""
        if self._tallies is None:
            self._tallies = tally(self.source)
        return self._tallies

    def keep_samples(self, name: str, mask: Mask, detail: str = "") -> None:
        """Go on with the samples of the mask."""
        self._record(name, "samples", mask, detail)
        if not mask.all():
            self._replace(self.source.select(samples=mask))

    def keep_snps(self, *filters: tuple[str, Mask, str]) -> None:
        """Go on with the SNPs that pass every (name, mask, detail); each is charged with what those before let pass."""
        left = np.ones(self.source.shape[1], np.bool_)
        for name, mask, detail in filters:
            passed = left & mask
            self.steps.append(_step(name, "SNPs", left, passed, detail))
            left = passed
            self._refuse_nothing(name, "SNPs", left)
        if not left.all():
            self._replace(self.source.select(snps=left))

    def keep_chromosomes(self, wanted: frozenset[str] | None, detail: str) -> None:
        """Go on with the SNPs of some chromosomes, and count the others by theirs."""
        chromosome = self.source.snps.chromosome
        mask = np.array([wanted is None or name in wanted for name in chromosome], dtype=np.bool_)
        counts = Counter(chromosome[~mask])
        self.left_out = {str(name): counts[name] for name in genome_order(counts)}
        # the number first: of chromosome 12 and 697 SNPs, "12 697" would read as a thousand times as many
        lost = ", ".join(f"{n} unplaced" if name == "0" else f"{n} on {name}" for name, n in self.left_out.items())
        self.keep_snps(("chromosomes", mask, f"{detail}; left out: {lost}" if lost else detail))

    def refuse_uncalled(self) -> None:
        """Raise where a sample has no call on the SNPs that are left."""
        calls = self.tallies.sample_asked - self.tallies.sample_missing
        empty = np.flatnonzero(calls == 0)
        if empty.size:
            who = few([f"{self.source.samples.fid[i]} {self.source.samples.iid[i]}" for i in empty])
            raise ValueError(
                f"{empty.size} sample{'s have' if empty.size > 1 else ' has'} no call on the {self.source.shape[1]} "
                f"SNPs that are left: {who} (FID IID). Leave them out: set max_sample_missing below 1, or name them "
                "in remove."
            )

    def refuse_emptied(self, calls: npt.NDArray[np.int64], p: int) -> None:
        """Do so after SNPs were removed: a pass only where more were removed than somebody had calls."""
        if np.min(calls) <= p - self.source.shape[1]:
            self.refuse_uncalled()

    def result(self) -> Filtered:
        """What is left, and the account."""
        return Filtered(self.source, self.shape, tuple(self.steps), self.left_out, tuple(self.notes))

    def _record(self, name: str, of: str, mask: Mask, detail: str) -> None:
        self.steps.append(_step(name, of, np.ones_like(mask), mask, detail))
        self._refuse_nothing(name, of, mask)

    def _replace(self, source: Genotypes) -> None:
        self.source, self._tallies = source, None

    def _refuse_nothing(self, name: str, of: str, left: Mask) -> None:
        if not left.any():
            *before, last = self.steps
            said = ", ".join(f"{step.name} removed {step.removed} {step.of}" for step in before if step.removed)
            raise ValueError(
                f"No {of} are left after the filter {name}{f' ({last.detail})' if last.detail else ''}, which removed "
                f"the last {last.removed}.{f' Before it, {said}.' if said else ''}"
            )


def _step(name: str, of: str, before: Mask, after: Mask, detail: str) -> Step:
    left = int(np.count_nonzero(after))
    return Step(name, of, int(np.count_nonzero(before)) - left, left, detail)
