"""What the story is made of: chapters of plates, each a picture with its equation and the code that draws it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from gramian.cli.story.words import Proof

__all__ = ["Chapter", "Plate", "certificate_of"]


def certificate_of(model: Any, *others: Any) -> Proof:
    """Return the certificate of what was fitted; of several pipelines, that of the last one's first step."""
    fitted = model[-1][0] if isinstance(model, list) else model
    proof: Proof = fitted.certificate_ if hasattr(fitted, "certificate_") else fitted.certificate
    return proof


@dataclass(frozen=True)
class Plate:
    """A picture to be drawn.

    Attributes
    ----------
    draw : callable
        Returns a picture, a fitted model and more; its source is what the page shows.
    title, lead : str
        What it is, and what to know before looking.
    equation : str
        As :func:`gramian.cli.story.formula.formula` reads it.
    finding : callable
        Given what ``draw`` returned after the picture: what came out, in a sentence.
    alt : str
        What is to be seen, for those who cannot see it.
    quick : mapping
        Arguments of ``draw`` that make it a matter of a second.
    """

    draw: Callable[..., tuple[Any, ...]]
    title: str
    lead: str
    equation: str
    finding: Callable[..., str]
    alt: str
    quick: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def key(self) -> str:
        """Name of the plate in addresses and of its file."""
        return self.draw.__name__


@dataclass(frozen=True)
class Chapter:
    """Plates that belong together, under a title."""

    title: str
    lead: str
    plates: tuple[Plate, ...]
