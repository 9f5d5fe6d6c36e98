"""A small real HTTP server on loopback, for what a yard does only when it is in trouble."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        self.server.seen.append((self.command, self.path, dict(self.headers), self.client_address[1]))
        self.server.answer(self)

    do_POST = do_PUT = do_HEAD = do_DELETE = do_GET

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def reply(self, status: int, document: Any = None, *, raw: bytes | None = None, **headers: str) -> None:
        data = raw if raw is not None else json.dumps(document).encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


class Server(ThreadingHTTPServer):
    """`answer` is called for each request; `seen` keeps method, path, headers and the client's port."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Handler], None]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.seen: list[tuple[str, str, dict[str, str], int]] = []
        self.hung_up = threading.Semaphore(0)  # released after each connection that we closed
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def shutdown_request(self, request: Any) -> None:
        super().shutdown_request(request)
        self.hung_up.release()

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()
