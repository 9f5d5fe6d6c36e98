"""The same words on a cluster as on this machine: a user's yard on a login node, with real schedulers behind it."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.acceptance.cluster_yard import ClusterYard
from tests.acceptance.witness import until

SAVES = """
import os, signal, sys, time
place = os.path.join(os.environ["CHECKPOINT_DIR"], "step")
step = int(open(place).read()) if os.environ.get("RUNYARD_RESUME") else 0
print("begin at", step, flush=True)
def save(*_):
    open(place, "w").write(str(step))
    sys.exit(0)
signal.signal(signal.SIGUSR1, save)
while step < %d:
    time.sleep(0.5)
    step += 1
print("done at", step)
"""


@pytest.fixture(params=["slurm", pytest.param("slurm with accounting", marks=pytest.mark.long), "gridengine"])
def yard(request: pytest.FixtureRequest) -> Iterator[ClusterYard]:
    kind, _, accounting = request.param.partition(" ")
    lab = request.getfixturevalue(f"{kind}_lab")(**({"accounting": True} if accounting else {}))
    made = ClusterYard(lab, kind)
    made.start()
    made.add_site()
    yield made
    made.stop()


def test_a_run_goes_to_the_cluster_and_comes_back(yard: ClusterYard) -> None:
    body = 'echo "on $(hostname) as $RUNYARD_RUN_ID with $OMP_NUM_THREADS"; echo result > $OUTPUT_DIR/r.txt'
    run = yard.submit("--cpus", "2", "--time", "5m", "--memory", "50M", "--", "sh", "-c", body)
    shown = yard.ended(run)
    assert (shown["state"], shown["exit_code"]) == ("succeeded", 0), shown
    assert yard.log(run).endswith(f"as {run} with 2\n")
    assert yard.cli("fetch", str(run), "-o", str(yard.home / "out")).returncode == 0
    assert (yard.home / "out" / "r.txt").read_text() == "result\n"


def test_an_array_of_runs_ends_once_each_with_its_own_code(yard: ClusterYard) -> None:
    spec = yard.home / "runs.json"
    runs = [{"command": ["sh", "-c", f"echo run {n}; exit {n % 3}"], "site": "cedar"} for n in range(30)]
    spec.write_text(json.dumps({"runs": runs}))
    spec.chmod(0o644)
    ids = [int(word) for word in yard.cli("submit", "--quiet", "-f", str(spec)).stdout.split()]
    assert len(ids) == 30
    for n, run in enumerate(ids):
        shown = yard.ended(run)
        assert (shown["exit_code"], shown["attempt"]) == (n % 3, 1), shown
        assert yard.log(run) == f"run {n}\n"


def test_cancel_and_retry(yard: ClusterYard) -> None:
    run = yard.submit("--", "sh", "-c", "echo up; sleep 300")
    until(lambda: yard.show(run)["state"] == "running", timeout=240, what="the run runs")
    answer = yard.cli("cancel", str(run))
    assert answer.returncode == 0, answer.stderr
    assert (yard.show(run)["state"], yard.show(run)["reason"]) == ("cancelled", "user")


def test_a_refusal_is_shown_in_the_schedulers_words(yard: ClusterYard) -> None:
    name = "partition" if yard.cli("site", "show", "cedar", "--json").stdout.count("slurm") else "queue"
    run = yard.submit("--option", f"{name}=nosuch", "--", "true")
    shown = yard.ended(run)
    assert (shown["state"], shown["reason"]) == ("failed", "rejected"), shown
    assert "nosuch" in shown["detail"] or "partition" in shown["detail"]


def test_kill_9_of_the_yard_loses_and_doubles_nothing(yard: ClusterYard) -> None:
    witness = yard.home / "witness"
    body = f"echo $RUNYARD_RUN_ID >> {witness}; sleep 2; echo done"
    ids = [yard.submit("--", "sh", "-c", body) for _ in range(4)]
    for _ in range(3):
        yard.kill9()
        yard.start()
    for run in ids:
        shown = yard.ended(run)
        assert (shown["state"], shown["attempt"]) == ("succeeded", 1), shown
        assert yard.log(run) == "done\n"
    assert sorted(map(int, witness.read_text().split())) == ids


def test_a_run_longer_than_its_limit_is_one_run_with_one_log(yard: ClusterYard) -> None:
    """Of half a minute, a quarter of which is for saving: enough also where others keep the machine busy."""
    run = yard.submit("--time", "32s", "--checkpoint", "--", "/usr/bin/python3", "-c", SAVES % 110)
    shown = yard.ended(run, 500)
    assert shown["state"] == "succeeded", shown
    assert shown["attempt"] >= 3
    log = yard.log(run)
    assert log.startswith("begin at 0\n\n--- attempt 2 ---\nbegin at ")
    assert log.endswith("done at 110\n")


def test_settings_of_the_site_reach_the_command(yard: ClusterYard, request: pytest.FixtureRequest) -> None:
    edit = ["site", "edit", "cedar", "--setup", "export FROM_SETUP=yes", "--env", "DATA=/data", "--env", "MINE=site"]
    assert yard.cli(*edit).returncode == 0
    run = yard.submit("--env", "MINE=run", "--", "sh", "-c", "echo $FROM_SETUP $DATA $MINE")
    yard.ended(run)
    assert yard.log(run) == "yes /data run\n"
    assert yard.cli("site", "edit", "cedar", "--setup", "echo no such module; false").returncode == 0
    bad = yard.ended(yard.submit("--", "true"))
    assert (bad["reason"], "no such module" in bad["detail"]) == ("launch", True), bad


def test_what_would_be_said_and_what_works(yard: ClusterYard) -> None:
    words = ["submit", "--dry-run", "--site", "cedar", "--cpus", "2", "--time", "1h", "--", "true"]
    shown = yard.cli(*words)
    assert shown.returncode == 0, shown.stderr
    assert "#!/bin/" in shown.stdout
    assert ("sbatch" in shown.stdout) != ("qsub" in shown.stdout)
    assert yard.cli("ls", "--json").stdout.strip() == "[]", "nothing was stored"
    tested = yard.cli("site", "test", "cedar")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "probe" in tested.stdout
    owned = "job-name" if "sbatch" in shown.stdout else "N"
    refused = yard.cli("submit", "--site", "cedar", "--dry-run", "--option", f"{owned}=x", "--", "true")
    assert refused.returncode == 2
    assert owned in refused.stderr


def test_somebody_elses_cancel_is_told_apart(yard: ClusterYard) -> None:
    run = yard.submit("--", "sleep", "300")
    until(lambda: yard.show(run)["state"] == "running", timeout=240, what="the run runs")
    native = yard.show(run)["attempts"][0]["native_id"]
    program = "qdel" if "gridengine" in yard.cli("site", "show", "cedar", "--json").stdout else "scancel"
    yard.lab.run(program, native)
    shown = yard.ended(run)
    assert (shown["state"], shown["reason"]) == ("cancelled", "external"), shown
