"""Files that runs ask for are there before they start, or the run says why not."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import pytest

from runyard.backends.local import LocalBackend
from runyard.hosts.base import Parcel, Unreachable
from runyard.hosts.local import LocalHost
from tests.integration.agent.conftest import Crew

SHOW = 'cd "$RUNYARD_INPUTS"; cat one two/three; stat -c %a one'


def store(crew: Crew, data: bytes) -> str:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    crew.yard.blobs[digest] = data
    return digest


def test_inputs_are_there_before_the_run(crew: Crew) -> None:
    inputs = [{"digest": store(crew, b"1\n"), "to": "one"}, {"digest": store(crew, b"3\n"), "to": "two/three"}]
    agent, key = crew.agent(), crew.yard.submit(["sh", "-c", SHOW], inputs=inputs)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key) == "1\n3\n400\n"
    assert crew.yard.ended[key].outputs == []


def test_runs_that_ask_for_the_same_file_get_it_at_once(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[list[Parcel]] = []
    deliver = LocalHost.deliver
    monkeypatch.setattr(LocalHost, "deliver", lambda self, parcels: (calls.append(parcels), deliver(self, parcels)))
    inputs = [{"digest": store(crew, b"x"), "to": "one"}]
    agent = crew.agent(cpus=4)
    keys = [crew.yard.submit(["sh", "-c", 'cat "$RUNYARD_INPUTS/one"'], inputs=inputs) for _ in range(4)]
    crew.drive(agent, lambda: all(key in crew.yard.ended for key in keys), "all ends")
    assert [crew.yard.log(key) for key in keys] == ["x"] * 4
    assert [[len(parcel.targets) for parcel in parcels] for parcels in calls] == [[4]]


def test_a_file_that_the_yard_lost_fails_only_the_runs_that_ask_for_it(crew: Crew) -> None:
    agent = crew.agent(cpus=4)
    lost = crew.yard.submit(["true"], inputs=[{"digest": f"sha256:{'0' * 64}", "to": "one"}])
    good = crew.yard.submit(["true"], inputs=[{"digest": store(crew, b"x"), "to": "one"}])
    crew.drive(agent, lambda: {lost, good} <= set(crew.yard.ended), "both ends")
    record = crew.yard.ended[lost].record
    assert record is not None and record["ending"] == "staging"
    assert record["message"].startswith("its inputs cannot be brought: there is no blob sha256:0000")
    assert (crew.yard.ended[good].record or {})["ending"] == "exit"


def test_bytes_that_were_damaged_are_not_trained_on(crew: Crew) -> None:
    digest = store(crew, b"right")
    crew.yard.blobs[digest] = b"wrong"
    agent, key = crew.agent(), crew.yard.submit(["true"], inputs=[{"digest": digest, "to": "one"}])
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    record = crew.yard.ended[key].record
    assert record is not None and record["ending"] == "staging" and "the bytes are not those of" in record["message"]
    assert not (crew.directory(key) / "started").exists()


def test_a_site_that_is_away_is_waited_for(crew: Crew, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Shaky(LocalHost):
        tries = 0

        def deliver(self, parcels: object) -> None:
            self.tries += 1
            if self.tries == 1:
                raise Unreachable("login1: no answer")
            super().deliver(parcels)  # type: ignore[arg-type]

    monkeypatch.setattr("runyard.agent.start.PAUSE_S", 0.2)
    backend = LocalBackend(site)
    backend.host = Shaky()
    inputs = [{"digest": store(crew, b"x"), "to": "one"}]
    agent = crew.agent(backend=backend)
    keys = [crew.yard.submit(["sh", "-c", 'cat "$RUNYARD_INPUTS/one"'], inputs=inputs) for _ in range(2)]
    crew.drive(agent, lambda: all(key in crew.yard.ended for key in keys), "both ends")
    assert ([crew.yard.log(key) for key in keys], backend.host.tries) == (["x", "x"], 2)


def test_nobody_has_to_come_again_for_the_start(crew: Crew) -> None:
    """`runyard check` ticks only while something is due, and may not come again for a minute."""
    agent = crew.agent()
    key = crew.yard.submit(["sleep", "1"], inputs=[{"digest": store(crew, b"x"), "to": "one"}])
    agent.tick()
    while agent.next_due() <= time.monotonic() + 0.1 and not crew.directory(key).exists():
        time.sleep(max(0.0, agent.next_due() - time.monotonic()))
        agent.tick()
    assert (crew.directory(key) / "spec.json").exists()
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")


def test_a_run_that_is_cancelled_while_its_files_travel_never_starts(crew: Crew) -> None:
    digest = store(crew, b"x")
    agent, key = crew.agent(), crew.yard.submit(["true"], inputs=[{"digest": digest, "to": "one"}])
    real = crew.yard.get_blob

    def cancelling(asked: str) -> object:
        agent._stops.order(key, "user")
        agent._stops.press()
        return real(asked)

    crew.yard.get_blob = cancelling  # type: ignore[method-assign,assignment]
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert (crew.yard.ended[key].record or {})["ending"] == "stopped"
    assert crew.yard.log(key) == ""
