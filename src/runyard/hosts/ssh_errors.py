"""Errors of ssh, as one sentence that names the login and the fix."""

from __future__ import annotations

import re
from collections.abc import Callable

from runyard.hosts import far

SSH_FAILED = 255  # ssh's own exit code for its failures; a command may end with it, too
NOT_EXECUTABLE, NOT_FOUND = 126, 127  # of a shell


def of_connection(login: str, said: str, by_hand: str) -> str:
    """`by_hand`: the command that a person would type to get there."""
    for pattern, sentence in _SENTENCES:
        found = re.search(pattern, said)
        if found:
            return sentence(login, found, by_hand)
    told = last_line(said)
    # A connection that ends says nothing to those who share it.
    return f"{login} cannot be reached: {told}" if told else f"the connection to {login} was cut"


def of_interpreter(login: str, python: str, said: str, code: int | None) -> str | None:
    """Why no Python answered there; None when it is not the interpreter's fault."""
    if code in (NOT_FOUND, NOT_EXECUTABLE):
        return f"{login} has no interpreter {python!r} that can be started; name another one with --python PATH"
    old = re.search(re.escape(far.TOO_OLD) + r"(\S+)", said)
    if old is None:
        return None
    return f"{python!r} on {login} is version {old[1]}, and {far.OLDEST} is needed; name a newer one with --python PATH"


def last_line(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _changed_key(login: str, found: re.Match[str], by_hand: str) -> str:
    removal = re.search(r"ssh-keygen -f .+ -R .+", found.string)
    file, host = re.search(r"Offending .* key in (.+):\d+", found.string), login.rpartition("@")[2]
    command = removal[0].strip() if removal else f"ssh-keygen {f'-f {file[1]} ' if file else ''}-R {host}"
    return (
        f"the host key of {login} has changed: it was reinstalled, or another machine impersonates it; if its "
        f"administrators confirm the new key, forget the old one: {command} and then: {by_hand}"
    )


def _unknown_key(login: str, found: re.Match[str], by_hand: str) -> str:
    return f"the host key of {login} is not known here; connect once by hand and confirm it: {by_hand}"


def _unknown_name(login: str, found: re.Match[str], by_hand: str) -> str:
    return f"there is no host {found[1]!r} for {login}: {found[2].strip()}; see the site's --ssh and ~/.ssh/config"


def _no_entry(login: str, found: re.Match[str], by_hand: str) -> str:
    return (
        f"{login} does not let us in without a question ({found[1]}); load a key with ssh-add, or open a shared "
        f"connection (ControlMaster) by hand, until this asks nothing: {by_hand}"
    )


def _refused(login: str, found: re.Match[str], by_hand: str) -> str:
    return f"{login} refuses connections: no sshd listens at that address and port"


def _silent(login: str, found: re.Match[str], by_hand: str) -> str:
    return f"{login} does not answer: {found[0].lower()}"


def _cut(login: str, found: re.Match[str], by_hand: str) -> str:
    return f"the connection to {login} was cut"


_SENTENCES: list[tuple[str, Callable[[str, re.Match[str], str], str]]] = [
    (r"REMOTE HOST IDENTIFICATION HAS CHANGED", _changed_key),
    (r"No \S+ host key is known|Host key verification failed", _unknown_key),
    (r"Could not resolve hostname (\S+?): (.+)", _unknown_name),
    (r"Permission denied \(([^)]*)\)", _no_entry),
    (r"Connection refused", _refused),
    (r"Connection timed out|Operation timed out|No route to host|Network is unreachable", _silent),
    (r"[Cc]onnection (?:to \S+ )?(?:closed|reset)|Broken pipe|read from master failed", _cut),
]
