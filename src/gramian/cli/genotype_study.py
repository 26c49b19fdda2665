"""Genotypes on their way to a fit: opened, filtered, labelled, with everything that was left out counted."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.cli.errors import data_errors, one_line
from gramian.cli.genotype_labels import Labels, read_labels
from gramian.cli.reading import input_name
from gramian.cli.running import LOG, Report, Run
from gramian.genetics._noise import SEEN
from gramian.genetics.filters import Filtered, Filters
from gramian.genetics.pca import Progress
from gramian.sources.plink import Genotypes, open_bed

__all__ = ["OPTION_NAMES", "Study", "as_genotype_options", "genotype_errors", "noted", "prepared", "watcher"]

OPTION_NAMES = {
    "max_snp_missing": "--geno",
    "max_sample_missing": "--mind",
    "chromosomes": "--chr",
    "ranges": "--range",
    "exclude_ranges": "--exclude-range",
    **{name: f"--{name}" for name in ("maf", "hwe", "extract", "exclude", "keep", "remove")},
}
WORDS = {"all_missing": "without a call", "monomorphic": "of one allele alone"}
USUAL, EARLY = 13.0, 0.5  # passes that a fit takes as a rule, and residuals that say nothing yet
# advice on arguments of Python as advice on options
ADVICE = (
    (r"\bmax_sample_missing below 1", "--mind below 1"),
    (r"\bname them in remove\b", "name them in a file for --remove"),
    (r" \(gramian\.genetics\.Filters\(max_sample_missing=0\.5\), or --mind 0\.5 on the command line\)", ": --mind 0.5"),
    (r"\bchromosomes='all'", "--all-chromosomes"),
    (r"\bn_components=(\d+)", r"-k \1"),
    (r"\bmin_share = ", "--min-share "),
    (r"\bA smaller min_share\b", "A smaller --min-share"),
    (r"\b(missing|solver|method|precision)=['\"]([\w-]+)['\"]", r"--\1 \2"),
    (r"\btol=(\S+) or max_passes=(\d+)", r"--tol \1 or --max-passes \2"),
    (r"\b[Gg]ive read_loadings the (.*?) as snps", r"give the \1 as --snps"),
    (
        r"\bGive read_loadings eigenvalues \(and total_variance for smartpca\)",
        "Give --eigenvalues (and --total-variance for smartpca)",
    ),
    (r"\bName the reference's \.afreq or \.frq file", "Give the reference's .afreq or .frq file as --frequencies"),
    (r"; ids themselves are given as a list, not as a string", ""),
)


def as_genotype_options(text: str) -> str:
    """Return advice on arguments of Python as advice on options.

    Examples
    --------
    >>> from gramian.cli.genotype_study import as_genotype_options
    >>> as_genotype_options("Raise tol=1e-05 or max_passes=3, or use solver='exact'.")
    'Raise --tol 1e-05 or --max-passes 3, or use --solver exact.'
    """
    for pattern, advice in ADVICE:
        text = re.sub(pattern, advice, text)
    # filters are named at the start of a complaint, and where one is said to have removed something
    named = r"^(\w+)(?=: )|(?<=\bafter the filter )(\w+)|\b(\w+)(?= removed \d)"
    return re.sub(named, lambda found: OPTION_NAMES.get(found[0], WORDS.get(found[0], found[0])), text)


@contextmanager
def genotype_errors(name: str) -> Iterator[None]:
    """Turn what is refused into one line, the lines of a table set apart, and exit code 3."""
    with data_errors(name):
        try:
            yield
        except (ValueError, TypeError, ImportError, OSError, MemoryError) as error:
            if isinstance(error, PermissionError):
                raise
            lines = [one_line(line).rstrip(".:") for line in str(error).splitlines() if line.strip()]
            raise ValueError(as_genotype_options("; ".join(lines)) or type(error).__name__) from error


@contextmanager
def noted(run: Run) -> Iterator[None]:
    """Pass warnings on, their advice on arguments of Python as advice on options."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", category=DeprecationWarning)
        yield
    for warning in caught:
        run.warn(as_genotype_options(str(warning.message)))


