"""One process at a time: between processes of this machine, and between machines that share a disk."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from runyard import locks, machine

HOLD = """
import sys, time
from pathlib import Path
from runyard import locks
with locks.held(Path(sys.argv[1]), shared=sys.argv[2] == "shared"):
    print("held", flush=True)
    time.sleep(600)
"""
COUNT = """
import socket, sys, time
from pathlib import Path
from runyard import locks
place, rounds, socket.gethostname = Path(sys.argv[1]), int(sys.argv[2]), lambda: sys.argv[3]
locks.fcntl.flock = lambda *_: None  # a file system on which the kernel's lock reaches nobody else
while rounds:
    try:
        with locks.held(place / "lock", shared=True):
            number = int((place / "number").read_text())
            time.sleep(0.002)
            (place / "number").write_text(str(number + 1))
            rounds -= 1
    except locks.Held:
        pass
    time.sleep(0.001)
"""


@pytest.fixture(params=["own", "shared"])
def holder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLD, str(tmp_path / "lock"), request.param]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.mark.parametrize("shared", [False, True])
def test_another_process_is_refused_and_told_who_has_it(
    holder: subprocess.Popen[str], tmp_path: Path, shared: bool
) -> None:
    with pytest.raises(locks.Held, match=f"process {holder.pid} on ") as caught, _held(tmp_path, shared):
        pass
    assert not caught.value.is_elsewhere
    holder.kill()
    holder.wait()
    with _held(tmp_path, shared):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lock"]


def test_what_is_raised_inside_leaves_it_free(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), _held(tmp_path, True):
        raise ZeroDivisionError
    assert not (tmp_path / "lock.holder").exists()


def test_a_holder_on_another_machine_counts_until_its_bound(tmp_path: Path) -> None:
    name = tmp_path / "lock.holder"
    told = {"pid": 7, "host": "n3", "boot_id": "x", "mark": "y", "bound": 30.0}
    name.write_text(json.dumps(told))
    with pytest.raises(locks.Held, match="process 7 on n3") as caught, _held(tmp_path, True):
        pass
    assert caught.value.is_elsewhere
    os.utime(name, (time.time() - 61, time.time() - 61))
    with _held(tmp_path, True):
        assert json.loads(name.read_text())["pid"] == os.getpid()
    name.write_text(json.dumps({**told, "bound": None}))
    os.utime(name, (0, 0))
    with pytest.raises(locks.Held), _held(tmp_path, True):
        pass


def test_a_hold_is_renewed(tmp_path: Path) -> None:
    name = tmp_path / "lock.holder"
    with locks.held(tmp_path / "lock", shared=True, bound=30) as renew:
        os.utime(name, (0, 0))
        renew()
        assert name.stat().st_mtime > time.time() - 60
        name.write_text(json.dumps({"pid": 7, "host": "n3", "boot_id": "x", "mark": "theirs"}))
        os.utime(name, (0, 0))
        renew()
        assert name.stat().st_mtime == 0
    assert name.exists(), "what others have taken over is theirs"


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"pid": 1}'])
def test_what_is_no_name_keeps_nobody_out(tmp_path: Path, text: str) -> None:
    (tmp_path / "lock.holder").write_text(text)
    with _held(tmp_path, True):
        pass


def test_the_file_names_host_and_boot(tmp_path: Path) -> None:
    with _held(tmp_path, True):
        told = json.loads((tmp_path / "lock.holder").read_text())
    assert (told["host"], told["boot_id"]) == (machine.node_name(), machine.boot_id())


def test_machines_take_turns_where_the_kernels_lock_does_not_reach(tmp_path: Path) -> None:
    (tmp_path / "number").write_text("0")
    commands = [[sys.executable, "-c", COUNT, str(tmp_path), "40", f"node{n}"] for n in range(4)]
    processes = [subprocess.Popen(command) for command in commands]
    assert [process.wait(120) for process in processes] == [0, 0, 0, 0]
    assert (tmp_path / "number").read_text() == "160"


def _held(place: Path, shared: bool) -> AbstractContextManager[object]:
    return locks.held(place / "lock", shared=shared)
