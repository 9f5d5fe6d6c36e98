"""An agent whose site is behind login nodes: everything of a run comes back, whatever happens to the connection."""

from __future__ import annotations

import dataclasses
import hashlib
import secrets
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.agent.agent import Agent
from runyard.agent.errands import InlineErrands
from runyard.hosts import logins
from runyard.model.resources import Capacity
from runyard.model.site import SiteSpec
from runyard.model.states import AttemptState
from runyard.model.wire import AttemptKey
from tests.integration.agent.conftest import WAIT
from tests.integration.agent.fake_yard import FakeYard
from tests.integration.hosts.remote_site import RemoteSite
from tests.labs.cluster import Cluster
from tests.labs.slurm import SlurmLab

PATIENCE_S = 180.0


class Crew:
    """Agents of one site, one after the other, with a yard in memory. Nothing runs in the background: tests tick."""

    def __init__(self, site: RemoteSite, home: Path) -> None:
        self.site, self.home = site, home
        self.yard = FakeYard()
        self.agents: list[Agent] = []

    def agent(self) -> Agent:
        """A fresh one, as after a restart."""
        made = Agent(
            self.yard, self.site.backend(), self.home, "far", Capacity(elastic=True), errands=InlineErrands(),
            described=SiteSpec(kind="slurm"), root=f"{self.site.directory}/runs",
        )  # fmt: skip
        self.agents.append(made)
        return made

    def drive(self, agent: Agent, condition: Callable[[], object], what: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"{what}: not within {PATIENCE_S:g} seconds"
            agent.wake()
            agent.tick()
            time.sleep(0.05)

    def submit(self, script: str, **fields: object) -> AttemptKey:
        """Under a name of its own: the cluster remembers what earlier tests called theirs."""
        key = self.yard.submit(["bash", "-c", script], **fields)
        self.yard.queue[-1] = dataclasses.replace(self.yard.queue[-1], batch=f"far-{secrets.token_hex(4)}")
        return key


@pytest.fixture
def crew(
    slurm_lab: Callable[..., SlurmLab], reach: Callable[[Cluster, str], RemoteSite], tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Crew]:  # fmt: skip
    monkeypatch.setattr(logins, "FIRST_PAUSE_S", 0.5)
    monkeypatch.setattr(logins, "LONGEST_PAUSE_S", 0.5)
    made = Crew(reach(slurm_lab(), "slurm"), tmp_path)
    yield made
    for agent in made.agents:
        agent.close()


def test_a_run_comes_back_with_its_log_and_outputs(crew: Crew) -> None:
    script = 'echo on $RUNYARD_INDEX; mkdir $OUTPUT_DIR/d; printf 123 > "$OUTPUT_DIR/d/a b"; exit 3'
    key, agent = crew.submit(script), crew.agent()
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    report = crew.yard.ended[key]
    assert (report.record["ending"], report.record["exit_code"]) == ("exit", 3)
    assert crew.yard.log(key) == "on 1\n"
    assert [(output["path"], output["size"]) for output in report.outputs] == [("d/a b", 3)]
    assert crew.yard.blobs == {report.outputs[0]["digest"]: b"123"}
    assert list((crew.home / "spool").glob("*")) == []


def test_inputs_arrive_behind_the_login_nodes(crew: Crew) -> None:
    data = secrets.token_bytes(3 << 20)
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    crew.yard.blobs[digest] = data
    script = 'cat "$RUNYARD_INPUTS/a/b" | sha256sum'
    key, agent = crew.submit(script, inputs=[{"digest": digest, "to": "a/b"}]), crew.agent()
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key).split() == [digest.removeprefix("sha256:"), "-"]


def test_an_array_of_five_has_its_code_and_data_brought_once(crew: Crew) -> None:
    files = {
        "main.sh": b"#!/bin/sh\necho $RUNYARD_INDEX; . lib/words; cat corpora/words\n",
        "lib/words": b"echo in\n",
    }
    code = {"tree": crew.yard.store_folder(files, "main.sh"), "files": 2, "size": 1}
    data = [{"tree": crew.yard.store_folder({"words": b"data\n"}), "to": "corpora"}]
    batch = f"far-{secrets.token_hex(4)}"
    keys = [crew.yard.submit(["./main.sh"], code=code, data=data, index=number) for number in range(1, 6)]
    for number, claim in enumerate(crew.yard.queue):
        crew.yard.queue[number] = dataclasses.replace(claim, batch=batch, position=number + 1)
    agent = crew.agent()
    crew.drive(agent, lambda: all(key in crew.yard.ended for key in keys), "all ends")
    assert [_told(crew, key) for key in keys] == [("exit", 0, [str(n), "in", "data"]) for n in range(1, 6)]
    assert len(crew.yard.fetched) == 5, "two trees and three files"
    left = Path(crew.site.directory, "runs", str(keys[0].run), "a1", "code")
    crew.drive(agent, lambda: not left.exists(), "the copy is gone")


