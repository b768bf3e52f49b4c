"""A group of commands whose modules are imported one at a time, when they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click


@dataclass(frozen=True, slots=True)
class CommandEntry:
    """A line in the table of a group's commands.

    Args:
        name: The name that the user types.
        home: ``module:attribute`` of the command.
        help: First sentence of the command's help, which listings show and shorten to the width of the page.
    """

    name: str
    home: str
    help: str


class LazyGroup(click.Group):
    """Commands in the order of use. A command's module is imported when the command runs or shows its own help.

    Listing the commands, for ``--help`` or for a shell that completes a name, imports none of them.

    Args:
        entries: The commands.
    """

    def __init__(self, *args: Any, entries: Sequence[CommandEntry], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = {entry.name: click.Command(entry.name, help=entry.help) for entry in entries}
        self._homes = {entry.name: entry.home for entry in entries}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Return the names in the order of the table."""
        return list(self.commands)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the arguments name, imported, and the remaining arguments."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, self.load(name) if name else command, rest

    def load(self, name: str) -> click.Command:
        """Return the command of this name, imported."""
        module, _, attribute = self._homes[name].partition(":")
        command = getattr(import_module(module), attribute)
        assert isinstance(command, click.Command)
        return command
