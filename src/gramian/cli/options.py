"""Options of commands: their sections in the help, the kinds of values they take, bundles of them, the device."""

from __future__ import annotations

import csv
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import click

from gramian.compute.devices import resolve

if TYPE_CHECKING:
    ParamType = click.ParamType[Any]
else:  # only recent versions have a parameter here
    ParamType = click.ParamType

F = TypeVar("F", bound=Callable[..., Any])

UNITS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
SECTIONS = ("Options", "Traits", "Cohort", "Filters", "Reading", "Output", "Running")


# What people type who know other programs; the help shows the names above.
SYNONYMS = {
    "--alpha": ("--lambda", "--alphas", "--penalty"),
    "--categorical": ("--text",),
    "--columns": ("--cols", "--features", "--variables"),
    "--components": ("-n", "--n-components", "--n_components", "--ncomp", "--k"),
    "--delimiter": ("--sep", "--separator"),
    "--id": ("--ids", "--names"),
    "--label": ("--labels", "--color", "--colour", "--group"),
    "--missing": ("--na",),
    "--na-values": ("--na_values", "--na-strings", "--null-values", "--nodata", "--missing-values"),
    "--out": ("--output", "--outdir"),
    "--seed": ("--random-state", "--random_state"),
    "--standardise": ("--standardize", "--scale"),
    "--target": ("-y", "--y", "--response", "--outcome"),
}


class Option(click.Option):
    """An option that knows the section of the help it belongs to, and what else people call it."""

    def __init__(self, *names: Any, section: str = "Options", **settings: Any) -> None:
        super().__init__(*names, **settings)
        self.section = section

    def add_to_parser(self, parser: Any, ctx: click.Context) -> None:
        """Let the parser know the synonyms too, which the help leaves out; another option's name is none."""
        shown, taken = self.opts, {name for parameter in ctx.command.params for name in parameter.opts}
        self.opts = [*shown, *(word for name in shown for word in SYNONYMS.get(name, ()) if word not in taken)]
        super().add_to_parser(parser, ctx)
        self.opts = shown


class Command(click.Command):
    """A command whose help has sections and ends with examples.

    Parameters
    ----------
    examples : sequence of str
        Command lines, as they are typed.
    """

    def __init__(self, *arguments: Any, examples: Sequence[str] = (), **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.examples = tuple(examples)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options, section by section."""
        rows: dict[str, list[tuple[str, str]]] = {name: [] for name in SECTIONS}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx) if isinstance(parameter, click.Option) else None
            if record is not None:
                rows[getattr(parameter, "section", "Running")].append(record)
        for name, records in rows.items():
            if records:
                with formatter.section(name):
                    formatter.write_dl(records)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples, each on a line of its own."""
        with formatter.section("Examples"):
            for example in self.examples:
                formatter.write(f"{'':>{formatter.current_indent}}{example}\n")


def command(name: str, *examples: str) -> Callable[[Callable[..., Any]], Command]:
    """Make a function a command that shows examples."""
    settings = {"max_content_width": 100, "help_option_names": ["-h", "--help"]}
    return click.command(name, cls=Command, examples=examples, context_settings=settings)


def option(*names: str, section: str = "Options", **settings: Any) -> Callable[[F], F]:
    """Return a decorator that adds an option to a section; numbers are called NUMBER, defaults shown."""
    settings.setdefault("show_default", bool(settings.get("default")))
    if isinstance(settings.get("type"), click.IntRange | click.FloatRange):
        settings.setdefault("metavar", "NUMBER")
    return click.option(*names, cls=Option, section=section, **settings)


def standardise_option(argument: str) -> Callable[[F], F]:
    """Return a decorator that adds the option to standardise columns, which the command is handed as ``argument``."""
    return option(
        "--standardise", argument, is_flag=True, help="Divide each column by its standard deviation (also --scale)."
    )


def bundle(kind: type, name: str, options: Iterable[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """Return a decorator that adds options and hands their values to the command as one object.

    Parameters
    ----------
    kind : type
        A dataclass; its fields have the names of the options.
    name : str
        The argument of the command that takes it.
    options : iterable of decorators
        What adds the options, in the order of the help.
    """
    names = [field.name for field in fields(kind)]

    def decorate(function: Any) -> Any:
        @functools.wraps(function)
        def call_with_bundle(*arguments: Any, **given: Any) -> Any:
            given[name] = kind(**{field: given.pop(field) for field in names if field in given})
            return function(*arguments, **given)

        made: Any = call_with_bundle
        for add in reversed(list(options)):
            made = add(made)
        return made

    return decorate


class NamesType(ParamType):
    """Names of columns with commas between them; one that has a comma itself stands in double quotes."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a tuple of names."""
        if not isinstance(value, str):
            return value
        found = [name.strip() for name in next(csv.reader([value], skipinitialspace=True), [])]
        if not found or "" in found:
            self.fail(f"{value!r} has an empty name; write names with commas between them: a,b,c", param, ctx)
        return tuple(found)


class NumbersType(ParamType):
    """A number, several with commas between them, or low:high:count for a grid in equal ratios; or a word."""

    name = "numbers"

    def __init__(self, words: Sequence[str] = ()) -> None:
        self.words = tuple(words)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a tuple of numbers, or of the words that are allowed."""
        if not isinstance(value, str):
            return value
        if ":" not in value:
            return tuple(self._one(part.strip(), param, ctx) for part in value.split(","))
        parts = value.split(":")
        try:
            low, high, count = float(parts[0]), float(parts[1]), int(parts[2])
        except (ValueError, IndexError):
            low, high, count = 0.0, 0.0, 0
        if len(parts) != 3 or not 0 < low < high < float("inf") or not 2 <= count <= 10_000:
            self.fail(f"{value!r} is no grid; low:high:count is, as 0.001:1000:50", param, ctx)
        return tuple(low * (high / low) ** (i / (count - 1)) for i in range(count))

    def _one(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> float | str:
        if text in self.words:
            return text
        try:
            number = float(text)
        except ValueError:
            number = float("nan")
        if not 0 <= number < float("inf"):
            words = f", or {' or '.join(self.words)}" if self.words else ""
            self.fail(f"{text!r} is no number from 0 on{words}", param, ctx)
        return number


class SizeType(ParamType):
    """An amount of memory, as 512M or 2G, in bytes."""

    name = "size"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return bytes."""
        if not isinstance(value, str):
            return value
        found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT])(?:i?B)?", value.strip(), re.IGNORECASE)
        if found is None or float(found[1]) == 0:
            self.fail(f"{value!r} is no amount of memory; 512M or 2G is", param, ctx)
        return int(float(found[1]) * UNITS[found[2].upper()])


NAMES, SIZE = NamesType(), SizeType()


def check_device(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the device, or say before anything is read that this machine has none of that name."""
    try:
        resolve(value)
    except (ImportError, ValueError) as error:
        raise click.UsageError(f"--{error}", ctx=context) from error
    return value


def portable(model: Any) -> Any:
    """Return a fitted model that computes where it is opened: its file may go to a machine without a GPU.

    Examples
    --------
    >>> from gramian import PCA
    >>> from gramian.cli.options import portable
    >>> portable(PCA(2, device="cuda"))
    PCA(n_components=2)
    """
    return model.set_params(device=None)
