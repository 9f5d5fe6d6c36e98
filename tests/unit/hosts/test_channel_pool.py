"""Channels that serve several requests, over the pipes of real interpreters."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard import runner
from runyard.hosts import far
from runyard.hosts.channel import Channel, ChannelPool, Conversation, Frame, question
from runyard.hosts.far import server
from runyard.testing.backend_contract import is_alive, until

COUNT = """
n = 0
def up(by):
    global n
    n += by
    return {"n": n}
"""
INTERPRETER = [sys.executable, *far.OPTIONS.split(), "-c", far.BOOT]


@pytest.fixture
def lines() -> Iterator[ChannelPool]:
    made = ChannelPool(2)
    yield made
    made.close()


def ask(
    lines: ChannelPool, payload: tuple[bytes, ...] = (), name: str = "hoff", **request: Any
) -> tuple[list[Frame], Channel]:
    """As a host does it."""
    channel = lines.take(name) or Channel(INTERPRETER)
    asked = question(request, payload, first=channel.is_new)
    with Conversation(channel, asked, 90.0, keep=True) as spoken:
        frames = list(spoken.frames())
    lines.give(name, channel)
    return frames, channel


def whoami(lines: ChannelPool, name: str = "hoff") -> bytes:
    """The process over there."""
    frames, _ = ask(lines, name=name, do="run", argv=["sh", "-c", "echo $PPID"], timeout=90, input=0)
    return frames[1][1]


def test_one_process_serves_many_requests(lines: ChannelPool, tmp_path: Path) -> None:
    first = whoami(lines)
    for number in range(20):
        content = b"%d" % number
        ask(lines, (content,), do="put", root=str(tmp_path), directories=[], files=[["x", len(content)]])
        assert (tmp_path / "x").read_bytes() == content
    assert whoami(lines) == first
    assert whoami(lines, "norman") != first, "another node has one of its own"
    assert whoami(lines) == first


def test_a_channel_whose_program_ended_is_not_used(lines: ChannelPool) -> None:
    first = whoami(lines)
    os.kill(int(first), 9)
    until(lambda: not is_alive(int(first)), "its end")
    assert whoami(lines) != first


def test_after_a_problem_the_next_request_has_another_process(lines: ChannelPool, tmp_path: Path) -> None:
    """Bytes that belong to the request may not have been taken."""
    first = whoami(lines)
    with pytest.raises(OSError, match="Not a directory"):
        ask(lines, (b"x",), do="put", root="/dev/null/x", directories=[], files=[["x", 1]])
    assert whoami(lines) != first


def test_only_so_many_are_kept(lines: ChannelPool) -> None:
    channels = [ask(lines, name=name, do="filled", directories=[])[1] for name in ("hoff", "norman", "pitts")]
    lines.close()
    for channel in channels:
        assert channel.code is not None
    assert lines.take("hoff") is None


def test_a_package_is_loaded_once_and_remembers(lines: ChannelPool, tmp_path: Path) -> None:
    (tmp_path / "tally-1").mkdir()
    (tmp_path / "tally-1" / "__init__.py").write_text("")
    (tmp_path / "tally-1" / "count.py").write_text(
        "n = 0\ndef up(by):\n    global n\n    n += by\n    return {'n': n}\n"
    )
    request = {"do": "call", "package": str(tmp_path / "tally-1"), "function": "count.up", "arguments": {"by": 2}}
    assert [ask(lines, **request)[0] for _ in range(2)] == [
        [(server.DOCUMENT, b'{"n": 2}')],
        [(server.DOCUMENT, b'{"n": 4}')],
    ]
    with pytest.raises(FileNotFoundError):
        ask(lines, **{**request, "package": str(tmp_path / "none")})


def test_a_node_tells_what_it_has_and_starts_runners(lines: ChannelPool, tmp_path: Path) -> None:
    copy = runner.install(str(tmp_path))
    [(_, told)], _ = ask(lines, do="call", package=copy, function="node.describe", arguments={})
    assert os.uname().nodename.encode() in told
    [(_, told)], _ = ask(lines, do="call", package=copy, function="node.look", arguments={"directories": ["/none"]})
    assert b'"absent"' in told
