"""The story told: every plate drawn and saved, with what came out and how sure it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gramian.cli.story.code import listing
from gramian.cli.story.contents import CHAPTERS
from gramian.cli.story.numbers import Number, published_numbers
from gramian.cli.story.plates import Chapter, Plate, certificate_of
from gramian.cli.story.words import Proof
from gramian.display import save_picture

__all__ = ["PICTURES", "STEPS", "Drawn", "Story", "tell"]

PICTURES = tuple(f"{plate.key}.png" for chapter in CHAPTERS for plate in chapter.plates)
STEPS = len(PICTURES) + 1  # the numbers are the last one
THUMBNAIL = 55  # dots per inch


@dataclass(frozen=True, eq=False)
class Drawn:
    """A plate that was drawn.

    Attributes
    ----------
    plate : Plate
        Which.
    finding : str
        What came out.
    proof : SpectralCertificate, Optimum or Residual
        How sure it is.
    code : str
        What ran.
    picture, thumbnail : bytes
        The picture as PNG, large and small.
    """

    plate: Plate
    finding: str
    proof: Proof
    code: str
    picture: bytes
    thumbnail: bytes


@dataclass(frozen=True, eq=False)
class Story:
    """All that was drawn, by plate, and the numbers beside those in print."""

    chapters: Sequence[Chapter]
    drawn: dict[str, Drawn]
    numbers: list[Number]

    @property
    def certified(self) -> bool:
        """Whether every tolerance was met."""
        return all(drawn.proof.converged for drawn in self.drawn.values())

    @property
    def agrees(self) -> bool:
        """Whether every number agrees."""
        return all(number.agrees for number in self.numbers)


def tell(
    folder: Path,
    *,
    quick: bool = False,
    starting: Callable[[str], None] = lambda title: None,
    done: Callable[[Drawn], None] = lambda drawn: None,
    chapters: Sequence[Chapter] = CHAPTERS,
) -> Story:
    """Draw every plate and save its picture.

    Parameters
    ----------
    folder : Path
        Where pictures go.
    quick : bool, default=False
        Whether to make do with smaller simulations.
    starting, done : callable, optional
        Told the title of what begins, and what was drawn.
    chapters : sequence of Chapter, optional
        What to tell.

    Returns
    -------
    Story
        What came out.
    """
    drawn = {}
    for plate in (plate for chapter in chapters for plate in chapter.plates):
        starting(plate.title)
        drawn[plate.key] = draw(plate, folder, quick)
        done(drawn[plate.key])
    starting("Reference numbers")
    return Story(chapters, drawn, published_numbers())


def draw(plate: Plate, folder: Path, quick: bool = False) -> Drawn:
    """Draw one plate; where it is to be quick, what is small is the large picture once more."""
    given = plate.quick if quick else {}
    picture, *rest = plate.draw(**given)
    large = folder / f"{plate.key}.png"
    save_picture(picture, large)
    image = large.read_bytes()
    small = image if quick else _thumbnail(picture, folder)
    return Drawn(plate, plate.finding(*rest), certificate_of(*rest), listing(plate.draw, given), image, small)


def _thumbnail(picture: Any, folder: Path) -> bytes:
    place = folder / "thumbnail.png"
    save_picture(picture, place, dpi=THUMBNAIL)
    image = place.read_bytes()
    place.unlink()
    return image
