"""Whatever is killed, every run ends once, with the right state and its whole log."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from tests.acceptance.witness import Witness, alive, until, with_argument
from tests.labs.yard import Yard

BODY = "for i in 1 2 3 4 5 6; do echo line $i of $RUNYARD_RUN_ID; sleep %s; done"


def _log(run_id: int) -> str:
    return "".join(f"line {i} of {run_id}\n" for i in range(1, 7))


def _spec(witness: Witness, pause: float, **fields: object) -> dict[str, object]:
    return {"command": witness.command(BODY % pause), **fields}


def _runner_pid(yard: Yard, run_id: int) -> int:
    """Of one that is still there: what is left of a run goes some time after its end."""
    record = yard.runs / str(run_id) / "a1" / "started" / "runner.json"
    until(record.exists, what=f"{record}")
    return int(json.loads(record.read_text())["pid"])


def _zygotes(yard: Yard) -> list[int]:
    """The pre-warmed process; runners are forked from it and look the same but for their parent."""
    alike = set(with_argument("zygote")) & set(yard.processes())
    return [pid for pid in alike if _parent(pid) not in {None, *alike}]


def _parent(pid: int) -> int | None:
    with contextlib.suppress(psutil.NoSuchProcess):  # a runner ends when there is nothing to run for a while
        return psutil.Process(pid).ppid()
    return None


def test_kill_9_of_the_yard_with_20_running_and_200_waiting(either: Callable[..., Yard], tmp_path: Path) -> None:
    yard, witness, go = either(cpus=20), Witness(tmp_path), tmp_path / "go"
    first = {"command": witness.command(f"until [ -e {go} ]; do sleep 0.1; done; {BODY % 0.5}")}
    ids = [run.id for run in yard.client().submit_many([first] * 20 + [_spec(witness, 0.0)] * 200)]
    until(lambda: len(witness.count("start")) >= 20, what="20 runs started")
    before = {run_id: _runner_pid(yard, run_id) for run_id in ids[:20]}
    yard.kill9()
    assert [run_id for run_id, pid in before.items() if alive(pid)] == ids[:20]
    go.touch()
    yard.start()
    for run in [yard.client().run(run_id).wait(timeout=240) for run_id in ids]:
        assert (run.state, run.attempt) == ("succeeded", 1), run.data
        assert run.logs() == _log(run.id)
    assert witness.count("start") == witness.count("end") == dict.fromkeys(ids, 1)


def test_kill_9_again_and_again(make_yard: Callable[..., Yard], tmp_path: Path) -> None:
    """At moments nobody chose: while claiming, starting, relaying, settling."""
    yard, witness = make_yard(cpus=4), Witness(tmp_path)
    ids = [run.id for run in yard.client().submit_many([_spec(witness, 0.01)] * 120)]
    for round_number in range(8):
        until(
            lambda done=10 * (round_number + 1): len(witness.count("end")) >= done,  # type: ignore[misc]
            what=f"round {round_number}",
        )
        yard.kill9()
        yard.start()
    for run in [yard.client().run(run_id).wait(timeout=240) for run_id in ids]:
        assert (run.state, run.attempt) == ("succeeded", 1), run.data
        assert run.logs() == _log(run.id)
    assert witness.count("start") == witness.count("end") == dict.fromkeys(ids, 1)


def test_kill_9_of_the_prewarmed_process(yard: Yard, tmp_path: Path) -> None:
    witness = Witness(tmp_path)
    running = [run.id for run in yard.client().submit_many([_spec(witness, 0.5)] * 2)]
    until(lambda: len(witness.count("start")) == 2, what="two runs started")
    [zygote] = _zygotes(yard)
    os.kill(zygote, signal.SIGKILL)
    later = yard.client().submit(**_spec(witness, 0.0)).id  # type: ignore[arg-type]
    for run in [yard.client().run(run_id).wait(timeout=180) for run_id in [*running, later]]:
        assert run.state == "succeeded", run.data
        assert run.logs() == _log(run.id)
    assert witness.count("start") == dict.fromkeys([*running, later], 1)


def test_kill_9_of_a_runner_ends_its_run_and_removes_its_tree(yard: Yard, tmp_path: Path) -> None:
    mark = f"31{os.getpid()}.5"
    body = f"echo here; (setsid env -i /bin/sh -c \"trap '' TERM; sleep {mark}; true\") & sleep {mark}; true"
    victim = yard.client().submit(command=["/bin/sh", "-c", body])
    bystander = yard.client().submit(command=["sleep", "2"])
    until(lambda: len(with_argument(f"sleep\0{mark}")) == 2, what="the tree of the run")
    os.kill(_runner_pid(yard, victim.id), signal.SIGKILL)
    victim.wait(timeout=180)
    assert (victim.state, victim.reason) == ("failed", "lost")
    assert "runner" in victim.detail
    assert victim.logs() == "here\n"
    assert with_argument(mark) == []
    assert bystander.wait(timeout=180).state == "succeeded"


@pytest.mark.parametrize("zygote_too", [True, False])
def test_a_reboot_ends_what_ran_as_lost_and_applies_the_retry_rule(
    yard: Yard, tmp_path: Path, zygote_too: bool
) -> None:
    """All processes gone at once, as a power cut leaves it."""
    once = tmp_path / "once"
    body = f"if mkdir {once}.$RUNYARD_RUN_ID 2>/dev/null; then echo first; sleep 300; else echo second; fi"
    plain = yard.client().submit(command=["/bin/sh", "-c", body])
    stubborn = yard.client().submit(command=["/bin/sh", "-c", body], retry={"max": 1})
    waiting = yard.client().submit(command=["echo", "third"])
    until(lambda: len(list(tmp_path.glob("once.*"))) == 2, what="both runs started")
    zygotes, runners = _zygotes(yard), [_runner_pid(yard, run.id) for run in (plain, stubborn)]
    yard.kill9()
    for pid in [*runners, *yard.processes()]:  # a runner first: it would tell how its run was killed
        if zygote_too or pid not in zygotes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    yard.start()
    client = yard.client()
    lost = client.run(plain.id).wait(timeout=180)
    assert (lost.state, lost.reason) == ("failed", "lost")
    again = client.run(stubborn.id).wait(timeout=180)
    assert (again.state, again.attempt) == ("succeeded", 2)
    assert again.logs() == "first\n\n--- attempt 2 ---\nsecond\n"
    assert client.run(waiting.id).wait(timeout=180).logs() == "third\n"


def test_another_boot_id_proves_that_nothing_runs(yard: Yard) -> None:
    run = yard.client().submit(command=["sleep", "300"])
    runner = _runner_pid(yard, run.id)
    yard.kill9()
    record = yard.runs / str(run.id) / "a1" / "started" / "runner.json"
    record.write_text(json.dumps({**json.loads(record.read_text()), "boot_id": "another-boot"}))
    os.kill(runner, signal.SIGKILL)
    yard.start()
    ended = yard.client().run(run.id).wait(timeout=180)
    assert (ended.state, ended.reason) == ("failed", "lost")
    assert "restarted" in ended.detail