def test_a_connection_that_is_cut_while_files_travel_is_made_again(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runyard.agent.waiting.PAUSE_S", 0.5)
    data = secrets.token_bytes(12 << 20)
    code = {"tree": crew.yard.store_folder({"large": data}), "files": 1, "size": len(data)}
    real, offsets = crew.yard.get_blob, list[int]()

    def cutting(digest: str, offset: int = 0) -> Iterator[bytes]:
        is_large = crew.yard.blobs[digest] is data
        offsets.extend([offset] if is_large else [])
        for number, piece in enumerate(real(digest, offset)):
            if is_large and number == 5 and len(offsets) == 1:
                for name in crew.site.logins.names:
                    crew.site.logins.drop_connections(name)
            yield piece

    monkeypatch.setattr(crew.yard, "get_blob", cutting)
    key, agent = crew.submit("sha256sum < large", code=code), crew.agent()
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key).split()[0] == hashlib.sha256(data).hexdigest()
    assert len(offsets) == 2 and offsets[1] > 0, "what came before is not sent again"


def test_connections_that_are_cut_lose_and_double_nothing(crew: Crew) -> None:
    script = "for i in $(seq 400); do echo line $i; sleep 0.01; done; seq 1000 > $OUTPUT_DIR/numbers"
    key, agent = crew.submit(script), crew.agent()
    ticks = 0

    def ended() -> bool:
        nonlocal ticks
        ticks += 1
        if ticks % 7 == 0:
            for name in crew.site.logins.names:
                crew.site.logins.drop_connections(name)
        return key in crew.yard.ended

    crew.drive(agent, ended, "the end")
    assert crew.yard.log(key) == "".join(f"line {number}\n" for number in range(1, 401))
    [output] = crew.yard.ended[key].outputs
    assert crew.yard.blobs[output["digest"]] == b"".join(b"%d\n" % number for number in range(1, 1001))
    assert [report.key for report in crew.yard.reports if report.state is AttemptState.ENDED].count(key) == 1


def test_a_site_that_cannot_be_reached_is_waited_for(crew: Crew) -> None:
    names = crew.site.logins.names
    for name in names:
        crew.site.logins.drop_connections(name)
        crew.site.logins.kill_sshd(name)
    key, agent = crew.submit(f"echo late; {WAIT}"), crew.agent()
    crew.drive(agent, lambda: key in crew.yard.owned, "the claim")
    for _ in range(5):
        agent.wake()
        agent.tick()
    assert {report.state for report in crew.yard.reports} <= {AttemptState.CLAIMED}, "only why it waits is told"
    for name in names:
        crew.site.logins.start_sshd(name)
    crew.drive(agent, lambda: crew.yard.log(key), "its log")
    successor = _unreachable_then(crew, key)
    Path(crew.site.directory, "runs", str(key.run), "a1", "work", "go-on").touch()
    crew.drive(successor, lambda: key in crew.yard.ended, "the end")
    assert (crew.yard.ended[key].record["ending"], crew.yard.log(key)) == ("exit", "late\n")


def _told(crew: Crew, key: AttemptKey) -> tuple[object, object, list[str]]:
    """How it ended, by its record or by what was said of one that left none, and its words."""
    report = crew.yard.ended[key]
    record = report.record or {}
    return record.get("ending", report.gone), record.get("exit_code"), crew.yard.log(key).split()


def _unreachable_then(crew: Crew, key: AttemptKey) -> Agent:
    """An agent that was started while the site was away says nothing of the runs it had."""
    for name in crew.site.logins.names:
        crew.site.logins.drop_connections(name)
        crew.site.logins.kill_sshd(name)
    successor, before = crew.agent(), len(crew.yard.reports)
    for _ in range(5):
        successor.wake()
        successor.tick()
        time.sleep(0.1)
    assert len(crew.yard.reports) == before and key in crew.yard.owned
    for name in crew.site.logins.names:
        crew.site.logins.start_sshd(name)
    return successor
