"""The demo's page: one static file that sets each picture beside its equation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files
from string import Template

from gramian.results import Certificate, Optimum, Residual

__all__ = ["Number", "demo_page"]


@dataclass(frozen=True)
class Number:
    """A number in print and ours, both as text with the same number of decimals."""

    what: str
    published: str
    ours: str

    @property
    def agrees(self) -> bool:
        """Whether every printed digit is the same."""
        return self.published == self.ours

    @property
    def verdict(self) -> str:
        """The answer as a word."""
        return "yes" if self.agrees else "NO"


def demo_page(
    certificates: Mapping[str, Certificate | Optimum | Residual],
    numbers: Sequence[Number],
    accuracy: tuple[float, float],
    captions: Mapping[str, int],
    errors: Mapping[str, float],
) -> str:
    """Return the page as HTML, without scripts or anything fetched."""
    template = Template(files("gramian.cli").joinpath("page.html").read_text("utf-8"))
    return template.substitute(
        **{name: _certificate(certificate) for name, certificate in certificates.items()},
        errors=", ".join(f"{escape(name)}: {error:.4f}" for name, error in errors.items() if name != "original"),
        numbers="\n".join(_row(number) for number in numbers),
        reduced=f"{accuracy[0]:.1%}",
        full=f"{accuracy[1]:.1%}",
        **{name: str(value) for name, value in captions.items()},
    )


def _row(number: Number) -> str:
    cells = (number.what, number.published, number.ours, number.verdict)
    return "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in cells) + "</tr>"


def _certificate(certificate: Certificate | Optimum | Residual) -> str:
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in certificate.summary())
    state, word = ("met", "converged") if certificate.converged else ("unmet", "not converged")
    return f'<table class="certificate {state}"><caption>Certificate: {word}</caption>{rows}</table>'
