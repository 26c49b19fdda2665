"""Build the site: docs/_build/html, from the Markdown pages, the docstrings and the pictures of ``gramian demo``.

Usage: python tools/build_site.py [--assemble-only]

The Markdown pages stay where they are. This program copies them into docs/_build/source, where links to files of the
repository become links to pages that show those files, adds the pages that are made from code (the reference, the
gallery, the index of equations, the drawing of the packages), and calls Sphinx there: every warning is an error.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from html import escape
from pathlib import Path
from posixpath import normpath, relpath
from types import ModuleType
from typing import Any, NamedTuple

import site_figures

import gramian

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "docs" / "_build"
SOURCE, HTML = BUILD / "source", BUILD / "html"
EQUATIONS = ROOT / "docs" / "equations.toml"

FENCE = re.compile(r"^(```+|~~~+).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]\[]*(?:\[[^\]]*\][^\]\[]*)?)\]\((?P<to>[^)\s]+)\)")
EXAMPLE = re.compile(r"^(?:>>>|\.\.\.) .*", re.MULTILINE)
EQUATION = re.compile(r"^\$\$\n(?P<tex>.*?)\n\$\$ \((?P<label>[a-z0-9-]+)\)$", re.MULTILINE | re.DOTALL)
SLOT = re.compile(r"^<!-- (?P<kind>picture|slider|drawing): (?P<name>[\w-]+) -->$", re.MULTILINE)
PART = re.compile(r"^<!-- guide: (?P<part>.+) -->$", re.MULTILINE)
CODE_LABEL = re.compile(r"#\s*eq: ([a-z0-9, -]+)$")

# The parts of the guide. A page of docs/ that none of them names is in the part that a comment of its own says,
# ``<!-- guide: Regression -->``, and otherwise in the last.
GUIDE = {
    "Components": [
        "pca", "missing-values", "how-many-components", "reading-a-pca", "monitoring-and-uncertainty",
        "kernel-pca", "pre-images", "kernels",
    ],
    "Regression": ["ridge", "kernel-ridge"],
    "Likelihood": ["maximum-likelihood", "mixtures"],
    "Genotypes": ["genotype-pca", "genotype-quality", "genotype-cohorts", "genotype-projection"],
    "Working with it": ["command-line", "reading-data", "report", "pictures", "model-files", "gpu", "cluster"],
    "More": [],
}  # fmt: skip
PROJECT = ["trust", "architecture"]
# Folders of docs/ that are sections of the site, each with an index.
FOLDERS = ["course", "how-to", "extend"]
# Pages that are made from code and that the first page names: its items of these titles become links.
MADE = {"The gallery": "gallery/index.md", "The reference": "reference/index.md"}
# The rows of the drawing of the packages, from the roof down; a package that is in none of them joins the last.
STOREYS = [
    ["cli"],
    ["display", "persistence"],
    ["genetics", "mixture", "likelihood", "kernel_ridge", "ridge", "kernel_pca", "pca"],
    ["inputs", "spectral", "linear"],
    ["operators"],
    ["sources", "kernels", "results"],
    ["compute"],
]
# The packages of the reference in their order; others that gramian exports follow. A name that several of them export
# is shown where it is first met.
PACKAGES = [
    "gramian", "gramian.analysis", "gramian.genetics", "gramian.likelihood", "gramian.mixture", "gramian.kernels",
    "gramian.display", "gramian.sources", "gramian.operators", "gramian.spectral", "gramian.linear", "gramian.results",
    "gramian.persistence",
]  # fmt: skip


class Public(NamedTuple):
    """A public name: the package it is imported from, its name there, and what it is."""

    package: str
    name: str
    value: Any

    @property
    def path(self) -> str:
        """The dotted name."""
        return f"{self.package}.{self.name}"


def packages() -> list[str]:
    """The packages of the reference."""
    modules = [name for name in gramian.__all__ if importlib.util.find_spec(f"gramian.{name}")]
    return [*PACKAGES, *sorted({f"gramian.{name}" for name in modules} - set(PACKAGES))]


def public_names() -> list[Public]:
    """Every name that a package exports, once, modules left out."""
    found: list[Public] = []
    seen: set[int] = set()
    for package in packages():
        module = importlib.import_module(package)
        for name in sorted(module.__all__, key=str.lower):
            value = getattr(module, name)
            if isinstance(value, ModuleType) or (callable(value) and id(value) in seen):
                continue
            seen.add(id(value))
            found.append(Public(package, name, value))
    return found


def pages() -> dict[str, str]:
    """Of every Markdown page, from the root of the repository, where it is on the site (both without ending)."""
    inside = {path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md")}
    shown = {f"docs/{path}": str(path) for path in inside if path.parts[0] not in {"_build", "site"}}
    shown |= {name: f"project/{name.lower()}" for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")}
    shown["bench/README.md"] = "project/benchmarks.md"
    shown |= {f"bench/results/{path.name}": f"project/{path.name}" for path in (ROOT / "bench/results").glob("*.md")}
    return {before.removesuffix(".md"): after.removesuffix(".md") for before, after in sorted(shown.items())}


class Site:
    """What is gathered while the pages are copied: which files they show, and which names their examples use."""

    def __init__(self) -> None:
        self.pages = pages()
        self.files: set[str] = {
            str(path.relative_to(ROOT)) for folder in ("src/gramian", "tools") for path in (ROOT / folder).rglob("*.py")
        }
        self.written: set[Path] = set()
        self.titles: dict[str, str] = {}
        self.code: dict[str, str] = {}
        self.equations: dict[str, tuple[str, str]] = {}
        self.trees: dict[str, list[str]] = {}
        self.parts: dict[str, str] = {}
        self.shown: dict[str, list[str]] = {}

    def write(self, name: str, text: str) -> None:
        """Write one page, if it is not there as it is: Sphinx reads again what is newer than its last reading."""
        path = SOURCE / name
        self.written.add(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")

    def add_file(self, name: str, file: Path) -> None:
        """Copy a picture, if it is not there as it is."""
        path = SOURCE / name
        self.written.add(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_bytes() != file.read_bytes():
            shutil.copyfile(file, path)

    def remove_old(self) -> None:
        """Remove what an earlier build wrote and this one did not."""
        for path in SOURCE.rglob("*"):
            if path.is_file() and path not in self.written:
                path.unlink()

    def read(self) -> None:
        """Read of every page its title, its code and its equations with names."""
        for before, after in self.pages.items():
            text = (ROOT / f"{before}.md").read_text("utf-8")
            heading = re.search(r"^# (.+)$", text, re.MULTILINE)
            self.titles[after] = heading.group(1) if heading else after
            for slot in SLOT.finditer(text):
                self.shown.setdefault(slot["name"], []).append(after)
            if part := PART.search(text):
                self.parts[after] = part["part"]
            self.code[after] = "\n".join(EXAMPLE.findall(text))
            self.equations |= {m["label"]: (after, m["tex"]) for m in EQUATION.finditer(text)}

    def copy(self, before: str, plates: dict[str, dict[str, str]]) -> None:
        """Copy one page with its links turned to what is on the site."""
        text, after = (ROOT / f"{before}.md").read_text("utf-8"), self.pages[before]
        parts, end = [], 0
        for fence in FENCE.finditer(text):
            parts += [self._turn(text[end : fence.start()], before, after), fence.group()]
            end = fence.end()
        parts.append(self._turn(text[end:], before, after))
        text = "".join(parts)
        text = text.replace("<!-- equations -->", list_equations(self)) if after == "equations" else text
        for title, to in MADE.items() if after == "index" else ():
            text = text.replace(f"- {title}:", f"- [{title}]({to}):")
        text = SLOT.sub(lambda slot: fill_slot(slot, after, plates), text)
        text = EQUATION.sub(lambda equation: f"{equation.group()}\n\n{link_to_index(equation['label'], after)}", text)
        if after in self.trees:
            tree = "\n".join(self.trees[after])
            text += f"\n```{{toctree}}\n:hidden:\n\n{tree}\n```\n"
        self.write(f"{after}.md", text)

    def _turn(self, text: str, before: str, after: str) -> str:
        """Turn the links of a part that is no code."""

        def turn(link: re.Match[str]) -> str:
            to, _, anchor = link["to"].partition("#")
            if not to or re.match(r"[a-z]+:", to):
                return link.group()
            target = normpath(f"{Path(before).parent}/{to}")
            here = str(Path(after).parent)
            hash_ = f"#{anchor}" if anchor else ""
            if target.removesuffix(".md") in self.pages:
                return f"[{link['text']}]({relpath(self.pages[target.removesuffix('.md')] + '.md', here)}{hash_})"
            if not (ROOT / target).is_file():
                return link["text"]  # a folder, which no page shows
            if link["image"] or target.endswith((".png", ".svg")):
                copied = f"images/{Path(target).name}"
                self.add_file(copied, ROOT / target)
                return f"{link['image']}[{link['text']}]({relpath(copied, here)})"
            self.files.add(target)
            return file_link(target, link["text"], here)

        return LINK.sub(turn, text)


@cache
def first_notes() -> dict[str, str]:
    """Of every equation the anchor of its first entry in the index of equations."""
    found: dict[str, str] = {}
    for note in read_equations()["notes"]:
        for entry in note["entries"]:
            found.setdefault(entry["label"], f"notes-{note['key']}-{entry['label']}")
    return found


def link_to_index(label: str, after: str) -> str:
    """The name of an equation under it, which leads to its call, its line of source and its test."""
    index = relpath("equations.html", str(Path(after).parent))
    return f'<p class="equation-name"><a href="{index}#{first_notes()[label]}">{label}</a></p>\n'


def file_link(target: str, text: str, here: str, line: int | None = None) -> str:
    """A link to the page that shows a file of the repository, as HTML, which Markdown lets through."""
    shown = re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
    place = f"#line-{line}" if line else ""
    return f'<a href="{relpath(f"source/{target}.html", here)}{place}">{shown}</a>'


def fill_slot(slot: re.Match[str], after: str, plates: dict[str, dict[str, str]]) -> str:
    """The picture or the figure with a slider that a comment asks for."""
    here = str(Path(after).parent)
    if slot["kind"] == "picture":
        alt = plates[slot["name"]]["alt"]
        image = relpath(f"images/gallery/{slot['name']}.png", here)
        page = relpath(f"gallery/{slot['name']}.html", here)
        return f"```{{image}} {image}\n:alt: {alt}\n:target: {page}\n```"
    if slot["kind"] == "drawing":
        return draw_packages()
    data = getattr(site_figures, slot["name"].replace("-", "_"))()
    text = json.dumps(data, separators=(",", ":"), allow_nan=False, ensure_ascii=False).replace("<", "\\u003c")
    caption = escape(data["caption"])
    return (
        f'<figure class="slider" id="slider-{slot["name"]}">'
        f'<script type="application/json">{text}</script>'
        f"<noscript>This figure moves where scripts are allowed.</noscript><figcaption>{caption}</figcaption></figure>"
    )


def pictures() -> dict[str, Callable[..., Any]]:
    """The functions that draw the pictures of the demo, by name."""
    from gramian.cli.demo_content import CHAPTERS

    return {draw.__name__: draw for draws in CHAPTERS.values() for draw in draws}


def count_imports() -> dict[tuple[str, str], int]:
    """How many imports of one package each other package has, read from the source."""
    counts: dict[tuple[str, str], int] = {}
    for path in (ROOT / "src" / "gramian").rglob("*.py"):
        package = path.relative_to(ROOT / "src" / "gramian").parts[0]
        if package.endswith(".py"):
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("gramian."):
                other = str(node.module).split(".")[1]
                if other != package:
                    counts[package, other] = counts.get((package, other), 0) + 1
    return counts


def draw_packages() -> str:
    """The packages as boxes in their storeys, with a line down to each that is imported: the wider, the more often."""
    counts, width, height, step = count_imports(), 96, 34, 104
    used = {name for pair in counts for name in pair}
    storeys = [[name for name in storey if name in used] for storey in STOREYS]
    left = sorted(used - {name for storey in storeys for name in storey} - {"lazy"})
    storeys[-1] += left
    size = step * max(map(len, storeys)) + 8
    place: dict[str, tuple[float, float]] = {}
    for row, storey in enumerate(storeys):
        start = (size - step * len(storey)) / 2
        place |= {name: (start + step * i + step / 2, 30 + 96 * row) for i, name in enumerate(storey)}
    parts = []
    for (upper, lower), count in sorted(counts.items()):
        if upper in place and lower in place:
            (x1, y1), (x2, y2) = place[upper], place[lower]
            bend = 40 if y1 == y2 else (y2 - y1) / 2
            path = f"M{x1:.0f},{y1 + height / 2:.0f}C{x1:.0f},{y1 + bend:.0f} {x2:.0f},{y2 - bend:.0f} {x2:.0f},"
            path += f"{y2 - height / 2:.0f}"
            parts.append(
                f'<path d="{path}" stroke-width="{min(6.0, 0.6 + count / 12):.1f}">'
                f"<title>{upper} imports {lower} {count} times</title></path>"
            )
    for name, (x, y) in place.items():
        parts.append(
            f'<g><rect x="{x - width / 2:.0f}" y="{y - height / 2:.0f}" width="{width}" height="{height}" rx="5"/>'
            f'<text x="{x:.0f}" y="{y + 4:.0f}" text-anchor="middle">{name}</text></g>'
        )
    total = 96 * len(storeys)
    label = f"{len(place)} packages in {len(storeys)} rows, and {len(counts)} lines from each to those that it imports."
    return (
        f'<figure class="packages"><svg viewBox="0 0 {size} {total}" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
        "<figcaption>Who imports whom, read from the source when this page was built: the wider a line, the more "
        "imports.</figcaption></figure>"
    )


def draw_pictures() -> dict[str, dict[str, str]]:
    """Draw every picture of the demo into docs/_build/pictures; of each its text, its certificate and its code.

    Pictures are kept while they are newer than the library.
    """
    from gramian.cli.demo import draw_plate
    from gramian.cli.demo_content import QUICK

    folder = BUILD / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    changed = max(path.stat().st_mtime for path in (ROOT / "src").rglob("*.py"))
    plates = {}
    for key, draw in pictures().items():
        about = folder / f"{key}.json"
        if not about.exists() or about.stat().st_mtime < changed:
            plate = draw_plate(draw, folder, QUICK.get(key, {}))
            (folder / f"{key}-small.png").write_bytes(plate.thumbnail)
            fields = ("title", "lead", "equation", "alt", "finding", "code")
            text = {name: getattr(plate, name) for name in fields} | {"proof": str(plate.proof)}
            about.write_text(json.dumps(text), "utf-8")
        plates[key] = json.loads(about.read_text("utf-8"))
    return plates


def write_gallery(site: Site, plates: dict[str, dict[str, str]]) -> None:
    """Write the page of each picture of the demo, and the page of small pictures."""
    from gramian.cli.demo_content import CHAPTERS

    lines = [
        "# Gallery",
        "",
        "Each picture has its equation, what it says of the data, and the code that draws it.",
        "",
    ]
    for (chapter, lead), draws in CHAPTERS.items():
        lines += [f"## {chapter}", "", lead, "", "::::{grid} 2 2 3 3", ":gutter: 3", ""]
        for key in (draw.__name__ for draw in draws):
            plate = plates[key]
            for name in (f"{key}.png", f"{key}-small.png"):
                site.add_file(f"images/gallery/{name}", BUILD / "pictures" / name)
            equations = [part.strip().rstrip(",") for part in plate["equation"].split(r"\quad") if part.strip()]
            shown = "\n\n".join(f"$$\n{part}\n$$" for part in equations)
            site.write(
                f"gallery/{key}.md",
                f"# {plate['title']}\n\n{plate['lead']}\n\n{shown}\n\n"
                f"```{{image}} ../images/gallery/{key}.png\n:alt: {plate['alt']}\n```\n\n{plate['finding']}\n\n"
                f"## What the certificate says\n\n```text\n{plate['proof']}\n```\n\n"
                f"## The code that made it\n\n```python\n{plate['code']}```\n"
                + "".join(f"\nExplained in [{site.titles[page]}](../{page}.md).\n" for page in site.shown.get(key, [])),
            )
            lines += [f":::{{grid-item-card}} {plate['title']}", f":link: {key}", ":link-type: doc"]
            lines += [f":img-top: ../images/gallery/{key}-small.png", f":img-alt: {plate['alt']}", ":::", ""]
        lines += ["::::", ""]
    names = "\n".join(plates)
    site.write("gallery/index.md", "\n".join(lines) + f"\n```{{toctree}}\n:hidden:\n\n{names}\n```\n")


def write_reference(site: Site, plates: dict[str, dict[str, str]]) -> None:
    """Write a page for every public name, with the pictures and the pages that use it."""
    names = public_names()
    index = ["# Reference", "", "Every public name, by the package it is imported from.", ""]
    trees = []
    for package in packages():
        module = importlib.import_module(package)
        lead = " ".join((inspect.getdoc(module) or "").split("\n\n")[0].split())
        own = [public for public in names if public.package == package]
        index += [f"## {package}", "", lead, "", "| name | |", "|---|---|"]
        for public in own:
            about = "" if is_plain_data(public.value) else (inspect.getdoc(public.value) or "")
            first = " ".join(about.split("\n\n")[0].split()).replace("|", "\\|").replace("$", "\\$")
            first = re.sub(r":\w+:`~?([^`<]+?)(?: <[^>]*>)?`", r"`\1`", first).replace("``", "`")
            index.append(f"| [`{public.name}`]({public.path}.rst) | {first} |")
            site.write(f"reference/{public.path}.rst", "\n".join(_name_page(public, plates, site)))
        index += [""]
        entries = "\n".join(f"{public.name} <{public.path}>" for public in own)
        trees.append(f"```{{toctree}}\n:hidden:\n:caption: {package}\n\n{entries}\n```\n")
    site.write("reference/index.md", "\n".join([*index, *trees]))


@cache
def returned() -> dict[str, tuple[str, str]]:
    """Of every public function and method the page that describes it, and what its docstring says it returns."""
    found: dict[str, tuple[str, str]] = {}
    for public in public_names():
        own = {public.path: public.value} if inspect.isroutine(public.value) else {}
        if inspect.isclass(public.value):
            methods = inspect.getmembers(public.value, inspect.isroutine)
            own = {f"{public.path}.{name}": method for name, method in methods if not name.startswith("_")}
        for title, function in own.items():
            returns = re.search(r"^Returns\n-+\n(?P<what>\S.*)", inspect.getdoc(function) or "", re.MULTILINE)
            if returns:
                found[title] = public.path, returns["what"]
    return found


def makers_of(value: type) -> list[tuple[str, str]]:
    """The public functions and methods that return such an object, each with its page."""
    word = re.compile(rf"\b{re.escape(value.__name__)}\b")
    other = ((title, page) for title, (page, what) in returned().items() if word.search(what))
    return sorted((title, page) for title, page in other if not page.endswith(f".{value.__name__}"))


def is_plain_data(value: Any) -> bool:
    """Whether a public name stands for data, which has no docstring of its own."""
    return not (inspect.isclass(value) or inspect.isroutine(value))


def _name_page(public: Public, plates: dict[str, dict[str, str]], site: Site) -> Iterator[str]:
    """The lines of the page of one public name."""
    value = public.value
    kind = "autodata" if is_plain_data(value) else "autofunction" if inspect.isroutine(value) else "autoclass"
    if inspect.isclass(value) and issubclass(value, BaseException):
        kind = "autoexception"
    yield from (public.path, "=" * len(public.path), "", f".. currentmodule:: {public.package}", "")
    yield f".. {kind}:: {public.path}"
    if kind == "autodata":
        yield "   :no-value:"
    if kind == "autoclass":
        yield from ("   :members:", "   :inherited-members:")
    word = re.compile(rf"\b{re.escape(public.name)}\b")
    # A short word such as fit or open is in the code of every page.
    telling = public.name[0].isupper() or len(public.name) > 4
    used = [key for key, plate in plates.items() if telling and word.search(plate["code"])]
    if used:
        yield from ("", "Pictures made with it", "---------------------", "", ".. container:: pictures", "")
        for key in used:
            yield from (f"   .. figure:: ../images/gallery/{key}-small.png", f"      :target: ../gallery/{key}.html")
            yield from (f"      :alt: {plates[key]['title']}", "", f"      :doc:`/gallery/{key}`", "")
    shown = [page for page, text in site.code.items() if word.search(text)] if telling else []
    if inspect.isclass(value) and (makers := makers_of(value)):
        yield from ("", "Returned by", "-----------", "")
        yield from (f"- :doc:`{title} <{page}>`" for title, page in makers)
    if shown:
        yield from ("", "Pages whose examples use it", "---------------------------", "")
        yield from (f"- :doc:`/{page}`" for page in sorted(shown, key=lambda page: site.titles[page]))
    yield ""


def code_labels() -> dict[str, list[tuple[str, int]]]:
    """Where ``# eq: label`` stands in the source: of each label the files, with the line it speaks of."""
    found: dict[str, list[tuple[str, int]]] = {}
    for path in sorted((ROOT / "src").rglob("*.py")):
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            if match := CODE_LABEL.search(line):
                # A comment of its own speaks of the line below it.
                at = number + 1 if line.lstrip().startswith("#") else number
                for label in match.group(1).split(","):
                    found.setdefault(label.strip(), []).append((str(path.relative_to(ROOT)), at))
    return found


