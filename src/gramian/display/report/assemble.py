"""What every report has in common: what was fitted, how far to trust it, and how to make it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Required, TypedDict

import numpy as np
from numpy.typing import NDArray

from gramian.compute.devices import to_numpy
from gramian.display.report.blocks import (
    Block,
    CertificateBlock,
    DataFacts,
    DataTable,
    Facts,
    Proof,
    Report,
    Run,
    Section,
    Text,
    format_value,
    shorten,
    versions,
)
from gramian.display.report.cloud import is_text

CERTIFICATES = 20  # shown one by one


class Common(TypedDict, total=False):
    """Keywords of every report.

    Attributes
    ----------
    data : DataFacts
        What was fitted on.
    run : Run
        How it was made.
    ids : sequence of str
        Names of the rows.
    labels : sequence of str
        What points are coloured by at first.
    label_name : str
        What the labels are called.
    columns : mapping of str to array
        Further columns to colour by.
    rows : array of int
        Numbers of the rows in the input, where they are not 0, 1, 2, …
    title : str
        Of the page.
    """

    data: Required[DataFacts]
    run: Run
    ids: Sequence[str] | None
    labels: Sequence[str] | None
    label_name: str
    columns: Mapping[str, Any] | None
    rows: Any
    title: str | None


def assemble(
    method: str,
    fitted: Sequence[tuple[str, str]],
    proofs: Mapping[str, Proof],
    sections: Sequence[Section],
    tiles: Sequence[tuple[str, str]],
    parameters: Mapping[str, Any],
    common: Common,
) -> Report:
    """Put what is particular to a model between what all of them have."""
    data, run = common["data"], common.get("run") or Run()
    given, file = common.get("title"), data.name.rstrip("/").rsplit("/", 1)[-1] or data.name
    return Report(
        title=given or f"{method} of {shorten(file, 80)}",
        subtitle=data.size if given is None else f"{method} of {data.name}, {data.size}",
        sections=[
            _model_section(data, run, method, fitted, parameters),
            *_certificate_sections(proofs),
            *sections,
            _reproduction_section(data, run),
        ],
        tiles=tiles,
        met=all(proof.converged for proof in proofs.values()) if proofs else None,
    )


def _model_section(
    data: DataFacts, run: Run, method: str, fitted: Sequence[tuple[str, str]], parameters: Mapping[str, Any]
) -> Section:
    rows = [("Data", f"{data.name}: {data.size}"), ("Method", method), *fitted]
    if data.notes:
        rows.append(("Reading the data", "; ".join(data.notes)))
    if run.seconds is not None:
        rows.append(("Time taken", f"{run.seconds:.3g} s"))
    blocks: list[Block] = [Text(f"Warning: {text}", "warning") for text in run.warnings]
    blocks.append(Facts(rows))
    if parameters:
        texts = [f"array of shape {v.shape}" if isinstance(v, np.ndarray) else repr(v) for v in parameters.values()]
        table = {"parameter": list(parameters), "value": [shorten(text, 200) for text in texts]}
        blocks.append(Folded("All parameters", DataTable("parameters", "Parameters", table)))
    return Section("What was fitted", blocks)


@dataclass(frozen=True, eq=False)
class Folded:
    """A block that is opened by a click."""

    title: str
    block: Block

    def html(self, page: Any) -> str:
        """The block behind its title."""
        return f"<details><summary>{self.title}</summary>{self.block.html(page)}</details>"


def _certificate_sections(proofs: Mapping[str, Proof]) -> list[Section]:
    if not proofs:
        return []
    # Those that missed their tolerance come first: they are what a reader must see.
    order = sorted(proofs, key=lambda name: proofs[name].converged)
    blocks: list[Block] = [CertificateBlock(proofs[name], name) for name in order[:CERTIFICATES]]
    if len(order) > CERTIFICATES:
        blocks.append(Text(f"{len(order) - CERTIFICATES} more certificates are like the last of these.", "note"))
    return [Section("How far to trust the numbers", blocks)]


def _reproduction_section(data: DataFacts, run: Run) -> Section:
    rows = [("Command", run.command)] if run.command else []
    rows.append(("Seed", "none was set" if run.seed is None else str(run.seed)))
    if data.checksum:
        rows.append((f"SHA-256 of {shorten(data.name, 60)}", data.checksum))
    rows += [("Versions", ", ".join(f"{name} {number}" for name, number in versions().items()))]
    lead = "The same command with the same versions on the same input gives the same numbers."
    return Section(
        "How to reproduce it", [Facts(rows, code=[name for name, _ in rows if name[:3] in ("Com", "SHA")])], lead
    )


def unique_names(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """Names that differ from each other and from those taken, by a number where they must.

    Examples
    --------
    >>> unique_names(["a", "a", "b"], taken=["b"])
    ['a', 'a (2)', 'b (2)']
    """
    used, found = set(taken), []
    for name in names:
        new, times = name, 1
        while new in used:
            times += 1
            new = f"{name} ({times})"
        used.add(new)
        found.append(new)
    return found


def with_free_names(columns: Mapping[str, Any] | None, taken: Mapping[str, Any]) -> dict[str, Any]:
    """Columns under names that none of those taken has."""
    given = dict(columns or {})
    return dict(zip(unique_names(list(given), list(taken)), given.values(), strict=True))


def colour_options(common: Common, axes: Mapping[str, Any], groups: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What points are coloured by, as keywords of Points: labels among the groups, other columns under free names."""
    labels, columns = common.get("labels"), dict(common.get("columns") or {})
    own = dict(groups or {})
    if labels is not None:
        (name,) = unique_names([common.get("label_name") or "label"], [*axes, *own])
        own = {name: labels, **own}
        columns.pop(name, None)
    free = with_free_names(columns, {**axes, **own})
    # Few groups tell more than many numbers, and come first.
    order = sorted(free, key=lambda name: not is_text(free[name]))
    found = {"names": common.get("ids"), "groups": own, "columns": {name: free[name] for name in order}}
    return {**found, "numbers": common.get("rows")}


def matrix(values: Any, name: str) -> NDArray[np.float64]:
    """A table of numbers, from any array."""
    found = to_numpy(values, float)
    found = found[:, None] if found.ndim == 1 else found
    if found.ndim != 2 or not len(found):
        raise ValueError(f"{name} must be a table with a row for each point; its shape is {np.shape(values)}.")
    return found


def percent(share: float) -> str:
    """A share as text."""
    return format_value(float(share), percent=True)
