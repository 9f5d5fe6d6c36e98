"""A drop box and a real yard in one process, tick by tick."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from runyard.agent.spool.following import Following
from runyard.agent.spool.looking import Most
from runyard.agent.spool.notes import Notes
from runyard.agent.spool.taking import SETTLE_S, Rules, Taking
from runyard.model.nodes import Limits
from runyard.model.resources import Capacity
from runyard.model.states import AttemptState
from runyard.model.wire import Hello, Report, SyncRequest
from runyard.server.embedded import DirectSpoolLink
from runyard.settings import Settings
from runyard.yard import Yard


class Box:
    """One drop box, and a clock that goes on when it is told to."""

    def __init__(self, yard: Yard, directory: Path) -> None:
        self.yard, self.path, self._own, self.now = yard, directory / "box", directory / "own", 100.0
        self.path.mkdir(parents=True)
        self.limits = Limits()
        self.restart()

    def restart(self) -> None:
        """As another process: nothing is remembered but what was noted."""
        link, notes = DirectSpoolLink(self.yard, self.yard.owner()), Notes(self._own)
        rules = Rules(most=Most(bytes=1 << 20, files=100), limits=self.limits)
        self.taking = Taking(self.path, link, notes, rules, lambda: self.now)
        self.following = Following(self.path, link, notes)

    def hand_in(self, name: str, **run: Any) -> Path:
        part = self.path / f".{name}.part"
        part.mkdir()
        (part / "run.json").write_text(json.dumps({"command": ["true"], **run}))
        return part.rename(self.path / f"{name}.run")

    def look(self, times: int = 1) -> None:
        for _ in range(times):
            self.taking.tick()
            self.now += SETTLE_S
        self.following.tick()

    def execute(self, outputs: Sequence[dict[str, Any]]) -> None:
        """As an agent does: each run leaves one of these."""
        total, owner = Capacity(cpus=8, memory=8 << 30), self.yard.owner()
        hello = Hello(site="local", agent="a", node="n", boot_id="b", version="1", total=total)
        incarnation, _ = self.yard.hello(owner, hello).result()
        request = SyncRequest(site="local", agent="a", incarnation=incarnation, free=total)
        claims = self.yard.sync(owner, request).result().claims
        record = {"ending": "exit", "exit_code": 0, "signal": None, "tree_gone": True, "sizes": {}}
        reports = [
            Report(key=claim.key, state=AttemptState.ENDED, started_at=1.0, record=record, outputs=[output])
            for claim, output in zip(claims, outputs, strict=True)
        ]
        self.yard.sync(owner, dataclasses.replace(request, reports=reports)).result()

    def state(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.path / f"{name}.state" / "state.json").read_text())
        return found

    def runs(self) -> list[int]:
        from runyard.yard.views import RunFilter

        return sorted(run["id"] for run in self.yard.list_runs(RunFilter()))


def sha256(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    yard = Yard.open(Settings(home=tmp_path / "home"))
    yard.sites.ensure("local", "local").result()
    yield Box(yard, tmp_path)
    yard.close()


def test_a_bundle_is_taken_when_it_holds_still(box: Box) -> None:
    bundle = box.hand_in("one")
    box.look()
    for number in range(3):
        (bundle / "run.json").write_text(json.dumps({"command": ["true"], "params": {"n": number}}))
        box.look()
        assert box.runs() == []
    box.look()
    assert box.runs() == [1]
    assert (box.state("one")["id"], box.state("one")["state"]) == (1, "queued")


def test_names_that_are_not_handed_in_yet(box: Box) -> None:
    (box.path / ".two.part").mkdir()
    (box.path / ".x.run").mkdir()
    (box.path / "notes").mkdir()
    box.look(3)
    assert sorted(os.listdir(box.path)) == [".two.part", ".x.run", "notes"]


def test_what_is_refused_stays_refused(box: Box) -> None:
    bundle = box.hand_in("one", cwd="/etc")
    (box.path / "two.run").symlink_to("/etc")
    (box.path / "a b.run").mkdir()
    (box.path / f"{'x' * 250}.run").mkdir()
    box.hand_in("three")
    box.look(2)
    assert box.state("one")["state"] == box.state("two")["state"] == box.state("a b")["state"] == "refused"
    assert "is not a directory" in box.state("two")["detail"]
    assert "is not a valid name" in box.state("a b")["detail"]
    assert box.state("three")["id"] == 1
    written = (box.path / "one.state" / "state.json").stat()
    (bundle / "run.json").write_text('{"command": ["true"]}')
    box.restart()
    box.look(3)
    assert (box.path / "one.state" / "state.json").stat() == written
    assert box.runs() == [1]


def test_a_second_bundle_of_the_same_name(box: Box) -> None:
    first = box.hand_in("one", params={"n": 1})
    box.look(2)
    first.rename(box.path / ".away")
    box.hand_in("one", params={"n": 2})
    box.look(3)
    assert (box.runs(), box.state("one")["id"]) == ([1], 1)
    box.yard.cancel(box.yard.owner(), [1]).result()
    box.look()
    assert box.state("one")["state"] == "cancelled"
    box.look(3)
    assert (box.runs(), box.state("one")["id"]) == ([1, 2], 2)


@pytest.mark.component("inode generations")
def test_a_second_bundle_in_the_very_place_of_the_first(box: Box) -> None:
    """File systems give its inode away at once, and nobody need have looked in between."""
    for number in (1, 2, 3):
        bundle = box.hand_in("one")
        box.look(2)
        assert (box.state("one")["id"], box.state("one")["state"]) == (number, "queued")
        box.yard.cancel(box.yard.owner(), [number]).result()
        box.look()
        shutil.rmtree(bundle)


def test_the_state_goes_with_the_bundle_when_it_has_ended(box: Box) -> None:
    bundle = box.hand_in("one")
    box.look(2)
    (bundle / "run.json").unlink()
    bundle.rmdir()
    box.look()
    assert box.state("one")["state"] == "queued"
    box.yard.cancel(box.yard.owner(), [1]).result()
    box.look()
    assert box.state("one")["state"] == "cancelled"
    box.look()
    assert os.listdir(box.path) == []


def test_a_result_that_the_yard_has_lost_keeps_no_other_bundle_waiting(
    box: Box, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("one", "two"):
        box.hand_in(name)
    box.look(2)
    outputs = [
        {"path": f"{number}.txt", "size": 1, "digest": sha256(b"%d" % number), "mode": 0o644} for number in (1, 2)
    ]
    for number, output in enumerate(outputs, 1):
        box.yard.blobs.put(output["digest"], [b"%d" % number])
    box.execute(outputs)
    box.yard.blob_store.blobs.remove([outputs[1]["digest"]])  # of the one that is looked at first
    box.look()
    assert box.state("one")["state"] == "succeeded"
    assert (box.path / "one.state" / "outputs" / "1.txt").read_text() == "1"
    assert outputs[1]["digest"] in caplog.text


def test_who_may_cancel(box: Box) -> None:
    box.hand_in("one")
    box.look(2)
    (box.path / "one.cancel").symlink_to("/etc/passwd")
    box.look()
    assert box.state("one")["state"] == "queued"
    (box.path / "one.cancel").unlink()
    (box.path / "one.cancel").touch()
    if os.geteuid() == 0:
        os.chown(box.path / "one.cancel", 12345, 12345)
        box.look()
        assert box.state("one")["state"] == "queued"
        os.chown(box.path / "one.cancel", 0, 0)
    box.look(2)
    assert (box.state("one")["state"], box.state("one")["reason"]) == ("cancelled", "user")
    (box.path / "one.run").rename(box.path / ".old")
    box.hand_in("one")
    box.look(3)
    assert box.state("one")["state"] == "queued", "that wish was met"


def test_a_drop_box_for_some_people_only(box: Box) -> None:
    box.limits = Limits(users=("somebody-else",))
    box.restart()
    box.hand_in("one")
    box.look(2)
    assert box.state("one")["detail"].startswith("this drop box is for user somebody-else")


@pytest.mark.component("root")
def test_an_owner_without_a_name(box: Box) -> None:
    bundle = box.hand_in("one")
    for path in (bundle, bundle / "run.json"):
        os.chown(path, 54321, 54321)
    box.look(2)
    assert box.state("one")["detail"] == "its owner, uid 54321, has no name on this machine"


def test_a_state_that_somebody_else_made_keeps_the_bundle_waiting(box: Box, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (box.path / "one.state").symlink_to(tmp_path / "elsewhere")
    box.hand_in("one")
    box.look(3)
    assert (box.runs(), os.listdir(tmp_path / "elsewhere")) == ([], [])
    (box.path / "one.state").unlink()
    box.look()
    assert box.state("one")["id"] == 1


def test_two_agents_that_look_into_one_drop_box(box: Box, tmp_path: Path) -> None:
    """Where file systems have no locks, as over NFS, the first one to write the state has the bundle."""
    other = Box(box.yard, tmp_path / "other")
    other.path = box.path
    other.restart()
    box.hand_in("one")
    for _ in range(4):
        box.taking.tick()
        other.taking.tick()
        box.now = other.now = box.now + SETTLE_S
    box.following.tick()
    other.following.tick()
    assert (box.runs(), box.state("one")["id"]) == ([1], 1)


def test_what_the_yard_refuses_is_told(box: Box) -> None:
    box.hand_in("one", site="nowhere")
    box.look(2)
    assert "there is no site 'nowhere'" in box.state("one")["detail"]


def test_who_came_first_is_served_first(box: Box) -> None:
    for name in ("c", "a", "b"):
        box.hand_in(name)
    box.look(2)
    assert [box.state(name)["id"] for name in ("c", "a", "b")] == box.runs()
