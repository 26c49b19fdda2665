"""Build paper/paper.pdf from paper/paper.md and paper/paper.bib, with figures drawn from bench/results.

Usage: python tools/build_paper.py

Markdown becomes HTML by markdown-it, and a page by the browser that the tests use. A citation without an entry, and an
entry that is not cited, are errors.
"""

from __future__ import annotations

import re
import shutil
import sys
from base64 import b64encode
from html import escape
from pathlib import Path
from typing import Any

from gramian.display.base import GRID, PALETTE, new_axes, render_png

ROOT = Path(__file__).resolve().parent.parent
PAPER = ROOT / "paper"
CITATION = re.compile(r"\[@([a-z0-9]+)\]")
STYLE = """
@page { size: A4; margin: 22mm 24mm; }
body { font: 10.5pt/1.45 Georgia, 'DejaVu Serif', serif; }
h1 { font-size: 14pt; margin: 1.2em 0 0.3em; } header h1 { font-size: 19pt; line-height: 1.2; margin: 0 0 0.4em; }
table { border-collapse: collapse; margin: 0.8em auto; font-size: 9.5pt; }
th, td { padding: 2px 8px; border-bottom: 1px solid #bbb; text-align: left; }
figure { margin: 1em 0; break-inside: avoid; } figure img { width: 100%; } figcaption { font-size: 9.5pt; }
code { font-size: 9.5pt; } pre { background: #f4f4f4; padding: 6px 10px; break-inside: avoid; }
#references p { padding-left: 1.5em; text-indent: -1.5em; margin: 0.3em 0; }
"""


def read_table(file: str, heading: str = "") -> list[list[str]]:
    """The cells of the first table of a record, or the first after a heading, without its two lines of header."""
    text = (ROOT / "bench" / "results" / file).read_text("utf-8")
    after = text[re.search(rf"^## {heading}", text, re.MULTILINE).end() :] if heading else text  # type: ignore[union-attr]
    rows = re.search(r"(?:^\|.*\n)+", after, re.MULTILINE).group().splitlines()  # type: ignore[union-attr]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows[2:]]


def draw_bars(names: list[str], values: list[float], label: str, unit: str, ours: int) -> bytes:
    """Bars from the top down with their values, as a PNG."""
    ax = new_axes(None, (6.4, 0.34 * len(names) + 0.9))
    colours = [PALETTE[0] if i < ours else "#999999" for i in range(len(names))]
    ax.barh(names[::-1], values[::-1], color=colours[::-1])
    for i, value in enumerate(values[::-1]):
        ax.annotate(f"{value:.3g}{unit}", (value, i), (4, 0), textcoords="offset points", va="center", fontsize=8)
    ax.set_xlabel(label)
    ax.set_xlim(0, max(values) * 1.12)
    ax.grid(color=GRID, axis="x")
    return render_png(ax, 200)


def genotypes() -> bytes:
    """Seconds of every program at 100,000 SNPs."""
    rows = read_table("genotypes-2026-11-16.md", "3,192 × 100,000")
    ours = sum(row[0].startswith("gramian") for row in rows)
    return draw_bars([row[0] for row in rows], [float(row[1]) for row in rows], "seconds", " s", ours)


def pca() -> bytes:
    """Ratios of times, by workload."""
    rows = [row for row in read_table("pca-2026-11-15.md", "Summary") if row[4].endswith("×")]
    return draw_bars([row[0] for row in rows], [float(row[4][:-1]) for row in rows], "times Gramian's time", "×", 99)


def kernel_pca() -> bytes:
    """Seconds of every solver at 10,000 rows."""
    rows = read_table("kernel-pca-2026-11-15-5000-10000.md")
    rows = [row for row in rows if row[0] == "10,000"]
    seconds = [float(row[2].removesuffix(" s")) for row in rows]
    return draw_bars([f"{row[1]}, residual {row[9]}" for row in rows], seconds, "seconds", " s", 1)


