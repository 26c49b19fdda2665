"""``gramian demo``: the methods as one story, with reference numbers to compare and a gallery to look at."""

from __future__ import annotations

from pathlib import Path

import click
import rich.box
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from gramian.cli.errors import DONE, UNMET, Invocation, write_errors
from gramian.cli.options import command, option
from gramian.cli.output import refuse_existing, write_csv, write_json
from gramian.cli.story import PICTURES, STEPS, Drawn, Number, Story, gallery, tell
from gramian.sources.writing import write_whole_folder

__all__ = ["FILES", "demo"]

FILES = (*PICTURES, "certificates.json", "index.html", "numbers.csv")


@command("demo", "gramian demo", "gramian demo --out gallery --quick --force")
@option(
    "-o",
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path("demo"),
    show_default=True,
    metavar="FOLDER",
    section="Output",
    help="Where the gallery goes.",
)
@option("--force", is_flag=True, section="Output", help="Replace an earlier one.")
@option("--quick", is_flag=True, help="Smaller simulations.")
@option("--debug", is_flag=True, section="Running", help="Show a traceback where something fails.")
@click.pass_context
def demo(context: click.Context, /, out: Path, force: bool, quick: bool, debug: bool) -> None:
    """The methods as one story, on data that come with the installation or are simulated.

    Prints reference numbers, published or recomputed, beside ours and writes index.html, a gallery in which each
    picture has its equation, its certificate and the code that made it; the pictures, certificates.json and numbers.csv
    lie beside it.

    Exit code: 0 done, 2 wrong use, 4 a number disagrees or a tolerance was not met (the gallery is there anyway).
    """
    invocation = context.find_object(Invocation)
    if invocation is not None:
        invocation.debug = debug
    refuse_existing(out, FILES, force)
    console = Console(highlight=False)
    with write_errors(out), write_whole_folder(out, overwrite=True) as folder:
        story = _told(console, folder, quick)
        _write(folder, story)
    console.print(_table(story.numbers))
    _conclude(console, story, out)
    context.exit(DONE if story.agrees and story.certified else UNMET)


def _told(console: Console, folder: Path, quick: bool) -> Story:
    """Tell the story: a bar on a terminal, and a line for each picture."""
    columns = (SpinnerColumn(), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    text = TextColumn("{task.description}", markup=False)
    with Progress(*columns, text, console=console, transient=True, disable=not console.is_terminal) as bars:
        task = bars.add_task("", total=STEPS)

        def starting(title: str) -> None:
            bars.update(task, description=title)

        def done(drawn: Drawn) -> None:
            bars.advance(task)
            mark = "[green]✓[/]" if drawn.proof.converged else "[red]✗[/]"
            console.print(f"{mark} [bold]{escape(drawn.plate.title)}[/]")
            console.print(Padding(escape(drawn.finding), (0, 0, 0, 2)))

        return tell(folder, quick=quick, starting=starting, done=done)


def _write(folder: Path, story: Story) -> None:
    write_json(folder / "certificates.json", {key: drawn.proof.as_dict() for key, drawn in story.drawn.items()})
    rows = ((n.what, n.published, n.ours, n.verdict, n.source) for n in story.numbers)
    write_csv(folder / "numbers.csv", ("what", "reference", "ours", "agree", "source"), rows)
    (folder / "index.html").write_text(gallery(story), encoding="utf-8")


def _table(numbers: list[Number]) -> Table:
    table = Table(title="\nReference numbers", box=rich.box.SIMPLE_HEAD, title_justify="left")
    for name in ("what", "reference", "ours", "agree?"):
        table.add_column(name, justify="left" if name == "what" else "right")
    for number in numbers:
        style = "" if number.agrees else "bold red"
        table.add_row(*map(escape, (number.what, number.published, number.ours, number.verdict)), style=style)
    return table


def _conclude(console: Console, story: Story, out: Path) -> None:
    right = sum(number.agrees for number in story.numbers)
    sure = sum(drawn.proof.converged for drawn in story.drawn.values())
    console.print(
        f"{right} of {len(story.numbers)} reference numbers agree; "
        f"{sure} of {len(story.drawn)} fits are certified to the accuracy that was asked for."
    )
    console.print(f"Open {escape(str(out / 'index.html'))} in a browser.", soft_wrap=True)
