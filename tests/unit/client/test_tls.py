"""A yard with a certificate of the lab's own authority: trusted by those who are told of it, and by nobody else."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import Client, errors
from tests.labs.rabbitmq import certificates
from tests.unit.client.server import Handler, Server

pytestmark = pytest.mark.component("openssl")  # which makes the certificates
Serve = Callable[[Callable[[Handler], None]], Server]


def test_the_authority_comes_from_the_configuration(serve: Serve, tmp_path: Path) -> None:
    certificates.make(tmp_path / "tls")
    server = serve(lambda request: request.reply(200, {"status": "ok"}))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "tls" / "server.pem", tmp_path / "tls" / "server.key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    home = tmp_path / "home"
    home.mkdir()
    (home / "token").write_text("ry_secret")
    (home / "token").chmod(0o600)
    url = f"https://localhost:{server.server_port}"
    (home / "config.toml").write_text(f'url = "{url}"\n')
    with Client(home=home) as client, pytest.raises(errors.YardUnreachable, match="certificate"):
        client.health()
    (home / "config.toml").write_text(f'url = "{url}"\nca_file = "{tmp_path}/tls/authority.pem"\n')
    with Client(home=home) as client:
        assert client.health() == {"status": "ok"}
    assert server.seen[-1][2]["Authorization"] == "Bearer ry_secret"
    (home / "config.toml").write_text(f'url = "{url}"\nca_file = "{tmp_path}/none.pem"\n')
    with Client(home=home) as client, pytest.raises(errors.ConfigError, match=r"none\.pem"):
        client.health()
