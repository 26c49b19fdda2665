"""The demo's story: one method after the other, each with a picture, its equation, its certificate and its code."""

from gramian.cli.story.numbers import Number, published_numbers
from gramian.cli.story.page import gallery
from gramian.cli.story.telling import PICTURES, STEPS, Drawn, Story, tell

__all__ = ["PICTURES", "STEPS", "Drawn", "Number", "Story", "gallery", "published_numbers", "tell"]
