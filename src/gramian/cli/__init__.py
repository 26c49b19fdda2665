"""The ``gramian`` command: one thin command per file."""

from __future__ import annotations

import click

from gramian.cli.demo import demo
from gramian.cli.pca import pca

__all__ = ["main"]


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="gramian", prog_name="gramian")
def main() -> None:
    """Certified spectral methods for data."""


main.add_command(demo)
main.add_command(pca)