def find_test(node: str) -> tuple[str, int]:
    """The file and the line of a test named as pytest names it."""
    file, _, name = node.partition("::")
    body: list[ast.stmt] = ast.parse((ROOT / file).read_text("utf-8")).body
    line = 0
    for part in name.split("::"):
        for statement in body:
            if isinstance(statement, ast.FunctionDef | ast.ClassDef) and statement.name == part:
                line, body = statement.lineno, statement.body
                break
        else:
            raise LookupError(f"{file} has no {name}")
    return file, line


def read_equations() -> dict[str, Any]:
    """What docs/equations.toml says."""
    return tomllib.loads(EQUATIONS.read_text("utf-8"))


def list_equations(site: Site) -> str:
    """The equations in the order of the notes, as Markdown."""
    data, labels = read_equations(), code_labels()
    equations = {equation["label"]: equation for equation in data["equations"]}
    lines = [*data["lead"].strip().splitlines(), ""]
    for note in data["notes"]:
        lines += [f"## {note['title']}", "", note["about"], ""]
        lines += ["| in the notes | equation | name | |", "|---|---|---|---|"]
        for entry in note["entries"]:
            label, slip = entry["label"], "a slip put right" if "slip" in entry else ""
            title = equations[label]["title"]
            lines.append(f"| {entry['where']} | [{title}](#notes-{note['key']}-{label}) | `{label}` | {slip} |")
        lines += [""]
        for entry in note["entries"]:
            equation = equations[entry["label"]]
            page, tex = site.equations[entry["label"]]
            file, line = find_test(equation["test"])
            site.files.add(file)
            code = ", ".join(
                file_link(where, f"`{where.removeprefix('src/')}, line {at}`", ".", at)
                for where, at in labels[entry["label"]]
            )
            call = ", ".join(f"[`{call}`](reference/{public_call(call)}.rst)" for call in equation["call"])
            proof = file_link(file, f"`{equation['test'].split('::')[-1]}`", ".", line)
            chapter = f'<a href="{page}.html#equation-{entry["label"]}">{escape(site.titles[page])}</a>'
            lines += [f"(notes-{note['key']}-{entry['label']})=", f"### {equation['title']}", "", f"$$\n{tex}\n$$", ""]
            lines += [f"- In the notes: {entry['where']}. Name: `{entry['label']}`", f"- Explained: {chapter}"]
            lines += [f"- Call: {call}", f"- Source: {code}", f"- Test: {proof}", ""]
            if "slip" in entry:
                lines += [":::{admonition} A slip in the notes", ":class: warning", "", entry["slip"], ":::", ""]
    return "\n".join(lines)


