"""What a batch site keeps on disk, by the program that does it on the far side."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from runyard import runner
from runyard.backends.base import Batch, Job, StopRequest
from runyard.backends.batch import far
from runyard.backends.batch.dialect import Unanswered
from runyard.backends.batch.files import Fenced, Files, Trace
from runyard.hosts.local import LocalHost
from runyard.model.resources import Resources
from runyard.model.wire import AttemptKey
from tests.labs import components
from tests.labs.pythons import OTHER_PYTHONS


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(LocalHost(), str(tmp_path), sys.executable)


def job(tmp_path: Path, index: int) -> Job:
    directory = tmp_path / "runs" / f"ü {index}" / "a1"
    directory.mkdir(parents=True, exist_ok=True)
    return Job(key=AttemptKey(run=index, attempt=1), directory=str(directory), tag="t", batch="b", index=index)


def batch_of(*jobs: Job, name: str = "b", owner: str = "cedar") -> Batch:
    return Batch(name=name, resources=Resources(), jobs=jobs, owner=owner)


def enter(files: Files, *jobs: Job, again: bool = False) -> list[Trace | None]:
    return files.enter(batch_of(*jobs), "#!/bin/sh\n", ["b"], again=again)


def test_a_batch_is_entered_once(files: Files, tmp_path: Path) -> None:
    jobs = [job(tmp_path, index) for index in (1, 2, 10)]
    assert enter(files, *jobs) == [None, None, None]
    manifest = json.loads((tmp_path / "batches/b/manifest.json").read_text())
    assert manifest == {
        "batch": "b",
        "owner": "cedar",
        "names": ["b"],
        "jobs": {str(each.index): each.directory for each in jobs},
    }
    assert (tmp_path / "batches/b/job.sh").read_text() == "#!/bin/sh\n"
    assert all(trace is not None and trace.entered is not None for trace in enter(files, *jobs))


def test_what_is_entered_later_is_added(files: Files, tmp_path: Path) -> None:
    enter(files, job(tmp_path, 2))
    first, second = enter(files, job(tmp_path, 1), job(tmp_path, 2))
    assert (first, second is not None) == (None, True)
    files.enter(batch_of(job(tmp_path, 1001)), "#!/bin/sh\n", ["b.o1000"])
    manifest = json.loads((tmp_path / "batches/b/manifest.json").read_text())
    assert (list(manifest["jobs"]), manifest["names"]) == (["1", "2", "1001"], ["b", "b.o1000"])


def test_the_age_of_a_batch_begins_anew_when_it_is_handed_over_again(files: Files, tmp_path: Path) -> None:
    one = job(tmp_path, 1)
    enter(files, one)
    os.utime(tmp_path / "batches/b/manifest.json", (0, 0))
    [old] = enter(files, one)
    assert old is not None and old.entered is not None and old.entered > 1e9
    enter(files, one, again=True)
    entered = files.look([one])[one.key].entered
    assert entered is not None and entered < 60


def test_traces(files: Files, tmp_path: Path) -> None:
    never, entered, started, ended = (job(tmp_path, index) for index in range(1, 5))
    enter(files, entered, started, ended)
    for each in (started, ended):
        Path(each.directory, "started").mkdir()
    Path(ended.directory, "status.json").write_text('{"state": "ended"}')
    found = files.look([never, entered, started, ended])
    assert [found[each.key].is_untouched for each in (never, entered)] == [True, False]
    assert [found[each.key].started for each in (entered, started, ended)] == [False, True, True]
    assert [found[each.key].recorded for each in (started, ended)] == [False, True]
    assert (found[started.key].quiet or 0) < 60
    assert found[entered.key].quiet is None
    assert files.look([]) == {}


def test_the_output_of_the_native_job_is_found_by_its_name(files: Files, tmp_path: Path) -> None:
    low, high = job(tmp_path, 7), job(tmp_path, 1007)
    files.enter(batch_of(low, high), "", ["b", "b.o1000"])
    (tmp_path / "batches/b/b.7.out").write_text("I am\n  seven\n")
    (tmp_path / "batches/b/b.o1000.7.out").write_bytes(b"x" * 2000 + b" \xff the last word")
    found = files.look([low, high])
    assert found[low.key].words == "I am seven"
    assert found[high.key].words.endswith("� the last word")
    assert len(found[high.key].words) <= far.WORDS
    assert None not in (found[low.key].spoke, found[high.key].spoke)


def test_acknowledgements_survive_half_a_line(files: Files, tmp_path: Path) -> None:
    one, two = job(tmp_path, 1), job(tmp_path, 2)
    enter(files, one, two)
    files.accept("b", "12", [1])
    with (tmp_path / "batches/b/accepted").open("a") as file:
        file.write('{"id": "13", "ind')
    found = files.look([one, two])
    assert [found[each.key].accepted for each in (one, two)] == ["12", ""]


def test_a_fence_keeps_what_has_not_begun_from_beginning(files: Files, tmp_path: Path) -> None:
    waiting, running, unstaged = job(tmp_path, 1), job(tmp_path, 2), job(tmp_path, 3)
    Path(running.directory, "started").mkdir()
    Path(unstaged.directory).rmdir()
    stops = [StopRequest(job=each, reason="user", grace=5) for each in (waiting, running, unstaged)]
    assert [told and told.prevented for told in files.fence(stops)] == [True, False, True]
    record = json.loads(Path(waiting.directory, "status.json").read_text())
    assert (record["state"], record["ending"], record["stop_reason"]) == ("ended", "stopped", "user")
    assert not Path(running.directory, "status.json").exists()
    assert json.loads(Path(running.directory, "control.json").read_text()) == {"stop": {"reason": "user", "grace": 5}}


def test_a_fence_without_a_record(files: Files, tmp_path: Path) -> None:
    one = job(tmp_path, 1)
    assert files.fence([StopRequest(job=one, reason="lost", grace=0)], record=False) == [Fenced(prevented=True, told=0)]
    assert sorted(os.listdir(one.directory)) == ["control.json", "started"]


def test_the_runner_is_copied_whole(files: Files) -> None:
    files.install_runner()
    place = Path(files.runner_directory)
    copied = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
    assert copied == set(runner.files())


def test_the_runner_stays_the_one_that_was_installed(
    files: Files, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody installs another version of runyard while the yard is up."""
    files.install_runner()
    shutil.copytree(runner.HERE, tmp_path / "newer")
    (tmp_path / "newer" / "more.py").touch()
    monkeypatch.setattr(runner, "HERE", str(tmp_path / "newer"))
    files.install_runner()
    assert Path(files.runner_directory, "__main__.py").is_file()


