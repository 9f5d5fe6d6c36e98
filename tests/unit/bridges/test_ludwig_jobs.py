"""Which jobs of a Ludwig project are missing, and the folder in which the others have left their results."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from runyard import errors
from runyard.bridges.ludwig import gen_param_paths
from runyard.bridges.ludwig.folder import ProjectFolder, find_share, load, on_nodes
from runyard.bridges.ludwig.jobs import KnownRuns, SubmissionPlan, plan
from runyard.bridges.ludwig.layout import ProjectLayout


@pytest.fixture
def folder(tmp_path: Path) -> ProjectFolder:
    made = ProjectFolder(tmp_path, "digits")
    with made.locked():
        return made


def handed_in(
    folder: ProjectFolder, configurations: list[dict[str, Any]], reps: int, *runs: dict[str, Any]
) -> SubmissionPlan:
    """As a submit does, up to the yard."""
    made = plan(folder, KnownRuns.read(runs), configurations, reps)
    for name, configuration in made.new.items():
        folder.add(name, configuration, "/media/ludwig_data/digits")
    return made


def run(param_name: str, job_name: str, state: str) -> dict[str, Any]:
    return {"name": job_name, "tags": ["ludwig", param_name], "state": state}


def counts(made: SubmissionPlan) -> dict[str, int]:
    names = [job.param_name for job in made.jobs]
    return {name: names.count(name) for name in names}


def test_configurations_get_the_next_numbers_and_keep_them(folder: ProjectFolder) -> None:
    (folder.runs / "param_7").mkdir()  # as the first clients named them; without its file it is nobody's
    first = handed_in(folder, [{"a": (1, 2)}, {"a": 3}, {"a": [1, 2]}], 2)
    assert counts(first) == {"param_008": 2, "param_009": 2}
    assert [job.param_name for job in first.jobs[:2]] == ["param_008", "param_009"], "each once before any twice"
    assert counts(handed_in(folder, [{"a": 3}, {"a": 4}], 1)) == {"param_009": 1, "param_010": 1}


@given(st.data())
def test_only_what_is_missing_is_started(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    made = ProjectFolder(tmp_path_factory.mktemp("drive"), "digits")
    with made.locked():
        handed_in(made, [{"a": 1}], 1)
    states = ["queued", "starting", "running", "succeeded", "failed", "cancelled"]
    drawn = data.draw(st.lists(st.tuples(st.sampled_from(states), st.booleans()), max_size=6))
    old, reps = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 8))
    for number in range(old):
        (made.runs / "param_001" / f"hoff_2019-01-01-00-00-0{number}_num0").mkdir()
    for number, (_, has_results) in enumerate(drawn):
        if has_results:
            (made.runs / "param_001" / f"job_num{number}").mkdir()
    runs = [run("param_001", f"job_num{number}", state) for number, (state, _) in enumerate(drawn)]
    good = sum(state not in ("failed", "cancelled") for state, _ in drawn)
    jobs = handed_in(made, [{"a": 1}], reps, *runs).jobs
    assert len(jobs) == max(0, reps - good - old)
    assert len({job.job_name for job in jobs} | {run["name"] for run in runs}) == len(jobs) + len(runs)


def test_a_configuration_whose_folder_was_removed_begins_anew_under_a_new_name(folder: ProjectFolder) -> None:
    made = handed_in(folder, [{"a": 1}], 1)
    (folder.runs / "param_001" / "param2val.yaml").unlink()
    (folder.runs / "param_001").rmdir()
    again = handed_in(folder, [{"a": 1}], 1, run("param_001", made.jobs[0].job_name, "succeeded"))
    assert counts(again) == {"param_002": 1}


def test_names_of_jobs_suit_every_file_server_and_the_old_rule(folder: ProjectFolder) -> None:
    for job in handed_in(folder, [{"a": 1}], 3).jobs:
        (folder.runs / job.param_name / job.job_name).mkdir()
        assert ":" not in job.job_name
    assert len(list((folder.runs / "param_001").glob("*num*"))) == 3


def test_the_file_of_a_configuration_is_for_everybody(folder: ProjectFolder) -> None:
    handed_in(folder, [{"b": (1, (2, 3)), "a": "grün", "rate": 1e-05, "none": None}], 1)
    path = folder.runs / "param_001" / "param2val.yaml"
    assert yaml.safe_load(path.read_text(encoding="utf-8")) == {
        "a": "grün", "b": [1, [2, 3]], "rate": 1e-05, "none": None, "param_name": "param_001", "job_name": None,
        "project_path": "/media/ludwig_data/digits", "save_path": None,
    }  # fmt: skip


def test_files_of_ludwig_are_read_and_nothing_is_executed(folder: ProjectFolder, tmp_path: Path) -> None:
    old = folder.runs / "param_003"
    old.mkdir()
    text = yaml.dump({"layers": (8, 4), "rate": 0.1, "param_name": "param_003", "job_name": None})
    assert "!!python/tuple" in text
    (old / "param2val.yaml").write_text(text)
    assert counts(handed_in(folder, [{"rate": 0.1, "layers": (8, 4)}], 1)) == {"param_003": 1}
    evil = tmp_path / "evil.yaml"
    evil.write_text(f"a: !!python/object/apply:os.mkdir ['{tmp_path}/made']\n")
    assert load(evil) is None
    assert not (tmp_path / "made").exists()


def test_new_folders_have_the_mode_of_the_drive(tmp_path: Path) -> None:
    tmp_path.chmod(0o2777)
    made = ProjectFolder(tmp_path, "digits")
    with made.locked():
        handed_in(made, [{"a": 1}], 1)
    assert {path.stat().st_mode & 0o7777 for path in (made.path, made.runs, made.runs / "param_001")} == {0o2777}


def test_data_is_brought_to_the_drive_and_not_again(folder: ProjectFolder, tmp_path: Path) -> None:
    corpora = tmp_path / "here" / "corpora"
    (corpora / "deep").mkdir(parents=True)
    (corpora / "a.txt").write_text("a")
    os.utime(corpora / "a.txt", (1e9, 1e9))
    (corpora / "deep" / "b.txt").write_text("b")
    folder.copy(corpora, "corpora")
    there = folder.path / "corpora"
    assert (there / "deep" / "b.txt").read_text() == "b"
    before = (there / "a.txt").stat().st_ino
    (corpora / "deep" / "b.txt").write_text("c")  # at the same time, as far as a file server knows
    folder.copy(corpora, "corpora")
    assert (there / "a.txt").stat().st_ino == before
    assert (there / "deep" / "b.txt").read_text() == "c"
    assert sorted(os.listdir(there)) == ["a.txt", "deep"]


def test_results_are_found_by_their_configuration(folder: ProjectFolder, capsys: pytest.CaptureFixture[str]) -> None:
    default = {"size": 1, "layers": (8, 4)}
    handed_in(folder, [{"size": 1, "layers": (8, 4)}, {"size": 2, "layers": (8, 4)}], 1)
    (folder.runs / "param_002" / "2024_num0").mkdir()
    options = {"ludwig_data_path": folder.share, "verbose": False}
    asked = {**options, "label_params": ["layers"], "verbose_plus": True}
    found = list(gen_param_paths("digits", {"size": [2]}, default, **asked))  # type: ignore[arg-type]
    assert found == [(folder.runs / "param_002", "layers=(8, 4)\nsize=2\nn=1")]
    assert "Ludwig: param_001: {" in capsys.readouterr().out
    with pytest.raises(SystemExit, match="Found 1 but requested 2"):
        list(gen_param_paths("digits", {"size": [2, 3]}, default, **options))  # type: ignore[arg-type]


def test_the_drive_is_where_it_always_was(tmp_path: Path) -> None:
    assert find_share("/mnt/drive", {"LUDWIG_MNT": "/other"}) == Path("/mnt/drive")
    assert find_share(None, {"LUDWIG_MNT": str(tmp_path)}) == tmp_path
    (tmp_path / "ludwig_data").mkdir()
    assert find_share(None, {"LUDWIG_MNT": str(tmp_path)}) == tmp_path / "ludwig_data"
    assert find_share(None, {}).parent in (Path("/media"), Path("/Volumes"))
    assert on_nodes(Path("/Volumes/ludwig_data")) == Path("/media/ludwig_data")
    assert on_nodes(Path("/mnt/x")) == Path("/mnt/x")
    with pytest.raises(errors.InvalidInput, match=r"the shared drive .* is not there"):
        ProjectFolder(tmp_path / "away", "digits").check()


def test_projects_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "lib" / "mine").mkdir(parents=True)
    with pytest.raises(errors.InvalidInput, match=r"neither .*run\.py nor a job\.py in lib/mine"):
        ProjectLayout.find(tmp_path, ["lib/mine"], "run.py")
    (tmp_path / "lib" / "mine" / "job.py").touch()
    layout = ProjectLayout.find(tmp_path, [Path("lib/mine")], "run.py")
    assert (layout.package, layout.program, layout.code, layout.import_from) == (
        "mine",
        None,
        ("lib/mine",),
        [".", "lib"],
    )
    (tmp_path / "run.py").touch()
    assert ProjectLayout.find(tmp_path, [tmp_path / "lib" / "mine"], "run.py").code == ("lib/mine", "run.py")
    assert ProjectLayout.find(tmp_path, ["lib/mine"], None).package == "mine"
    for wrong in ("src", "..", "."):
        with pytest.raises(errors.InvalidInput, match="src_ps"):
            ProjectLayout.find(tmp_path, [wrong], "run.py")
