"""Where every run of `kept` ends: nothing that is raised gets past here.

Rule: whatever happens becomes a sentence with the next step on standard error, or one JSON document on standard
output, and an exit code: 0 done, 1 refused or failed, 2 used wrongly, 130 interrupted, 141 the reader has gone.
"""

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

import click

from kept.entrypoints.cli.invocation import Invocation
from kept.errors import KeptError

FAILED, INTERRUPTED, READER_GONE = 1, 130, 141  # click knows that wrong usage is 2


def wants_json(arguments: Sequence[str]) -> bool:
    end = arguments.index("--") if "--" in arguments else len(arguments)
    return "--json" in arguments[:end]


def run(command: click.Group, arguments: list[str], invocation: Invocation) -> int:
    """The exit code. Nothing that was raised gets past here."""
    try:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):  # a terminal that knows few characters gets escapes, not an error
                stream.reconfigure(errors="backslashreplace")
        with _notices_told(invocation):
            code = _invoke(command, arguments, invocation)
        invocation.flush()
        return code
    except BrokenPipeError:
        _silence_output()
        return READER_GONE
    except (KeyboardInterrupt, click.Abort):
        with suppress(OSError):
            invocation.tell("")  # ends the line on which the terminal has printed ^C
        return INTERRUPTED
    except Exception as error:  # the boundary: told to the person, and turned into an exit code
        return _report(error, invocation)


def _invoke(command: click.Group, arguments: list[str], invocation: Invocation) -> int:
    try:
        with command.make_context("kept", arguments, obj=invocation) as ctx:
            command.invoke(ctx)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    return 0


def _report(error: Exception, invocation: Invocation) -> int:
    """Say what went wrong and what to do, and give the exit code."""
    from kept.writing.redact import redact

    kind, message, hint, code = type(error).__name__, "", "", FAILED
    if isinstance(error, KeptError):
        message, hint = error.message, error.hint
    elif isinstance(error, click.ClickException):
        message = " ".join(error.format_message().split())  # click sets a list of choices in lines
        kind, message, code = "UsageError", message if message[-1:] in ".?!" else f"{message}.", error.exit_code
        hint = _usage_hint(error)
    elif isinstance(error, OSError):
        place = f" ({error.filename})" if error.filename is not None else ""
        message = f"The operating system says: {(error.strerror or kind).lower()}{place}."
        hint = "Check the file, its permissions, and the space on the disk."
    else:
        message = f"Kept has a fault here and stopped ({kind}). What was kept before is safe."
        hint = (
            "Run the command again with KEPT_DEBUG=1 and report what it shows; look through it for private text first."
        )
    # A message repeats what was typed, and what was typed may be a key in the wrong place.
    message, hint = redact(message).text, redact(hint).text
    if os.environ.get("KEPT_DEBUG"):
        import traceback

        invocation.tell(*"".join(traceback.format_exception(error)).splitlines())
    try:
        if invocation.as_json:
            invocation.answer({"error": {"type": kind, "message": message, "hint": hint}}, ())
        else:
            invocation.tell(f"{message} {hint}".rstrip())
        invocation.flush()
    except OSError:  # a full disk or a closed pipe behind the output: nobody is left to be told
        _silence_output()
    return code


def _usage_hint(error: click.ClickException) -> str:
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "kept"
    hint = f"`{path} --help` shows how it is used."
    if isinstance(error, click.NoSuchOption) and path.endswith(("remember", "revise")):
        hint = f'If it is part of the text, put the text after a double dash: {path} -- "…". {hint}'
    return hint


@contextmanager
def _notices_told(invocation: Invocation) -> Iterator[None]:
    """Show what the library logs as a warning: a sentence each, for a person to read."""

    class Notices(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            invocation.tell(f"Note: {record.getMessage()}")

    log, handler = logging.getLogger("kept"), Notices(logging.WARNING)
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _silence_output() -> None:
    """Nobody reads on: let the interpreter flush its last words into nothing."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