@dataclass(frozen=True, eq=False)
class Study:
    """A fileset, what of it is analysed, and what is known of the samples.

    Attributes
    ----------
    path : Path
        The .bed file.
    whole : Genotypes
        All of it.
    filtered : Filtered
        What passed the filters, and an account of the rest.
    labels : Labels
        Populations and more, empty where there are none.
    """

    path: Path
    whole: Genotypes
    filtered: Filtered
    labels: Labels

    @property
    def source(self) -> Genotypes:
        """What is analysed."""
        return self.filtered.source

    @property
    def notes(self) -> list[str]:
        """What a reader should know of names and labels."""
        return [*map(one_line, self.whole.notes), *(f"labels: {one_line(note)}" for note in self.labels.notes)]

    @property
    def missing(self) -> NDArray[np.float64]:
        """Share of missing calls of each sample that is analysed."""
        return np.asarray(self.source.counts().by_sample[:, 3] / self.source.shape[1])

    def dropped(self) -> dict[str, int]:
        """How many SNPs were left out, by reason."""
        return {_reason(s.name): s.removed for s in self.filtered.steps if s.of == "SNPs"}

    def counts(self) -> dict[str, int]:
        """Samples and SNPs in the file, left out by each filter, and used."""
        (n, p), (kept_n, kept_p) = self.whole.shape, self.source.shape
        lost = [(s.of, _reason(s.name), s.removed) for s in self.filtered.steps if s.removed]
        found = {"Samples in the file": n, "SNPs in the file": p}
        found |= {f"{'SNPs' if of == 'SNPs' else 'Samples'} left out, {why}": count for of, why, count in lost}
        return found | {"Samples used": kept_n, "SNPs used": kept_p}

    def account(self) -> dict[str, Any]:
        """The filters as a table, under the names of the options."""
        columns = dict(self.filtered.table())
        columns["filter"] = [WORDS.get(name, OPTION_NAMES.get(name, name)) for name in columns["filter"]]
        return columns


def _reason(name: str) -> str:
    return WORDS.get(name, f"by {OPTION_NAMES.get(name, name)}")


def prepared(path: Path, filters: Filters, labels: tuple[Path | None, str | None], run: Run) -> Study:
    """Open, filter and label; exit code 3 with one line where that cannot be."""
    name = input_name(path)
    with run.step(f"Reading {name}"), genotype_errors(name):
        whole = open_bed(path)
    with run.step("Filtering"), noted(run), genotype_errors(name):
        filtered = filters.apply(whole)
    for step in filtered.steps:
        LOG.info("%s: %d %s removed, %d left %s", step.name, step.removed, step.of, step.left, step.detail)
    file, column = labels
    if file is None:
        return Study(path, whole, filtered, Labels())
    with genotype_errors(input_name(file)):
        found = read_labels(file, filtered.source.samples, column)
    return Study(path, whole, filtered, found)


def watcher(report: Report, tol: float, most: int) -> Callable[[Progress], None]:
    """Return what a fit calls with its progress: passes done of those expected, and the residual.

    Where the number of passes is not known it is guessed: the digits of the residual that are won so far, per pass. The
    bar never runs backwards.

    Examples
    --------
    >>> from gramian.cli.genotype_study import watcher
    >>> from gramian.genetics.pca import Progress
    >>> watcher(lambda *said: print(*said), 1e-6, 200)(Progress("iterating", 12.0, None, 1e-3))
    500 1000 Fitting: pass 12.0 of about 24, residual 1.0e-03
    """
    reached = 0

    def tell(progress: Progress) -> None:
        nonlocal reached
        if progress.stage == "counting":
            return
        expected = progress.expected or _expected(progress, tol, most)
        reached = max(reached, min(round(1000 * progress.passes / expected), 999))
        about = "" if progress.expected else "about "
        residual = "" if progress.residual is None else f", residual {progress.residual:.1e}"
        report(reached, 1000, f"Fitting: pass {progress.passes:.1f} of {about}{expected:.0f}{residual}")

    return tell


def _expected(progress: Progress, tol: float, most: int) -> float:
    passes, residual = progress.passes, progress.residual
    if residual is None or not tol < residual < EARLY:
        return max(USUAL, passes + 1)
    guess = passes * np.log(tol) / np.log(residual)
    if passes < SEEN:
        guess = min(guess, USUAL)
    return float(np.clip(guess, passes + 0.5, max(most, passes + 0.5)))
