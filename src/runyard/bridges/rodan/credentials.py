"""Our accounts at Rodan and its broker: six variables, from the environment or from a file written for a shell."""

from __future__ import annotations

import os
import re
import shlex
import stat
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, quote, urlsplit

from runyard import errors

BROKER = ("RABBITMQ_HOST", "RABBITMQ_USER", "RABBITMQ_PASSWORD")
RODAN = ("RODAN_HOST", "RODAN_USER", "RODAN_PASSWORD")
VARIABLES = (*BROKER, *RODAN)
AUTHORITIES = "SSL_CERT_FILE"
_SECRETS = ("RABBITMQ_PASSWORD", "RODAN_PASSWORD")
_ASSIGNMENT = re.compile(r"\s*(?:export\s+)?([A-Za-z_]\w*)=(.*)", re.DOTALL)
_PIECE = r"""'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^\s'"\\;&|<>()]"""  # of a word of a shell
_WORD = re.compile(rf"((?:{_PIECE})*)(?:\s*|\s+#.*)")  # a # within a word is a letter like any other
_EXPANDED = re.compile(r"(?<!\\)[$`]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Credentials:
    """Its repr has no password."""

    broker: str  # amqps://user@host:port/
    broker_password: str = field(repr=False)
    rodan: str  # https://host:port
    user: str
    password: str = field(repr=False)
    authorities: str = ""  # a file of certificates to trust; '': those of the system


def load(path: str = "", environ: Mapping[str, str] = os.environ) -> Credentials:
    """The environment fills in what the file lacks. Raises ConfigError, which names the problem and no value."""
    found = {**environ, **_read(Path(path).expanduser())} if path else dict(environ)
    missing = [name for name in VARIABLES if not found.get(name, "").strip()]
    if missing:
        where = f"in {path}" if path else "in the environment"
        raise errors.ConfigError(f"empty {where}: {', '.join(missing)}", "write them into credentials.env, one a line")
    broker = _address(found, "RABBITMQ_HOST", "amqps", "amqp")
    return Credentials(
        broker=f"{broker.scheme}://{quote(found['RABBITMQ_USER'], safe='')}@{broker.netloc}/",
        broker_password=found["RABBITMQ_PASSWORD"],
        rodan=_address(found, "RODAN_HOST", "https", "http").geturl(),
        user=found["RODAN_USER"],
        password=found["RODAN_PASSWORD"],
        authorities=found.get(AUTHORITIES, ""),
    )


def hide(environ: MutableMapping[str, str] = os.environ) -> None:
    """Programs that this process starts, such as a scheduler's commands, must not inherit our passwords."""
    for name in _SECRETS:
        environ.pop(name, None)


def _address(found: Mapping[str, str], name: str, usual: str, plain: str) -> SplitResult:
    """`host`, `host:port` or with a scheme. Encrypted unless the other scheme is written out."""
    text = found[name].strip()
    form = f"write it like host, host:port or {usual}://host:port; {plain}:// is without encryption"
    try:
        parts = urlsplit(text if "://" in text else f"{usual}://{text}")
        parts.port  # noqa: B018  # raises when it is no port
    except ValueError:
        raise errors.ConfigError(f"{name} is not a host", form) from None
    if parts.scheme not in (usual, plain):
        raise errors.ConfigError(f"{name} begins with {parts.scheme}://", form)
    if not parts.hostname or "@" in parts.netloc or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise errors.ConfigError(f"{name} is not a host alone", form)
    return parts._replace(path="")


def _read(path: Path) -> dict[str, str]:
    """Assignments of a shell script; nothing else of it is executed."""
    try:
        _refuse_open(path)
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise errors.ConfigError(f"{path} cannot be read: {reason}", "name the file with --credentials") from None
    found: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        match = _ASSIGNMENT.fullmatch(line)
        if match and match[1] in (*VARIABLES, AUTHORITIES):
            found[match[1]] = _value(match[2], f"{path}, line {number}: {match[1]}")
    return found


def _refuse_open(path: Path) -> None:
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        raise errors.ConfigError(f"{path} holds passwords and others may read it ({mode:o})", f"chmod 600 {path}")


def _value(text: str, where: str) -> str:
    """As a shell would read it; values with substitutions are refused, because they cannot be known."""
    word = _WORD.fullmatch(text)
    if word is None:
        raise _no_word(text, where)
    if any(_EXPANDED.search(piece) for piece in re.findall(_PIECE, word[1]) if not piece.startswith("'")):
        raise errors.ConfigError(f"{where}: a shell would replace the $ or ` in it", "put the value into single quotes")
    return "".join(shlex.split(word[1]))


def _no_word(text: str, where: str) -> errors.ConfigError:
    try:
        shlex.split(text)
    except ValueError:
        return errors.ConfigError(f"{where}: a quote is not closed", "put the value into single quotes")
    return errors.ConfigError(
        f"{where}: there is something after the value", "put a value with blanks or signs of a shell into quotes"
    )
