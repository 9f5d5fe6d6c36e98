"""A cluster without a daemon anywhere: cron on two login nodes, real schedulers, jobs that bring themselves home."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cron_yard import CronYard, install
from tests.acceptance.witness import Witness, until

pytestmark = pytest.mark.component("root")
LOGINS = ("login1", "login2")

MakeYard = Callable[..., CronYard]


@pytest.fixture
def make(cron_yard: MakeYard) -> MakeYard:
    return cron_yard


def _submit(yard: CronYard, witness: Witness, count: int, body: str = "echo done") -> None:
    spec = yard.home / "runs.json"
    spec.write_text(json.dumps({"runs": [{"command": witness.command(body), "site": "cedar"}] * count}))
    spec.chmod(0o644)
    answer = yard.cli("submit", "--quiet", "-f", str(spec))
    assert answer.returncode == 0, answer.stderr


def _witness(yard: CronYard) -> Witness:
    witness = Witness(yard.home)
    yard.lab.user.own(witness.path)
    return witness


@pytest.mark.parametrize("kind", ["slurm", "gridengine"])
def test_twenty_runs_end_once_each_and_nothing_of_ours_stays(make: MakeYard, kind: str) -> None:
    yard = make(kind)
    witness = _witness(yard)
    for _ in range(4):
        _submit(yard, witness, 5)
    line = yard.crontab()
    # Grid Engine knows the hosts that may submit by their names, so there all ticks come from this one.
    logins = LOGINS if kind == "slurm" else ("", "")

    def all_ended() -> bool:
        for login in logins:
            answer = yard.tick(login, line)
            assert answer.returncode == 0, answer.stderr
        return yard.states() == ["succeeded"] * 20

    until(all_ended, timeout=300, what="twenty runs")
    assert witness.count("start") == witness.count("end") == dict.fromkeys(range(1, 21), 1)
    assert yard.cli("logs", "7").stdout == "done\n"
    until(lambda: not yard.processes(), what="nothing of ours stays")


@pytest.mark.parametrize(("kind", "lab"), [("slurm", {"isolate": True}), ("gridengine", {})])
def test_with_relay_node_runs_come_home_without_a_tick(make: MakeYard, kind: str, lab: dict[str, Any]) -> None:
    """The nodes are machines of their own, which see the home on the shared disk. One tick hands the runs over."""
    yard = make(kind, "--option", "relay=node", **lab)
    witness = _witness(yard)
    _submit(yard, witness, 20, "sleep 2; echo done")
    until(lambda: yard.tick().returncode == 0 and "queued" not in yard.states(), timeout=240, what="all handed over")
    until(lambda: yard.states() == ["succeeded"] * 20, timeout=300, what="twenty runs without a tick")
    assert witness.count("start") == witness.count("end") == dict.fromkeys(range(1, 21), 1)
    assert {yard.cli("logs", str(run)).stdout for run in (1, 7, 20)} == {"done\n"}
    until(lambda: not yard.processes(), what="the last job leaves")
    said = [path.read_text() for path in (yard.home / "site" / "batches").glob("*/*.out")]
    assert len(said) == 20
    assert set(said) == {""}, "nothing went wrong on a node"


@pytest.mark.long
def test_ticks_of_cron_and_of_nodes_together(make: MakeYard) -> None:
    yard = make("slurm", "--option", "relay=node", isolate=True)
    witness = _witness(yard)
    line = yard.crontab()
    for _ in range(3):
        _submit(yard, witness, 6, "echo done")

    def all_ended() -> bool:
        for login in LOGINS:
            yard.tick(login, line)
        return yard.states() == ["succeeded"] * 18

    until(all_ended, timeout=300, what="eighteen runs")
    assert witness.count("start") == witness.count("end") == dict.fromkeys(range(1, 19), 1)


def test_the_second_login_node_refuses_while_the_first_has_the_home(make: MakeYard) -> None:
    """A command on login1 is a yard for as long as it runs."""
    yard = make("slurm")
    _submit(yard, _witness(yard), 1, "sleep 600")
    first = yard.start("wait", "1", login="login1")
    until(lambda: (yard.home / "lock.holder").exists(), what="login1 has the home")
    refused = yard.tick("login2")
    assert refused.returncode == 1, refused.stderr
    assert "on login1" in refused.stderr
    left = yard.tick("login1")
    assert (left.returncode, "left to others" in left.stderr) == (0, True), left.stderr
    first.terminate()
    first.communicate(timeout=120)
    until(lambda: yard.tick("login2").returncode == 0, what="login2 has its turn")
    assert yard.cli("cancel", "1").returncode == 0


def test_a_node_that_dies_at_its_tick_does_not_keep_others_out(make: MakeYard) -> None:
    yard = make("slurm", "--option", "relay=node", isolate=True)
    _submit(yard, _witness(yard), 1)
    assert yard.tick().returncode == 0
    until(lambda: yard.states() == ["succeeded"], timeout=240, what="the run")
    until(lambda: not yard.processes(), what="the node's own tick is over")
    _submit(yard, _witness(yard), 1)
    named = {"pid": 4, "host": "n3", "boot_id": "x", "mark": "y", "bound": 30.0}
    holder = yard.home / "lock.holder"
    holder.write_text(json.dumps(named))
    assert "process 4 on n3" in yard.tick().stderr
    os.utime(holder, (time.time() - 120, time.time() - 120))
    assert yard.tick().returncode == 0


def test_site_test_tells_whether_a_node_can_bring_runs_home(make: MakeYard) -> None:
    yard = make("slurm", "--option", "relay=node", isolate=True)
    told = _relay_finding(yard)
    assert told["verdict"] == "ok", told
    assert str(yard.python) in told["message"]


def test_a_node_that_cannot_do_it_is_harmless(make: MakeYard) -> None:
    """The interpreter is on a disk that only the login node has."""
    yard = make("slurm", "--option", "relay=node", isolate=True)
    yard.python = install(yard.lab, yard.lab.unshared)
    told = _relay_finding(yard)
    assert told["verdict"] == "fail", told
    assert "cannot report the ends of runs" in told["message"]
    _submit(yard, _witness(yard), 1, "exit 3")
    until(lambda: yard.tick().returncode == 0 and yard.states() == ["failed"], timeout=240, what="the run")
    assert json.loads(yard.cli("show", "1", "--json").stdout)["exit_code"] == 3
    until(lambda: "could not report the end of this run" in _said(yard), what="the node tells it too")


def _said(yard: CronYard) -> str:
    """By the one job that is no probe."""
    batches = (yard.home / "site" / "batches").glob("*/*.out")
    (said,) = [path.read_text() for path in batches if "probe" not in path.name]
    return said


def _relay_finding(yard: CronYard) -> dict[str, Any]:
    answer = yard.cli("site", "test", "cedar", "--json")
    found = [finding for finding in json.loads(answer.stdout) if finding["check"] == "relay"]
    assert len(found) == 1, answer.stdout + answer.stderr
    return dict(found[0])


def test_an_idle_tick_asks_no_scheduler(make: MakeYard) -> None:
    yard = make("slurm")
    asked = _watch_programs(yard)
    _submit(yard, _witness(yard), 1)
    until(lambda: yard.tick().returncode == 0 and yard.states() == ["succeeded"], timeout=240, what="the run")
    assert "sbatch" in asked.read_text().split()
    asked.write_text("")
    assert yard.tick().returncode == 0
    assert asked.read_text() == ""


def _watch_programs(yard: CronYard) -> Path:
    """The file in which each use of the scheduler's programs is noted from now on."""
    place, asked = yard.home / "programs", yard.home / "asked"
    place.mkdir(mode=0o755)
    asked.touch()
    yard.lab.user.own(asked)
    for name in ("sbatch", "squeue", "sacct", "scancel", "scontrol", "sinfo"):
        (place / name).write_text(f'#!/bin/sh\necho {name} >>{asked}\nexec {shutil.which(name)} "$@"\n')
        (place / name).chmod(0o755)
    yard.edit_site("--option", f"bin={place}")
    return asked
