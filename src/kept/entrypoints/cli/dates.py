"""Dates at the command line: a day or a moment, as the clock on the wall shows it.

Rule: `--until` a day means until that day is over, because that is what people mean.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from typing import ParamSpec, TypeVar

import click

from kept.entrypoints.cli.frame import find_invocation

P = ParamSpec("P")
T = TypeVar("T")


def date_option(name: str, help: str, *, is_end: bool = False) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """An option that takes 2026-03-01 or 2026-03-01T14:30; the command gets a datetime with a time zone, or None."""

    def parse(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
        if value is None:
            return None
        zone = find_invocation(ctx).zone
        try:
            at = _moment(value.strip(), is_end=is_end)
            if at.tzinfo is None:
                at = at.replace(tzinfo=zone) if zone else at.astimezone()
            at.astimezone(UTC)  # the first and the last day of the calendar do not exist everywhere
        except (ValueError, OverflowError) as error:
            advice = "Write a day, 2026-03-01, or a moment, 2026-03-01T14:30."
            raise click.BadParameter(f"{value[:60]!r} is not a date. {advice}", ctx, param) from error
        return at

    return click.option(name, metavar="DATE", callback=parse, help=help)


def _moment(value: str, *, is_end: bool) -> datetime:
    try:
        day = date.fromisoformat(value)
    except ValueError:
        return datetime.fromisoformat(value)
    return datetime.combine(day, time.min) + timedelta(days=is_end)
