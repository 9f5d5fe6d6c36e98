"""The broker's management API: a few milliseconds a call, where rabbitmqctl takes half a second."""

from __future__ import annotations

import base64
import http.client
import json
from typing import Any
from urllib.parse import quote

from tests.labs.daemons import LabError

_WAIT_S = 120  # a cluster may take most of a minute for a new vhost


class Management:
    def __init__(self, port: int, user: str, password: str) -> None:
        self._port = port
        login = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {login}", "Content-Type": "application/json"}

    def answers(self) -> bool:
        try:
            self.ask("GET", "whoami")
        except (OSError, http.client.HTTPException, LabError):
            return False
        return True

    def ask(self, method: str, *path: str, body: dict[str, Any] | None = None) -> Any:
        """The answer's JSON, or None where there is none. The words of the path are quoted: a vhost may be `/`."""
        where = "/api/" + "/".join(quote(word, safe="") for word in path)
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_WAIT_S)
        try:
            connection.request(method, where, json.dumps(body) if body is not None else None, self._headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= 300:
            raise LabError(f"{method} {where}: {answer.status} {text}")
        return json.loads(text) if text else None
