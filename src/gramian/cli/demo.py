"""``gramian demo``: every method on known data, with reference numbers to compare and a gallery to look at."""

from __future__ import annotations

import ast
import inspect
import io
import sys
import textwrap
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import click
import rich.box
import rich.markup
from rich.console import Console
from rich.padding import Padding
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.syntax import Syntax
from rich.table import Table

from gramian.cli.demo_content import CHAPTERS, QUICK, Number, compare_numbers
from gramian.cli.errors import DONE, UNMET, Invocation, write_errors
from gramian.cli.options import command, option
from gramian.cli.output import OutputPath, claim_place, write_csv
from gramian.display import save_picture
from gramian.display.base import render_formula, render_png
from gramian.display.report import CertificateBlock, DataTable, Report, Section, Text, write_report
from gramian.display.report.blocks import ReportBlock
from gramian.sources.writing import write_json, write_whole_folder

DRAWS = [draw for draws in CHAPTERS.values() for draw in draws]
FILES = (*(f"{draw.__name__}.png" for draw in DRAWS), "certificates.json", "index.html", "numbers.csv")
NOTE = (
    "The eigenvalues of iris are those of the UCI edition of the data, in which two flowers (rows 34 and 37 from 0) "
    "differ from Fisher's table. Three numbers are compared less strictly, as the table says: the printed critical "
    "values differ from the Tracy–Widom law itself from the fourth decimal on. The "
    "share of heads is a check of θ = H/n alone."
)


