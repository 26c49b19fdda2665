"""Model files, and new rows in the columns that a model was fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from gramian import persistence
from gramian.cli.errors import data_errors
from gramian.cli.reading import Reading, input_name, read
from gramian.cli.running import LOG, Run
from gramian.sources.tables import Table

__all__ = ["MODEL_FILE", "Fitted", "load_model", "matching_table"]

MODEL_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)


@dataclass(frozen=True, eq=False)
class Fitted:
    """A model from a file, and the columns it was fitted to where the file says which."""

    model: Any
    kind: str
    columns: list[str] | None


def load_model(file: Path, run: Run) -> Fitted:
    """Load a model; exit code 3 where the file is none, is damaged, or is of a newer version."""
    with run.step(f"Loading {input_name(file)}"), data_errors(input_name(file)):
        model = persistence.load(file)
        known = persistence.inspect(file)
    LOG.info("%s", known)
    names = getattr(model, "feature_names_in_", None)
    columns = known.metadata.get("columns") if names is None else [str(name) for name in names]
    return Fitted(model, known.kind, columns)


def matching_table(file: Path, fitted: Fitted, reading: Reading, run: Run) -> Table:
    """Read the columns of the fit from another file, in their order; exit code 3 names those that are not there."""
    table = read(file, reading, run, like=fitted.columns)
    wanted = int(getattr(fitted.model, "n_features_in_", table.source.shape[1]))
    with data_errors(input_name(file)):
        if table.source.shape[1] != wanted:
            raise ValueError(f"{table.source.shape[1]} columns, and the {fitted.kind} was fitted to {wanted}")
    return table
