"""A yard and its runs on one disk that is full: runs end with a true state, and all goes on when there is room."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard import errors
from runyard.client import Run
from tests.acceptance.witness import until
from tests.labs.disks import fill, small_disk
from tests.labs.yard import Yard

pytestmark = pytest.mark.component("root")

MB = 1 << 20
PATIENCE_S = 240.0


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    with small_disk(tmp_path / "small", "size=64m") as place:
        yield place


@pytest.fixture
def yard(make_yard: Callable[..., Yard], small: Path) -> Yard:
    yard = make_yard(below=small, cpus=2)
    assert submit(yard, "true").wait(timeout=PATIENCE_S).state == "succeeded"
    return yard


def submit(yard: Yard, script: str) -> Run:
    return yard.client().submit(command=["/bin/sh", "-c", script], cwd="/")


def filling(small: Path) -> str:
    return f"cat /dev/zero > {small}/filler"


def waiting(place: Path) -> str:
    return f"while [ ! -e {place}/go ]; do sleep 0.1; done"


def running(yard: Yard, place: Path, script: str) -> Run:
    """What is seen to run before it does this."""
    run = submit(yard, f"{waiting(place)}; {script}")
    until(lambda: yard.client().run(run.id).state == "running", what="it runs", timeout=PATIENCE_S)
    (place / "go").touch()
    return run


def is_full(small: Path) -> bool:
    found = os.statvfs(small)
    return found.f_bavail * found.f_frsize < MB // 4


def make_room(yard: Yard, small: Path) -> None:
    """And everything goes on by itself."""
    (small / "filler").unlink()
    words = ("submit", "-q", "--cwd", "/", "--", "true")
    until(lambda: yard.cli(*words).returncode == 0, what="room again", timeout=PATIENCE_S)
    client = yard.client()
    until(lambda: all(run.final for run in client.runs()), what="all runs have ended", timeout=PATIENCE_S)
    assert "Traceback" not in yard.log


def test_a_run_that_fills_the_disk_and_fails(yard: Yard, small: Path, tmp_path: Path) -> None:
    run = running(yard, tmp_path, f"{filling(small)}; exit 3").wait(timeout=PATIENCE_S)
    assert is_full(small), "it ended all the same"
    assert (run.state, run.reason, run.data["exit_code"]) == ("failed", "disk", 3)
    assert run.detail.startswith(f"exited with 3; no space is left in {small}")
    with pytest.raises(errors.DiskFull, match="nothing was recorded") as refused:
        submit(yard, "true")
    assert refused.value.fix == "free some space and try again"
    assert len(yard.client().runs()) == 2
    make_room(yard, small)


def test_a_run_that_fills_the_disk_before_anybody_has_seen_it_run(yard: Yard, small: Path) -> None:
    run = submit(yard, f"{filling(small)}; exit 3").wait(timeout=PATIENCE_S)
    assert is_full(small)
    assert (run.state, run.reason, run.data["exit_code"]) == ("failed", "disk", 3)
    make_room(yard, small)


def test_a_run_whose_log_fills_the_disk(yard: Yard, small: Path, tmp_path: Path) -> None:
    """Its log lies there twice, and one of them stays incomplete: that is told, and nobody waits for it for ever."""
    run = submit(yard, f"echo first; {waiting(tmp_path)}; yes 0123456789abcde")
    until(lambda: run.logs() == "first\n", what="its first line is in the yard", timeout=PATIENCE_S)
    (tmp_path / "go").touch()
    run.wait(timeout=PATIENCE_S)
    assert (run.state, run.reason) == ("failed", "disk")
    assert "; log incomplete: " in run.detail
    assert run.logs().startswith("first\n")
    kept = (yard.runs / str(run.id) / "a1" / "log").stat().st_size
    assert run.detail.endswith(f" of {kept} bytes"), "what the yard could not take stays where it is"


def test_a_run_is_cancelled_on_a_full_disk(yard: Yard, small: Path) -> None:
    run = submit(yard, f"{filling(small)}; trap 'exit 0' TERM; while :; do sleep 0.1; done")
    until(lambda: is_full(small) and yard.client().run(run.id).state == "running", what="it runs", timeout=PATIENCE_S)
    yard.client().cancel([run.id])
    run.wait(timeout=PATIENCE_S)
    assert (run.state, run.reason) == ("cancelled", "user")
    assert run.detail.startswith("stopped after "), "by its runner, which was told"
    make_room(yard, small)


def test_what_a_run_left_waits_for_room_when_it_did_not_fail(yard: Yard, small: Path, tmp_path: Path) -> None:
    """There is room for its log, but not for the same log in the yard."""
    run = submit(yard, f"{waiting(tmp_path)}; yes 0123456789abcde | head -c {4 * MB}")
    client = yard.client()
    until(lambda: client.run(run.id).state == "running", what="it runs", timeout=PATIENCE_S)
    fill(small / "filler")
    os.truncate(small / "filler", (small / "filler").stat().st_size - 6 * MB)
    (tmp_path / "go").touch()
    until(lambda: "disk is full" in (client.run(run.id).detail or ""), what="it is told", timeout=PATIENCE_S)
    assert client.run(run.id).state == "running"
    make_room(yard, small)
    assert run.wait(timeout=PATIENCE_S).state == "succeeded"
    assert run.logs() == "0123456789abcde\n" * (4 * MB // 16)


def test_a_disk_that_somebody_else_fills(yard: Yard, small: Path, tmp_path: Path) -> None:
    """Who runs ends as it would have, who waits goes on waiting."""
    runs = [submit(yard, f"{waiting(tmp_path)}; {end}") for end in ("exit 0", "kill -9 $$")]
    client = yard.client()
    later = client.submit(command=["echo", "later"], cwd="/", after=[runs[0].id])
    until(lambda: all(client.run(run.id).state == "running" for run in runs), what="they run", timeout=PATIENCE_S)
    fill(small / "filler")
    until(lambda: client.agents()[0]["state"] == "full", what="the full disk is seen", timeout=PATIENCE_S)
    (tmp_path / "go").touch()
    assert [run.wait(timeout=PATIENCE_S).state for run in runs] == ["succeeded", "failed"]
    assert is_full(small)
    assert client.run(later.id).state == "queued"
    make_room(yard, small)
    assert later.wait(timeout=PATIENCE_S).logs() == "later\n"


def test_runs_whose_turn_comes_on_a_full_disk_wait_for_room(yard: Yard, small: Path, tmp_path: Path) -> None:
    """They were claimed ahead, as happens while short ones end, and are no worse for the one before them."""
    client = yard.client()
    for short in [submit(yard, "true") for _ in range(20)]:  # one that took long, the first maybe, does not count then
        short.wait(timeout=PATIENCE_S)
    scripts = [*["true"] * 20, *[f"{waiting(tmp_path)}; {filling(small)}; exit 1"] * 2, *["echo fine"] * 4]
    runs = client.submit_many([{"command": ["/bin/sh", "-c", script], "cwd": "/"} for script in scripts])
    first, others = runs[20:22], runs[22:]
    until(lambda: any(client.run(run.id).state == "starting" for run in others), what="a claim", timeout=PATIENCE_S)
    (tmp_path / "go").touch()
    assert {run.wait(timeout=PATIENCE_S).reason for run in first} == {"disk"}
    told = f"free in {yard.runs}, "
    until(lambda: told in (client.run(others[0].id).detail or ""), what="it is told", timeout=PATIENCE_S)
    make_room(yard, small)
    assert {client.run(run.id).state for run in others} == {"succeeded"}


def test_a_yard_that_was_killed_starts_again_when_there_is_room(yard: Yard, small: Path, tmp_path: Path) -> None:
    run = running(yard, tmp_path, f"{filling(small)}; sleep 600")
    until(lambda: is_full(small), what="it is full", timeout=PATIENCE_S)
    yard.kill9()
    refused = yard.cli("up")
    assert (refused.returncode, refused.stderr.split("\n")[0]) == (
        1, f"error: no yard can start in {yard.home}: its disk is full",
    )  # fmt: skip
    (small / "filler").unlink()
    yard.start()
    assert yard.client().run(run.id).state == "running"
    yard.client().cancel([run.id])
    assert run.wait(timeout=PATIENCE_S).state == "cancelled"