def public_call(call: str) -> str:
    """The public name that a call begins with: the longest beginning of its dotted name that has a page."""
    documented = {public.path for public in public_names()}
    parts = re.split(r"[(\[]", call)[0].split(".")
    while ".".join(parts) not in documented:
        parts.pop()
        if not parts:
            raise LookupError(f"{call} is no public name")
    return ".".join(parts)


def write_indices(site: Site) -> None:
    """Write the indices of the guide and of the project, and add to every index the tree of its pages."""
    placed = {name for names in GUIDE.values() for name in names} | {*PROJECT, "index", "equations"}
    top = [name for name in site.titles if "/" not in name]
    groups = {title: list(names) for title, names in GUIDE.items()}
    for name in sorted(set(top) - placed):
        groups.setdefault(site.parts.get(name, "More"), []).append(name)
    lead = "A page for each method: what it computes, by which formula, and with which call. Every example runs."
    lines = ["# Guide", "", lead, ""]
    for title, names in groups.items():
        here = [name for name in names if name in top]
        if here:
            lines += [f"## {title}", "", *(f"- [{site.titles[name]}](../{name}.md)" for name in here), ""]
            lines += ["```{toctree}", ":hidden:", f":caption: {title}", "", *(f"/{name}" for name in here), "```", ""]
    site.write("guide/index.md", "\n".join(lines))
    lines = ["# Project", "", "What is promised and tested, how it is built, how to work on it, what is new.", ""]
    own = [f"/{name}" for name in (*PROJECT, *(name for name in site.titles if name.startswith("project/")))]
    site.write("project/index.md", "\n".join([*lines, "```{toctree}", ":maxdepth: 1", "", *own, "```", ""]))
    sections = ["guide/index"]
    for folder in FOLDERS:
        inside = sorted(name.removeprefix(f"{folder}/") for name in site.titles if name.startswith(f"{folder}/"))
        if f"{folder}/index" not in site.titles:
            continue
        sections.append(f"{folder}/index")
        # In the order in which the index names them, and what it does not name at the end.
        text = (ROOT / "docs" / folder / "index.md").read_text("utf-8")
        named = [name for name in re.findall(r"\]\(([\w-]+)\.md\)", text) if name in inside]
        site.trees[f"{folder}/index"] = list(dict.fromkeys([*named, *(name for name in inside if name != "index")]))
    sections += ["equations", "gallery/index", "reference/index", "project/index"]
    site.trees["index"] = sections


def assemble() -> None:
    """Write everything that Sphinx reads."""
    site = Site()
    plates = draw_pictures()
    site.read()
    write_gallery(site, plates)
    write_indices(site)
    for before in site.pages:
        site.copy(before, plates)
    write_reference(site, plates)
    site.write("files.json", json.dumps(sorted(site.files)))
    site.remove_old()


def main(arguments: list[str]) -> int:
    """Assemble, and build unless told not to; return the exit status."""
    os.chdir(ROOT)
    if "--fresh" in arguments:
        shutil.rmtree(BUILD, ignore_errors=True)
    assemble()
    if "--assemble-only" in arguments:
        return 0
    from sphinx.cmd.build import main as sphinx

    options = ["-W", "-n", "--keep-going", "-q", "-j", "2", "-b", "html", "-d", str(BUILD / "doctrees")]
    return int(sphinx([*options, "-c", str(ROOT / "docs" / "site"), str(SOURCE), str(HTML)]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
