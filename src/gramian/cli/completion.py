"""``gramian completion``: the script that makes a shell complete commands, options and files."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from gramian.cli.options import command


@command(
    "completion",
    "gramian completion bash > ~/.local/share/bash-completion/completions/gramian",
    "gramian completion fish > ~/.config/fish/completions/gramian.fish",
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the script that makes SHELL complete what is typed after gramian.

    For zsh: gramian completion zsh > a file called _gramian in a folder of $fpath.
    """
    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}")
    click.echo(kind(context.find_root().command, {}, "gramian", "_GRAMIAN_COMPLETE").source())
