"""The process that forks runners: fast, detached, holding nothing."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from runyard import runner
from runyard.runner import zygote, zygote_link
from tests.integration.runner.attempts import DAEMON, NewAttempt, lives, python_job, shell_job, signals, until
from tests.integration.runner.conftest import NewZygote

SLEEP = "echo $$ > ready; exec sleep 600"


def test_it_starts_runners_and_tells_of_their_end(new_zygote: NewZygote, new_attempt: NewAttempt, python: str) -> None:
    parent = new_zygote(python)
    attempts = [new_attempt(shell_job(f"echo {number}; exit {number}")) for number in range(20)]
    for attempt in attempts:
        parent.link.start(attempt.directory)
    started = {parent.notice("started")["pid"] for _ in attempts}
    ended = {(notice["pid"], notice["status"]) for notice in (parent.notice("ended") for _ in attempts)}
    assert ended == {(pid, 0) for pid in started}
    assert [attempt.record()["exit_code"] for attempt in attempts] == list(range(20))
    assert [attempt.text() for attempt in attempts] == [f"{number}\n" for number in range(20)]


def test_its_runners_are_like_those_that_were_started_by_themselves(
    new_zygote: NewZygote, new_attempt: NewAttempt
) -> None:
    """Clean signals, no descriptors of the zygote, a session of their own."""
    job = "grep -E 'SigBlk|SigIgn' /proc/self/status; ls /proc/self/fd; ps -o pid=,sid=,ppid= -p $$; exec sleep 600"
    attempt = new_attempt(shell_job(job))
    pid = new_zygote().start(attempt)
    until(lambda: (attempt.directory / "log").exists() and attempt.text().count("\n") == 7)
    blocked, ignored, *descriptors, who = attempt.text().splitlines()
    child, session, parent = map(int, who.split())
    assert (child, parent) == (session, pid)
    assert signals(blocked) == signals(ignored) == set()
    assert descriptors == ["0", "1", "2", "3"]
    assert sum("socket" in link for link in until(lambda: open_files(pid))) == 1  # its own line to the zygote
    identity = attempt.document("started/runner.json")
    assert identity is not None
    assert identity["pid"] == identity["session"] == pid
    os.kill(pid, signal.SIGTERM)
    assert attempt.record()["stop_reason"] == "external"


def open_files(pid: int) -> list[str]:
    """None where one was closed while they were read: a runner writes its status now and then."""
    try:
        return [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    except FileNotFoundError:
        return []


def test_it_does_nothing_twice(new_zygote: NewZygote, new_attempt: NewAttempt) -> None:
    parent = new_zygote()
    attempt = new_attempt(shell_job("echo ran >> runs"))
    for _ in range(3):
        parent.link.start(attempt.directory)
    assert [parent.notice("ended")["status"] for _ in range(3)] == [0, 0, 0]
    assert (attempt.work / "runs").read_text() == "ran\n"
    assert len(attempt.text("duplicates").splitlines()) == 2


def test_a_runner_of_short_runs_takes_the_next(new_zygote: NewZygote, new_attempt: NewAttempt, python: str) -> None:
    """Each run is recorded as if it had a runner of its own."""
    parent, numbers = new_zygote(python), itertools.count()
    row: list[int] = []  # the runner of each short run since the last one that was not, as on a busy machine

    def one_more() -> bool:
        number = next(numbers) % 100
        attempt = new_attempt(shell_job(f"echo $RUNYARD_TAG; exit {number}"), tag=f"tag {number}")
        pid = parent.start(attempt)
        assert parent.ended(attempt) == {"ended": str(attempt.directory), "pid": pid, "status": 0}
        record = attempt.record()
        assert (record["exit_code"], attempt.text()) == (number, f"tag {number}\n")
        assert record["cpu_time"] < 0.5
        if record["beat"] > 1 or row[-1:] != [pid]:
            row.clear()
        row.extend([pid] if record["beat"] == 1 else [])
        return len(row) == 5

    until(one_more)
    assert parent.ask()["runners"] == 0
    descriptors = os.listdir(f"/proc/{row[0]}/fd")
    assert len(descriptors) == 4  # three that everybody has, and the line to the zygote


def test_a_runner_of_a_longer_run_does_not(new_zygote: NewZygote, new_attempt: NewAttempt) -> None:
    parent = new_zygote()
    first = parent.start(new_attempt(["sleep", "0.5"]))
    assert parent.notice("ended")["pid"] == first
    until(lambda: not lives(first))
    assert parent.start(new_attempt(["true"])) != first


def test_a_late_signal_does_not_hit_the_next_run(new_zygote: NewZygote, new_attempt: NewAttempt) -> None:
    def signal_late(runner: int) -> None:
        os.kill(runner, signal.SIGTERM)

    _, _, second = new_zygote().start_behind(new_attempt, ["sleep", "0.3"], signal_late)
    assert second.record()["ending"] == "exit"


def test_waiting_runners_go_with_their_zygote(new_zygote: NewZygote, new_attempt: NewAttempt) -> None:
    parent = new_zygote()
    waiting = parent.waiting_runner(new_attempt)
    os.kill(parent.pid, signal.SIGKILL)
    until(lambda: not lives(waiting))


def test_a_waiting_runner_that_was_killed_is_replaced(new_zygote: NewZygote, new_attempt: NewAttempt) -> None:
    parent = new_zygote()
    waiting = parent.waiting_runner(new_attempt)
    os.kill(waiting, signal.SIGKILL)
    until(lambda: not lives(waiting))
    attempt = new_attempt(["true"])
    until(lambda: parent.start(attempt) and parent.ended(attempt)["status"] == 0)
    assert attempt.record()["exit_code"] == 0


def test_a_missing_directory_is_told(new_zygote: NewZygote, site: Path) -> None:
    parent = new_zygote()
    parent.link.start(site / "nowhere")
    assert parent.notice("ended")["status"] == 1
    assert "nowhere" in (site / "zygote.log").read_text()


def test_it_answers_who_it_is(new_zygote: NewZygote, new_attempt: NewAttempt) -> None:
    parent = new_zygote()
    answer = parent.ask()
    assert (answer["runner"], answer["runners"]) == (runner.digest(), 0)
    parent.start(new_attempt(["sleep", "600"]))
    assert parent.ask()["runners"] == 1
    assert os.getsid(parent.pid) == parent.pid


def test_a_killed_runner_leaves_nothing_behind(new_zygote: NewZygote, new_attempt: NewAttempt) -> None:
    """Also not what is in no session and no environment of the attempt, so that no scan could find it."""
    parent = new_zygote()
    bystander = new_attempt(shell_job(SLEEP))
    parent.start(bystander)
    bare = DAEMON.replace("os.setsid()", "os.setsid(); os.execle(sys.executable, 'x', '-c', REST, {})")
    code = f"REST = {DAEMON!r}\n{bare}\ntime.sleep(600)"
    attempt = new_attempt(python_job(code))
    pid = parent.start(attempt)
    (daemon,) = attempt.pids("daemon")
    assert b"RUNYARD" not in Path(f"/proc/{daemon}/environ").read_bytes()
    first = until(lambda: attempt.status())["child"]

    os.kill(pid, signal.SIGKILL)
    assert parent.ended(attempt) == {"ended": str(attempt.directory), "pid": pid, "status": -signal.SIGKILL}
    until(lambda: not lives(first) and not lives(daemon))
    assert lives(*bystander.pids("ready"))


def test_a_killed_zygote_disturbs_nobody(new_zygote: NewZygote, new_attempt: NewAttempt) -> None:
    parent = new_zygote()
    attempt = new_attempt(shell_job("echo $$ > ready; while [ ! -e go ]; do sleep 0.05; done; echo done; exit 4"))
    pid = parent.start(attempt)
    (first,) = attempt.pids("ready")
    os.kill(parent.pid, signal.SIGKILL)
    with pytest.raises(EOFError):
        until(lambda: parent.link.wait(0.1))

    successor = new_zygote()
    assert lives(pid) and lives(first)
    (attempt.work / "go").touch()
    record = attempt.record()
    assert (record["exit_code"], attempt.text()) == (4, "done\n")
    assert successor.ask()["runners"] == 0


def test_a_living_zygote_keeps_its_socket(new_zygote: NewZygote) -> None:
    first = new_zygote()
    second = subprocess.run(first.command, capture_output=True, timeout=90)
    assert second.returncode == zygote.ALREADY_SERVED
    assert b"another zygote" in second.stderr
    assert first.ask()["pid"] == first.pid


def test_quit_makes_room_at_once_and_waits_for_runners(new_zygote: NewZygote, new_attempt: NewAttempt) -> None:
    old = new_zygote()
    attempt = new_attempt(shell_job("while [ ! -e go ]; do sleep 0.05; done"))
    old.start(attempt)
    old.link.quit()
    until(lambda: not (old.site / zygote_link.SOCKET).exists())

    new = new_zygote()
    assert new.pid != old.pid
    old.link.start(attempt.directory)
    assert "no more" in old.notice("failed")["error"]
    (attempt.work / "go").touch()
    assert old.notice("ended")["status"] == 0
    until(lambda: not lives(old.pid))
    assert new.ask()["pid"] == new.pid


def test_it_goes_when_its_directory_is_gone(new_zygote: NewZygote, site: Path) -> None:
    parent = new_zygote()
    shutil.rmtree(site)
    parent.link.close()  # which wakes it up to look around
    until(lambda: not lives(parent.pid))


def test_sigterm_is_a_quit(new_zygote: NewZygote) -> None:
    parent = new_zygote()
    os.kill(parent.pid, signal.SIGTERM)
    until(lambda: not lives(parent.pid))
    assert not (parent.site / zygote_link.SOCKET).exists()


def test_nonsense_closes_the_line_and_nothing_else(new_zygote: NewZygote, site: Path) -> None:
    parent = new_zygote()
    for nonsense in (b"hello\n", b"[1]\n", b"\xff\n", b"x" * 200_000):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as visitor:
            visitor.settimeout(90)
            visitor.connect(str(site / zygote_link.SOCKET))
            try:
                visitor.sendall(nonsense)
                assert visitor.recv(100) == b""
            except ConnectionError:
                pass
    assert parent.ask()["pid"] == parent.pid


def test_a_deep_directory_is_no_obstacle(tmp_path: Path) -> None:
    site = tmp_path.joinpath(*["a rather long name of a directory"] * 6)
    site.mkdir(parents=True)
    command = [sys.executable, runner.install(str(site)), "zygote", str(site)]
    subprocess.run(command, check=True, timeout=90)
    line = zygote_link.connect(site)
    line.ping()
    (answer,) = line.wait(90)
    line.quit()
    line.close()
    until(lambda: not lives(answer["pid"]))


@pytest.mark.component("root")
def test_another_user_is_refused(new_zygote: NewZygote, new_attempt: NewAttempt, site: Path) -> None:
    """The socket's mode keeps others away; whoever gets past it is sent away all the same."""
    parent = new_zygote()
    assert stat.S_IMODE(os.stat(site / zygote_link.SOCKET).st_mode) == 0o600
    attempt = new_attempt(["true"])
    request = json.dumps({"start": str(attempt.directory)})
    stranger = f"""
import os, socket, sys
line = socket.socket(socket.AF_UNIX)
os.chdir({str(site)!r})
os.setuid(65534)
try:
    line.connect({zygote_link.SOCKET!r})
    print("connected")
    line.sendall({request!r}.encode() + b"\\n")
    print(line.recv(100))
except OSError as error:
    print(type(error).__name__)
"""
    ask = [sys.executable, "-c", stranger]
    assert subprocess.run(ask, capture_output=True, text=True, timeout=90).stdout == "PermissionError\n"
    os.chmod(site / zygote_link.SOCKET, 0o666)
    os.chmod(site, 0o755)
    answer = subprocess.run(ask, capture_output=True, text=True, timeout=90).stdout.splitlines()
    assert answer[0] == "connected"
    assert answer[1] in ("b''", "BrokenPipeError", "ConnectionResetError")
    parent.ask()
    assert not (attempt.directory / "started").exists()
