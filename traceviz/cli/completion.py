"""``traceviz completion``: the script that lets a shell complete our commands."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, /, shell: str) -> None:
    """Print the completion script of SHELL, for example: eval "$(traceviz completion bash)"."""
    from click.shell_completion import get_completion_class

    completer = get_completion_class(shell)
    assert completer is not None
    click.echo(completer(ctx.find_root().command, {}, "traceviz", "_TRACEVIZ_COMPLETE").source())
