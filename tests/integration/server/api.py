"""The server under test, really listening, and small tools to talk to it over HTTP."""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import json
import queue
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from runyard.model.resources import Capacity
from runyard.model.roles import Role
from runyard.model.states import AttemptState
from runyard.model.wire import Claim, Hello, Report, SyncRequest, SyncResponse
from runyard.server.serve import Background, serve
from runyard.settings import Settings
from runyard.yard import Yard
from runyard.yard.loops import DeadlineLoop

PREFIX = "/api/v1"
CAPACITY = Capacity(cpus=4, memory=8 << 30)


@dataclasses.dataclass(frozen=True)
class Reply:
    status: int
    headers: http.client.HTTPMessage
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> dict[str, str]:
        return dict(self.json["error"])


class Api:
    """One server and one token. Every request has a connection of its own."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url, self.token = url, token
        self._place = urlsplit(url).netloc

    def as_(self, token: str | None) -> Api:
        return Api(self.url, token)

    def request(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, prefix: str = PREFIX
    ) -> Reply:
        with self.open(method, path, body, headers, prefix) as response:
            return Reply(response.status, response.headers, response.read())

    @contextlib.contextmanager
    def open(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None, prefix: str = PREFIX
    ) -> Iterator[http.client.HTTPResponse]:
        """The answer while it is still arriving."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        own = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        connection = http.client.HTTPConnection(self._place, timeout=90)
        try:
            connection.request(method, f"{prefix}{path}", data, {**own, **(headers or {})})
            with connection.getresponse() as response:
                yield response
        finally:
            connection.close()

    def get(self, path: str, **headers: str) -> Reply:
        return self.request("GET", path, headers={name.replace("_", "-"): value for name, value in headers.items()})

    def post(self, path: str, body: Any = None) -> Reply:
        return self.request("POST", path, body)

    def put(self, path: str, body: bytes) -> Reply:
        return self.request("PUT", path, body)

    def submit(self, **spec: Any) -> int:
        reply = self.post("/runs", {"command": ["true"], **spec})
        assert reply.status == 201, reply.body
        return int(reply.json["id"])

    def new_token(self, name: str, role: Role, site: str | None = None) -> Api:
        """The same server, asked by somebody else."""
        reply = self.post("/tokens", {"name": name, "role": role.value, **({"site": site} if site else {})})
        assert reply.status == 201, reply.body
        return self.as_(reply.json["secret"])


class Agent:
    """Speaks as an agent does, over HTTP; what it reports is up to the test."""

    def __init__(self, api: Api, site: str, name: str = "a1") -> None:
        self.api, self.site, self.name = api, site, name
        hello = Hello(site=site, agent=name, node="node1", boot_id="boot", version="0", total=CAPACITY)
        reply = api.post("/agents/hello", hello.to_json())
        assert reply.status == 200, reply.body
        self.incarnation = int(reply.json["incarnation"])

    def request(self, *reports: Report, free: Capacity = CAPACITY) -> SyncRequest:
        return SyncRequest(
            site=self.site, agent=self.name, incarnation=self.incarnation, free=free, reports=list(reports)
        )

    def sync(self, *reports: Report, free: Capacity = CAPACITY, wait: float = 0) -> SyncResponse:
        reply = self.api.post(f"/agents/sync?wait={wait}", self.request(*reports, free=free).to_json())
        assert reply.status == 200, reply.body
        return SyncResponse.parse(reply.json)

    def start(self, **spec: Any) -> Claim:
        """Submits a run for this site, claims it and says that it runs."""
        run = self.api.submit(site=self.site, **spec)
        (claim,) = self.sync().claims
        assert claim.key.run == run
        self.sync(Report(key=claim.key, state=AttemptState.RUNNING, node="node1"), free=NOTHING)
        return claim

    def write(self, claim: Claim, data: bytes, offset: int = 0, file: str = "log") -> Reply:
        query = f"offset={offset}&incarnation={self.incarnation}&site={self.site}&agent={self.name}"
        return self.api.put(f"/agents/files/{claim.key.run}/{claim.key.attempt}/{file}?{query}", data)

    def end(self, claim: Claim, exit_code: int = 0, sizes: dict[str, int] | None = None, **report: Any) -> None:
        record = {
            "state": "ended", "beat": 1, "ending": "exit", "exit_code": exit_code, "signal": None, "message": "",
            "tree_gone": True, "leftovers": 0, "wall_time": 1.5, "cpu_time": 1.0, "peak_memory": 1000,
            "sizes": sizes or {},
        }  # fmt: skip
        answer = self.sync(Report(key=claim.key, state=AttemptState.ENDED, record=record, **report), free=NOTHING)
        assert answer.settled == [claim.key]


NOTHING = Capacity(cpus=0, memory=0)


class Served:
    """A yard that listens: `api` is its owner's."""

    def __init__(self, home: Path, *background: Background, **settings: Any) -> None:
        self.yard = Yard.open(Settings(home=home, **{"port": 0, **settings}))
        self.yard.sites.ensure("local", "local").result()
        self.stop = threading.Event()
        urls: queue.Queue[str] = queue.Queue()
        self._thread = threading.Thread(
            target=serve,
            args=(self.yard, [DeadlineLoop(self.yard), *background]),
            kwargs={"stop": self.stop, "on_listening": urls.put},
        )
        self._thread.start()
        self.api = Api(urls.get(timeout=90), self.yard.settings.token_file.read_text().strip())

    def end(self, timeout: float = 90) -> None:
        self.stop.set()
        self._thread.join(timeout)
        assert not self._thread.is_alive(), "the server does not stop"
        self.yard.close()
