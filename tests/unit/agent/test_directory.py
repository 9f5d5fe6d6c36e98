"""What an attempt's directory holds before its runner starts."""

from __future__ import annotations

import dataclasses
import errno
import json
from pathlib import Path
from typing import Any

import pytest

from runyard.agent.attempts import Attempt
from runyard.agent.bring.directory import Stager, StagingFailed
from runyard.agent.run.slots import Grant
from runyard.hosts.local import LocalHost
from runyard.model.resources import Capacity, Gpu
from runyard.model.site import SiteSpec
from runyard.model.spec import RunSpec
from runyard.model.wire import AttemptKey, Claim, Resume
from runyard.runner.scheduler_signals import SLURM

SITE = Capacity(cpus=4, memory=1 << 40, gpus=(Gpu(uuid="GPU-a"),))


def claim(**fields: Any) -> Claim:
    spec = RunSpec.parse({"command": ["echo", "{x}"], "params": {"x": "ü\udcff"}, **fields})
    return Claim(
        key=AttemptKey(run=7, attempt=2), batch="ry-1-1-9", position=3, spec=spec.to_json(), argv=spec.argv(),
        resources=spec.resources, resume=Resume(held=True),
    )  # fmt: skip


@pytest.fixture
def stager(tmp_path: Path) -> Stager:
    return Stager(LocalHost(), str(tmp_path / "runs"), SITE, {"HOME": "/h"})


def staged(stager: Stager, **fields: Any) -> tuple[Attempt, dict[str, Any]]:
    attempt = stager.receive(claim(**fields))
    stager.understand(attempt)
    stager.prepare([attempt])
    attempt.start.grant = Grant(resources=attempt.claim.resources, gpus=("GPU-a",))
    stager.freeze([attempt])
    return attempt, json.loads(Path(attempt.job.directory, "spec.json").read_text())


def test_a_spec_is_complete(stager: Stager, tmp_path: Path) -> None:
    attempt, frozen = staged(
        stager, resources={"cpus": 2, "memory": "1G", "time": "1h", "gpus": 1}, stop={"signal": "INT", "grace": 3}
    )
    directory = tmp_path / "runs" / "7" / "a2"
    environment = frozen.pop("env")
    assert frozen == {
        "key": "7.2", "tag": attempt.job.tag, "argv": ["echo", "ü\udcff"], "cwd": f"{directory}/work",
        "time_limit": 3600, "memory_limit": 1 << 30, "stop": {"signal": "INT", "grace": 3},
        "split_output": False, "metrics": {"stdout": []},
        "cpus": 2, "gpus": ["GPU-a"], "inherit_env": False, "programs": "",
            "signals": None, "setup": [], "checkpoint": None,
        "scratch": "", "scratch_names": [], "keeps_tmpdir": False,
            "permit": None,
    }  # fmt: skip
    assert environment["HOME"] == "/h"
    assert environment["OUTPUT_DIR"] == f"{directory}/outputs"
    assert environment["CHECKPOINT_DIR"] == f"{directory.parent}/checkpoints"
    assert json.loads((directory / "params.json").read_text()) == {"x": "ü\udcff"}
    for name in ("outputs", "work", "../checkpoints"):
        assert (directory / name).is_dir()


def test_a_directory_of_its_own_is_only_made_when_it_is_needed(stager: Stager, tmp_path: Path) -> None:
    attempt, frozen = staged(stager, cwd=str(tmp_path))
    assert frozen["cwd"] == str(tmp_path)
    assert not Path(attempt.job.directory, "work").exists()


