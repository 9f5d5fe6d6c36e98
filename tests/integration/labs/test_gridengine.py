"""The Grid Engine lab does what real cells do, and its faults are real."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.labs.processes import alive
from tests.labs.gridengine import GridEngineLab
from tests.labs.waiting import until

pytestmark = pytest.mark.long

GetLab = Callable[..., GridEngineLab]
ASLEEP = ("-cwd", "-b", "y", "-shell", "n", "/bin/sleep", "600")


@pytest.fixture
def lab(gridengine_lab: GetLab) -> GridEngineLab:
    return gridengine_lab()


def script(lab: GridEngineLab, text: str) -> str:
    path = lab.directory / "job.sh"
    path.write_text(f"#!/bin/sh\n{text}\n")
    return str(path)


def sleepers(lab: GridEngineLab, node: str) -> list[int]:
    return [pid for pid, command in lab.node_commands(node).items() if command == "/bin/sleep 600"]


def test_a_normal_user_submits_and_the_exit_code_comes_back(lab: GridEngineLab) -> None:
    job = lab.submit("-cwd", "-o", "said", "-j", "y", script(lab, "id --user; exit 3"))
    record = lab.wait_records(job)[0]
    assert (record["failed"], record["exit_status"], record["owner"]) == ("0", "3", lab.user.name)
    assert (lab.directory / "said").read_text() == f"{lab.user.uid}\n"


def test_both_hosts_can_be_named(lab: GridEngineLab) -> None:
    for node in lab.nodes:
        job = lab.submit("-cwd", "-q", f"cpu@{node}", "-b", "y", "hostname")
        assert lab.wait_records(job)[0]["hostname"] == node
        assert (lab.directory / f"hostname.o{job}").read_text() == f"{node}\n"


def test_an_array(lab: GridEngineLab) -> None:
    output = ("-cwd", "-j", "y", "-o", "task-$TASK_ID")
    job = lab.submit("-t", "1-4", "-tc", "2", *output, script(lab, "echo $SGE_TASK_ID"))
    assert {record["taskid"] for record in lab.wait_records(job, 4)} == {"1", "2", "3", "4"}
    assert [(lab.directory / f"task-{index}").read_text() for index in range(1, 5)] == ["1\n", "2\n", "3\n", "4\n"]


def test_a_bad_directory_is_an_error_state_with_its_reason(lab: GridEngineLab) -> None:
    job = lab.submit("-wd", "/nonexistent", "-b", "y", "true")
    lab.wait_state(job, "Eqw")
    assert "can't chdir to /nonexistent" in lab.ask("qstat", "-j", job)
    assert lab.wait_records(job)[0]["failed"].startswith("28")


def test_a_request_that_nobody_can_meet_waits_and_says_why(lab: GridEngineLab) -> None:
    job = lab.submit("-l", "gpu=1", "-b", "y", "true")
    until(lambda: "offers only hc:gpu=0" in lab.ask("qstat", "-j", job), "the reason")


def test_an_unknown_queue_is_refused(lab: GridEngineLab) -> None:
    refused = lab.run("qsub", "-q", "nosuch", "-b", "y", "true")
    assert refused.returncode == 1
    assert 'unknown queue "nosuch"' in refused.stderr


def test_several_slots_and_memory_are_taken_from_a_host(lab: GridEngineLab) -> None:
    job = lab.submit("-pe", "smp", "4", "-l", "memory=1G", *ASLEEP)
    lab.wait_state(job, "r")
    assert "memory=4.000G" in lab.ask("qhost", "-F", "memory")


def test_limits_of_arrays_and_users_are_enforced(gridengine_lab: GetLab) -> None:
    lab = gridengine_lab(max_aj_tasks=5, max_u_jobs=2)
    assert "more than 5 tasks" in lab.run("qsub", "-t", "1-6", "-b", "y", "true").stderr
    lab.submit("-h", "-b", "y", "true")
    lab.submit("-h", "-b", "y", "true")
    assert "per user" in lab.run("qsub", "-b", "y", "true").stderr


def test_a_killed_execd_comes_back_and_its_job_goes_on(lab: GridEngineLab) -> None:
    job = lab.submit("-q", "cpu@ge1", *ASLEEP)
    lab.wait_state(job, "r")
    running = until(lambda: sleepers(lab, "ge1"), "the job's process")
    lab.kill_execd("ge1")
    assert all(map(alive, running))
    lab.start_execd("ge1")
    lab.ask("qdel", job)
    until(lambda: not any(map(alive, running)), "the job ended by the new execd")


@pytest.mark.parametrize("kill9", [False, True])
def test_jobs_go_on_while_the_qmaster_restarts(lab: GridEngineLab, kill9: bool) -> None:
    job = lab.submit(*ASLEEP)
    lab.wait_state(job, "r")
    running = until(lambda: [pid for node in lab.nodes for pid in sleepers(lab, node)], "the job's process")
    lab.restart_qmaster(kill9=kill9)
    lab.wait_state(job, "r")  # what was not yet spooled is told again by the execution host
    assert all(map(alive, running))


def test_a_qmaster_that_is_down_answers_nothing(lab: GridEngineLab) -> None:
    lab.stop_qmaster(kill9=True)
    refused = lab.run("qstat")
    assert refused.returncode == 1
    assert "unable to send message to qmaster" in refused.stderr


def test_a_powered_off_host_takes_its_processes_along(gridengine_lab: GetLab) -> None:
    lab = gridengine_lab(max_unheard_s=10, reschedule_unknown_s=5)
    job = lab.submit("-q", "cpu@ge2", "-r", "y", *ASLEEP)
    lab.wait_state(job, "r")
    running = until(lambda: sleepers(lab, "ge2"), "the job's process")
    lab.node_power_off("ge2")
    assert not any(map(alive, running))
    lab.wait_state(job, "Rq", timeout_s=90)
    lab.node_power_on("ge2")
    lab.wait_state(job, "Rr", timeout_s=90)
