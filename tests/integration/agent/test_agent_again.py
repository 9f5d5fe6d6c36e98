"""What an agent does while the yard is away, and what the next incarnation takes up."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from runyard import errors
from runyard.agent.errands import ThreadedErrands
from runyard.model.resources import Gpu
from runyard.model.wire import AttemptKey, SyncRequest, SyncResponse
from runyard.runner import json_files
from runyard.testing.backend_contract import until
from tests.integration.agent.conftest import WAIT, Crew
from tests.integration.agent.fake_yard import FakeYard

# --- the yard is away -----------------------------------------------------------------------------------------------


def test_runs_go_on_while_the_yard_is_away(crew: Crew) -> None:
    agent = crew.agent()
    key = crew.yard.submit(["sh", "-c", f"echo one; {WAIT}; echo two"])
    crew.drive(agent, lambda: crew.yard.log(key) == "one\n", "the first line")
    crew.yard.reachable = False
    crew.let_go_on(key)
    crew.drive(
        agent, lambda: (json_files.read(f"{crew.directory(key)}/status.json") or {}).get("state") == "ended", "its end"
    )
    crew.yard.reachable = True
    crew.drive(agent, lambda: key in crew.yard.ended, "the report")
    assert crew.yard.log(key) == "one\ntwo\n"
    assert crew.yard.incarnation == 2


class Overtaken(FakeYard):
    """The first bytes of a run arrive after the same agent, which lost an answer, has said hello again."""

    loses_next = False

    def sync(self, request: SyncRequest) -> SyncResponse:
        if self.loses_next:
            self.loses_next = False
            raise errors.YardUnreachable("the answer was lost")
        return super().sync(request)

    def append(
        self, site: str, agent: str, incarnation: int, key: AttemptKey, file: str, offset: int, data: bytes
    ) -> int:
        if incarnation == self.incarnation == 1 and data:
            self.loses_next = True
            until(lambda: self.incarnation == 2, "another hello")
        return super().append(site, agent, incarnation, key, file, offset, data)


def test_bytes_that_a_second_hello_overtook_are_sent_again(crew: Crew) -> None:
    """They are refused, as those of an agent that was replaced; but the attempt has the same agent as before."""
    crew.yard = Overtaken()
    agent = crew.agent(errands=ThreadedErrands(lambda: None))
    key = crew.yard.submit(["sh", "-c", "echo one; sleep 1; echo two; echo result > $OUTPUT_DIR/result.txt"])
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.incarnation == 2
    assert crew.yard.log(key) == "one\ntwo\n"
    assert [output["path"] for output in crew.yard.ended[key].outputs] == ["result.txt"]


def test_claims_whose_answer_was_lost_are_found_again(crew: Crew) -> None:
    agent = crew.agent()
    crew.drive(agent, lambda: crew.yard.incarnation == 1, "hello")
    key = crew.yard.submit(["true"])
    crew.yard.loses_answer = "claims"
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.incarnation == 2


def test_an_end_whose_answer_was_lost_is_forgotten(crew: Crew) -> None:
    agent = crew.agent()
    key = crew.yard.submit(["true"])
    crew.yard.loses_answer = "settled"
    crew.drive(agent, lambda: key in crew.yard.ended and crew.yard.incarnation == 2, "settled, and hello again")
    crew.drive(agent, lambda: crew.yard.requests[-1].free.cpus == 2 and not crew.yard.requests[-1].reports, "forgotten")


def test_an_ending_is_repeated_until_it_is_settled(crew: Crew) -> None:
    agent = crew.agent()
    crew.yard.settles = False
    key = crew.yard.submit(["true"])
    crew.drive(agent, lambda: len([r for r in crew.yard.reports if r.key == key]) >= 2, "a repeated report")
    crew.yard.settles = True
    crew.drive(agent, lambda: key in crew.yard.ended, "settled")


def test_a_newer_incarnation_stops_the_older(crew: Crew) -> None:
    old = crew.agent()
    crew.drive(old, lambda: crew.yard.incarnation == 1, "hello")
    new = crew.agent()
    crew.drive(new, lambda: crew.yard.incarnation == 2, "hello")
    crew.drive(old, lambda: old.stale, "the older one notices")
    assert not new.stale
    assert old.name == new.name


def test_a_yard_that_lost_bytes_gets_them_again(crew: Crew) -> None:
    agent = crew.agent()
    key = crew.yard.submit(["sh", "-c", f"echo one; {WAIT}; echo two"])
    crew.drive(agent, lambda: crew.yard.log(key) == "one\n", "the first line")
    crew.yard.files[key, "log"] = b"on"
    crew.let_go_on(key)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key) == "one\ntwo\n"


# --- restarts -------------------------------------------------------------------------------------------------------


def test_a_running_attempt_is_adopted(crew: Crew) -> None:
    gpus = (Gpu(uuid="GPU-a"), Gpu(uuid="GPU-b"))
    old = crew.agent(cpus=2, gpus=gpus)
    key = crew.yard.submit(["sh", "-c", f"echo one; {WAIT}; echo two"], resources={"gpus": 1})
    crew.drive(old, lambda: crew.yard.log(key) == "one\n", "the first line")
    held = json.loads((crew.directory(key) / "spec.json").read_text())["gpus"]
    new = crew.agent(cpus=2, gpus=gpus)
    crew.drive(new, lambda: crew.yard.incarnation == 2 and crew.yard.requests[-1].incarnation == 2, "hello and sync")
    free = crew.yard.requests[-1].free
    assert (free.cpus, [gpu.uuid for gpu in free.gpus]) == (
        1,
        [uuid for uuid in ("GPU-a", "GPU-b") if uuid not in held],
    )
    crew.let_go_on(key)
    crew.drive(new, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key) == "one\ntwo\n"
    assert crew.yard.ended[key].granted == {"cpus": 1, "memory": None, "gpus": held}
    assert not (crew.directory(key) / "duplicates").exists()


def test_a_finished_attempt_is_adopted(crew: Crew) -> None:
    old = crew.agent()
    key = crew.yard.submit(["sh", "-c", "echo all; echo x > $OUTPUT_DIR/x"])
    crew.drive(old, lambda: key in crew.yard.owned, "claimed")
    crew.yard.reachable = False
    crew.drive(
        old, lambda: (json_files.read(f"{crew.directory(key)}/status.json") or {}).get("state") == "ended", "its end"
    )
    crew.yard.reachable = True
    crew.drive(crew.agent(), lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key) == "all\n"
    assert [output["path"] for output in crew.yard.ended[key].outputs] == ["x"]


def test_an_attempt_that_never_started_is_started(crew: Crew) -> None:
    key = crew.yard.submit(["echo", "late"])
    crew.yard.owned[key] = crew.yard.queue.pop()
    crew.drive(crew.agent(), lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key) == "late\n"


def killed_unseen(crew: Crew) -> AttemptKey:
    """It ran, and its runner was killed when its agent looked no more."""
    old = crew.agent()
    key = crew.yard.submit(["sh", "-c", "echo before; exec sleep 600"])
    crew.drive(old, lambda: crew.yard.log(key) == "before\n", "the log")
    os.kill(crew.runner(key)["pid"], 9)
    return key


def test_an_attempt_that_ran_on_another_boot_is_lost(crew: Crew) -> None:
    key = killed_unseen(crew)
    path = crew.directory(key) / "started" / "runner.json"
    path.write_text(json.dumps({**crew.runner(key), "boot_id": "the one before"}))
    crew.drive(crew.agent(), lambda: key in crew.yard.ended, "the end")
    report = crew.yard.ended[key]
    assert report.record is None
    assert "restarted" in str(report.gone)
    assert crew.yard.log(key) == "before\n"


def test_a_runner_killed_while_nobody_watched_is_lost(crew: Crew) -> None:
    key = killed_unseen(crew)
    with (crew.directory(key) / "log").open("a") as log:
        log.write("and after\n")
    crew.drive(crew.agent(), lambda: key in crew.yard.ended, "the end")
    assert "runner died" in str(crew.yard.ended[key].gone)
    assert crew.yard.log(key) == "before\nand after\n", "the end is told when all that it left is there"


def test_an_attempt_that_ran_and_lost_its_directory_is_never_started_again(crew: Crew, tmp_path: Path) -> None:
    key = crew.yard.submit(["touch", str(tmp_path / "again")])
    claim = crew.yard.queue.pop()
    crew.yard.owned[key] = type(claim).parse({**claim.to_json(), "state": "running"})
    crew.drive(crew.agent(), lambda: key in crew.yard.ended, "the end")
    assert crew.yard.ended[key].record is None
    assert not (tmp_path / "again").exists()


def _claim_that_began(crew: Crew, runner: dict[str, object] | None) -> AttemptKey:
    """As an earlier incarnation left it; `runner` is what its runner said of itself."""
    key = crew.yard.submit(["true"])
    crew.yard.owned[key] = crew.yard.queue.pop()
    started = crew.directory(key) / "started"
    started.mkdir(parents=True)
    if runner is not None:
        (started / "runner.json").write_text(json.dumps(runner))
    return key


def test_a_runner_that_never_said_who_it_is_is_given_up(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runyard.agent.run.watch.SILENCE_S", 0.5)
    key = _claim_that_began(crew, None)
    crew.drive(crew.agent(), lambda: key in crew.yard.ended, "the end")
    assert "did not say" in str(crew.yard.ended[key].gone)
    assert json.loads((crew.directory(key) / "control.json").read_text())["stop"]["reason"] == "lost"


def test_a_run_on_another_machine_is_given_up_only_when_it_is_to_end(
    crew: Crew, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runyard.agent.run.watch.SILENCE_S", 0.2)
    runner = {"pid": 1, "start_time": 1, "boot_id": "another", "node": "elsewhere", "session": 1}
    key = _claim_that_began(crew, runner)
    agent, later = crew.agent(cpus=2), time.monotonic() + 1.5
    crew.drive(agent, lambda: time.monotonic() > later, "a while")
    assert key not in crew.yard.ended
    crew.yard.cancel(key)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert "elsewhere" in str(crew.yard.ended[key].gone)


@pytest.mark.parametrize("ran", [False, True])
def test_a_stop_order_survives_a_restart(crew: Crew, tmp_path: Path, ran: bool) -> None:
    key = crew.yard.submit(["sh", "-c", f"touch {tmp_path}/began; exec sleep 600"])
    if ran:
        crew.drive(crew.agent(), lambda: (tmp_path / "began").exists(), "it runs")
    else:
        crew.yard.owned[key] = crew.yard.queue.pop()
    crew.yard.cancel(key)
    new = crew.agent(cpus=2)
    crew.drive(new, lambda: key in crew.yard.ended, "the end")
    assert (crew.yard.ended[key].record or {})["ending"] == "stopped"
