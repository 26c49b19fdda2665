"""What every report has in common: what was fitted, how far to trust it, and how to make it again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Required, TypedDict

import numpy as np
from numpy.typing import NDArray

from gramian.compute.devices import to_numpy
from gramian.display.base import shorten
from gramian.display.report.blocks import (
    CertificateBlock,
    DataTable,
    Facts,
    Proof,
    QualityBlock,
    Report,
    ReportBlock,
    Section,
    Text,
    format_value,
    versions,
)
from gramian.display.report.cloud import Arrows, Cloud, Panel, Points, is_text
from gramian.display.report.facts import DataFacts, Run
from gramian.results import Quality

CERTIFICATES = MEASURES = 20  # shown one by one


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


Pairs = list[tuple[str, str]]


def find_quality(common: Common, measure: Callable[[], Sequence[Quality]]) -> Sequence[Quality]:
    """How well the model fits: as the command measured it, or measured now."""
    run = common.get("run")
    return run.quality if run is not None and run.quality else measure()


def assemble(
    method: str,
    model: Any,
    facts: Pairs,
    tiles: Pairs,
    sections: Sequence[Section],
    common: Common,
    quality: Sequence[Quality] = (),
    warnings: Sequence[str] = (),
) -> Report:
    """Put what is particular to a model first, and then what all of them have; sections without blocks are left out.

    The model is fitted, with a certificate and parameters, or a mapping of names to certificates.
    """
    data, run = common["data"], common.get("run") or Run()
    # How far to trust it: certificates that missed their tolerance come first, as a reader must see them.
    proofs: Mapping[str, Proof] = model if isinstance(model, Mapping) else {"": model.certificate_}
    order = sorted(proofs, key=lambda name: proofs[name].converged)
    trust: list[ReportBlock] = [QualityBlock(measure) for measure in quality[:MEASURES]]
    trust += [CertificateBlock(proofs[name], name) for name in order[:CERTIFICATES]]
    if len(order) > CERTIFICATES:
        trust.append(Text(f"{len(order) - CERTIFICATES} more certificates are like the last of these.", "note"))
    # What was fitted.
    rows = [("Data", f"{data.name}: {data.size}"), ("Method", method), *facts]
    if data.notes:
        rows.append(("Reading the data", "; ".join(data.notes)))
    if run.seconds is not None:
        rows.append(("Time taken", f"{run.seconds:.3g} s"))
    fitted: list[ReportBlock] = [Facts(rows)]
    if not isinstance(model, Mapping):
        parameters = model.get_params()
        texts = [f"array of shape {v.shape}" if isinstance(v, np.ndarray) else repr(v) for v in parameters.values()]
        table = {"parameter": list(parameters), "value": [shorten(text, 200) for text in texts]}
        fitted.append(Folded("All parameters", DataTable("parameters", "Parameters", table)))
    # How to reproduce it.
    checksum = f"SHA-256 of {shorten(data.name, 60)}"
    again = [("Command", run.command), ("Seed", "none was set" if run.seed is None else str(run.seed))]
    again += [(checksum, data.checksum), ("Versions", ", ".join(" ".join(pair) for pair in versions().items()))]
    lead = "The same command with the same versions on the same input gives the same numbers."
    given, file = common.get("title"), data.name.rstrip("/").rsplit("/", 1)[-1] or data.name
    return Report(
        title=given or f"{method} of {shorten(file, 80)}",
        subtitle=data.size if given is None else f"{method} of {data.name}, {data.size}",
        sections=[
            *(section for section in sections if section.blocks),
            Section("How far to trust it", trust),
            Section("What was fitted", fitted),
            Section("How to reproduce it", [Facts([row for row in again if row[1]], ("Command", checksum))], lead),
        ],
        tiles=tiles,
        met=all(proof.converged for proof in proofs.values()),
        tolerance=max((proof.tolerance for proof in proofs.values()), default=None),
        quality=quality,
        warnings=list(dict.fromkeys([*warnings, *run.warnings])),
    )


@dataclass(frozen=True, eq=False)
class Folded:
    """A block that is opened by a click."""

    title: str
    block: ReportBlock

    def html(self, page: Any) -> str:
        """The block behind its title."""
        return f"<details><summary>{self.title}</summary>{self.block.html(page)}</details>"


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


def row_cloud(
    axes: dict[str, Any],
    panels: Sequence[Panel],
    name: str,
    measures: Any,
    common: Common,
    biplot: Arrows | None = None,
    **more: Any,
) -> Cloud:
    """Rows in linked plots: their measures are axes too, and they are coloured by their labels at first."""
    axes = axes | with_free_names(measures, axes)
    points = Points(axes, **colour_options(common, axes), **more)
    return Cloud(points, panels, colour=next(iter(points.groups), ""), name=name, biplot=biplot)


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
