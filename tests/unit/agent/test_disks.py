"""The watch over disks: who is nearest to being full, and how often anybody is asked."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from runyard.agent.clean.disks import FAR_LOOK_S, LOOK_S, Disks, Room, scratch_base
from runyard.agent.errands import InlineErrands
from runyard.hosts.base import Unreachable
from runyard.hosts.local import LocalHost
from runyard.model.disk_reserve import DiskReserve

GB = 1 << 30


class Host(LocalHost):
    def __init__(self, *, far: bool = False) -> None:
        self.copies = far
        self.asked = 0
        self.free = {"/runs": 50 * GB, "/scratch": 10 * GB}
        self.away = False

    def room(self, paths: Sequence[str]) -> dict[str, tuple[int, int]]:
        self.asked += 1
        if self.away:
            raise Unreachable("nobody answers")
        return {path: (self.free[path], 100 * GB) for path in paths}


class Watched:
    def __init__(self, *, far: bool = False) -> None:
        self.host, self.errands, self.now = Host(far=far), InlineErrands(), 0.0
        self.disks = Disks(
            self.host, ["/runs", "/scratch"], DiskReserve(share=0.05), self.errands, lambda: self.now
        )  # fmt: skip


def test_the_one_that_is_nearest_to_being_full_is_told() -> None:
    watched = Watched()
    worst = watched.disks.worst()
    assert worst is not None
    assert (worst.path, worst.free, worst.kept, worst.is_full) == ("/scratch", 10 * GB, 5 * GB, False)
    assert watched.disks.trouble() == ""


def test_what_the_cache_has_is_told_with_it() -> None:
    watched = Watched()
    worst = watched.disks.worst()
    assert worst is not None and worst.cache is None
    watched.disks.note_cache(3 * GB, 20 * GB)
    worst = watched.disks.worst()
    assert worst is not None and (worst.path, worst.cache, worst.cache_limit) == ("/scratch", 3 * GB, 20 * GB)


def test_it_fills_up_and_has_room_again() -> None:
    watched = Watched()
    watched.host.free["/scratch"] = GB
    assert watched.disks.trouble() == "1.0 GB free in /scratch, 5.0 GB are reserved"
    watched.host.free["/scratch"] = 20 * GB
    assert watched.disks.trouble(), "it was looked at a moment ago"
    watched.now += LOOK_S
    assert watched.disks.trouble() == ""
    assert watched.host.asked == 2


def test_another_machine_is_asked_rarely_and_not_waited_for() -> None:
    watched = Watched(far=True)
    assert watched.disks.worst() is None, "nobody knows yet"
    watched.errands.collect()
    assert watched.disks.worst() is not None
    watched.now += FAR_LOOK_S / 2
    watched.disks.worst()
    watched.errands.collect()
    assert watched.host.asked == 1
    watched.host.away, watched.host.free["/runs"] = True, 0
    watched.now += FAR_LOOK_S
    watched.disks.worst()
    watched.errands.collect()
    assert watched.disks.trouble() == "", "no answer is no news"
    watched.host.away = False
    watched.now += FAR_LOOK_S
    watched.disks.worst()
    watched.errands.collect()
    assert watched.disks.trouble().startswith("0 B free in /runs")


def test_a_disk_that_cannot_be_looked_at_is_no_news() -> None:
    watched = Watched()
    watched.host.away = True
    assert watched.disks.worst() is None
    assert watched.disks.trouble() == ""


@pytest.mark.parametrize(
    ("room", "environ", "base"),
    [
        (Room(), {}, "/var/tmp"),
        (Room(), {"TMPDIR": "/fast"}, "/fast"),
        (Room(scratch="/disk"), {"TMPDIR": "/fast"}, "/disk"),
        (Room(scratch="/disk/$USER"), {"USER": "ada"}, "/disk/ada"),
        (Room(scratch="/disk/$NOBODY"), {}, "/var/tmp"),
    ],
)
def test_where_scratch_is(room: Room, environ: dict[str, str], base: str) -> None:
    assert scratch_base(room, environ) == base
