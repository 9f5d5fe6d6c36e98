"""Endings that only Slurm has, and those that need machines which fail: without accounts, where less is known."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Callable

import pytest

from tests.acceptance.cluster_yard import ClusterYard
from tests.acceptance.witness import until
from tests.labs.slurm import SlurmLab

GetYard = Callable[..., ClusterYard]

ALLOCATES = "x = bytearray(900 << 20)"
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
    """Its nodes can lose power, and Slurm notices soon."""
    return cluster_yard("slurm", isolate=True, slurmd_timeout_s=10)


@pytest.fixture
def preempting(cluster_yard: GetYard) -> ClusterYard:
    """Where Slurm would requeue what it preempts. Who is warned has time to save, also on a busy machine."""
    return cluster_yard("slurm", preempt="requeue", kill_wait_s=60)


def lab_of(yard: ClusterYard) -> SlurmLab:
    assert isinstance(yard.lab, SlurmLab)
    return yard.lab


def is_in(yard: ClusterYard, native: str, *states: str) -> Callable[[], bool]:
    return lambda: lab_of(yard).job(native).get("JobState") in states


def test_a_node_that_loses_its_power(yard: ClusterYard) -> None:
    run = yard.submit("--option", "nodelist=n3", "--", "sleep", "600")
    native = yard.started(run)
    yard.lab.node_power_off("n3")
    shown = yard.told(run, is_in(yard, native, "NODE_FAIL"))
    assert (shown["state"], shown["reason"], shown["node"]) == ("failed", "node_lost", "n3"), shown
    assert re.fullmatch(r"Slurm: NODE_FAIL .*on n3; its runner was last heard \d+s ago", shown["detail"])


def test_a_node_that_loses_its_daemon_has_its_process_ended_before_the_next_attempt(yard: ClusterYard) -> None:
    """Slurm gives the job up, and the process runs on: nothing may begin beside it."""
    witness = yard.home / "witness"
    body = f"while sleep 0.5; do echo $RUNYARD_ATTEMPT >> {witness}; done"
    run = yard.submit("--retry", "1", "--", "sh", "-c", body)
    yard.started(run)
    lab_of(yard).kill_slurmd(yard.show(run)["node"])
    until(lambda: "2" in witness.read_text(), timeout=150, what="the second attempt writes")
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
    body = "echo attempt $RUNYARD_ATTEMPT; [ $RUNYARD_ATTEMPT = 2 ] || exec sleep 300"
    run = yard.submit("--retry", "1", "--", "sh", "-c", body)
    native = yard.started(run)
    lab_of(yard).admin("scontrol", "update", f"jobid={native}", "Requeue=1")
    lab_of(yard).admin("scontrol", "requeue", native)
    until(is_in(yard, native, "PENDING"), timeout=60, what="the requeue")
    shown = yard.ended(run, 60)
    assert (shown["state"], shown["attempt"]) == ("succeeded", 2), shown
    first = shown["attempts"][0]
    assert first["reason"] == "preempted", first
    assert re.fullmatch(r"Slurm took it .* back into its queue \(BeginTime\); it ran for [\d.]+s.*", first["detail"])
    assert yard.log(run) == "attempt 1\n\n--- attempt 2 ---\nattempt 2\n"
    until(is_in(yard, native, "CANCELLED"), timeout=60, what="the requeued job is taken out of the queue")


def test_a_job_that_vanished(yard: ClusterYard) -> None:
    """With all that the controller knew."""
    run = yard.submit("--", "sleep", "600")
    yard.started(run)
    lab_of(yard).stop_controller()
    shutil.rmtree(lab_of(yard).root / "state")
    (lab_of(yard).root / "state").mkdir()
    lab_of(yard).start_controller()
    shown = yard.told(run, lambda: yard.lab.run("squeue", "-h").returncode == 0)
    assert (shown["state"], shown["reason"]) == ("failed", "lost"), shown
    assert re.fullmatch(r"Slurm does not know it any more, and its runner was last heard \d+s ago", shown["detail"])


def displace(yard: ClusterYard) -> str:
    """A job that has the right to the node that scavengers share."""
    return lab_of(yard).submit("--partition=urgent", "--nodelist=n1", "--exclusive", wrap="sleep 3")


def test_preemption_follows_the_retry_rule(preempting: ClusterYard) -> None:
    """A job that must not be requeued is preempted for good."""
    once = preempting.submit(*SCAVENGES, "--", "sleep", "300")
    native = preempting.started(once)
    urgent = displace(preempting)
    shown = preempting.told(once, is_in(preempting, native, "PREEMPTED"))
    assert (shown["state"], shown["reason"], shown["attempt"]) == ("failed", "preempted", 1), shown
    assert re.fullmatch(r"Slurm: PREEMPTED .*; it ran for [\d.]+s.*", shown["detail"])
    lab_of(preempting).wait_job(urgent, "COMPLETED")
    again = preempting.submit("--retry", "1", *SCAVENGES, "--", "sh", "-c", "[ $RUNYARD_ATTEMPT = 2 ] || sleep 300")
    preempting.started(again)
    displace(preempting)
    shown = preempting.ended(again, 120)
    assert (shown["state"], shown["attempt"]) == ("succeeded", 2), shown


def test_a_preempted_run_goes_on_from_what_it_saved(preempting: ClusterYard) -> None:
    """By itself, without a rule for retries."""
    run = preempting.submit("--checkpoint", *SCAVENGES, "--", "/usr/bin/python3", "-c", SAVES)
    native = preempting.started(run)
    until(lambda: "step 4\n" in preempting.log(run), timeout=120, what="half of its steps")
    displace(preempting)
    lab_of(preempting).wait_job(native, "PREEMPTED", timeout_s=150)
    shown = preempting.ended(run, 180)
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
    for command in (["/usr/bin/python3", "-c", ALLOCATES], ["sh", "-c", f"/usr/bin/python3 -c '{ALLOCATES}'; exit $?"]):
        shown = yard.ended(yard.submit("--", *command), 60)
        assert (shown["state"], shown["reason"], shown["exit_code"]) == ("failed", "oom", 137), shown
        assert re.search(r"Slurm: OUT_OF_MEMORY .*; it ran for .* and used [\d.]+ MB of memory", shown["detail"])


def test_the_limit_of_time_that_slurm_enforces(yard: ClusterYard) -> None:
    run = yard.submit("--", "sleep", "600")
    native = yard.started(run)
    lab_of(yard).admin("scontrol", "update", f"jobid={native}", "EndTime=now")
    shown = yard.told(run, is_in(yard, native, "TIMEOUT"))
    assert (shown["state"], shown["reason"]) == ("failed", "timeout"), shown
    assert re.fullmatch(r"Slurm: TIMEOUT .*; it ran for [\d.]+s.*", shown["detail"])


def test_a_directory_that_slurm_cannot_enter(yard: ClusterYard) -> None:
    """Slurm cannot even open the job's output, so there is nothing but its word."""
    run = yard.submit("--option", "hold=", "--", "true")
    native = yard.queued(run)
    shutil.rmtree(yard.batch_directory(native))
    lab_of(yard).ask("scontrol", "release", native)
    shown = yard.told(run, is_in(yard, native, "FAILED"))
    assert (shown["state"], shown["reason"]) == ("failed", "launch"), shown
    assert "JobLaunchFailure" in shown["detail"]
