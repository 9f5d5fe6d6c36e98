"""The Slurm lab does what real clusters do, and its faults are real."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.integration.labs.processes import alive
from tests.labs.slurm import SlurmLab
from tests.labs.waiting import until

pytestmark = pytest.mark.long

GetLab = Callable[..., SlurmLab]
FINAL = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL", "PREEMPTED")


@pytest.fixture
def plain(slurm_lab: GetLab) -> SlurmLab:
    return slurm_lab()


@pytest.fixture
def machines(slurm_lab: GetLab) -> SlurmLab:
    """Nodes that are lost within seconds; a short SlurmdTimeout is wrong for everything else."""
    return slurm_lab(isolate=True, slurmd_timeout_s=10)


def sleeper(lab: SlurmLab, *words: str) -> tuple[str, int]:
    """A job that sleeps, and the pid of its script as that node counts."""
    job = lab.submit(*words, wrap="echo $$ > pid; exec sleep 600")
    lab.wait_job(job, "RUNNING")
    return job, int(until(lambda: (lab.directory / "pid").exists() and (lab.directory / "pid").read_text(), "its pid"))


@pytest.fixture(autouse=True)
def no_pid_of_another_test(request: pytest.FixtureRequest) -> None:
    for name in {"plain", "machines"} & set(request.fixturenames):
        (request.getfixturevalue(name).directory / "pid").unlink(missing_ok=True)


def test_a_normal_user_submits_and_the_exit_code_comes_back(plain: SlurmLab) -> None:
    job = plain.submit(wrap="id --user; exit 3")
    assert plain.wait_job(job, *FINAL)["ExitCode"] == "3:0"
    assert (plain.directory / f"slurm-{job}.out").read_text() == f"{plain.user.uid}\n"


def test_three_nodes_run_one_step(plain: SlurmLab) -> None:
    assert set(plain.ask("srun", "-N3", "printenv", "SLURMD_NODENAME").split()) == set(plain.nodes)


def test_jobs_can_use_the_system_python(plain: SlurmLab) -> None:
    assert plain.ask("srun", "/usr/bin/python3", "-c", "print(6 * 7)") == "42\n"


def test_an_array(plain: SlurmLab) -> None:
    job = plain.submit("--array=0-4%3", "--output=task-%a", wrap="echo $SLURM_ARRAY_JOB_ID $SLURM_ARRAY_TASK_ID")
    until(lambda: not plain.ask("squeue", "-h", "-j", job, "-t", "PD,R,CG"), "the array over")
    said = [(plain.directory / f"task-{index}").read_text() for index in range(5)]
    assert said == [f"{job} {index}\n" for index in range(5)]


def test_an_array_above_the_limit_is_refused(plain: SlurmLab) -> None:
    refused = plain.run("sbatch", "--array=0-1001", "--wrap", "true")
    assert refused.returncode == 1
    assert "Invalid job array specification" in refused.stderr


def test_a_killed_slurmd_comes_back_and_its_job_goes_on(plain: SlurmLab) -> None:
    job, pid = sleeper(plain, "-w", "n2")
    plain.kill_slurmd("n2")
    assert alive(pid)
    plain.start_slurmd("n2")
    plain.wait_nodes("n2")
    assert plain.job(job)["JobState"] == "RUNNING"
    assert alive(pid)


@pytest.mark.parametrize("kill9", [False, True])
def test_jobs_go_on_while_the_controller_restarts(plain: SlurmLab, kill9: bool) -> None:
    job, pid = sleeper(plain)
    plain.until_saved(job)
    plain.restart_controller(kill9=kill9)
    assert plain.job(job)["JobState"] == "RUNNING"
    assert alive(pid)


@pytest.mark.parametrize(
    ("break_it", "mend_it"),
    [
        (SlurmLab.stop_controller, SlurmLab.start_controller),
        (SlurmLab.hang_controller, SlurmLab.resume_controller),
        (SlurmLab.kill_munge, SlurmLab.start_munge),
    ],
)
def test_clients_wait_long_when_nobody_answers(
    plain: SlurmLab, break_it: Callable[[SlurmLab], None], mend_it: Callable[[SlurmLab], None]
) -> None:
    break_it(plain)
    with pytest.raises(subprocess.TimeoutExpired):
        plain.run("squeue", timeout=3)
    mend_it(plain)
    assert plain.run("squeue").returncode == 0


def test_without_accounting_sacct_knows_nothing(plain: SlurmLab) -> None:
    done = plain.run("sacct")
    assert done.returncode == 1
    assert "accounting storage is disabled" in done.stderr


def test_with_accounting_the_ending_is_kept(slurm_lab: GetLab) -> None:
    lab = slurm_lab(accounting=True)
    job = lab.submit(wrap="exit 4")
    lab.wait_job(job, "FAILED")
    fields = ["-n", "-P", "-X", "-o", "JobName,Account,State,ExitCode", "-j", job]
    until(lambda: lab.ask("sacct", *fields) == "wrap|lab|FAILED|4:0\n", "the record complete")


def test_accounts_and_submit_limits_are_enforced(slurm_lab: GetLab) -> None:
    lab = slurm_lab(accounting=True, max_submit_jobs=3)
    unknown = lab.run("sbatch", "--account=nobody-has-this", "--wrap", "true")
    assert "Invalid account or account/partition combination" in unknown.stderr
    lab.submit("--array=0-2", "--hold", wrap="true")
    assert "AssocMaxSubmitJobLimit" in lab.run("sbatch", "--wrap", "true").stderr


def test_a_slurmdbd_outage_ends(slurm_lab: GetLab) -> None:
    lab = slurm_lab(accounting=True)
    lab.stop_slurmdbd()
    assert lab.run("sacct").returncode == 1
    lab.start_slurmdbd()
    assert lab.run("sacct").returncode == 0


def test_a_powered_off_node_takes_its_processes_along(machines: SlurmLab) -> None:
    job, _ = sleeper(machines, "-w", "n3", "--no-requeue")
    commands = machines.node_commands
    sleep = until(lambda: [pid for pid, text in commands("n3").items() if text == "sleep 600"], "its process")
    machines.node_power_off("n3")
    assert not any(map(alive, sleep))
    assert machines.wait_job(job, *FINAL, timeout_s=90)["JobState"] == "NODE_FAIL"
    machines.node_power_on("n3")
    assert machines.ask("srun", "-w", "n3", "hostname") == "n3\n"


def test_an_unplugged_node_goes_on_unheard(slurm_lab: GetLab) -> None:
    machines = slurm_lab(isolate=True)
    job = machines.submit("-w", "n2", wrap="until [ -e unplugged ]; do sleep 0.1; done; hostname > finished")
    machines.wait_job(job, "RUNNING")
    machines.node_unplug("n2")
    (machines.directory / "unplugged").touch()
    until((machines.directory / "finished").exists, "the job done")
    assert machines.job(job)["JobState"] == "RUNNING"
    machines.node_plug("n2")
    assert machines.wait_job(job, *FINAL)["JobState"] == "COMPLETED"


def test_each_machine_has_its_own_local_directory(machines: SlurmLab) -> None:
    machines.ask("srun", "-w", "n1", "touch", f"{machines.unshared}/here")
    assert machines.ask("srun", "-w", "n1", "ls", str(machines.unshared)) == "here\n"
    assert machines.ask("srun", "-w", "n2", "ls", str(machines.unshared)) == ""


def test_gpus_are_counted_and_given_out(slurm_lab: GetLab) -> None:
    lab = slurm_lab(gpus=2)
    assert lab.ask("srun", "--gres=gpu:a100:2", "printenv", "CUDA_VISIBLE_DEVICES") == "0,1\n"
    assert lab.run("sbatch", "--gres=gpu:h100:1", "--wrap", "true").returncode == 1


def test_too_much_memory_is_the_end(slurm_lab: GetLab) -> None:
    lab = slurm_lab(cgroup_memory=True)
    job = lab.submit("--mem=50", wrap="/usr/bin/python3 -c 'bytearray(300 << 20)'")
    assert lab.wait_job(job, *FINAL)["JobState"] == "OUT_OF_MEMORY"


@pytest.mark.parametrize(("mode", "state"), [("cancel", "PREEMPTED"), ("requeue", "PENDING")])
def test_urgent_jobs_displace_others(slurm_lab: GetLab, mode: str, state: str) -> None:
    lab = slurm_lab(preempt=mode)
    victim = lab.submit("-p", "scavenge", "-N3", "--exclusive", wrap="sleep 600")
    lab.wait_job(victim, "RUNNING")
    urgent = lab.submit("-p", "urgent", "-N3", "--exclusive", wrap="sleep 600")
    assert lab.wait_job(victim, state)
    assert lab.wait_job(urgent, "RUNNING")


def test_the_normal_user_can_run_this_runyard(plain: SlurmLab) -> None:
    command, env = plain.user.runyard("--version")
    done = plain.user.run(command, env=env)
    assert done.stdout.startswith("runyard ")
