"""The environment of a run, layer by layer."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runyard import machine
from runyard.agent.bring import environment
from runyard.agent.bring.environment import Paths
from runyard.model.resources import Capacity, Gpu
from runyard.model.spec import RunSpec
from runyard.model.wire import AttemptKey

NO_GPUS = Capacity(cpus=8, memory=1)
TWO_GPUS = Capacity(cpus=8, memory=1, gpus=(Gpu(uuid="GPU-a"), Gpu(uuid="GPU-b")))


def build(
    tmp_path: Path, *, attempt: int = 1, gpus: tuple[str, ...] = (), site: Capacity = NO_GPUS,
    base: dict[str, str] | None = None, **fields: Any,
) -> dict[str, str]:  # fmt: skip
    spec = RunSpec.parse({"command": ["true"], **fields})
    checkpoints = str(tmp_path / "checkpoints")
    paths = Paths(
        cwd="/work", params="/p.json", outputs="/out", checkpoints=checkpoints, inputs="/in", code="/code",
        data="/data", metrics="/m.jsonl", control="/c.json",
    )  # fmt: skip
    return environment.build(spec, AttemptKey(run=42, attempt=attempt), paths, gpus, site, base or {})


def test_a_run_is_told_who_it_is(tmp_path: Path) -> None:
    found = build(tmp_path, project="digits", seed=0, resources={"cpus": 4})
    assert found | {
        "RUNYARD_RUN_ID": "42", "RUNYARD_ATTEMPT": "1", "RUNYARD_INDEX": "1", "RUNYARD_PROJECT": "digits",
        "RUNYARD_SEED": "0", "RUNYARD_PARAMS": "/p.json", "OUTPUT_DIR": "/out", "PWD": "/work",
        "CHECKPOINT_DIR": str(tmp_path / "checkpoints"), "OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "4",
        "RUNYARD_METRICS": "/m.jsonl", "RUNYARD_CONTROL": "/c.json", "RUNYARD_STOP_SIGNAL": "TERM",
        "RUNYARD_WARNING_SIGNAL": "TERM", "OPENBLAS_NUM_THREADS": "4", "NUMEXPR_NUM_THREADS": "4",
        "VECLIB_MAXIMUM_THREADS": "4",
    } == found  # fmt: skip
    assert not {"RUNYARD_RESUME", "CUDA_VISIBLE_DEVICES"} & set(found)


def test_it_is_told_by_which_signals_it_is_asked(tmp_path: Path) -> None:
    found = build(tmp_path, stop={"signal": "INT"}, checkpoint=True, env={"RUNYARD_STOP_SIGNAL": "HUP"})
    assert (found["RUNYARD_STOP_SIGNAL"], found["RUNYARD_WARNING_SIGNAL"]) == ("INT", "USR1")


def test_it_is_told_its_number(tmp_path: Path) -> None:
    assert build(tmp_path, index=12)["RUNYARD_INDEX"] == "12"
    assert build(tmp_path, array={"index": 4, "first": 0, "last": 9}, dialect="slurm")["RUNYARD_INDEX"] == "4"


def test_parameters_may_come_as_variables(tmp_path: Path) -> None:
    found = build(tmp_path, params={"lr": 0.1, "x": 1}, params_as="env", env={"PARAM_X": "mine"})
    assert (found["PARAM_LR"], found["PARAM_X"]) == ("0.1", "mine")
    assert "PARAM_LR" not in build(tmp_path, params={"lr": 0.1})


def test_no_seed_no_variable(tmp_path: Path) -> None:
    assert "RUNYARD_SEED" not in build(tmp_path)


def test_inputs_have_a_directory_that_nobody_can_move(tmp_path: Path) -> None:
    inputs = [{"digest": f"sha256:{'a' * 64}", "to": "x"}]
    assert build(tmp_path, inputs=inputs, env={"RUNYARD_INPUTS": "/mine"})["RUNYARD_INPUTS"] == "/in"
    assert "RUNYARD_INPUTS" not in build(tmp_path)


def test_code_and_data_have_directories_that_nobody_can_move(tmp_path: Path) -> None:
    code = {"tree": f"sha256:{'a' * 64}", "files": 1, "size": 1}
    mine = {"RUNYARD_CODE": "/mine", "RUNYARD_DATA": "/mine"}
    found = build(tmp_path, code=code, data=[{"path": "/there", "to": "x"}], env=mine)
    assert (found["RUNYARD_CODE"], found["RUNYARD_DATA"]) == ("/code", "/data")
    assert not set(mine) & set(build(tmp_path, env=mine))


def test_the_agent_passes_on_a_list_of_harmless_names_only() -> None:
    given = {
        "HOME": "/h", "PATH": "/bin", "LC_ALL": "C", "HTTPS_PROXY": "p", "no_proxy": "n", "LD_LIBRARY_PATH": "/l",
        "RUNYARD_TOKEN": "secret", "RUNYARD_HOME": "/y", "AWS_SECRET_ACCESS_KEY": "secret", "PYTHONPATH": "/agent",
        "XPATH": "x", "PATHX": "x",
    }  # fmt: skip
    assert set(environment.inherited(given)) == {"HOME", "PATH", "LC_ALL", "HTTPS_PROXY", "no_proxy", "LD_LIBRARY_PATH"}


def test_the_submitters_variables_count_on_the_same_machine(tmp_path: Path) -> None:
    env = {"PATH": "/venv/bin", "VIRTUAL_ENV": "/venv", "RUNYARD_TOKEN": "secret", "OMP_NUM_THREADS": "64"}
    here = build(tmp_path, base={"PATH": "/bin"}, origin={"host": machine.host_id(), "env": env})
    assert (here["PATH"], here["VIRTUAL_ENV"], here["OMP_NUM_THREADS"]) == ("/venv/bin", "/venv", "1")
    assert "RUNYARD_TOKEN" not in here


def test_the_submitters_variables_mean_nothing_elsewhere(tmp_path: Path) -> None:
    origin = {"host": "another", "env": {"PATH": "/venv/bin", "VIRTUAL_ENV": "/venv"}}
    there = build(tmp_path, base={"PATH": "/bin"}, origin=origin)
    assert there["PATH"] == "/bin"
    assert "VIRTUAL_ENV" not in there


def test_what_the_user_sets_wins_over_all_but_who_it_is(tmp_path: Path) -> None:
    env = {
        "PATH": "/mine", "OMP_NUM_THREADS": "9", "OUTPUT_DIR": "/results", "RUNYARD_RUN_ID": "7", "RUNYARD_URL": "u",
        "CUDA_VISIBLE_DEVICES": "0", "PWD": "/wrong",
    }  # fmt: skip
    found = build(tmp_path, base={"PATH": "/bin"}, env=env, site=TWO_GPUS)
    expected = {**env, "RUNYARD_RUN_ID": "42", "PWD": "/work"}
    assert found | expected == found


@pytest.mark.parametrize(("gpus", "shown"), [((), ""), (("GPU-b",), "GPU-b"), (("GPU-a", "GPU-b"), "GPU-a,GPU-b")])
def test_a_site_with_gpus_says_which_are_granted(tmp_path: Path, gpus: tuple[str, ...], shown: str) -> None:
    assert build(tmp_path, gpus=gpus, site=TWO_GPUS)["CUDA_VISIBLE_DEVICES"] == shown


def test_a_site_without_gpus_says_nothing_of_them(tmp_path: Path) -> None:
    origin = {"host": machine.host_id(), "env": {"CUDA_VISIBLE_DEVICES": "3"}}
    assert "CUDA_VISIBLE_DEVICES" not in build(tmp_path, origin=origin)


def test_a_relative_directory_is_meant_from_the_working_directory() -> None:
    assert environment.resolve("results/../out", "/work") == "/work/out"
    assert environment.resolve("/data", "/work") == "/data"


def test_a_promised_python_environment_replaces_the_submitters(tmp_path: Path) -> None:
    origin = {"host": machine.host_id(), "env": {"VIRTUAL_ENV": "/mine", "CONDA_PREFIX": "/c", "PYTHONPATH": "/p"}}
    spec = RunSpec.parse({"command": ["true"], "origin": origin, "python_env": "conda:nets"})
    paths = Paths(
        cwd="/w", params="/p", outputs="/o", checkpoints="/c", inputs="/i", code="/code", data="/d", metrics="/m",
        control="/j",
    )  # fmt: skip
    found = environment.build(spec, AttemptKey(run=1, attempt=1), paths, (), NO_GPUS, {}, python="/envs/nets")
    assert (found["CONDA_PREFIX"], found["CONDA_DEFAULT_ENV"]) == ("/envs/nets", "nets")
    assert not {"VIRTUAL_ENV", "PYTHONPATH"} & set(found)
