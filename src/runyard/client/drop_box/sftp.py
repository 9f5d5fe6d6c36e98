"""A drop box that is reached only by SFTP: with OpenSSH's sftp, and the user's own configuration and keys.

A batch of commands is given on its standard input, and ends at the first one that fails, unless a `-` stands before it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from runyard import errors
from runyard.client.drop_box.storage import BundleFile, folders_of


@dataclass(frozen=True, kw_only=True, slots=True)
class SftpStorage:
    host: str  # as ssh knows it, with the user if one was named
    folder: str  # there
    port: int | None = None

    @classmethod
    def parse(cls, url: str) -> SftpStorage:
        """`sftp://[user@]host[:port]/folder`."""
        parts = urlsplit(url)
        try:
            port = parts.port
        except ValueError:
            raise _malformed(url) from None
        user, _, _ = parts.netloc.rpartition("@")
        if not parts.hostname or parts.hostname.startswith("-") or ":" in user or user.startswith("-"):
            raise _malformed(url)
        host = parts.netloc.rpartition("@")[2].rpartition(":")[0] if port else parts.netloc.rpartition("@")[2]
        return cls(host=f"{user}@{host}" if user else host, folder=unquote(parts.path) or "/", port=port)

    def __str__(self) -> str:
        return f"sftp://{self.host}{f':{self.port}' if self.port else ''}{self.folder}"

    def deliver(self, partial: str, name: str, parts: Sequence[BundleFile]) -> None:
        with tempfile.TemporaryDirectory(prefix="runyard-via-") as place:
            folders = [f"mkdir {self._at(f'{partial}/{folder}')}" for folder in folders_of([p.path for p in parts])]
            files = [
                f"put {quoted(_source(part, Path(place), number))} {self._at(f'{partial}/{part.path}')}"
                for number, part in enumerate(parts)
            ]
            modes = [f"chmod {part.mode:o} {self._at(f'{partial}/{part.path}')}" for part in parts if _needs_mode(part)]
            renamed = f"rename {self._at(partial)} {self._at(name)}"
            self._do([f"mkdir {self._at(partial)}", *folders, *files, *modes, renamed])

    def names(self) -> list[str]:
        said = self._do([f"cd {quoted(self.folder)}", "ls -1a"])
        return [line for line in said.splitlines() if line and not line.startswith("sftp> ")]

    def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        with tempfile.TemporaryDirectory(prefix="runyard-via-") as place:
            targets = {path: Path(place, str(number)) for number, path in enumerate(paths)}
            if paths:
                self._do([f"-get {self._at(path)} {quoted(str(target))}" for path, target in targets.items()])
            return {path: target.read_bytes() for path, target in targets.items() if target.exists()}

    def copy(self, path: str, target: Path) -> None:
        verb = "reget" if target.exists() and target.stat().st_size else "get"
        self._do([f"{verb} {self._at(path)} {quoted(str(target))}"])

    def bring(self, paths: Sequence[str], root: str, target: Path) -> None:
        lines = []
        for path in paths:
            local = target / path
            local.parent.mkdir(parents=True, exist_ok=True)
            verb = "reget" if local.exists() and local.stat().st_size else "get"
            lines.append(f"{verb} {self._at(f'{root}/{path}')} {quoted(str(local))}")
        if lines:
            self._do(lines)

    def touch(self, name: str) -> None:
        with tempfile.NamedTemporaryFile(prefix="runyard-via-") as empty:  # sftp sends no devices
            self._do([f"put {quoted(empty.name)} {self._at(name)}"])

    def _at(self, path: str) -> str:
        return quoted(f"{self.folder.rstrip('/')}/{path}")

    def _do(self, lines: Sequence[str]) -> str:
        # Without a terminal no password can be typed; at one, ssh asks there and not on standard input.
        asking = ["-o", "BatchMode=no"] if sys.stderr.isatty() else []
        port = ["-P", str(self.port)] if self.port else []
        command = ["sftp", "-q", *asking, *port, "-b", "-", "--", self.host]
        try:
            done = subprocess.run(
                command, input="".join(f"{line}\n" for line in lines), capture_output=True, text=True, check=False
            )
        except FileNotFoundError:
            raise errors.ConfigError("the program sftp is not installed", "install OpenSSH's client") from None
        if done.returncode:
            raise self._failed(done.stderr)
        return done.stdout

    def _failed(self, said: str) -> errors.RunyardError:
        lines = [line.strip() for line in said.splitlines() if line.strip()]
        last = lines[-1] if lines else "sftp ended without a message"
        if "not found" in last or "No such file" in last:
            return errors.NotFound(f"{self}: {last}", "check the folder's name")
        return errors.RunyardError(f"{self}: {last}", f"try it by hand: sftp {self.host}")


def quoted(path: str) -> str:
    """As a word of sftp's: in quotes nothing but the quote and the backslash mean something, and no pattern does."""
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _source(part: BundleFile, place: Path, number: int) -> str:
    if isinstance(part.source, Path):
        return str(part.source)
    target = place / str(number)
    target.write_bytes(part.source)
    target.chmod(part.mode)
    return str(target)


def _needs_mode(part: BundleFile) -> bool:
    """sftp gives files the mode that they have here; a private one could not be read by the agent over there."""
    return part.executable or (isinstance(part.source, Path) and part.source.stat().st_mode & 0o044 != 0o044)


def _malformed(url: str) -> errors.InvalidInput:
    return errors.InvalidInput(f"--via: {url!r} is not an address", "write it like sftp://user@node/incoming")
