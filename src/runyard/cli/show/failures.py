"""How a command ends: every failure is one sentence, a fix and an exit code; RUNYARD_DEBUG=1 shows the traceback."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from collections.abc import Callable, Iterable
from typing import Any

import click

from runyard import errors

INTERRUPTED = 130
CLOSED_PIPE = 141  # as for a program killed by SIGPIPE
UNEXPECTED = errors.RunyardError.exit_code


def guard(call: Callable[[], Any]) -> int:
    """Run a command and return its exit code, whatever it raises."""
    _open_closed_streams()
    _allow_any_character()
    try:
        code = call()
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except BrokenPipeError:
        return CLOSED_PIPE
    except click.exceptions.Exit as exit:
        return exit.exit_code
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except Exception as error:
        return _explain(error)
    finally:
        _drop_unwritten()


def _explain(error: Exception) -> int:
    if os.environ.get("RUNYARD_DEBUG"):
        import traceback

        traceback.print_exc()
    message, fix, code = _sentence(error)
    with contextlib.suppress(OSError):
        report(message, fix)
    return code


def report(message: str, fix: str = "") -> None:
    """The two lines that every failure prints; calling programs parse them."""
    print(f"error: {' '.join(message.split())}", file=sys.stderr)
    if fix:
        print(f"fix: {' '.join(fix.split())}", file=sys.stderr)


def _sentence(error: Exception) -> tuple[str, str, int]:
    if isinstance(error, errors.RunyardError):
        return error.message, error.fix, error.exit_code
    if isinstance(error, click.ClickException):
        return _lower_first(error.format_message().rstrip(".")), _usage_fix(error), error.exit_code
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror.lower()}", "", UNEXPECTED
    name = type(error).__name__
    return f"unexpected error ({name}: {error})", "RUNYARD_DEBUG=1 shows the traceback", UNEXPECTED


def _usage_fix(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return f"{context.command_path} --help" if context is not None else ""


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]


def unknown_command(word: str, known: Iterable[str]) -> errors.InvalidInput:
    from runyard.model import fields

    return errors.InvalidInput(f"there is no command {word!r}", fields.nearest(word, known))


def _open_closed_streams() -> None:
    """A program may be started without one of the three streams; Python then has None instead of it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            setattr(sys, name, os.fdopen(nowhere, mode, encoding="utf-8", errors="replace"))


def _allow_any_character() -> None:
    """If the locale is not UTF-8, as on old clusters, a name or an ellipsis would raise an error."""
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def _drop_unwritten() -> None:
    """Python would flush standard output again at exit, print an error, and change the exit code."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
