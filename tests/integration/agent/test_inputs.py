"""Inputs from the web are there before a run starts, or the run says why not."""

from __future__ import annotations

import contextlib
import hashlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.agent.bring.web_files import WebFetcher
from runyard.agent.errands import ThreadedErrands
from runyard.model.site import SiteSpec
from runyard.model.wire import AttemptKey
from tests.integration.agent.conftest import Crew
from tests.labs.web import WebServer

READ = ["sh", "-c", 'cat "$RUNYARD_INPUTS/words" "$RUNYARD_INPUTS/here"']


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as made:
        yield made


def fetcher(limit: int = 1 << 30) -> WebFetcher:
    return WebFetcher(secrets={}, limit=limit, sleep=lambda pause: None)


def inputs(crew: Crew, web: WebServer) -> list[dict[str, str]]:
    return [{"url": web.url("/words?key=1")}, {"digest": crew.yard.store(b"of the yard\n"), "to": "here"}]


def ended(crew: Crew, key: AttemptKey) -> tuple[str, str]:
    record = crew.yard.ended[key].record or {}
    return record["ending"], record["message"]


@pytest.mark.parametrize("limit", ["20G", "0"])
def test_runs_that_are_staged_together_share_what_was_fetched(crew: Crew, web: WebServer, limit: str) -> None:
    data = b"of the web\n" * 100_000
    web.answers["/words"] = (200, {}, data)
    site = SiteSpec(options={"cache_limit": limit})
    agent = crew.agent(cpus=4, fetcher=fetcher(), described=site)
    keys = [crew.yard.submit(READ, inputs=inputs(crew, web)) for _ in range(4)]
    crew.drive(agent, lambda: all(key in crew.yard.ended for key in keys), "all ends")
    assert [crew.yard.log(key).encode() for key in keys] == [data + b"of the yard\n"] * 4
    assert len(web.asked) == 1
    assert not list((crew.site / "downloads").iterdir())
    digest = hashlib.sha256(data).hexdigest()
    assert crew.yard.ended[keys[0]].detail == f"fetched the input words sha256:{digest}"


def test_a_later_run_has_what_is_there_then(crew: Crew, web: WebServer) -> None:
    agent = crew.agent(fetcher=fetcher())
    for text in ("old\n", "new\n"):
        web.answers["/words"] = (200, {}, text.encode())
        key = crew.yard.submit(READ, inputs=inputs(crew, web))
        crew.drive(agent, lambda key=key: key in crew.yard.ended, "the end")  # type: ignore[misc]
        assert crew.yard.log(key) == f"{text}of the yard\n"


def test_what_is_not_there_fails_only_the_runs_that_ask_for_it(crew: Crew, web: WebServer) -> None:
    web.answers["/words"] = (200, {}, b"x\n")
    agent = crew.agent(fetcher=fetcher())
    bad = crew.yard.submit(READ, inputs=[{"url": web.url("/no?key=1")}, *inputs(crew, web)])
    good = crew.yard.submit(READ, inputs=inputs(crew, web))
    crew.drive(agent, lambda: {bad, good} <= set(crew.yard.ended), "both ends")
    assert crew.yard.log(good) == "x\nof the yard\n"
    told = f"its inputs cannot be fetched: {web.url('/no')}: its server answers 404 Not Found"
    assert ended(crew, bad) == ("staging", told)
    assert not list((crew.site / "downloads").iterdir())


class Drip:
    """A body that comes byte by byte, for as long as somebody wants it."""

    def __init__(self) -> None:
        self.sent, self.gone, self.enough = 0, threading.Event(), threading.Event()

    def serve(self, listener: socket.socket) -> None:
        line, _ = listener.accept()
        with line, contextlib.suppress(OSError):
            line.recv(4096)
            line.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
            while not self.enough.wait(0.01):
                self.sent += line.send(b"x")
        self.gone.set()


@pytest.fixture
def drip() -> Iterator[tuple[Drip, str]]:
    made = Drip()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=made.serve, args=(listener,), daemon=True).start()
        yield made, f"http://127.0.0.1:{listener.getsockname()[1]}/words"
        made.enough.set()


def test_a_slow_server_keeps_nobody_else_waiting_and_a_cancelled_run_lets_it_go(
    crew: Crew, web: WebServer, drip: tuple[Drip, str]
) -> None:
    slow_server, url = drip
    web.answers["/words"] = (200, {}, b"of the web\n")
    agent = crew.agent(fetcher=fetcher(), errands=ThreadedErrands(lambda: None))
    slow = crew.yard.submit(READ, inputs=[{"url": url}])
    crew.drive(agent, lambda: slow_server.sent > 0, "the slow one begins")
    quick = crew.yard.submit(READ, inputs=inputs(crew, web))
    crew.drive(agent, lambda: quick in crew.yard.ended, "the end of the other")
    assert crew.yard.log(quick) == "of the web\nof the yard\n" and slow not in crew.yard.ended
    crew.yard.cancel(slow)
    crew.drive(agent, lambda: slow in crew.yard.ended and slow_server.gone.is_set(), "its end")


def test_what_an_earlier_agent_left_is_removed(crew: Crew, web: WebServer) -> None:
    left: Path = crew.site / "downloads" / "half"
    left.parent.mkdir()
    left.write_text("x")
    crew.agent(fetcher=fetcher())
    assert not left.exists()


def test_what_was_fetched_is_no_reason_to_keep_a_run(crew: Crew, web: WebServer) -> None:
    web.answers["/words"] = (200, {}, b"of the web\n")
    agent = crew.agent(fetcher=fetcher())
    key = crew.yard.submit(READ, inputs=inputs(crew, web), keep="none")
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    crew.drive(agent, lambda: not crew.directory(key).exists(), "its directory goes")
