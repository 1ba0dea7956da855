"""The commands of the command line, and what they read of one; nothing is run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from lakehouse import cli


def parsed(words: Sequence[str]) -> click.Context:
    """Return the context of the command that words name, with the values of its options."""
    context = cli.ROOT.make_context("lakehouse", [*words])
    while isinstance(group := context.command, click.Group):
        name, command, rest = group.resolve_command(context, [*context._protected_args, *context.args])
        assert command is not None
        context = command.make_context(name, rest, parent=context)
    return context


def every(group: click.Group = cli.ROOT, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the words of each command and group."""
    yield words
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from every(command, (*words, name))
        else:
            yield (*words, name)
