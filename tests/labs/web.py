"""A web server for one test: it says what it was asked, and answers as it is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

Answer = tuple[int, dict[str, str], bytes]  # status, headers, body


class WebServer:
    """`answers[path]` is an answer, or a function that makes one of the request's headers."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str | None]] = []  # path with its query, and who was said to ask
        self.answers: dict[str, Answer | Callable[[Any], Answer]] = {}
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append((self.path, self.headers.get("Authorization")))
                answer = outer.answers.get(self.path.partition("?")[0], (404, {}, b""))
                status, headers, body = answer(self.headers) if callable(answer) else answer
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._server.server_address[1]}"

    def url(self, path: str) -> str:
        return f"http://{self.host}{path}"

    def __enter__(self) -> WebServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