@command("demo", "gramian demo", "gramian demo --out gallery --quick --force")
@option(
    "-o",
    "--out",
    type=OutputPath(file_okay=False),
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
    """Every method on data that come with the installation or are simulated.

    Prints reference numbers, published or recomputed, beside ours and writes index.html, a gallery in which each
    picture has its equation, its certificate and the code that made it; the pictures, certificates.json and numbers.csv
    lie next to it.

    Exit code: 0 done, 2 wrong use, 4 a number disagrees or a tolerance was not met (the gallery is there anyway).
    """
    invocation = context.find_object(Invocation)
    if invocation is not None:
        invocation.debug = debug
    claim_place(out, [out / name for name in FILES], force)
    console = Console(highlight=False)
    with write_errors(out), write_whole_folder(out, overwrite=force, claimed=True) as folder:
        plates, numbers = _draw_all(console, folder, quick)
        rows = [(n.what, n.published, n.ours, n.verdict, n.source) for n in numbers]
        write_csv(folder / "numbers.csv", ("what", "reference", "ours", "agree", "source"), rows)
        write_json(folder / "certificates.json", {key: plate.proof.as_dict() for key, plate in plates.items()})
        write_report(folder / "index.html", gallery(plates, numbers))
    table = Table(title="\nReference numbers", box=rich.box.SIMPLE_HEAD, title_justify="left")
    for name in ("what", "reference", "ours", "agree?"):
        table.add_column(name, justify="left" if name == "what" else "right")
    for number, row in zip(numbers, rows, strict=True):
        table.add_row(*map(rich.markup.escape, row[:4]), style="" if number.agrees else "bold red")
    console.print(table)
    agree, certified = _count(plates, numbers)
    console.print(
        f"{agree} of {len(numbers)} reference numbers agree; "
        f"{certified} of {len(plates)} fits are certified to the accuracy that was asked for."
    )
    console.print(f"Open {rich.markup.escape(str(out / 'index.html'))} in a browser.", soft_wrap=True)
    context.exit(DONE if agree == len(numbers) and certified == len(plates) else UNMET)


def _count(plates: Mapping[str, Plate], numbers: list[Number]) -> tuple[int, int]:
    """How many numbers agree, and how many tolerances were met."""
    return sum(number.agrees for number in numbers), sum(plate.proof.converged for plate in plates.values())


def _draw_all(console: Console, folder: Path, quick: bool) -> tuple[dict[str, Plate], list[Number]]:
    """Draw every picture and compute every number, with a bar on a terminal and a line for each picture."""
    columns = (SpinnerColumn(), BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn())
    text = TextColumn("{task.description}", markup=False)
    with Progress(*columns, text, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=len(DRAWS) + 1)
        plates = {}
        for draw in DRAWS:
            bar.update(task, description=_paragraphs(draw)[0])
            plates[draw.__name__] = plate = draw_plate(draw, folder, QUICK.get(draw.__name__, {}) if quick else {})
            bar.advance(task)
            mark = "[green]✓[/]" if plate.proof.converged else "[red]✗[/]"
            console.print(f"{mark} [bold]{rich.markup.escape(plate.title)}[/]")
            console.print(Padding(rich.markup.escape(plate.finding), (0, 0, 0, 2)))
        bar.update(task, description="Reference numbers")
        return plates, compare_numbers()


@dataclass(frozen=True, eq=False)
class Plate:
    """A picture with its text, its equation, its certificate and its code: a block of the page."""

    key: str
    title: str
    lead: str
    equation: str
    alt: str
    finding: str
    proof: Any
    code: str
    picture: bytes
    thumbnail: bytes

    def html(self, page: Any) -> str:
        """The plate as HTML."""
        parts = [part.strip().rstrip(",").replace(r"\frac", r"\dfrac") for part in self.equation.split(r"\quad")]
        equation = "".join(_image(render_formula(part), part) for part in parts)
        return (
            f'<article id="{self.key}" aria-labelledby="{self.key}-title">'
            f'<h3 id="{self.key}-title">{escape(self.title)}</h3><p>{escape(self.lead)}</p>'
            f'<div class="equation" tabindex="0" role="group" aria-label="Equation">{equation}</div>'
            f'<figure class="print">{_image(self.picture, self.alt, 2 / 3)}'
            f"<figcaption>{escape(self.finding)}</figcaption></figure>{CertificateBlock(self.proof).html(page)}"
            f'<details class="code"><summary>The code that made it</summary><pre tabindex="0"><code>'
            f"{_highlight(self.code)}</code></pre></details></article>"
        )


@dataclass(frozen=True, eq=False)
class Cards:
    """Small pictures that lead to the large ones: a block of the page."""

    plates: Mapping[str, Plate]

    def html(self, page: Any) -> str:
        """The cards as HTML."""
        cards = (
            f'<a href="#{key}">{_image(plate.thumbnail, "")}<span>{escape(plate.title)}</span></a>'
            for key, plate in self.plates.items()
        )
        return f'<div class="cards">{"".join(cards)}</div>'


def gallery(plates: Mapping[str, Plate], numbers: list[Number]) -> Report:
    """The report that index.html shows."""
    agree, certified = _count(plates, numbers)
    wrong = len(numbers) - agree
    table = {
        "what": [n.what for n in numbers],
        "reference": [n.published for n in numbers],
        "ours": [n.ours for n in numbers],
        "agree?": [n.verdict for n in numbers],
        "source": [n.source for n in numbers],
    }
    verdict = Text(f"{wrong} of {len(numbers)} do NOT agree.", "warning") if wrong else Text(f"All {agree} agree.")
    lead = "Computed again from the same data and compared digit by digit: in print, or recomputed where it says so."
    blocks: list[ReportBlock] = [verdict, DataTable("numbers", "Reference numbers", table), Text(NOTE, "note")]
    return Report(
        "Gramian: the gallery",
        "Principal components, regression and likelihood on data that everybody has or that are simulated. With each "
        "picture go its equation, a certificate that says how far the computed answer can be from the exact one, and "
        "the few lines of Python that made it.",
        [
            Section("Pictures", [Cards(plates)]),
            *(
                Section(title, [plates[draw.__name__] for draw in draws if draw.__name__ in plates], lead)
                for (title, lead), draws in CHAPTERS.items()
            ),
            Section("Reference numbers", blocks, lead),
        ],
        tiles=[
            (str(len(plates)), "pictures, each with its equation and its code"),
            (f"{certified} of {len(plates)}", "fits certified to the accuracy that was asked for"),
            (f"{agree} of {len(numbers)}", "reference numbers found again"),
        ],
        met=certified == len(plates),
    )


def draw_plate(draw: Callable[..., Any], folder: Path, given: Mapping[str, Any]) -> Plate:
    """Draw one picture, and save it in the folder."""
    picture, fitted, finding = draw(**given)
    path = folder / f"{draw.__name__}.png"
    save_picture(picture, path)
    proof = fitted.certificate_ if hasattr(fitted, "certificate_") else fitted.certificate
    code = write_script(draw, given)
    return Plate(draw.__name__, *_paragraphs(draw), finding, proof, code, path.read_bytes(), render_png(picture, 55))


def _paragraphs(draw: Callable[..., Any]) -> tuple[str, str, str, str]:
    """Title, text, equation and what is to be seen: the docstring of a function that draws."""
    title, lead, equation, alt = (" ".join(part.split()) for part in (inspect.getdoc(draw) or "").split("\n\n"))
    return title, lead, equation, alt


def write_script(draw: Callable[..., Any], given: Mapping[str, Any]) -> str:
    """The body of a function that draws, as a script: its imports, its arguments, and the picture saved."""
    source = textwrap.dedent(inspect.getsource(draw))
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    _, first, *_, last = function.body  # the docstring, and what is returned
    lines = source.splitlines()[first.lineno - 1 : last.lineno - 1]
    arguments = {name: p.default for name, p in inspect.signature(draw).parameters.items()} | dict(given)
    set_up = "".join(f"{name} = {value!r}\n" for name, value in arguments.items())
    used = {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
    imports = "\n".join(_imports(sys.modules[draw.__module__], used))
    end = f'save_picture(picture, "{draw.__name__}.png")\n'
    return f"{imports}\n\n{set_up}{textwrap.dedent(chr(10).join(lines))}\n{end}"


def _imports(module: Any, used: set[str]) -> Iterator[str]:
    """The import lines of a module for these names, for its own data among them, and for saving a picture."""
    for node in ast.parse(inspect.getsource(module)).body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            node.names = [alias for alias in node.names if (alias.asname or alias.name) in used]
            if isinstance(node, ast.ImportFrom) and node.module == "gramian.display":
                node.names.append(ast.alias("save_picture"))
            if node.names:
                yield ast.unparse(node)
        elif isinstance(node, ast.Assign):
            own = [name.id for name in node.targets if isinstance(name, ast.Name) and name.id in used]
            yield from (f"from {module.__name__} import {name}" for name in own if name.isupper())


def _highlight(code: str) -> str:
    """Python as HTML, in colours."""
    console = Console(record=True, file=io.StringIO())
    console.print(Syntax(code, "python", theme="monokai").highlight(code), soft_wrap=True, end="")
    return console.export_html(inline_styles=True, code_format="{code}")


def _image(data: bytes, alt: str, scale: float = 1.0) -> str:
    """An image as part of the page; a PNG with the size that its header says, times a factor."""
    kind = "png" if data.startswith(b"\x89PNG") else "svg+xml"
    width, height = (int(scale * int.from_bytes(data[at : at + 4], "big")) for at in (16, 20))
    size = f' width="{width}" height="{height}"' if kind == "png" else ""
    return f'<img src="data:image/{kind};base64,{b64encode(data).decode("ascii")}" alt="{escape(alt)}"{size}>'
