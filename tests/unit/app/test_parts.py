"""One list of background parts, used by the daemon and by a check."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from runyard import errors
from runyard.app import parts
from runyard.app.parts import Life
from runyard.app.tick import Tick
from runyard.loop import Loop
from runyard.settings import Settings
from runyard.yard import Yard


class Counting(Loop):
    def __init__(self) -> None:
        super().__init__("counting")
        self.ticks = 0

    def tick(self) -> bool:
        self.ticks += 1
        return False


@pytest.fixture
def yard(tmp_path: Path):
    yard = Yard.open(Settings(home=tmp_path / "home", local_site="off"))
    yield yard
    yard.close()


def names(yard: Yard, life: Life) -> set[str]:
    with parts.for_threads(yard, life) as background:
        return {part.__name__ for part in background}


def test_a_new_part_is_one_line_for_the_daemon_and_for_a_check(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Counting()

    def build(builder: parts.Builder) -> list[parts.YardPart]:
        return [parts.YardPart(loop=loop, once=builder.after(loop))]

    monkeypatch.setattr(parts, "PARTS", (*parts.PARTS, (build, parts.ALWAYS)))
    assert "counting" in names(yard, Life.DAEMON)
    parts.do_once(yard, Tick(site=None, directory=None, deadline=time.monotonic() + 30))
    assert loop.ticks == 1


def test_a_part_is_woken_by_its_hints_while_the_yard_stays(yard: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = Counting()
    monkeypatch.setattr(parts, "PARTS", ((lambda _: [parts.YardPart(loop=loop, wakes_on=("run:",))], parts.ALWAYS),))
    with parts.for_threads(yard, Life.DAEMON):
        yard.hints.ring("run:1")
        assert loop._wanted.is_set()
    loop._wanted.clear()
    yard.hints.ring("run:1")
    assert not loop._wanted.is_set()


def test_a_yard_for_one_command_leaves_other_programs_to_the_next_check(tmp_path: Path) -> None:
    box = tmp_path / "box"
    box.mkdir(mode=0o700)
    yard = Yard.open(Settings(home=tmp_path / "home", local_site="off", spool=[str(box)]))
    try:
        assert {"clock", "progress", "agents", "clearing"} == names(yard, Life.COMMAND)
        assert names(yard, Life.DAEMON) - names(yard, Life.COMMAND) == {"drop-box-box"}
    finally:
        yard.close()


def test_a_wrong_part_is_raised_after_the_others_have_had_their_turn(
    yard: Yard, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = Counting()

    def wrong(_: parts.Builder) -> list[parts.YardPart]:
        raise errors.ConfigError("the intake has no broker")

    def good(builder: parts.Builder) -> list[parts.YardPart]:
        return [parts.YardPart(loop=loop, once=builder.after(loop))]

    monkeypatch.setattr(parts, "PARTS", ((wrong, parts.OTHERS), (good, parts.ALWAYS)))
    with pytest.raises(errors.ConfigError, match="the intake has no broker"):
        parts.do_once(yard, Tick(site=None, directory=None, deadline=time.monotonic() + 30))
    assert loop.ticks == 1
