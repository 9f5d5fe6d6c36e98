"""What the user's process gets is what was asked for, on every Python that a runner may find."""

from __future__ import annotations

import ast
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runyard.runner.supervisor import DEAF_S, Attendant
from tests.integration.runner.attempts import (
    Attempt,
    NewAttempt,
    python_job,
    shell_job,
    signals,
    until,
    waits_for_fuse,
)
from tests.integration.runner.conftest import NewZygote
from tests.labs import disks

Run = Callable[[Attempt], dict[str, Any]]

NASTY = "a b\t'c' \"d\" $HOME `e` \\ {x} \n last ünïcödé 日本 \udcff\udc80"

TELL = """
import os, sys
with open(os.environb[b"TO"], "w") as file:
    print([os.fsencode(word) for word in sys.argv[1:]], file=file)
    print(os.getcwdb(), file=file)
    print(dict(os.environb), file=file)
"""


def raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def test_words_environment_and_directory_arrive_unchanged(
    new_attempt: NewAttempt, python: str, run: Run, tmp_path: Path
) -> None:
    odd_directory = tmp_path / NASTY.replace("/", "")
    odd_directory.mkdir()
    env = {"TO": str(tmp_path / "told"), "NASTY": NASTY, "EMPTY": "", "LINES": "1\n2\n"}
    attempt = new_attempt([*python_job(TELL), NASTY, "", "-x", "--"], python=python, env=env, cwd=str(odd_directory))

    assert run(attempt)["ending"] == "exit"
    arguments, directory, environment = map(ast.literal_eval, (tmp_path / "told").read_text().splitlines())
    assert arguments == [raw(NASTY), b"", b"-x", b"--"]
    assert directory == os.fsencode(odd_directory)
    environment.pop(b"LC_CTYPE", None)  # Python itself sets it
    scratch = {environment.pop(name) for name in (b"RUNYARD_SCRATCH", b"TMPDIR")}
    assert len(scratch) == 1, "the run's own, see test_scratch"
    assert environment.pop(b"PYTHONPATH").endswith(b"/packages"), "see test_setup_and_checkpoints"
    expected = {raw(name): raw(value) for name, value in env.items()}
    assert environment == {**expected, b"RUNYARD_TAG": raw(attempt.spec["tag"])}


def test_exit_codes_and_signals_are_recorded(new_attempt: NewAttempt, python: str, run: Run) -> None:
    left = new_attempt(shell_job("echo out; echo err >&2; exit 7"), python=python)
    record = run(left)
    assert (record["ending"], record["exit_code"], record["signal"]) == ("exit", 7, None)
    assert left.text() == "out\nerr\n"
    assert record["sizes"] == {"log": 8}

    killed = run(new_attempt(shell_job("kill -SEGV $$"), python=python))
    assert (killed["ending"], killed["exit_code"], killed["signal"]) == ("exit", None, signal.SIGSEGV)


def test_a_quick_run_is_recorded_completely(new_attempt: NewAttempt) -> None:
    record = new_attempt(["true"]).run()
    assert record["state"] == "ended"
    assert record["exit_code"] == 0
    assert record["tree_gone"] is True
    assert record["leftovers"] == 0
    assert record["started_at"] <= record["ended_at"]
    assert 0 < record["cpu_time"] < record["wall_time"] + 1
    assert record["peak_memory"] > 0
    assert record["stop_reason"] is record["memory_judge"] is None
    assert "disk_full" not in record


def test_the_process_starts_with_a_clean_slate(new_attempt: NewAttempt) -> None:
    """Also when whoever started the runner had ignored signals and left files open."""
    job = "grep -E 'SigBlk|SigIgn' /proc/self/status; ls /proc/self/fd; readlink /proc/self/fd/0"
    attempt = new_attempt(shell_job(job))
    attempt.command = ["nohup", *attempt.command]
    stray = os.open("/etc/passwd", os.O_RDONLY)
    try:
        assert attempt.begin(pass_fds=[stray]).wait(90) == 0
    finally:
        os.close(stray)
    blocked, ignored, *descriptors, null = attempt.text().splitlines()
    assert signals(blocked) == signals(ignored) == set()
    assert descriptors == ["0", "1", "2", "3"]  # 3 is ls looking
    assert null == "/dev/null"


def test_the_process_leads_a_session_of_its_own_and_dies_with_its_runner(new_attempt: NewAttempt, run: Run) -> None:
    tell = """
import ctypes, os
number = ctypes.c_int()
ctypes.CDLL(None).prctl(2, ctypes.byref(number))  # PR_GET_PDEATHSIG
print(os.getsid(0) == os.getpid() == os.getpgid(0), number.value)
"""
    attempt = new_attempt(python_job(tell))
    run(attempt)
    assert attempt.text() == f"True {int(signal.SIGKILL)}\n"


