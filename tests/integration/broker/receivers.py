"""Programs that want to be told of events by HTTP."""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any


class Receiver:
    """An HTTP server that keeps what it gets and answers as it is told."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.status, self.headers, self.open = 204, dict[str, str](), threading.Event()
        self.open.set()
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hook?a=1"

    @property
    def events(self) -> list[str]:
        return [json.loads(body)["event"] for _, body in self.got]

    def close(self) -> None:
        self.open.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver.open.wait()
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.status < 300:
                    receiver.got.append(({"path": self.path, **dict(self.headers)}, body))
                self.send_response(receiver.status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler
