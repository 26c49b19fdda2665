"""Traits and covariates of people, from the files that PLINK, GCTA and regenie take."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import click
import numpy as np
import numpy.typing as npt

from gramian.cli.genotype_reading import ABSENT, READABLE, read_sample_columns
from gramian.cli.options import bundle, option
from gramian.cli.reading import input_name
from gramian.cli.running import CommandRun, data_errors
from gramian.genetics.text import list_few
from gramian.sources.plink import Samples

MISSING = ABSENT | {"-9"}


@dataclass(frozen=True)
class TraitFiles:
    """Where traits and covariates are."""

    pheno: Path
    pheno_name: str | None = None
    covar: Path | None = None
    covar_name: str | None = None

    def read(self, samples: Samples, run: CommandRun) -> tuple[dict[str, Array], Array | None, list[str]]:
        """Return the traits by name, the covariates, and their names; NaN where something is not known."""
        traits = _read_numbers(self.pheno, self.pheno_name, samples, run)
        if self.covar is None:
            return traits, None, []
        found = _read_numbers(self.covar, self.covar_name, samples, run)
        return traits, np.column_stack(list(found.values())), list(found)


Array = npt.NDArray[np.float64]


def _read_numbers(path: Path, names: str | None, samples: Samples, run: CommandRun) -> dict[str, Array]:
    """The columns that were asked for, which must be numbers; all columns by default."""
    with data_errors(input_name(path)):
        found, notes = read_sample_columns(path, samples, MISSING)
        wanted = list(found) if names is None else [name.strip() for name in names.split(",")]
        absent = [name for name in wanted if name not in found]
        if absent:
            raise ValueError(f"{path}: there is no column {absent[0]!r}; there are {list_few(list(found))}.")
        text = [name for name in wanted if found[name].dtype == object]
        if text:
            raise ValueError(
                f"{path}: column {text[0]} holds text, or whole numbers that float64 would round, and numbers were "
                "expected: name the columns to take, or write groups as columns of 0 and 1."
            )
    for note in notes:
        run.warn(f"{input_name(path)}: {note}")
    return {name: found[name] for name in wanted}


_option = partial(option, section="Traits")
trait_options = bundle(
    TraitFiles,
    "files",
    (
        _option(
            "--pheno",
            type=READABLE,
            required=True,
            help="File of traits: a header with FID and IID, or IID, then a row a person; NA or -9 where not known.",
        ),
        _option("--pheno-name", metavar="LIST", help="Which of its columns [default: all]."),
        _option("--covar", type=READABLE, help="File of covariates, in the same form."),
        _option("--covar-name", metavar="LIST", help="Which of its columns [default: all]."),
    ),
)


def only_trait(traits: dict[str, Array]) -> tuple[str, Array]:
    """Return the one trait there is, or ask which."""
    if len(traits) != 1:
        raise click.UsageError(f"--pheno-name: choose one of {list_few(list(traits))}")
    return next(iter(traits.items()))