def uci() -> str:
    """Test errors as a table."""
    rows = [row[:5] for row in read_table("uci-2026-11-15.md")]
    lines = ["| set | rows | features | Gramian | scikit-learn |", "|---|---|---|---|---|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)])


FIGURES = {"genotypes": genotypes, "pca": pca, "kernel_pca": kernel_pca}
TABLES = {"uci": uci}


def read_bibliography() -> dict[str, dict[str, str]]:
    """The entries of paper.bib, one on each line."""
    entries = {}
    for line in (PAPER / "paper.bib").read_text("utf-8").splitlines():
        if match := re.match(r"@(\w+)\{(\w+), (.*)\}$", line):
            fields = dict(re.findall(r"(\w+) = \{((?:[^{}]|\{[^{}]*\})*)\}", match.group(3)))
            entries[match.group(2)] = {key: re.sub(r"[{}]", "", value) for key, value in fields.items()}
    return entries


def name_authors(entry: dict[str, str]) -> str:
    """As a citation names them."""
    names = [author.split(",")[0] for author in entry["author"].split(" and ")]
    return names[0] if len(names) == 1 else " and ".join(names) if len(names) == 2 else f"{names[0]} et al."


def describe_entry(entry: dict[str, str]) -> str:
    """A line of the list of references."""
    where = entry.get("journal") or entry.get("booktitle") or entry.get("publisher", "")
    volume = ", ".join(filter(None, (entry.get("volume"), entry.get("pages", "").replace("--", "–"))))
    authors = entry["author"].replace(" and ", "; ").replace("; others", " et al.")
    return f"{escape(authors)} ({entry['year']}). {escape(entry['title'])}. <i>{escape(where)}</i> {volume}.".replace(
        " .", "."
    )


def make_page() -> str:
    """The paper as one page of HTML."""
    from markdown_it import MarkdownIt

    front, text = re.match(r"---\n(.*?)\n---\n(.*)", (PAPER / "paper.md").read_text("utf-8"), re.DOTALL).groups()  # type: ignore[union-attr]
    fields: dict[str, Any] = dict(re.findall(r"^(\w+): (.+)$", front, re.MULTILINE))
    authors = ", ".join(re.findall(r"^  - name: (.+)\n    affiliation", front, re.MULTILINE))
    entries, cited = read_bibliography(), set(CITATION.findall(text))
    if cited != set(entries):
        raise SystemExit(f"Cited and listed differ: {sorted(cited ^ set(entries))}")
    text = CITATION.sub(lambda m: f"({name_authors(entries[m[1]])}, {entries[m[1]]['year']})", text)
    count = iter(range(1, 99))

    def figure(match: re.Match[str]) -> str:
        image = b64encode(FIGURES[match[2]]()).decode("ascii")
        caption = f"<i>Figure {next(count)}.</i> {escape(match[1])}"
        return f'<figure><img src="data:image/png;base64,{image}" alt=""><figcaption>{caption}</figcaption></figure>'

    text = re.sub(r"!\[([^\]]*)\]\(figure:(\w+)\)", figure, text)
    text = re.sub(r"^table:(\w+)$", lambda match: TABLES[match[1]](), text, flags=re.MULTILINE)
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    listed = "".join(f"<p>{describe_entry(entries[key])}</p>" for key in sorted(entries))
    title = fields["title"].strip('"')
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><title>{escape(title)}</title><style>{STYLE}</style>'
        f"<header><h1>{escape(title)}</h1><p>{escape(authors)} · {fields['date']}</p></header>{body}"
        f'<section id="references">{listed}</section></html>'
    )


def main() -> int:
    """Write paper/paper.html and paper/paper.pdf; return the exit status."""
    from playwright.sync_api import sync_playwright

    page = make_page()
    (PAPER / "paper.html").write_text(page, "utf-8")
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        print("paper/paper.html is written; for the PDF install chromium.")
        return 1
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=found, args=["--no-sandbox"])
        sheet = browser.new_page()
        sheet.set_content(page)
        data = sheet.pdf(prefer_css_page_size=True, path=PAPER / "paper.pdf")
        browser.close()
    print(f"paper/paper.pdf: {len(re.findall(rb'/Type */Page[^s]', data))} pages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
