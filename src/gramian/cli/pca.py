"""``gramian pca``: principal components of a table, as tables, pictures, a report and a certificate."""

from __future__ import annotations

from contextlib import suppress
from itertools import accumulate
from pathlib import Path
from typing import Any

import click
import numpy as np
from threadpoolctl import threadpool_limits

from gramian import display
from gramian.cli.options import command, option, portable, standardise_option
from gramian.cli.output import (
    Output,
    Results,
    ResultTable,
    Sketch,
    as_texts,
    describe_rows,
    number_columns,
    output_options,
    publish,
)
from gramian.cli.reading import (
    FILE,
    ReadingOptions,
    input_name,
    load_into_memory,
    measure_columns,
    read,
    reading_options,
    report_reading,
)
from gramian.cli.running import CommandRun, data_errors, device_option, running_options
from gramian.display import report as reports
from gramian.pca.advice import rank_advice
from gramian.pca.estimator import PCA, RULES, SOLVERS
from gramian.pca.interpret import loadings, warn_unscaled
from gramian.results import SpectralCertificate, measure_shares
from gramian.sources import Source

TABLES = ("scores", "loadings", "unit_vectors", "variances")
PICTURES = ("scree", "scores", "loadings")
SHOWN = {"component": "", "variance": ".6g", "share": ".2%", "running_sum": ".2%", "residual": ".1e", "": ""}
BAR = 16  # characters of the longest bar of a scree plot
MAX_ROWS_SHOWN = 20  # loadings up to which the screen shows them all
MAX_ADVISED_CELLS = 2_000_000  # cells of a table up to which every rule for the number of components is asked
MAX_GAPPY = 20_000  # and where cells are missing, so that many models are fitted to hold cells out
MAX_ADVISED_SCREEN = 100_000  # and where no report waits for the answers


def number_or_rule(text: str) -> int | float | str:
    """Return what PCA takes as n_components: a number, a fraction of the variance, or the name of a rule."""
    if text in RULES:
        return text
    with suppress(ValueError):
        number = float(text)
        if 0 < number < 1:
            return number
        if number >= 1 and number.is_integer():
            return int(number)
    raise click.BadParameter(
        f"{text!r} is no number of components from 1 on, no fraction between 0 and 1, and no rule ({', '.join(RULES)})."
    )


