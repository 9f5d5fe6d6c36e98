from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

import runyard
from runyard import errors
from runyard.server import serve as serving
from runyard.settings import Settings
from runyard.yard import Yard
from runyard.yard.loops import DeadlineLoop
from tests.integration.server.api import Agent, Api, Served
from tests.labs.waiting import free_ports, until

PROGRAM = """
import sys
from pathlib import Path
from runyard.server import serve as serving
from runyard.settings import Settings
from runyard.yard import Yard

serving.GRACE = 600  # longer than anybody waits for its end: no open request may need it
yard = Yard.open(Settings(home=Path(sys.argv[1]), port=0))
serving.serve(yard, on_listening=lambda url: print(url, flush=True))
yard.close()
print("closed", flush=True)
"""


@pytest.fixture
def process(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    started = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "home")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    yield started
    if started.poll() is None:
        started.kill()
    started.communicate()


def test_address_file_is_private_and_gone_in_the_end(serve_yard: Callable[..., Served]) -> None:
    served = serve_yard()
    path = served.yard.settings.address_file
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    shown = json.loads(path.read_text())
    assert shown.keys() == {"url", "pid", "version", "home", "started_at"}
    assert (shown["url"], shown["pid"], shown["version"]) == (served.api.url, os.getpid(), runyard.__version__)
    served.end()
    assert not path.exists()


def test_another_yards_address_file_is_left_alone(serve_yard: Callable[..., Served]) -> None:
    served = serve_yard()
    path = served.yard.settings.address_file
    path.write_text(json.dumps({"pid": 1}))
    served.end()
    assert path.exists()


def test_a_taken_port_is_one_sentence_with_the_fix(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        yard = Yard.open(Settings(home=tmp_path, port=port))
        with pytest.raises(errors.Conflict, match=f"port {port} on 127.0.0.1 is used") as caught:
            serving.serve(yard)
        yard.close()
    assert "--port 0" in caught.value.fix and "RUNYARD_PORT" in caught.value.fix
    assert not yard.settings.address_file.exists()


def test_a_yard_that_cannot_be_opened_leaves_no_thread_of_its_store(tmp_path: Path) -> None:
    before = threading.enumerate()
    with pytest.raises(errors.ConfigError, match="'Bucket' is not the name of a bucket"):
        Yard.open(Settings(home=tmp_path, blobs="s3://Bucket"))
    assert [thread for thread in threading.enumerate() if thread not in before] == []


@pytest.mark.parametrize("host", ["no-such-host.invalid", "203.0.113.7"])
def test_an_address_that_is_not_ours(tmp_path: Path, host: str) -> None:
    yard = Yard.open(Settings(home=tmp_path, port=0, host=host))
    with pytest.raises(errors.ConfigError, match=host):
        serving.serve(yard)
    yard.close()


def test_the_same_port_again_right_after(serve_yard: Callable[..., Served]) -> None:
    (port,) = free_ports(1)  # which nobody gets for an outgoing connection in between
    first = serve_yard(port=port)
    assert first.api.get("/me").status == 200
    first.end()
    second = Yard.open(Settings(home=first.yard.settings.home, port=port))
    stop = threading.Event()
    urls: list[str] = []

    def listening(url: str) -> None:
        urls.append(url)
        stop.set()

    thread = threading.Thread(target=serving.serve, args=(second,), kwargs={"stop": stop, "on_listening": listening})
    thread.start()
    thread.join(90)
    second.close()
    assert urls == [first.api.url]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_it_cleanly(process: subprocess.Popen[str], tmp_path: Path, number: int) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().startswith("http://127.0.0.1:")
    process.send_signal(number)
    out, err = process.communicate(timeout=90)
    assert (out, err, process.returncode) == ("closed\n", "", 0)
    assert not (tmp_path / "home" / "yard.json").exists()


def test_open_streams_do_not_hold_up_a_stop(process: subprocess.Popen[str], tmp_path: Path) -> None:
    assert process.stdout is not None
    api = Api(process.stdout.readline().strip(), (tmp_path / "home" / "token").read_text().strip())
    agent = Agent(api, "local")
    claim = agent.start()
    agent.write(claim, b"line\n")
    with api.open("GET", f"/runs/{claim.key.run}/log?follow=1") as stream, contextlib.ExitStack() as stack:
        assert stream.readline() == b"line\n"
        waiters = [
            threading.Thread(target=_ignore_errors, args=(api, path))
            for path in (f"/runs/{claim.key.run}/wait?timeout=600", "/agents/news?site=local&wait=60")
        ]
        for waiter in waiters:
            waiter.start()
        until(lambda: connections(process.pid) == 3, "the server has all three")
        idle = stack.enter_context(api.open("GET", "/me"))
        process.terminate()
        with pytest.raises(http.client.IncompleteRead):  # cut short, and told so: the run has not ended
            stream.read()
        idle.read()
        out, err = process.communicate(timeout=90)
        for waiter in waiters:
            waiter.join(90)
    assert (out, err, process.returncode) == ("closed\n", "", 0)


def connections(pid: int) -> int:
    return len([one for one in psutil.Process(pid).net_connections("tcp") if one.status == psutil.CONN_ESTABLISHED])


def _ignore_errors(api: Api, path: str) -> None:
    with contextlib.suppress(OSError, http.client.HTTPException):
        api.get(path)


def test_background_parts_run_and_are_told_to_stop(serve_yard: Callable[..., Served]) -> None:
    said: list[str] = []

    def part(stop: threading.Event) -> None:
        said.append("started")
        stop.wait()
        said.append("stopped")

    served = serve_yard(part)
    until(lambda: said, "its start")
    served.end()
    assert said == ["started", "stopped"]


def test_a_background_part_that_fails_is_started_again(
    serve_yard: Callable[..., Served], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "RESTART", 0.01)
    tries: list[int] = []
    enough = threading.Event()

    def part(stop: threading.Event) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise ValueError("on purpose")
        enough.set()
        stop.wait()

    serve_yard(part)
    assert enough.wait(90)
    assert len(tries) == 3
    assert len([record for record in caplog.records if "part failed; it starts again" in record.getMessage()]) == 2


def test_a_background_part_without_room_waits_with_one_sentence(
    serve_yard: Callable[..., Served], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(serving, "RESTART", 0.01)
    tries: list[int] = []
    enough = threading.Event()

    def part(stop: threading.Event) -> None:
        tries.append(1)
        if len(tries) < 3:
            raise errors.DiskFull
        enough.set()
        stop.wait()

    serve_yard(part)
    assert enough.wait(60)
    told = [record for record in caplog.records if "part waits: The yard's disk is full" in record.getMessage()]
    assert len(told) == 2
    assert not any(record.exc_info for record in told)


def test_the_clock_ticks(serve_yard: Callable[..., Served], monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that stays silent longer than its lease is found out by nobody but the reaper."""
    monkeypatch.setattr(DeadlineLoop, "again_s", 0.05)
    served = serve_yard(lease=1)
    agent = Agent(served.api, "local")
    run = agent.start().key.run
    deadline = time.monotonic() + 90
    while "unreachable" not in str(served.api.get(f"/runs/{run}").json["detail"]):
        assert time.monotonic() < deadline
        time.sleep(0.1)