def test_a_site_with_a_queue_lays_its_words_over_the_jobs_environment(tmp_path: Path) -> None:
    described = SiteSpec(kind="slurm", setup=("module load python",), env={"DATA": "/data", "MINE": "site"})
    stager = Stager(
        LocalHost(), str(tmp_path / "runs"), Capacity(elastic=True), {"HOME": "/h"}, described, signals=SLURM
    )
    attempt, frozen = staged(stager, env={"MINE": "run"}, checkpoint={"grace": 5})
    assert (frozen["inherit_env"], frozen["signals"]) == (True, SLURM)
    assert frozen["setup"] == ["module load python"]
    assert (frozen["env"]["DATA"], frozen["env"]["MINE"]) == ("/data", "run")
    assert "HOME" not in frozen["env"] and "CUDA_VISIBLE_DEVICES" not in frozen["env"]
    directory = str(Path(attempt.job.directory).parent / "checkpoints")
    assert frozen["checkpoint"] == {"signal": "USR1", "grace": 5, "directory": directory}


def test_a_clusters_directory_belongs_to_the_yard_that_came_first(tmp_path: Path) -> None:
    """Another one's run 7 would be taken for this one's."""
    for batch in ("ry-1-1-9", "ry-1-2-30"):
        ours = Stager(LocalHost(), str(tmp_path / "runs"), Capacity(elastic=True), {})
        ours.prepare([ours.receive(dataclasses.replace(claim(), batch=batch))])
    theirs = Stager(LocalHost(), str(tmp_path / "runs"), Capacity(elastic=True), {})
    for _ in range(2):
        attempt = theirs.receive(dataclasses.replace(claim(), batch="ry-2-1-9"))
        with pytest.raises(StagingFailed, match="has the runs of another yard, ry-1, with the same numbers"):
            theirs.prepare([attempt])
        assert (attempt.place, attempt.is_refused) == ("refused/7/a2", True), "theirs is neither read nor removed"
    (tmp_path / "runs" / "yard").unlink()
    theirs.prepare([theirs.receive(dataclasses.replace(claim(), batch="ry-2-1-9"))])


def test_scratch_is_where_the_site_says_under_the_names_that_scripts_know(tmp_path: Path) -> None:
    stager = Stager(LocalHost(), str(tmp_path / "runs"), SITE, {"TMPDIR": "/agents"}, None, "/local")
    _, frozen = staged(stager, dialect="slurm", env={"TMPDIR": "/mine"})
    told = {name: frozen[name] for name in ("scratch", "scratch_names", "keeps_tmpdir")}
    assert told == {"scratch": "/local", "scratch_names": ["SLURM_TMPDIR"], "keeps_tmpdir": True}
    assert frozen["env"]["TMPDIR"] == "/mine"


def test_a_later_attempt_with_checkpoints_resumes(stager: Stager, tmp_path: Path) -> None:
    """The claim is of a second attempt."""
    assert "RUNYARD_RESUME" not in staged(stager)[1]["env"]
    (tmp_path / "runs" / "7" / "checkpoints" / "step-1").touch()
    assert staged(stager)[1]["env"]["RUNYARD_RESUME"] == str(tmp_path / "runs/7/checkpoints")


def test_checkpoints_that_the_user_named_count(stager: Stager, tmp_path: Path) -> None:
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "step-1").touch()
    assert staged(stager, cwd=str(tmp_path), env={"CHECKPOINT_DIR": "named"})[1]["env"]["RUNYARD_RESUME"] == str(
        tmp_path / "named"
    )


TREE = f"sha256:{'a' * 64}"


@pytest.mark.parametrize(
    ("resume", "is_filled", "brought", "afresh"),
    [
        (Resume(held=True), True, None, False),
        (Resume(tree=TREE, held=True), True, None, False),
        (Resume(tree=TREE, held=True), False, TREE, False),
        (Resume(tree=TREE), True, TREE, False),
        (Resume(tree=TREE), False, TREE, False),
        (Resume(), True, None, True),
        (Resume(afresh=True), True, None, True),
        (None, False, None, False),
    ],
)
def test_what_an_attempt_goes_on_from(
    stager: Stager, tmp_path: Path, resume: Resume | None, is_filled: bool, brought: str | None, afresh: bool
) -> None:
    attempt = stager.receive(dataclasses.replace(claim(), resume=resume))
    stager.prepare([attempt])
    if is_filled:
        (tmp_path / "runs/7/checkpoints/step-1").touch()
    stager.find_checkpoints([attempt])
    assert (attempt.resume_from, attempt.starts_afresh) == (brought, afresh)