@command(
    "pca",
    "gramian pca flowers.csv --label species --id plant --out flowers",
    "gramian pca flowers.csv --drop plant,species -k 0.9 --scale --json",
)
@click.argument("file", type=FILE)
@option(
    "-k",
    "--components",
    type=number_or_rule,
    metavar="NUMBER|FRACTION|RULE",
    help="How many components, the fraction of the variance to explain (0.9), or a rule: "
    f"{', '.join(RULES)} [default: 5].",
)
@standardise_option("scale")
@option("--whiten", is_flag=True, help="Give every score the variance 1.")
@option("--tol", type=click.FloatRange(min=0), default=0.0, help="Residual to reach [default: 1e-6 or 1e-4].")
@option("--solver", "svd_solver", type=click.Choice(SOLVERS), default="auto")
@reading_options()
@output_options()
@running_options
@device_option
def pca(
    file: Path,
    components: int | float | str | None,
    reading: ReadingOptions,
    output: Output,
    run: CommandRun,
    device: str,
    **options: Any,
) -> None:
    """Principal components of FILE, a table in any of the formats that are read; - is standard input.

    Writes scores, loadings V√λ, unit vectors V, variances, model.gramian, certificate.json, report.html and pictures.
    Missing cells are taken into the likelihood. A .bed file has options of its own: gramian pca cohort.bed --help.

    Exit code: 0 done, 2 wrong use, 3 unusable data, 4 tolerance not met (the results are there anyway).
    """
    output.check(TABLES, PICTURES)
    table = read(file, reading, run)
    source, most = table.source, min(table.source.shape)
    if isinstance(components, int) and components > most:
        n, p = source.shape
        raise click.UsageError(f"-k {components} is more than the {most} components of {n} × {p} data")
    # all of up to five: the same default as in Python, which with missing cells are as many as the cells determine
    count = components if components is not None else 5 if most > 5 else None
    doing = (
        f"Choosing components by {count}" if isinstance(count, (str, float)) else f"Fitting {count or most} components"
    )
    model = PCA(n_components=count, random_state=run.seed, device=device, **options)
    with run.step(doing) as report, data_errors(input_name(file)):
        source = load_into_memory(source) if components == "parallel" else source
        scores = np.asarray(model.fit_transform(report_reading(source, report)))
        portable(model)
        if model.n_components_ == 0:
            raise ValueError(f"-k {components} finds nothing that stands out of the noise; give -k as a number")
    deviations = measure_columns(source)
    unlike = None if model.scale or deviations is None else warn_unscaled(deviations, table.names)
    if unlike is not None:
        run.doubt(unlike)
    cells, complete = source.shape[0] * source.shape[1], isinstance(model.certificate_, SpectralCertificate)
    affordable = MAX_ADVISED_CELLS if output.has_report and complete else MAX_ADVISED_SCREEN if complete else MAX_GAPPY
    asked = most > 1 and cells <= affordable
    if cells <= MAX_ADVISED_CELLS:  # nothing large is multiplied from here on, and BLAS threads would wait by spinning
        click.get_current_context().with_resource(threadpool_limits(1, "blas"))
    advice = None
    if asked:
        with run.step("Asking how many components to keep"), suppress(ValueError):  # no rule can be used
            advice = rank_advice(source, scale=model.scale, random_state=run.seed)

    def report_page(**given: Any) -> Any:
        return reports.pca_report(
            model,
            scores,
            advice=advice,
            measures=_measure_rows(source, model, scores),
            deviations=deviations,
            feature_names=table.names,
            **describe_rows(table),
            **given,
        )

    labels, shares = as_texts(table.label), np.asarray(model.explained_variance_ratio_)
    V = np.asarray(model.components_)
    variances: dict[str, Any] = {
        "component": [f"PC{j + 1}" for j in range(len(shares))],
        "variance": model.explained_variance_,
        "share": shares,
        "running_sum": list(accumulate(shares.tolist())),
        "singular_value": model.singular_values_,
    }
    if isinstance(model.certificate_, SpectralCertificate):  # an optimum has one gradient, not a residual for each
        variances["residual"] = model.certificate_.residuals
        variances["variance_bound"] = model.certificate_.eigenvalue_bounds
    longest = BAR - max(0, max((len(f"{v:.6g}") for v in model.explained_variance_), default=0) - 9)
    bars = ["█" * round(longest * value / max(float(shares.max(initial=0.0)), 1e-300)) or "▏" for value in shares]
    results = Results.of_fit(
        model,
        table,
        file,
        tables=[
            ResultTable(table.by_row(number_columns("PC", scores)), "scores"),
            ResultTable(variances, "variances"),
            ResultTable({**variances, "": bars}, title="Components", formats=SHOWN, most=10),
            ResultTable(
                {"column": table.names, **number_columns("loading_PC", loadings(model))},
                "loadings",
                "Loadings V√λ" if len(table.names) <= MAX_ROWS_SHOWN else None,
                most=MAX_ROWS_SHOWN,
            ),
            ResultTable({"column": table.names, **number_columns("unit_vector_PC", V.T)}, "unit_vectors"),
        ],
        pictures={
            "scree": lambda: display.ScreeDisplay.from_estimator(model),
            "scores": lambda: display.ScoreDisplay.from_predictions(
                scores, model=model, labels=labels, names=as_texts(table.ids)
            ),
            "loadings": lambda: display.LoadingsDisplay.from_estimator(model, names=table.names),
        },
        report=report_page,
        quality=measure_shares(shares),
        lines=_advice_lines(advice, complete),
        sketch=None if len(shares) < 2 else Sketch("Scores", scores[:, 0], scores[:, 1], ("PC1", "PC2"), labels),
        facts={"n_components": model.n_components_, "variances": variances, **_advice_facts(advice)},
    )
    publish(run, output, results)


def count_components(number: int) -> str:
    """A number of components in words."""
    return f"{number} component{'s' * (number != 1)}"


def _advice_lines(advice: Any, complete: bool) -> list[str]:
    """How many components to keep, with the reason, where the rules were asked."""
    if advice is None or advice.consensus is None:
        if complete:
            return []
        return ["Components to keep: not asked, cells being missing in a large table; -k cv chooses by cells held out"]
    return [f"Components to keep: {advice.consensus}. {advice.reason}"]


def _advice_facts(advice: Any) -> dict[str, Any]:
    """The same for programs: the number, its range, what the noise is like, and what every rule says."""
    if advice is None or advice.consensus is None:
        return {}
    rules = dict(zip(advice.rules, advice.n_components, strict=True))
    noise = None if advice.noise is None else advice.noise.describe()
    said = {"consensus": advice.consensus, "range": list(advice.interval), "reason": advice.reason, "noise": noise}
    return {"advice": {**said, "rules": rules}}


def _measure_rows(source: Source, model: PCA, scores: Any) -> dict[str, Any] | None:
    """T² and Q of every row, where no cell is missing and every component has variance: a pass over the data."""
    if not isinstance(model.certificate_, SpectralCertificate) or model.rank_ < model.n_components_:
        return None
    plain = scores if not model.whiten else scores * np.sqrt(model.explained_variance_)
    t2 = np.sum(plain**2 / model.explained_variance_, axis=1)
    return {"T²": t2, "Q": np.asarray(model.reconstruction_error(source))}
