"""Bokeh figures that look alike. This package is Bokeh's home; it is loaded when a page is made."""

from __future__ import annotations

from typing import Any

from gramian.display.base import GRID, INK

__all__ = ["FAINT", "bokeh_module", "hover_names", "legend_right", "new_figure"]

FAINT = "#5b6875"
FONT = "system-ui, 'Segoe UI', Roboto, 'Helvetica Neue', sans-serif"


def bokeh_module(name: str) -> Any:
    """Load a module of Bokeh, or say what to install."""
    try:
        import bokeh.document
        import bokeh.models
        import bokeh.plotting
        import bokeh.resources
    except ImportError as error:
        raise ImportError('A report needs Bokeh: pip install "gramian[report]".') from error
    return getattr(bokeh, name)


def new_figure(
    x_label: str, y_label: str, *, height: int = 360, tools: str = "pan,box_zoom,wheel_zoom,reset,save", **options: Any
) -> Any:
    """A figure in the style of the page: as wide as its place, quiet grid, no idle lines."""
    plotting, models = bokeh_module("plotting"), bokeh_module("models")
    options = {"sizing_mode": "stretch_width", "min_width": 240, "toolbar_location": "above", **options}
    figure = plotting.figure(height=height, tools=tools, **options)
    figure.toolbar.logo = None
    figure.toolbar.active_scroll = None
    figure.xaxis.axis_label = models.PlainText(text=x_label)
    figure.yaxis.axis_label = models.PlainText(text=y_label)
    figure.background_fill_color = figure.border_fill_color = figure.outline_line_color = None
    figure.grid.grid_line_color = GRID
    for axis in figure.axis:
        axis.axis_label_text_font_style = "normal"
        axis.axis_label_text_font = axis.major_label_text_font = FONT
        axis.axis_label_text_color = INK
        axis.major_label_text_color = FAINT
        axis.axis_line_color = axis.major_tick_line_color = "#b9c0c8"
        axis.minor_tick_line_color = None
    return figure


def hover_names(figure: Any, renderers: Any, rows: list[tuple[str, str]], mode: str = "mouse") -> None:
    """Show values of the columns named ``@column`` where the pointer is."""
    models = bokeh_module("models")
    figure.add_tools(models.HoverTool(renderers=list(renderers), tooltips=rows, mode=mode, visible=False))


def legend_right(figure: Any) -> None:
    """Move the legend out of the data, and let a click on it hide a line."""
    if not figure.legend:
        return
    legend = figure.legend[0]
    figure.add_layout(legend, "right")
    legend.click_policy = "mute"
    legend.border_line_color = legend.background_fill_color = None
    legend.label_text_font = FONT
    legend.label_text_font_size = "12px"
    legend.label_text_color = INK
    legend.padding = legend.margin = 4
