"""A certificate authority that nobody else knows, and a server's certificate for `localhost` by it."""

from __future__ import annotations

import subprocess
from pathlib import Path

_KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
_EXTENSIONS = "subjectAltName=DNS:localhost\nextendedKeyUsage=serverAuth\nbasicConstraints=CA:FALSE\n"


def make(directory: Path) -> None:
    """`authority.pem` for clients; `server.pem` and `server.key` for the server, whom 127.0.0.1 is not a name of."""
    directory.mkdir()
    (directory / "extensions").write_text(_EXTENSIONS)
    _openssl(
        directory, "req", "-x509", *_KEY, "-keyout", "authority.key", "-out", "authority.pem", "-days", "30",
        "-subj", "/CN=runyard lab authority", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
    )  # fmt: skip
    _openssl(directory, "req", *_KEY, "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=localhost")
    _openssl(
        directory, "x509", "-req", "-in", "server.csr", "-CA", "authority.pem", "-CAkey", "authority.key",
        "-CAcreateserial", "-days", "30", "-extfile", "extensions", "-out", "server.pem",
    )  # fmt: skip


def _openssl(directory: Path, *words: str) -> None:
    subprocess.run(["openssl", *words], cwd=directory, check=True, capture_output=True, timeout=180)
