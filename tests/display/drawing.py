"""What tests of pictures share: rendering, and where texts are."""

import io
from itertools import combinations

from matplotlib.backends.backend_agg import FigureCanvasAgg


def rendered(figure, kind="png"):
    """The figure as bytes: drawing is where matplotlib's own warnings would appear."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=50)
    return buffer.getvalue()


def drawn(figure):
    """Draw with Agg, and return the renderer, with which boxes are measured."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return canvas.get_renderer()


def overlapping(boxes):
    """Pairs of boxes that share more than a line, by their numbers."""
    return [(i, j) for (i, a), (j, b) in combinations(enumerate(boxes), 2) if a.overlaps(b)]


def legend_names(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]
