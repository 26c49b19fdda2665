"""``gramian simulate``: genotypes with a known truth, as PLINK files with a table of labels next to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from gramian.cli.errors import write_errors
from gramian.cli.options import ParamType, command, option
from gramian.cli.output import OutputPath, Results, claim_place, json_option, print_json
from gramian.cli.running import CommandRun, running_options
from gramian.genetics.simulation import Simulation, simulate_europe

ENDINGS = (".bed", ".bim", ".fam", ".tsv")
LEAST_PEOPLE = 150  # every country needs somebody
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


class SizesType(ParamType):
    """Numbers of people with commas between them."""

    name = "sizes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a tuple of numbers."""
        if not isinstance(value, str):
            return value
        parts = value.split(",")
        if not all(part.strip().isdecimal() and int(part) > 0 for part in parts) or len(parts) > len(LETTERS):
            self.fail(f"{value!r}: write up to {len(LETTERS)} sizes with commas between them, as 50,50,30", param, ctx)
        return tuple(map(int, parts))


@command(
    "simulate",
    "gramian simulate europe --out europe.bed --people 300 --snps 3000",
    "gramian simulate populations --out pops.bed --sizes 40,40,20 --fst 0.05 --snps 2000 --json",
)
@click.argument("scene", type=click.Choice(["europe", "populations"]))
@option("--people", type=click.IntRange(LEAST_PEOPLE), help="Of europe [default: 1400].")
@option("--sizes", type=SizesType(), metavar="NUMBERS", help="Of populations [default: 100,100,100].")
@option("--snps", type=click.IntRange(1), default=20_000, help="How many.")
@option(
    "--fst",
    type=click.FloatRange(0, 1, max_open=True),
    help="Hudson's F_ST [default: 0.004 for europe, 0.01 for populations].",
)
@option("--missing", type=click.FloatRange(0, 1, max_open=True), default=0.0, metavar="SHARE", help="Missing calls.")
@option(
    "--ld", type=click.FloatRange(0, 1), default=0.0, metavar="R²", help="Of neighbouring SNPs that are as frequent."
)
@option("-o", "--out", type=OutputPath(dir_okay=False), required=True, section="Output", help="The .bed.")
@json_option
@option("--force", is_flag=True, section="Output", help="Replace files that are there already.")
@running_options
def simulate(
    scene: str,
    people: int | None,
    sizes: tuple[int, ...] | None,
    snps: int,
    out: Path,
    as_json: bool,
    force: bool,
    run: CommandRun,
    **description: Any,
) -> None:
    """Simulated genotypes: europe, whose allele frequencies vary over a map of thirty countries, or populations that
    drifted apart.

    Writes .bed, .bim and .fam, and a .tsv with FID, IID and the country and coordinates, or the population, of
    everybody: for gramian pca FILE.bed --labels FILE.tsv.

    Exit code: 0 done, 2 wrong use.
    """
    if out.suffix != ".bed":
        raise click.UsageError(f"--out {out.name}: the name must end in .bed")
    if (scene == "europe" and sizes) or (scene == "populations" and people):
        raise click.UsageError("--people is for europe and --sizes for populations")
    files = [out.with_suffix(ending).name for ending in ENDINGS]
    claim_place(out.with_suffix(""), [out.with_suffix(ending) for ending in ENDINGS], force)
    settings = {name: value for name, value in description.items() if value is not None}
    with run.step(f"Simulating {out.name}"), write_errors(out):
        out.parent.mkdir(parents=True, exist_ok=True)
        try:
            if scene == "europe":
                shape = simulate_europe(
                    out, seed=run.seed, people=people or 1400, overwrite=force, n_snps=snps, **settings
                ).genotypes.shape
            else:
                people_of = list(zip(LETTERS, sizes or (100, 100, 100), strict=False))
                groups = [letter for letter, size in people_of for _ in range(size)]
                names = [f"{letter}{i + 1}" for letter, size in people_of for i in range(size)]
                rows = [f"{name}\t{name}\t{group}\n" for name, group in zip(names, groups, strict=True)]
                plan = Simulation(snps, groups=groups, names=names, seed=run.seed, **settings)
                companions = {".tsv": "".join(["FID\tIID\tpopulation\n", *rows])}
                shape = plan.write(out, overwrite=force, companions=companions).shape
        except ValueError as error:
            raise click.UsageError(str(error)) from None
    if as_json:
        facts = {"scene": scene, "samples": shape[0], "snps": shape[1], "seed": run.seed}
        place = {"out": click.format_filename(out), "files": files}
        print_json(Results(facts={**facts, **place}))
    else:
        click.echo(f"Simulated {shape[0]:,} people × {shape[1]:,} SNPs. Wrote {', '.join(files)} to {out.parent}")
