"""What one machine promises: slots, GPUs, environment, outputs, and who may come in."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import errors
from tests.acceptance.witness import until
from tests.labs.yard import Yard

PEAK = """
import os, sys, time
here, cpus = sys.argv[1], sys.argv[2]
mine = os.path.join(here, f"{os.environ['RUNYARD_RUN_ID']}-{cpus}")
open(mine, "w").close()
time.sleep(0.3)
held = sum(int(name.split("-")[1]) for name in os.listdir(here))
print(held)
os.unlink(mine)
"""


def test_runs_are_followed_and_queued_again(either: Callable[..., Yard]) -> None:
    yard = either(cpus=1)
    body = "echo attempt $RUNYARD_ATTEMPT; sleep 0.5; echo done; exit $((4 - $RUNYARD_ATTEMPT))"
    followed = yard.cli("submit", "--follow", "--", "/bin/sh", "-c", body)
    assert (followed.returncode, followed.stdout.splitlines()[-2:]) == (3, ["attempt 1", "done"]), followed
    assert yard.cli("retry", "last", "-q").returncode == 0
    assert yard.cli("wait", "last").returncode == 2
    assert yard.client().last().logs() == "attempt 1\ndone\n\n--- attempt 2 ---\nattempt 2\ndone\n"


def test_runs_wait_by_their_priority(either: Callable[..., Yard], tmp_path: Path) -> None:
    client, go, order = either(cpus=1).client(), tmp_path / "go", tmp_path / "order"
    client.submit(command=["/bin/sh", "-c", f"until [ -e {go} ]; do sleep 0.1; done"])
    until(lambda: client.runs(state="running"), what="the slot taken")
    sign = ["/bin/sh", "-c", f"echo $RUNYARD_RUN_ID >> {order}"]
    runs = client.submit_many([{"command": sign, "priority": priority} for priority in (0, 5, -5, 9)])
    go.touch()
    for run in runs:
        assert run.wait(timeout=180).state == "succeeded"
    assert [int(line) for line in order.read_text().split()] == [runs[place].id for place in (3, 1, 0, 2)]


def test_a_run_never_starts_without_its_slots(either: Callable[..., Yard], tmp_path: Path) -> None:
    client = either(cpus=4).client()
    sizes = [1, 2, 3, 4, 1, 1, 2, 1, 3, 1]
    runs = client.submit_many(
        [
            {"command": [sys.executable, "-c", PEAK, str(tmp_path), str(size)], "resources": {"cpus": size}}
            for size in sizes
        ]
    )
    held = [int(run.wait(timeout=180).logs()) for run in runs]
    assert max(held) <= 4
    assert all(mine <= seen for mine, seen in zip(sizes, held, strict=True))


def test_memory_is_a_slot_too(make_yard: Callable[..., Yard], tmp_path: Path) -> None:
    client = make_yard(cpus=4, memory=1 << 30).client()
    spec = {"command": [sys.executable, "-c", PEAK, str(tmp_path), "1"], "resources": {"memory": "600M"}}
    assert [run.wait(timeout=180).logs() for run in client.submit_many([spec] * 3)] == ["1\n"] * 3
    with pytest.raises(errors.Unsatisfiable, match="memory"):
        client.submit(command=["true"], resources={"memory": "2G"})


def test_declared_gpus_are_pinned_by_uuid(make_yard: Callable[..., Yard], tmp_path: Path) -> None:
    yard = make_yard(cpus=4)
    yard.stop()
    (yard.home / "config.toml").write_text('gpus = ["GPU-one", "GPU-two"]\n')
    client = yard.start().client()
    go = tmp_path / "go"
    show = ["/bin/sh", "-c", f"echo ${{CUDA_VISIBLE_DEVICES-unset}}; until [ -e {go} ]; do sleep 0.1; done"]
    one, two, three, both, none = client.submit_many(
        [{"command": show, "resources": {"gpus": count}} for count in (1, 1, 1, 2, 0)]
    )
    until(lambda: one.logs() and two.logs(), what="both of them taken")
    go.touch()
    seen = [run.wait(timeout=180).logs().strip() for run in (one, two, three)]
    assert {seen[0], seen[1]} == {"GPU-one", "GPU-two"}
    assert seen[2] in ("GPU-one", "GPU-two")
    assert sorted(both.wait(timeout=180).logs().strip().split(",")) == ["GPU-one", "GPU-two"]
    assert both.granted["gpus"] == both.logs().strip().split(",")
    assert none.wait(timeout=180).logs() == "\n", "a run without GPUs does not find those of others"


def test_who_waits_for_a_gpu_is_in_nobodys_way(make_yard: Callable[..., Yard], tmp_path: Path) -> None:
    """The machine has had short runs, and takes some beyond its free slots: not one that waits for hours."""
    yard = make_yard(cpus=4)
    yard.stop()
    (yard.home / "config.toml").write_text('gpus = ["GPU-one"]\n')
    client, go = yard.start().client(), tmp_path / "go"
    waits = ["/bin/sh", "-c", f"until [ -e {go} ]; do sleep 0.1; done"]
    first, second, short = client.submit_many([
        {"command": waits, "resources": {"gpus": 1}}, {"command": ["true"], "resources": {"gpus": 1}},
        {"command": ["true"]},
    ])  # fmt: skip
    assert short.wait(timeout=180).state == "succeeded"
    for _ in range(3):
        assert client.submit(command=["true"]).wait(timeout=180).state == "succeeded"
    until(lambda: first.refresh().state == "running", what="the first one runs")
    assert second.refresh().state == "queued"
    go.touch()
    assert [run.wait(timeout=180).state for run in (first, second)] == ["succeeded"] * 2


def test_arguments_and_environment_arrive_unchanged(yard: Yard, tmp_path: Path) -> None:
    strange = tmp_path / "a dir with 'quotes' and\nnewline ü"
    strange.mkdir()
    words = ["a b", 'x"y', "it's", "new\nline", "ünïcode €", "", "{not a param}", "$HOME", "*", "-x"]
    script = "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['V'], os.getcwd()]))"
    answer = yard.cli("submit", "--wait", "--quiet", "--env", f"V={words[3]}", "--cwd", str(strange), "--",
                      sys.executable, "-c", script, *words)  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    assert json.loads(yard.client().last().logs()) == [words, words[3], str(strange)]


def test_the_promised_variables(either: Callable[..., Yard]) -> None:
    yard = either(cpus=2)
    client = yard.client()
    run = client.submit(
        command=["python3", "-c", "import json, os; print(json.dumps(dict(os.environ)))"],
        params={"lr": 0.5, "model": {"width": 3}}, resources={"cpus": 2}, seed=7, project="digits", keep="all",
    )  # fmt: skip
    env = json.loads(run.wait(timeout=180).logs())
    assert (env["RUNYARD_RUN_ID"], env["RUNYARD_ATTEMPT"], env["RUNYARD_SEED"]) == (str(run.id), "1", "7")
    assert json.loads(Path(env["RUNYARD_PARAMS"]).read_text()) == {"lr": 0.5, "model": {"width": 3}}
    assert env["OMP_NUM_THREADS"] == env["MKL_NUM_THREADS"] == env["OPENBLAS_NUM_THREADS"] == "2"
    assert Path(env["OUTPUT_DIR"]).is_dir() and Path(env["CHECKPOINT_DIR"]).is_dir()
    assert not [name for name, value in env.items() if yard.token in value], "the token is nowhere in it"
    assert "RUNYARD_RESUME" not in env


def test_outputs_come_back_and_an_output_dir_of_the_users_own_wins(either: Callable[..., Yard], tmp_path: Path) -> None:
    yard = either(cpus=2)
    client, mine = yard.client(), tmp_path / "mine"
    mine.mkdir()
    (mine / "old.txt").write_text("from before")
    os.utime(mine / "old.txt", (1, 1))
    body = (
        'mkdir -p "$OUTPUT_DIR/sub dir"; echo data > "$OUTPUT_DIR/sub dir/r.txt"; ln -s /etc/passwd "$OUTPUT_DIR/link"'
    )
    plain = client.submit(command=["/bin/sh", "-c", body])
    own = client.submit(command=["/bin/sh", "-c", body], env={"OUTPUT_DIR": str(mine)})
    failed = client.submit(command=["/bin/sh", "-c", f"{body}; exit 3"])
    for run in (plain, own, failed):
        run.wait(timeout=180)
        assert [item.path for item in run.outputs()] == ["sub dir/r.txt"]
    target = tmp_path / "fetched"
    assert yard.cli("fetch", str(own.id), "-o", str(target)).returncode == 0
    assert (target / "sub dir" / "r.txt").read_text() == "data\n"
    assert (mine / "sub dir" / "r.txt").exists()


@pytest.mark.component("root")
def test_another_unix_user_can_neither_read_the_token_nor_submit(yard: Yard) -> None:
    """`nobody` reaches the port of the loopback, and nothing else."""
    as_nobody = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    read = subprocess.run([*as_nobody, "cat", str(yard.home / "token")], capture_output=True, text=True)
    assert read.returncode != 0
    assert "Permission denied" in read.stderr
    for name in ("yard.db", "yard.json", "sites/local/zygote.sock"):
        assert subprocess.run([*as_nobody, "test", "-r", str(yard.home / name)]).returncode != 0
    post = urllib.request.Request(f"{yard.url}/api/v1/runs", data=b'{"command": ["true"]}', method="POST")
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(post)
    assert caught.value.code == 401
    caught.value.close()
    assert yard.client().runs() == []


def test_two_homes_never_meet(make_yard: Callable[..., Yard]) -> None:
    one, two = make_yard(cpus=1), make_yard(cpus=1)
    one.client().submit(command=["true"]).wait(timeout=180)
    assert [len(yard.client().runs()) for yard in (one, two)] == [1, 0]


def test_a_second_yard_on_the_same_home_is_refused(yard: Yard) -> None:
    answer = yard.cli("up")
    assert answer.returncode != 0
    assert f"process {yard.pid}" in answer.stderr
    assert "Traceback" not in answer.stderr
    assert yard.client().health()["pid"] == yard.pid


def test_a_daemon_on_a_network_file_system_is_refused(make_yard: Callable[..., Yard]) -> None:
    yard = make_yard(cpus=1)
    yard.stop()
    yard.env["RUNYARD_NETWORK_HOME"] = "yes"
    answer = yard.cli("up")
    assert answer.returncode == 2
    assert "network file system" in answer.stderr


@pytest.mark.parametrize(
    ("program", "exit_code", "refused"), [("sinfo", 0, True), ("qhost", 0, True), ("sinfo", 1, False)]
)
def test_a_login_node_does_not_train(
    make_yard: Callable[..., Yard], tmp_path: Path, program: str, exit_code: int, refused: bool
) -> None:
    fake = tmp_path / program
    fake.write_text(f"#!/bin/sh\nexit {exit_code}\n")
    fake.chmod(0o755)
    yard = make_yard(cpus=1)
    yard.stop()
    yard.env["PATH"] = f"{tmp_path}:{yard.env['PATH']}"
    yard.start()
    answer = yard.cli("submit", "--quiet", "--", "true")
    assert (answer.returncode != 0) == refused
    if refused:
        assert "login node" in answer.stderr
        assert "--site" in answer.stderr
    assert yard.cli("submit", "--site", "local", "--wait", "--", "true").returncode == 0


def test_a_child_waits_and_follows_its_parent(either: Callable[..., Yard]) -> None:
    yard = either(cpus=2)
    client = yard.client()
    parent = client.submit(command=["/bin/sh", "-c", "sleep 1; exit 4"])
    child = client.submit(command=["true"], after=[parent.id])
    assert child.wait(timeout=180).reason == "dependency"
    assert yard.cli("wait", str(parent.id)).returncode == 4
    assert yard.cli("wait", str(child.id)).returncode == 204


def test_time_and_memory_limits(yard: Yard) -> None:
    client = yard.client()
    slow = client.submit(command=["sleep", "60"], resources={"time": 2})
    hoard = "import time; x = bytearray(400 << 20); time.sleep(600)"
    big = client.submit(command=["python3", "-c", hoard], resources={"memory": "100M"})
    assert (slow.wait(timeout=180).reason, big.wait(timeout=180).reason) == ("timeout", "oom")
    assert "100" in big.detail
    assert yard.cli("wait", str(slow.id)).returncode == 201
    assert yard.cli("wait", str(big.id)).returncode == 202
    assert client.submit(command=["true"]).wait(timeout=180).state == "succeeded"