def write(path: Path, text: str, mode: int = 0o755) -> None:
    path.write_text(text)
    path.chmod(mode)


@pytest.mark.parametrize(
    ("program", "words"),
    [
        ("pyton", ["no such program: pyton", "PATH"]),
        ("./nowhere", ["no such program: ./nowhere"]),
        ("plain.sh", ["no such program: plain.sh", "./plain.sh"]),
        ("./locked.sh", ["not executable: ./locked.sh", "chmod +x"]),
        ("./lost.sh", ["./lost.sh wants the interpreter /no/such/interpreter -x", "not here"]),
        ("./noise", ["no #! line: ./noise"]),
        ("./folder", ["directory: ./folder"]),
    ],
)
def test_a_program_that_cannot_start_is_explained(
    new_attempt: NewAttempt, run: Run, program: str, words: list[str]
) -> None:
    attempt = new_attempt([program, "argument"], env={"PATH": "/usr/bin:/bin"})
    write(attempt.work / "plain.sh", "#!/bin/sh\n")
    write(attempt.work / "locked.sh", "#!/bin/sh\n", 0o644)
    write(attempt.work / "lost.sh", "#!/no/such/interpreter -x\n")
    write(attempt.work / "noise", "\0\1\2")
    (attempt.work / "folder").mkdir()

    record = run(attempt)
    assert record["ending"] == "launch"
    assert record["exit_code"] is record["signal"] is None
    assert all(word in record["message"] for word in words), record["message"]


@pytest.mark.parametrize(
    ("directory", "words"),
    [("/no/such/place", "no such working directory: /no/such/place"), ("/etc/passwd", "is no directory: /etc/passwd")],
)
def test_a_wrong_working_directory_is_explained(
    new_attempt: NewAttempt, python: str, run: Run, directory: str, words: str
) -> None:
    record = run(new_attempt(["true"], python=python, cwd=directory))
    assert record["ending"] == "launch"
    assert words in record["message"]


@pytest.mark.parametrize(
    ("argv", "words"),
    [(["echo", "a\0b"], "a zero byte"), (["echo", *["x" * 100_000] * 100], "too long"), ([], "names no command")],
    ids=["zero byte", "too long", "empty"],
)
def test_words_that_no_program_can_get_are_explained(
    new_attempt: NewAttempt, run: Run, argv: list[str], words: str
) -> None:
    record = run(new_attempt(argv))
    assert record["ending"] == "launch"
    assert words in record["message"]


def test_a_damaged_spec_is_an_ending_too(new_attempt: NewAttempt) -> None:
    attempt = new_attempt(["true"])
    (attempt.directory / "spec.json").write_text('{"argv": ["tru')
    record = attempt.run()
    assert (record["ending"], record["tree_gone"]) == ("launch", True)
    assert "spec.json" in record["message"]


def test_a_program_in_the_path_of_the_run_is_found(new_attempt: NewAttempt, run: Run, tmp_path: Path) -> None:
    """Not in the path of the runner; and a file that may not be executed does not hide a later one that may."""
    for name, mode in (("first", 0o644), ("second", 0o755)):
        (tmp_path / name).mkdir()
        write(tmp_path / name / "mine", "#!/bin/sh\necho found", mode)
    (tmp_path / "mine").mkdir()  # nor does a folder
    attempt = new_attempt(["mine"], env={"PATH": f"{tmp_path}:{tmp_path}/first:{tmp_path}/second:/bin"})
    assert run(attempt)["exit_code"] == 0
    assert attempt.text() == "found\n"


@pytest.mark.component("fuse")
def test_a_directory_that_does_not_answer_is_no_way_round_the_time_limit(new_attempt: NewAttempt, run: Run) -> None:
    attempt = new_attempt(["true"], time_limit=2)
    with disks.silent_disk(attempt.work):
        assert run(attempt)["ending"] == "timeout"


@pytest.mark.component("fuse")
def test_a_directory_that_does_not_answer_keeps_no_run_from_being_stopped(
    new_attempt: NewAttempt, new_zygote: NewZygote
) -> None:
    """Without a limit of its own, the runner itself may hang there."""
    attempt, place = new_attempt(["true"]), Attendant()
    directory = os.fsencode(attempt.directory)
    with disks.silent_disk(attempt.work):
        pid = new_zygote().start(attempt)
        until(lambda: waits_for_fuse(pid))
        assert not place.stop(directory, "user", 0, DEAF_S + 1)
        until(lambda: place.look(directory)["presence"] == "gone")


def test_a_wrong_call_shows_the_usage(new_attempt: NewAttempt, runner_directory: str) -> None:
    attempt = new_attempt(["true"])
    attempt.command = [sys.executable, runner_directory, "walk", str(attempt.directory)]
    assert attempt.begin().wait(90) == 2
    assert not (attempt.directory / "started").exists()
