"""``gramian info cohort.bed``: who and what is in a PLINK fileset, chromosome by chromosome, and what is missing."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.markup import escape

from gramian.cli.errors import one_line
from gramian.cli.genotype_options import genotype_errors
from gramian.cli.output import Columns, plain, screen_table
from gramian.cli.reading import input_name
from gramian.cli.running import Run
from gramian.compute.memory import gibibytes
from gramian.genetics.filters import few, genome_order
from gramian.sources.plink import Genotypes, open_bed

__all__ = ["show_genotypes"]

MANY = 0.05  # share of missing calls above which SNPs and samples are often left out
MOST = 30  # chromosomes and contigs that are shown
SEXES = {"male": 1, "female": 2, "unknown": 0}


@dataclass(frozen=True, eq=False)
class GenotypeInfo:
    """What is told of a fileset: counts, shares of missing calls, a row for each chromosome, and notes."""

    shape: tuple[int, int]
    sexes: dict[str, int]
    missing: dict[str, float]
    snps: dict[str, int]
    samples: dict[str, int]
    chromosomes: Columns
    notes: list[str]

    @classmethod
    def of(cls, source: Genotypes) -> GenotypeInfo:
        """Count everything in one pass."""
        n, p = source.shape
        counts = source.counts()
        by_snp, by_sample = counts.by_snp[:, 3] / n, counts.by_sample[:, 3] / p
        highest = {"mean": float(by_snp.mean()), "highest_snp": by_snp.max(), "highest_sample": by_sample.max()}
        silent = [source.samples.names[i] for i in np.flatnonzero(by_sample == 1)]
        said = [f"Samples without a call, which pca refuses: {few(silent)}. Leave them out with --mind."] * bool(silent)
        return cls(
            (n, p),
            {name: int(np.sum(source.samples.sex == code)) for name, code in SEXES.items()},
            {name: float(value) for name, value in highest.items()},
            {
                "above_5_percent": int(np.sum(by_snp > MANY)),
                "without_calls": int(np.sum(by_snp == 1)),
                "of_one_allele": int(np.sum(_one_allele(counts.by_snp))),
            },
            {"above_5_percent": int(np.sum(by_sample > MANY)), "without_calls": len(silent)},
            _chromosomes(source, by_snp),
            [*map(one_line, source.notes), *map(one_line, said)],
        )

    def lines(self) -> list[str]:
        """What is said above the table."""
        (n, p), lost, people = self.shape, self.snps, self.samples
        return [
            f"Samples: {', '.join(f'{count:,} {name}' for name, count in self.sexes.items())} (sex)",
            f"Missing calls: {self.missing['mean']:.3%}; of a SNP at most {self.missing['highest_snp']:.2%}, "
            f"of a sample at most {self.missing['highest_sample']:.2%}",
            f"More than {MANY:.0%} missing: {lost['above_5_percent']:,} of {p:,} SNPs (--geno {MANY:g}) and "
            f"{people['above_5_percent']:,} of {n:,} samples (--mind {MANY:g})",
            f"Left out of any PCA: {lost['without_calls']:,} SNPs without a call, {lost['of_one_allele']:,} of one "
            "allele alone; X, Y, MT and unplaced SNPs unless --chr or --all-chromosomes says otherwise",
            *self.notes,
        ]


def show_genotypes(file: Path, as_json: bool, every: bool, run: Run) -> None:
    """Print what is in a fileset, as text or as one JSON object."""
    name = input_name(file)
    with run.step(f"Counting {name}"), genotype_errors(name):
        found = GenotypeInfo.of(open_bed(file))
    (n, p), size = found.shape, file.stat().st_size
    if as_json:
        heads = list(found.chromosomes)
        rows = [dict(zip(heads, row, strict=True)) for row in zip(*found.chromosomes.values(), strict=True)]
        content = {"command": "info", "file": name, "samples": n, "snps": p, "bytes": size, "sexes": found.sexes}
        counts = {"missing": found.missing, "counts": {"snps": found.snps, "samples": found.samples}}
        click.echo(json.dumps(plain({**content, **counts, "chromosomes": rows, "notes": found.notes}), allow_nan=False))
        return
    console = Console()
    title = f"[bold]{escape(name)}[/]: {n:,} samples × {p:,} SNPs, {gibibytes(size)} at two bits a genotype"
    console.print(title, highlight=False, soft_wrap=True)
    for line in found.lines():
        console.print(f"  {escape(line)}", highlight=False, soft_wrap=True)
    shown = dict(found.chromosomes)
    shown["missing"] = [f"{share:.3%}" for share in shown["missing"]]
    console.print(screen_table("", shown, most=len(shown["SNPs"]) if every else MOST))


def _one_allele(counts: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """SNPs with calls, all of them copies of the same allele."""
    two, one, none, _ = counts.T
    return np.asarray((one == 0) & ((two == 0) != (none == 0)))


def _chromosomes(source: Genotypes, missing: npt.NDArray[np.float64]) -> Columns:
    """A row for each chromosome in the order of the genome."""
    order = genome_order(source.snps.chromosome)
    number = {name: i for i, name in enumerate(order)}
    code = np.array([number[name] for name in source.snps.chromosome], dtype=np.intp)
    held = np.bincount(code, minlength=len(order))
    first, last = np.full(len(order), np.iinfo(np.int64).max), np.zeros(len(order), dtype=np.int64)
    np.minimum.at(first, code, source.snps.position)
    np.maximum.at(last, code, source.snps.position)
    found: dict[str, Any] = {"chromosome": ["unplaced" if name == "0" else name for name in order], "SNPs": held}
    share = np.bincount(code, missing, len(order)) / held
    return {**found, "first position": first, "last position": last, "missing": share}
