from __future__ import annotations

import os
import resource
import threading
import time
from collections.abc import Callable

import pytest

from runyard.model.wire import AttemptKey
from runyard.server.stream import CHUNK
from tests.integration.server.api import Agent, Api, Served

NOT_UTF8 = b"caf\xe9 \xff\xfe\x00 end\n"


def test_log_comes_back_byte_by_byte(api: Api, agent: Agent) -> None:
    claim = agent.start()
    assert agent.write(claim, NOT_UTF8).json == {"size": len(NOT_UTF8)}
    reply = api.get(f"/runs/{claim.key.run}/log")
    assert (reply.status, reply.body, reply.headers["X-Log-Size"]) == (200, NOT_UTF8, str(len(NOT_UTF8)))
    assert reply.headers["Content-Type"].startswith("text/plain")


def test_a_run_without_output_has_an_empty_log(api: Api) -> None:
    reply = api.get(f"/runs/{api.submit()}/log")
    assert (reply.status, reply.body) == (200, b"")


@pytest.mark.parametrize(
    ("asked", "body", "content_range"),
    [
        ("bytes=0-3", b"0123", "bytes 0-3/10"),
        ("bytes=8-", b"89", "bytes 8-9/10"),
        ("bytes=-3", b"789", "bytes 7-9/10"),
        ("bytes=5-500", b"56789", "bytes 5-9/10"),
    ],
)
def test_range_header(api: Api, agent: Agent, asked: str, body: bytes, content_range: str) -> None:
    claim = agent.start()
    agent.write(claim, b"0123456789")
    reply = api.get(f"/runs/{claim.key.run}/log", Range=asked)
    assert (reply.status, reply.body, reply.headers["Content-Range"]) == (206, body, content_range)
    assert reply.headers["Content-Length"] == str(len(body))


def test_a_range_that_is_not_there(api: Api, agent: Agent) -> None:
    claim = agent.start()
    agent.write(claim, b"0123456789")
    reply = api.get(f"/runs/{claim.key.run}/log", Range="bytes=10-")
    assert (reply.status, reply.headers["Content-Range"]) == (416, "bytes */10")


def test_offset_and_limit(api: Api, agent: Agent) -> None:
    claim = agent.start()
    agent.write(claim, b"0123456789")
    path = f"/runs/{claim.key.run}/log"
    assert api.get(f"{path}?offset=4&limit=3").body == b"456"
    assert api.get(f"{path}?offset=99").body == b""
    assert api.get(f"{path}?limit=0").body == b""


def test_head_tells_the_length_and_sends_nothing(api: Api, agent: Agent) -> None:
    claim = agent.start()
    agent.write(claim, b"0123456789")
    reply = api.request("HEAD", f"/runs/{claim.key.run}/log")
    assert (reply.status, reply.headers["Content-Length"], reply.body) == (200, "10", b"")


def test_other_files_and_single_attempts(api: Api, agent: Agent) -> None:
    claim = agent.start()
    agent.write(claim, b"bad things\n", file="stderr")
    path = f"/runs/{claim.key.run}/log"
    assert api.get(f"{path}?file=stderr").body == b"bad things\n"
    assert api.get(f"{path}?attempt=1&file=stderr").body == b"bad things\n"
    assert api.get(f"{path}?attempt=2").status == 404
    assert api.get(f"{path}?file=../../token").status == 400


def test_usage_samples(api: Api, agent: Agent) -> None:
    claim = agent.start()
    agent.write(claim, b'{"t": 1, "cpu": 0.5}\n{"t": 2, "cpu": 1.5}\n', file="usage.jsonl")
    assert api.get(f"/runs/{claim.key.run}/usage?last=1").json == {"usage": [{"t": 2, "cpu": 1.5}]}


def test_follow_sends_lines_as_they_come_and_ends_with_the_run(api: Api, agent: Agent) -> None:
    claim = agent.start()
    agent.write(claim, b"one\n")
    with api.open("GET", f"/runs/{claim.key.run}/log?follow=1") as stream:
        assert stream.readline() == b"one\n"
        agent.write(claim, b"two\n", offset=4)
        assert stream.readline() == b"two\n"
        agent.write(claim, b"three\n", offset=8)
        agent.end(claim, sizes={"log": 14})
        assert stream.read() == b"three\n"
    assert api.get(f"/runs/{claim.key.run}").json["state"] == "succeeded"


def test_follow_from_an_offset(api: Api, agent: Agent) -> None:
    claim = agent.start()
    agent.write(claim, b"0123456789")
    agent.end(claim, sizes={"log": 10})
    assert api.get(f"/runs/{claim.key.run}/log?follow=1&offset=7").body == b"789"


def test_follow_goes_on_over_a_retry(api: Api, agent: Agent) -> None:
    claim = agent.start()
    agent.write(claim, b"first try\n")
    agent.end(claim, exit_code=1, sizes={"log": 10})
    run = claim.key.run
    assert api.post(f"/runs/{run}/retry").status == 202
    with api.open("GET", f"/runs/{run}/log?follow=1") as stream:
        assert stream.readline() == b"first try\n"
        (second,) = agent.sync().claims
        agent.write(second, b"second try\n")
        agent.end(second, sizes={"log": 11})
        rest = stream.read()
    assert rest.endswith(b"second try\n") and b"attempt 2" in rest


def test_a_client_that_goes_away_ends_the_stream(served: Served, api: Api, agent: Agent) -> None:
    claim = agent.start()
    agent.write(claim, b"line\n")
    topic = f"log:{claim.key.run}"
    with api.open("GET", f"/runs/{claim.key.run}/log?follow=1") as stream:
        assert stream.readline() == b"line\n"
        assert topic in served.yard.hints._listeners
    assert _within(90, lambda: topic not in served.yard.hints._listeners)


def test_a_gigabyte_without_a_newline_passes_in_bounded_memory(served: Served, api: Api, agent: Agent) -> None:
    claim = agent.start()
    size = 1 << 30
    path = served.yard.files.path(AttemptKey(run=claim.key.run, attempt=1), "log")
    agent.write(claim, b"x")
    os.truncate(path, size)  # a sparse file: the disk need not have a gigabyte
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    received = 0
    with api.open("GET", f"/runs/{claim.key.run}/log") as stream:
        assert stream.headers["Content-Length"] == str(size)
        buffer = bytearray(1 << 20)
        while count := stream.readinto(buffer):
            received += count
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    os.truncate(path, 1)
    assert received == size
    assert grown * 1024 < 100 * CHUNK


def test_many_followers_of_one_log(api: Api, agent: Agent) -> None:
    claim = agent.start()
    seen: list[bytes] = []
    followers = [
        threading.Thread(target=lambda: seen.append(api.get(f"/runs/{claim.key.run}/log?follow=1").body))
        for _ in range(20)
    ]
    for follower in followers:
        follower.start()
    text = b"".join(b"line %d\n" % number for number in range(200))
    for start in range(0, len(text), 500):
        agent.write(claim, text[start : start + 500], offset=start)
    agent.end(claim, sizes={"log": len(text)})
    for follower in followers:
        follower.join(90)
    assert seen == [text] * 20


def _within(seconds: float, true: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not true():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
