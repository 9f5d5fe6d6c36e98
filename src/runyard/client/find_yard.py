"""Which yard to use: arguments, then RUNYARD_URL and RUNYARD_TOKEN, then the home: `url` in its settings, or its
own yard."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from runyard import errors, home, settings
from runyard.client import temporary_yard
from runyard.client.address import YardAddress, complaint
from runyard.settings import Settings

START_TIMEOUT = 90.0

Notify = Callable[[str], None]


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """The address and the token of a yard."""

    url: str
    token: str
    ca_file: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Finder:
    """Looks up the yard at each call: it may have been restarted on another port."""

    url: str | None
    token: str | None
    settings: Settings
    start: bool
    notify: Notify

    @property
    def home(self) -> Path:
        return self.settings.home

    @classmethod
    def build(
        cls,
        url: str | None,
        token: str | None,
        home: Path | str | None,
        start: bool,
        notify: Notify,
        environ: Mapping[str, str] = os.environ,
    ) -> Finder:
        """A home that is named in the call is meant, whatever RUNYARD_URL says."""
        loaded = settings.load(home, environ)
        chosen = url or (None if home else environ.get("RUNYARD_URL")) or loaded.url
        secret = token or (None if home and not url else _given_token(environ))
        return cls(url=chosen or None, token=secret or None, settings=loaded, start=start and not chosen, notify=notify)

    def find(self, dead: str | None = None) -> Target:
        """The yard to speak to; starts it when that is allowed and needed. `dead` is an address that did not answer."""
        if self.url:
            return Target(url=self.url, token=self.secret(), ca_file=self.settings.ca_file)
        address = running(self.home)
        if address is None or address.url == dead:
            address = self._started()
        return Target(url=address.url, token=self.secret())

    def secret(self) -> str:
        """The token alone, without asking whether the yard runs."""
        if self.token:
            return self.token
        return self._token_for(self.url) if self.url else read_token(self.home)

    def _token_for(self, url: str) -> str:
        """The token of this home goes to this home's yard and nowhere else."""
        if _is_same(url, self.settings.url):
            refuse_open_token(self.home)
            return read_token(self.home)
        address = read_address(self.home)
        if address is not None and _is_same(url, address.url):
            return read_token(self.home)
        self._dial(url)
        raise errors.Unauthorized(f"no token for the yard at {url}", "set RUNYARD_TOKEN")

    def _dial(self, url: str) -> None:
        """A wrong address, or one without an answer, is reported before a missing token."""
        from runyard.client.transport import Transport

        Transport(url, ca_file=self.settings.ca_file).dial()

    def _started(self) -> YardAddress:
        if not home.has_daemon(self.settings):
            return temporary_yard.yard(self.home)
        if not self.start:
            raise errors.YardUnreachable(f"no yard is running for {self.home}", "runyard up -d")
        self.notify(f"no yard is running; starting one in the background for {self.home}")
        start_yard(self.home)
        address = running(self.home)
        if address is None:
            raise errors.YardUnreachable(f"the yard of {self.home} ended right after its start", "runyard doctor")
        return address


def _given_token(environ: Mapping[str, str]) -> str | None:
    """As it is, or in a file such as a secret of Docker or systemd."""
    path = environ.get("RUNYARD_TOKEN_FILE", "")
    return environ.get("RUNYARD_TOKEN") or settings.read_secret(path, "the token", "check RUNYARD_TOKEN_FILE")


def _is_same(one: str, other: str) -> bool:
    return one.rstrip("/") == other.rstrip("/")


def read_address(home: Path) -> YardAddress | None:
    """The contents of the address file; None if it is missing or incomplete."""
    try:
        said = json.loads((home / "yard.json").read_text(encoding="utf-8"))
        return YardAddress(url=str(said["url"]), pid=int(said["pid"]), version=str(said.get("version", "")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def running(home: Path) -> YardAddress | None:
    """The address of this home's yard if its process is alive. A killed yard leaves its file behind."""
    address = read_address(home)
    return address if address is not None and is_alive(address.pid) else None


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def read_token(home: Path) -> str:
    path = home / "token"
    try:
        return path.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        raise errors.Unauthorized(f"there is no token in {path}", "runyard up -d") from None
    except PermissionError:
        fix = "ask its owner for a token, and set RUNYARD_TOKEN"
        raise errors.Unauthorized(f"{path} belongs to another user", fix) from None
    except (OSError, UnicodeDecodeError) as error:
        raise errors.Unauthorized(f"{path} cannot be read: {error}", "runyard doctor") from None


def refuse_open_token(home: Path) -> None:
    """A token file must be readable by its owner only, like the one that a yard makes."""
    path = home / "token"
    if path.exists() and path.stat().st_mode & 0o077:
        raise errors.Unauthorized(f"others may read the token in {path}", f"chmod 600 {path}")


def start_yard(home: Path) -> None:
    """Start this home's yard and return when it answers. When two do this at once, the home's lock decides and both get
    the winner's yard."""
    import subprocess

    # -P keeps the user's directory off the module path: a file of theirs must not replace one of ours.
    command = [sys.executable, "-P", "-m", "runyard", "up", "-d"]
    environ = {**os.environ, "RUNYARD_HOME": str(home)}
    try:
        done = subprocess.run(
            command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, timeout=START_TIMEOUT, check=False
        )
    except subprocess.TimeoutExpired:
        raise errors.YardUnreachable("the yard did not come up in time", f"look into {home / 'yard.log'}") from None
    if done.returncode:
        message, fix = complaint(done.stderr.decode("utf-8", "replace"))
        raise errors.YardUnreachable(message, fix or "runyard up")
