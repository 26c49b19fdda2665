"""The ``gramian`` command: one thin command per file, imported when it is asked for."""

from __future__ import annotations

import click

from gramian.cli.group import LazyCommand, LazyGroup

__all__ = ["main"]

HELP = """Certified spectral methods for data: every fit says how accurate it is.

'gramian COMMAND --help' explains a command, with two examples."""

COMMANDS = {
    "pca": LazyCommand(
        "gramian.cli.pca:pca",
        "Principal components of a table, or of genotypes (.bed).",
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
        genotypes="gramian.cli.genotypes:genotype_project",
    ),
    "predict": LazyCommand("gramian.cli.predict:predict", "Predictions for new rows, from a model file."),
    "simulate": LazyCommand("gramian.cli.simulate:simulate", "Genotypes over a map of Europe, or of populations."),
    "info": LazyCommand("gramian.cli.info:info", "What is in a data file or a model file."),
    "demo": LazyCommand("gramian.cli.demo:demo", "Known data sets, numbers in print, pictures."),
    "bench": LazyCommand("gramian.cli.bench:bench", "Gramian beside scikit-learn on this machine."),
    "completion": LazyCommand("gramian.cli.completion:completion", "Script for completion in a shell."),
}

main = LazyGroup(name="gramian", lazy=COMMANDS, help=HELP, context_settings={"help_option_names": ["-h", "--help"]})
main = click.version_option(package_name="gramian", prog_name="gramian")(main)