def test_problems_are_told_in_a_sentence(files: Files, tmp_path: Path) -> None:
    (tmp_path / "batches").write_text("")
    with pytest.raises(Unanswered, match="batches"):
        enter(files, job(tmp_path, 1))
    with pytest.raises(Unanswered, match="no-python"):
        Files(LocalHost(), str(tmp_path), "/no-python").look([job(tmp_path, 1)])


@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_the_far_side_runs_on_old_interpreters(version: str, tmp_path: Path) -> None:
    files = Files(LocalHost(), str(tmp_path), str(components.python(version)))
    one = job(tmp_path, 1)
    assert enter(files, one) == [None]
    files.accept("b", "12", [1])
    assert files.look([one])[one.key].accepted == "12"
    assert files.fence([StopRequest(job=one, reason="user", grace=1)]) == [Fenced(prevented=True, told=0)]


def test_the_far_side_needs_nothing_but_the_standard_library() -> None:
    text = Path(far.__file__).read_text()
    done = subprocess.run([sys.executable, "-I", "-S", "-c", text], input="{}", capture_output=True, text=True)
    assert "KeyError" in done.stderr


def test_batches_are_found_by_their_yard_and_their_owner(files: Files, tmp_path: Path) -> None:
    assert files.owned("ry-1-", "cedar") == []
    for name, owner in [("ry-1-1-1", "cedar"), ("ry-1-2-7", "cedar"), ("ry-1-1-2", "oak"), ("ry-11-1-1", "cedar")]:
        files.enter(batch_of(job(tmp_path, 1), name=name, owner=owner), "", [name])
    (tmp_path / "batches/ry-1-1-9").mkdir()  # whose it is was not written yet
    assert files.owned("ry-1-", "cedar") == ["ry-1-1-1", "ry-1-2-7"]


def test_a_removal_that_was_cut_short_goes_on(files: Files, tmp_path: Path) -> None:
    batches = tmp_path / "batches"
    for name in ("ry-1-1-1", "ry-1-1-2", "ry-2-1-1"):
        files.enter(batch_of(job(tmp_path, 1), name=name), "", [name])
    files.remove(["ry-1-1-1"])
    for half in ("ry-1-1-2", "ry-2-1-1"):
        (batches / half / "manifest.json").unlink()
        (batches / half).rename(batches / f"{half}.removed")
    assert files.owned("ry-1-", "cedar") == []
    assert [path.name for path in batches.iterdir()] == ["ry-2-1-1.removed"], "that is another yard's affair"
