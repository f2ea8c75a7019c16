"""How far a long work has come, on standard error: a bar on a terminal, elsewhere a line for each tenth."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import click

from kept.entrypoints.cli.invocation import Dim, Invocation


@contextmanager
def progress(invocation: Invocation, label: str) -> Iterator[Callable[[int, int], None]]:
    """Gives what is to be told (done, total) from time to time. Nothing is shown of work that is done at once."""
    stream = invocation.err or sys.stderr
    with ExitStack() as stack:
        bars: list[click._termui_impl.ProgressBar[int]] = []
        tenths = {0}

        def show_bar(done: int, total: int) -> None:
            if not bars and done < total:
                bars.append(
                    stack.enter_context(click.progressbar(length=total, label=label, file=stream, show_pos=True))
                )
            for bar in bars:
                bar.length = total
                bar.update(done - bar.pos)

        def show_lines(done: int, total: int) -> None:
            tenth = 10 * done // total if total else 10
            if tenth not in tenths and (done < total or len(tenths) > 1):
                invocation.tell(Dim(f"{label}: {done:,} of {total:,}"))
            tenths.add(tenth)

        yield show_bar if stream is not None and stream.isatty() else show_lines
