"""The address of a running yard: the socket it listens on, and the file with its address for clients of the home."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from runyard import errors
from runyard.settings import Settings
from runyard.version import __version__

_EVERYWHERE = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # wildcard addresses, and where to connect instead


def bind(settings: Settings) -> socket.socket:
    """A listening socket. Bound here and not by uvicorn: port 0 works, and a used port is one clear error."""
    family, address = _resolve(settings)
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise _refused(settings, error) from None
    listener.setblocking(False)
    return listener


def _resolve(settings: Settings) -> tuple[int, tuple[object, ...]]:
    try:
        found = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except socket.gaierror as error:
        raise errors.ConfigError(
            f"host {settings.host!r} is not an address of this machine: {error.strerror}",
            "use 127.0.0.1, or 0.0.0.0 for all",
        ) from None
    family, _, _, _, address = found[0]
    return family, address


def _refused(settings: Settings, error: OSError) -> errors.RunyardError:
    place = f"port {settings.port} on {settings.host}"
    if error.errno == errno.EADDRINUSE:
        return errors.Conflict(
            f"{place} is used by another program", "use any free one with `runyard up --port 0`, or set RUNYARD_PORT"
        )
    return errors.ConfigError(
        f"cannot listen on {place}: {os.strerror(error.errno or 0)}",
        "choose another with `runyard up --port` or RUNYARD_PORT",
    )


def url_of(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    host = _EVERYWHERE.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def write_address(settings: Settings, url: str) -> None:
    """Readable by its owner only, and written atomically."""
    shown = {
        "url": url,
        "pid": os.getpid(),
        "version": __version__,
        "home": str(settings.home),
        "started_at": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
    }
    handle, name = tempfile.mkstemp(prefix=".yard-", dir=settings.home)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        json.dump(shown, file, indent=2)
    os.replace(name, settings.address_file)


def remove_address(path: Path) -> None:
    """Only our own: another yard of this home may have started since."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        if json.loads(path.read_text(encoding="utf-8"))["pid"] == os.getpid():
            path.unlink()
