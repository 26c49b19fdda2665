"""The ``gramian`` command: a group of commands, each imported when it is asked for, that end with an exit code."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from gramian.cli.errors import (
    STOPPED,
    Invocation,
    Terminated,
    leave,
    open_missing_streams,
    run_and_explain,
    stop_code,
    stop_on_signals,
)
from gramian.sources.genotype_names import complete_name, is_genotype_name

__all__ = ["COMMANDS", "main"]


class LazyCommand(NamedTuple):
    """Where a command is to be found, as ``module:name``, and what the list of commands says of it.

    ``genotypes`` is where to find the command of the same name for PLINK files, which has options of its own.
    """

    where: str
    help: str
    genotypes: str = ""


class LazyGroup(click.Group):
    """Commands by name; none is imported before it is run.

    Parameters
    ----------
    lazy : mapping of str to LazyCommand
        The commands, in the order in which they are listed.
    **settings
        As for :class:`click.Group`.
    """

    def __init__(self, *, lazy: Mapping[str, LazyCommand], **settings: Any) -> None:
        super().__init__(**settings)
        self.lazy = dict(lazy)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names, in the order in which they are listed."""
        return list(self.lazy)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command and return the command."""
        return _import_command(self.lazy[cmd_name].where) if cmd_name in self.lazy else None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or name the one that may have been meant."""
        name = str(args[0])
        if name not in self.lazy and not name.startswith("-") and not ctx.resilient_parsing:
            meant = next((command for command, words in ALSO.items() if name.lower() in words), None)
            near = [meant] if meant in self.lazy else get_close_matches(name, self.lazy, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(self.lazy)}"
            raise click.UsageError(f"there is no command {name!r}; {hint}", ctx)
        if name in self.lazy and self.lazy[name].genotypes and _names_genotypes(args[1:]):
            return name, _import_command(self.lazy[name].genotypes), args[1:]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in self.lazy.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete names of commands without importing any."""
        names = [CompletionItem(n, help=c.help) for n, c in self.lazy.items() if n.startswith(incomplete)]
        return [*names, *click.Command.shell_complete(self, ctx, incomplete)]

    def main(
        self,
        args: Any = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Run, and leave with an exit code."""
        given = sys.argv[1:] if args is None else list(args)
        alone = args is None and standalone_mode  # this process is for one command
        if alone:
            open_missing_streams()
            stop_on_signals()
        invocation = Invocation(given, answers=sys.stdout)
        settings: dict[str, Any] = {"obj": invocation, **extra, "standalone_mode": False}
        run = partial(super().main, given, prog_name, complete_var, **settings)
        if not standalone_mode:
            return run()
        try:
            code = run_and_explain(run, invocation)
        except (KeyboardInterrupt, Terminated):  # while something was explained
            code = STOPPED
        code = stop_code() or code
        return leave(code) if alone else sys.exit(code)


def _import_command(where: str) -> click.Command:
    module, _, attribute = where.partition(":")
    command: click.Command = getattr(import_module(module), attribute)
    return command


def _names_genotypes(arguments: Sequence[str]) -> bool:
    """Whether one of the arguments is a file of genotypes, or the name of one without its ending; any to ask for help.

    Braces and stars may stand for several.
    """
    help_asked = bool({"-h", "--help"} & set(arguments))
    before = ["", *arguments]
    return any(
        (is_genotype_name(word) and (help_asked or Path(word).exists() or {*word} & {*"{*?["}))
        or (not option.startswith("-") and complete_name(word))
        for option, word in zip(before, arguments, strict=False)
    )


HELP = """Certified spectral methods for data: every fit says how accurate it is.
'gramian COMMAND --help' explains a command, with two examples."""

# What people type who know other programs.
ALSO = {
    "pca": ("prcomp", "princomp", "svd"),
    "kernel-pca": ("kpca", "kernelpca"),
    "ridge": ("lm", "ols", "regression", "regress", "linear"),
    "kernel-ridge": ("krr", "kernelridge", "gp", "gpr"),
    "mixture": ("gmm", "mclust", "cluster", "kmeans", "em", "gaussian-mixture"),
    "fit": ("mle", "fitdistr", "fitdist", "likelihood", "distribution"),
    "project": ("transform",),
    "info": ("describe", "summary", "inspect", "head"),
}

COMMANDS = {
    "pca": LazyCommand(
        "gramian.cli.pca:pca",
        "Principal components of a table, or of genotypes (.bed …).",
        genotypes="gramian.cli.genotypes:genotype_pca",
    ),
    "kernel-pca": LazyCommand("gramian.cli.kernel_pca:kernel_pca", "Principal components of features, by a kernel."),
    "ridge": LazyCommand("gramian.cli.ridge:ridge", "Ridge regression, with λ by leave-one-out errors."),
    "kernel-ridge": LazyCommand("gramian.cli.kernel_ridge:kernel_ridge", "Kernel ridge regression, with bounds."),
    "mixture": LazyCommand("gramian.cli.mixture:mixture", "Gaussian mixtures, chosen by BIC."),
    "fit": LazyCommand("gramian.cli.fit:fit", "Distributions by maximum likelihood."),
    "project": LazyCommand(
        "gramian.cli.project:project",
        "Scores of new rows, from a model file.",
        genotypes="gramian.cli.project:genotype_project",
    ),
    "predict": LazyCommand("gramian.cli.predict:predict", "Predictions for new rows, from a model file."),
    "convert": LazyCommand("gramian.cli.convert:convert", "Genotypes of other programs as PLINK's .bed."),
    "prune": LazyCommand("gramian.cli.prune:prune_command", "SNPs that are not correlated, from genotypes (.bed)."),
    "king": LazyCommand("gramian.cli.king:king_command", "Relatives among the people of genotypes (.bed)."),
    "grm": LazyCommand("gramian.cli.grm:grm_command", "Genetic relationship matrix, in the files of GCTA."),
    "heritability": LazyCommand(
        "gramian.cli.heritability:heritability_command", "How much of a trait the SNPs explain."
    ),
    "ancestry": LazyCommand(
        "gramian.cli.ancestry:ancestry_command", "Where people come from, by a labelled reference."
    ),
    "loco": LazyCommand("gramian.cli.loco:loco_command", "Traits predicted without each chromosome, for regenie."),
    "simulate": LazyCommand("gramian.cli.simulate:simulate", "Genotypes over a map of Europe, or of populations."),
    "info": LazyCommand("gramian.cli.info:info", "What is in a data file or a model file."),
    "demo": LazyCommand("gramian.cli.demo:demo", "Known data sets, numbers in print, pictures."),
    "bench": LazyCommand("gramian.cli.bench:bench", "Gramian against scikit-learn on this machine."),
    "completion": LazyCommand("gramian.cli.completion:completion", "Script for completion in a shell."),
}

main = LazyGroup(name="gramian", lazy=COMMANDS, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
main = click.version_option(package_name="gramian", prog_name="gramian")(main)
