"""An HTTP server that stands for Rodan: its login in both forms, and files of projects."""

from __future__ import annotations

import json
import secrets
import ssl
import threading
import time
import urllib.parse
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Self

LOGIN = "/api/auth/token/"


@dataclass(frozen=True, kw_only=True)
class Asked:
    method: str
    path: str
    token: str | None  # of its Authorization header
    form: dict[str, str] = field(default_factory=dict)


class RodanApi:
    """`form` is the field of the login that names the user: `username` until the middle of 2023, `email` since."""

    def __init__(self, form: str = "username", *, certificate: tuple[str, str] | None = None) -> None:
        """`certificate`: the files of a certificate and its key, for TLS."""
        self.form, self.user, self.password = form, "trainer@example.org", secrets.token_urlsafe(12)
        self.token = secrets.token_hex(20)
        self.login = LOGIN  # /auth/token/ before April 2020
        self.files: dict[str, bytes] = {}
        self.answers: dict[str, int] = {}  # statuses instead of files
        self.redirects: dict[str, str] = {}
        self.open_to_all = False  # as nginx serves /uploads in the public deployment
        self.cut: set[str] = set()  # files of which only a part comes
        self.slow: dict[str, float] = {}  # seconds in the middle of a file
        self.is_active = True
        self.asked: list[Asked] = []
        handler = type("Handler", (_Handler,), {"rodan": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.scheme = "https" if certificate else "http"
        if certificate:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            self._server.socket = context.wrap_socket(self._server.socket, server_side=True)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def address(self) -> str:
        """For RODAN_HOST."""
        host = f"localhost:{self._server.server_port}"
        return host if self.scheme == "https" else f"http://{host}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def upload(self, data: bytes) -> str:
        """The path under which a resource of that content is served."""
        path = f"/uploads/projects/{uuid.uuid4().hex}/resources/{uuid.uuid4().hex}/original_file"
        self.files[path] = data
        return path

    def logins(self) -> list[dict[str, str]]:
        return [one.form for one in self.asked if one.path == self.login]

    def downloads(self) -> list[Asked]:
        return [one for one in self.asked if one.method == "GET"]


class _Handler(BaseHTTPRequestHandler):
    rodan: ClassVar[RodanApi]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        form = dict(urllib.parse.parse_qsl(body))
        self._note("POST", form)
        if self.path in self.rodan.redirects:
            self._redirect()
        elif self.path != self.rodan.login:
            self._json(404, {"detail": "Not found."})
        else:
            self._login(form)

    def _login(self, form: dict[str, str]) -> None:
        rodan = self.rodan
        if LOGIN in rodan.answers:
            self._json(rodan.answers[LOGIN], {"detail": "as told"})
        elif (form.get(rodan.form), form.get("password")) != (rodan.user, rodan.password):
            self._json(401, {"is_logged_in": False})
        elif not rodan.is_active:
            self._json(403, {"is_logged_in": False})
        else:
            self._json(200, {"username": "trainer", "is_staff": False, "token": rodan.token})

    def do_GET(self) -> None:
        self._note("GET", {})
        rodan = self.rodan
        if self.path in rodan.redirects:
            self._redirect()
        elif not rodan.open_to_all and self.headers.get("Authorization") != f"Token {rodan.token}":
            self._json(401, {"detail": "Invalid token."})
        elif self.path in rodan.answers:
            self._json(rodan.answers[self.path], {"detail": "as told"})
        elif self.path not in rodan.files:
            self._json(404, {"detail": "Not found."})
        else:
            self._file(rodan.files[self.path])

    def _file(self, data: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/octet-stream")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        half = len(data) // 2
        self.wfile.write(data[:half])
        time.sleep(self.rodan.slow.get(self.path, 0))
        if self.path in self.rodan.cut:
            self.close_connection = True
            return
        self.wfile.write(data[half:])

    def _redirect(self) -> None:
        self.send_response(302)
        self.send_header("Location", self.rodan.redirects[self.path])
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _json(self, status: int, document: Any) -> None:
        body = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _note(self, method: str, form: dict[str, str]) -> None:
        token = self.headers.get("Authorization")
        self.rodan.asked.append(Asked(method=method, path=self.path, token=token, form=form))

    def log_message(self, *_: object) -> None:
        pass