def test_tags_differ(stager: Stager) -> None:
    assert stager.receive(claim()).job.tag != stager.receive(claim()).job.tag


def test_what_was_frozen_is_recalled(stager: Stager) -> None:
    attempt, _ = staged(stager)
    [again] = stager.recall([attempt.claim])
    assert (again.job, again.prefer_gpus) == (attempt.job, ("GPU-a",))


@pytest.mark.parametrize("text", ["", "{", "[]", "{}"])
def test_a_spec_that_cannot_be_read_is_no_memory(stager: Stager, text: str) -> None:
    attempt, _ = staged(stager)
    Path(attempt.job.directory, "spec.json").write_text(text)
    assert [again.prefer_gpus for again in stager.recall([attempt.claim])] == [()]


def test_an_output_directory_that_the_user_names_is_made_and_found(stager: Stager, tmp_path: Path) -> None:
    attempt, _ = staged(stager, env={"OUTPUT_DIR": "results/one"}, cwd=str(tmp_path))
    assert stager.output_directory(attempt) == str(tmp_path / "results" / "one")
    assert (tmp_path / "results" / "one").is_dir()


def test_an_output_directory_that_cannot_be_made_is_the_runs_own_business(stager: Stager) -> None:
    staged(stager, env={"OUTPUT_DIR": "/proc/nowhere"})


def test_failures_are_told_apart() -> None:
    full = StagingFailed.because(OSError(errno.ENOSPC, "No space left on device", "/x"))
    denied = StagingFailed.because(OSError(errno.EACCES, "Permission denied", "/x"))
    assert (full.ending, full.message) == ("disk", "/x: no space left on device")
    assert (denied.ending, denied.message) == ("staging", "/x: permission denied")


@pytest.mark.parametrize(
    ("first", "words"),
    [
        ("#!/bin/bash -eu \n", ["/bin/bash", "-eu"]),
        ("#! /usr/bin/env -S python3 -u\n", ["/usr/bin/env", "-S python3 -u"]),
        ("#!/bin/sh\n", ["/bin/sh"]),
        ("echo\n", ["/bin/sh"]),
        ("#!\n", ["/bin/sh"]),
    ],
)
def test_a_script_is_written_down_and_interpreted(stager: Stager, first: str, words: list[str]) -> None:
    attempt, frozen = staged(stager, script=f"{first}\udcff", command=["{x}"])
    path = Path(attempt.job.directory, "script")
    assert frozen["argv"] == [*words, str(path), "ü\udcff"]
    assert path.read_bytes() == first.encode() + b"\xff"


def test_files_of_the_users_own(stager: Stager) -> None:
    array = {"index": 5, "first": 5, "last": 6, "offset": 0, "count": 2}
    _, frozen = staged(stager, stdout="/o/%A_5.%3j.%N%%", array=array)
    assert (frozen["stdout"], frozen["open_mode"]) == ("/o/7_5.007.%N%%", "continue"), "it is the second attempt"
    assert "stderr" not in frozen
    _, frozen = staged(stager, stdout="/o", stderr="/e.%j", open_mode="append")
    assert (frozen["stderr"], frozen["open_mode"], frozen["split_output"]) == ("/e.7", "append", True)


def test_the_variables_of_its_dialect_are_the_strongest(stager: Stager) -> None:
    _, frozen = staged(stager, dialect="slurm", env={"SLURM_JOB_ID": "1", "SLURM_SUBMIT_DIR": "/s"}, name="n")
    assert (frozen["env"]["SLURM_JOB_ID"], frozen["env"]["SLURM_SUBMIT_DIR"]) == ("7", "/s")
