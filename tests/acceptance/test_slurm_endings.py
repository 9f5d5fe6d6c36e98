"""Endings that only Slurm has, and those that need machines which fail: without accounts, where less is known."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import time
from collections.abc import Callable

import pytest

from tests.acceptance import endings, endings_on_slurm
from tests.acceptance.cluster_yard import ClusterYard
from tests.acceptance.endings_on_slurm import SLURM, displace
from tests.acceptance.witness import until
from tests.labs.slurm import SlurmLab

GetYard = Callable[..., ClusterYard]

# With more that is to be done or seen.
TOLD_APART = {"a node without power", "a node without its daemon", "requeued"}
SCAVENGES = ["--option", "partition=scavenge", "--option", "nodelist=n1", "--option", "exclusive="]

# Takes eight steps; in the middle of them it waits for whoever wants its place, and saves only when it is warned.
SAVES = """
import os, signal, sys, time
place = os.path.join(os.environ["CHECKPOINT_DIR"], "step")
step = int(open(place).read()) if os.environ.get("RUNYARD_RESUME") else 0
def save(*_):
    open(place, "w").write(str(step))
    sys.exit(0)
for number in (signal.SIGUSR1, signal.SIGTERM):  # Slurm tells every process of a job by the latter
    signal.signal(number, save)
while step < 8:
    step += 1
    print("step", step, flush=True)
    if step == 4:
        time.sleep(600)
"""


@pytest.fixture
def yard(cluster_yard: GetYard) -> ClusterYard:
    """Its nodes can lose power. An operator tells Slurm so: where it notices soon by itself it may also lose jobs whose
    nodes are only busy."""
    return cluster_yard("slurm", isolate=True)


@pytest.fixture
def preempting(cluster_yard: GetYard) -> ClusterYard:
    """Where Slurm would requeue what it preempts. Who is warned has time to save, also on a busy machine."""
    return cluster_yard("slurm", preempt="requeue", kill_wait_s=60)


def lab_of(yard: ClusterYard) -> SlurmLab:
    assert isinstance(yard.lab, SlurmLab)
    return yard.lab


def is_in(yard: ClusterYard, native: str, *states: str) -> Callable[[], bool]:
    return lambda: lab_of(yard).job(native).get("JobState") in states


@pytest.mark.parametrize("name", sorted(SLURM.keys() - TOLD_APART))
def test_an_ending(yard: ClusterYard, name: str) -> None:
    endings.check(yard, SLURM[name](yard))


def test_a_node_without_power(yard: ClusterYard) -> None:
    ending = endings_on_slurm.node_without_power(yard)

    def fail(run: int, native: str) -> None:
        ending.cause(run, native)
        lab_of(yard).declare_down(yard.show(run)["node"])

    endings.check(yard, dataclasses.replace(ending, cause=fail))


def test_a_node_that_loses_its_daemon_has_its_process_ended_before_the_next_attempt(yard: ClusterYard) -> None:
    """Slurm gives the job up, and the process runs on: nothing may begin beside it."""
    witness = yard.home / "witness"
    body = f"while sleep 0.5; do echo $RUNYARD_ATTEMPT >> {witness}; done"
    run = yard.submit("--retry", "1", "--", "sh", "-c", body)
    yard.started(run)
    node = yard.show(run)["node"]
    lab_of(yard).kill_slurmd(node)
    lab_of(yard).declare_down(node)
    until(lambda: witness.exists() and "2" in witness.read_text(), timeout=150, what="the second attempt writes")
    time.sleep(6)
    shown = yard.show(run)
    assert [attempt["reason"] for attempt in shown["attempts"]] == ["node_lost", None]
    assert re.search(r"Slurm: NODE_FAIL .*; it ran for [\d.]+s.*", shown["attempts"][0]["detail"])
    told = witness.read_text().split()
    assert told == sorted(told), "the two never ran at once"
    yard.cli("cancel", str(run))


def test_a_daemon_that_is_restarted_in_time_disturbs_no_run(yard: ClusterYard) -> None:
    run = yard.submit("--", "sh", "-c", "sleep 12; exit 5")
    native, node = yard.started(run), yard.show(run)["node"]
    lab_of(yard).kill_slurmd(node)
    lab_of(yard).start_slurmd(node)
    shown = yard.told(run, is_in(yard, native, "COMPLETED"))
    assert (shown["state"], shown["reason"], shown["exit_code"]) == ("failed", "error", 5), shown


def test_a_job_that_is_requeued_is_not_begun_twice(yard: ClusterYard) -> None:
    """By an operator, against what runyard asked for."""
    shown = endings.check(yard, endings_on_slurm.requeued(yard))
    assert (shown["state"], shown["attempt"]) == ("succeeded", 2), shown
    assert yard.log(shown["id"]) == "attempt 1\n\n--- attempt 2 ---\nattempt 2\n"
    native = shown["attempts"][0]["native_id"]
    until(is_in(yard, native, "CANCELLED"), what="the requeued job is taken out of the queue")


def test_preemption_follows_the_retry_rule(preempting: ClusterYard) -> None:
    """A job that must not be requeued is preempted for good."""
    shown = endings.check(preempting, endings_on_slurm.preempted(preempting))
    assert shown["attempt"] == 1, shown
    urgent = ("squeue", "--noheader", "--partition=urgent")
    until(lambda: not preempting.lab.ask(*urgent), what="the node is free again")
    again = preempting.submit("--retry", "1", *SCAVENGES, "--", "sh", "-c", "[ $RUNYARD_ATTEMPT = 2 ] || sleep 300")
    preempting.started(again)
    displace(preempting)
    shown = preempting.ended(again)
    assert (shown["state"], shown["attempt"]) == ("succeeded", 2), shown


def test_a_preempted_run_goes_on_from_what_it_saved(preempting: ClusterYard) -> None:
    """By itself, without a rule for retries."""
    run = preempting.submit("--checkpoint", *SCAVENGES, "--", "/usr/bin/python3", "-c", SAVES)
    native = preempting.started(run)
    until(lambda: "step 4\n" in preempting.log(run), timeout=120, what="half of its steps")
    displace(preempting)
    lab_of(preempting).wait_job(native, "PREEMPTED", timeout_s=150)
    shown = preempting.ended(run)
    assert (shown["state"], shown["attempt"]) == ("succeeded", 2), shown
    first, second = shown["attempts"]
    assert (first["reason"], first["native_id"]) == ("preempted", native), first
    assert (second["reason"], second["node"]) == (None, "n1"), second
    steps = [f"step {number}\n" for number in range(1, 9)]
    assert preempting.log(run) == "".join([*steps[:4], "\n--- attempt 2 ---\n", *steps[4:]])
    told = json.loads(preempting.cli("events", str(run), "--json").stdout)
    assert [event["kind"] for event in told if event["attempt"] == 1][-1] == "continued", told


def test_memory_that_slurm_enforces(cluster_yard: GetYard) -> None:
    """The run asked for none, so its runner sees no more than a process that was killed: Slurm knows why."""
    yard = cluster_yard("slurm", cgroup_memory=True, accounting=True)
    ending = endings_on_slurm.out_of_slurms_memory(yard)
    python, *words = ending.spec["command"]
    behind_a_shell = endings.shell(f"{shlex.join([python, *words])}; exit $?")
    for spec in (ending.spec, behind_a_shell):
        endings.check(yard, dataclasses.replace(ending, spec=spec))
