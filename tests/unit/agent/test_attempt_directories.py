"""When the directories of settled attempts go: few at once, many when a burst of runs is over."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path

import pytest

from runyard.agent.attempts import Book
from runyard.agent.bring.cache import CacheStore
from runyard.agent.clean.attempt_directories import MANY, PUT_OFF_S, AttemptDirectories
from runyard.agent.errands import NoErrands
from runyard.hosts.local import LocalHost
from runyard.model.resources import Resources
from runyard.model.wire import AttemptKey, Claim, SyncResponse


def claim_of(key: AttemptKey) -> Claim:
    return Claim(key=key, batch="b", position=1, spec={}, argv=["true"], resources=Resources())


class Site:
    """Attempts of which the yard was told, with their directories, and a clock that goes on when it is told to."""

    def __init__(self, directory: Path, count: int) -> None:
        self.now, self.is_tight = 1000.0, False
        self.keys = [AttemptKey(run=number, attempt=1) for number in range(1, count + 1)]
        for key in self.keys:
            (directory / "runs" / str(key.run) / "a1").mkdir(parents=True)
        notes = directory / "leaving.jsonl"
        notes.write_text("".join(json.dumps([str(key), "none", None]) + "\n" for key in self.keys))
        self._runs = directory / "runs"
        store = CacheStore(str(self._runs), "box", Book(), lambda: 1)
        self.leaving = AttemptDirectories(
            LocalHost(), NoErrands(), store, "", notes, lambda: self.now, lambda: "full" if self.is_tight else ""
        )

    def settle(self, owned: Collection[AttemptKey] | None = None) -> None:
        """`owned`: first it is asked for by somebody who comes after a death and still has these."""
        if owned is not None:
            self.leaving.owned([claim_of(key) for key in owned])
        self.leaving.heard(SyncResponse(settled=self.keys))

    def left_after(self, seconds: float) -> int:
        self.now += seconds
        self.leaving.advance()
        return len(list(self._runs.glob("*/a1")))


def test_few_go_at_once(tmp_path: Path) -> None:
    site = Site(tmp_path, MANY)
    site.settle()
    assert site.left_after(0) == 0


def test_many_wait_for_the_end_of_the_burst(tmp_path: Path) -> None:
    site = Site(tmp_path, MANY + 1)
    site.settle()
    assert [site.left_after(seconds) for seconds in (0, PUT_OFF_S / 2, PUT_OFF_S / 2)] == [MANY + 1, MANY + 1, 0]


def test_many_go_when_the_room_is_needed(tmp_path: Path) -> None:
    site = Site(tmp_path, MANY + 1)
    site.settle()
    assert site.left_after(0) == MANY + 1
    site.is_tight = True
    assert site.left_after(site.leaving.next_due() - site.now) == 0


@pytest.mark.parametrize("count", [1, MANY + 1])
def test_what_an_earlier_incarnation_left_goes_at_once(tmp_path: Path, count: int) -> None:
    """Otherwise agents that live for one pass each would put it off for ever."""
    site = Site(tmp_path, count)
    site.settle(owned=())
    assert site.left_after(0) == 0
