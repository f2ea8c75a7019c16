"""`kept help`: the help of any command, and the list of all of them."""

import click

from kept.entrypoints.cli.frame import command, root, show_help
from kept.entrypoints.cli.invocation import Invocation


@command
@click.argument("words", nargs=-1, metavar="[COMMAND]...")
@click.option("--all", "is_all", is_flag=True, help="List every command, by topic.")
def help_command(invocation: Invocation, *, words: tuple[str, ...], is_all: bool) -> None:
    """`kept help store backup` is the same as `kept store backup --help`."""
    ctx = click.get_current_context().find_root()
    if is_all and not words:
        page = root.every_command(ctx)
        invocation.answer({"help": page}, page.split("\n"), as_is=True)
        return
    for word in words:
        if not isinstance(ctx.command, click.Group):
            raise click.UsageError(f"`{ctx.command_path}` has no command {word[:60]!r}.", ctx=ctx)
        name, found, _ = ctx.command.resolve_command(ctx, [word])
        assert found is not None  # resolve_command raises for an unknown name
        ctx = click.Context(found, info_name=name, parent=ctx)
    show_help(ctx)
