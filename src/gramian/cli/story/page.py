"""The gallery: one static page with every picture in it, beside its equation, its certificate and its code."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from html import escape
from importlib.resources import files
from string import Template

from gramian.cli.story.code import coloured
from gramian.cli.story.formula import formula
from gramian.cli.story.numbers import Number
from gramian.cli.story.plates import Chapter
from gramian.cli.story.telling import Drawn, Story
from gramian.cli.story.words import Proof, certified

__all__ = ["gallery"]

APART = r"\quad"  # where an equation may go on in another line


def gallery(story: Story) -> str:
    """Return the page as HTML: no scripts, nothing fetched, and a policy that says so.

    Parameters
    ----------
    story : Story
        What :func:`gramian.cli.story.telling.tell` returned.

    Returns
    -------
    str
        The page.
    """
    template = Template(files("gramian.cli").joinpath("page.html").read_text("utf-8"))
    style = template.template.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode("ascii")
    return template.substitute(
        policy=f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'",
        tiles=_tiles(story),
        cards="\n".join(_card(drawn) for drawn in story.drawn.values()),
        chapters="\n".join(_chapter(j, chapter, story) for j, chapter in enumerate(story.chapters, start=1)),
        numbers="\n".join(_sources(story.numbers)),
        verdict=_verdict(story.numbers),
    )


def _tiles(story: Story) -> str:
    sure = sum(drawn.proof.converged for drawn in story.drawn.values())
    right = sum(number.agrees for number in story.numbers)
    facts = (
        (str(len(story.drawn)), "pictures, each with its equation and its code"),
        (f"{sure} of {len(story.drawn)}", "fits certified to the accuracy that was asked for"),
        (f"{right} of {len(story.numbers)}", "reference numbers, in print or recomputed, found again"),
    )
    return "".join(f"<div><strong>{value}</strong><span>{text}</span></div>" for value, text in facts)


def _image(data: bytes, alt: str) -> str:
    # what the header of a PNG says, at two thirds: sharp on fine screens, and its letters as large as those of the text
    width, height = (int.from_bytes(data[at : at + 4], "big") * 2 // 3 for at in (16, 20))
    address = f"data:image/png;base64,{base64.b64encode(data).decode('ascii')}"
    return f'<img src="{address}" alt="{escape(alt)}" width="{width}" height="{height}">'


def _card(drawn: Drawn) -> str:
    plate = drawn.plate
    image = _image(drawn.thumbnail, "")
    return f'<a class="card" href="#{plate.key}"><span>{image}</span><b>{escape(plate.title)}</b></a>'


def _chapter(number: int, chapter: Chapter, story: Story) -> str:
    plates = "\n".join(_plate(story.drawn[plate.key]) for plate in chapter.plates)
    title = f'<h2 id="c{number}"><span>{number}</span> {escape(chapter.title)}</h2>'
    head = f'{title}<p class="lead">{escape(chapter.lead)}</p>'
    return f'<section aria-labelledby="c{number}">{head}\n{plates}\n</section>'


def _plate(drawn: Drawn) -> str:
    plate, parts = drawn.plate, [formula(part) for part in drawn.plate.equation.split(APART)]
    equation, text = "".join(part.mathml for part in parts), "  ".join(part.text for part in parts)
    return f"""<article id="{plate.key}" aria-labelledby="{plate.key}-title">
<h3 id="{plate.key}-title">{escape(plate.title)}</h3>
<p>{escape(plate.lead)}</p>
<div class="equation" tabindex="0" role="group" aria-label="Equation">{equation}</div>
<details class="text"><summary>The equation as text</summary><code>{escape(text)}</code></details>
<figure>{_image(drawn.picture, plate.alt)}<figcaption>{escape(drawn.finding)}</figcaption></figure>
{_certificate(drawn.proof)}
<details class="code"><summary>The code that made it</summary>
<pre tabindex="0"><code>{coloured(drawn.code)}</code></pre></details>
<p class="up"><a href="#gallery">All pictures</a></p>
</article>"""


def _certificate(proof: Proof) -> str:
    state, mark, word = ("met", "✓", "Certified") if proof.converged else ("unmet", "✗", "Not certified")
    rows = "".join(f"<tr><th scope='row'>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in proof.summary())
    return (
        f'<div class="certificate {state}"><p><span aria-hidden="true">{mark}</span> <strong>{word}.</strong> '
        f"{escape(certified(proof))}</p><details><summary>The whole certificate</summary>"
        f'<div class="scroll"><table>{rows}</table></div></details></div>'
    )


def _verdict(numbers: list[Number]) -> str:
    wrong = sum(not number.agrees for number in numbers)
    return f"All {len(numbers)} agree." if not wrong else f"{wrong} of {len(numbers)} do NOT agree."


def _sources(numbers: Iterable[Number]) -> Iterable[str]:
    """A group of rows for each source, under its name."""
    last = ""
    for number in numbers:
        if number.source != last:
            yield f'<tr class="source"><th colspan="4" scope="rowgroup">{escape(number.source)}</th></tr>'
            last = number.source
        cells = "".join(f"<td>{escape(text.replace('-', '−'))}</td>" for text in (number.published, number.ours))
        state = "yes" if number.agrees else "no"
        word, _, allowed = number.verdict.partition(" ")
        small = f"<small>{escape(allowed)}</small>" if allowed else ""
        head = f'<th scope="row">{escape(number.what)}</th>'
        yield f'<tr>{head}{cells}<td class="{state}">{escape(word)}{small}</td></tr>'
