"""What is written beside a bundle, in a directory that belongs to somebody else."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard import errors
from runyard.agent.spool import place, shelf
from runyard.agent.spool.notes import Note, Notes
from runyard.agent.spool.shelf import NotOurs

NOTE = Note(name="one", inode=1, key="k" * 32)
EMPTY = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"


@pytest.fixture
def box(tmp_path: Path) -> Iterator[int]:
    (tmp_path / "box").mkdir()
    with place.opened(tmp_path / "box") as opened:
        yield opened


def test_states_logs_and_outputs(box: int, tmp_path: Path) -> None:
    beside = tmp_path / "box" / "one.state"
    before = os.umask(0o077)
    try:
        with shelf.opened(box, NOTE) as found:
            found.write_state({"state": "running"})
            found.add_to_log(b"one\n")
            found.add_to_log(b"two\n")
            assert found.log_size() == 8
            with found.outputs() as outputs:
                outputs.write("a/b", EMPTY, [], True)
                assert outputs.has("a/b", EMPTY)
                assert not (beside / "outputs").exists()
    finally:
        os.umask(before)
    assert json.loads((beside / "state.json").read_text()) == {"state": "running"}
    assert (beside / "log").read_text() == "one\ntwo\n"
    modes = {
        path: (beside / path).stat().st_mode & 0o777 for path in ("", "state.json", "log", "outputs", "outputs/a/b")
    }
    assert modes == {"": 0o755, "state.json": 0o644, "log": 0o644, "outputs": 0o755, "outputs/a/b": 0o755}


def test_outputs_that_arrive_damaged_or_lead_out(box: int) -> None:
    with shelf.opened(box, NOTE) as found:
        with pytest.raises(errors.YardUnreachable, match="damaged"), found.outputs() as outputs:
            outputs.write("a", EMPTY, [b"x"], False)
        with pytest.raises(errors.InvalidInput, match="plain relative path"), found.outputs() as outputs:
            outputs.write("../../a", EMPTY, [], False)
        assert not found.has_outputs()


def test_a_link_in_its_place_is_not_followed(box: int, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "box" / "one.state").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(NotOurs), shelf.opened(box, NOTE) as found:
        found.write_state({})
    assert not any((tmp_path / "elsewhere").iterdir())


def test_the_state_of_another_bundle_is_left_alone(box: int, tmp_path: Path) -> None:
    with shelf.opened(box, NOTE) as found:
        found.write_state({"state": "succeeded"})
    other = NOTE.evolve(key="other")
    with pytest.raises(NotOurs, match="belongs to another agent or another bundle"), shelf.opened(box, other):
        pass
    shelf.remove(box, other)
    assert (tmp_path / "box" / "one.state").exists()
    shelf.remove(box, NOTE)
    assert list((tmp_path / "box").iterdir()) == []


@pytest.mark.component("root")
def test_a_folder_of_somebody_else(box: int, tmp_path: Path) -> None:
    theirs = tmp_path / "box" / "one.state"
    theirs.mkdir()
    (theirs / ".key").write_text(NOTE.key)
    os.chown(theirs, 12345, 12345)
    with pytest.raises(NotOurs, match="created by another user"), shelf.opened(box, NOTE):
        pass


def test_directories_that_are_no_drop_boxes(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(errors.ConfigError, match="cannot be opened"):
        place.check(tmp_path / "none")
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(errors.ConfigError, match="cannot be opened"):
        place.check(tmp_path / "link")
    tmp_path.chmod(0o777)
    with pytest.raises(errors.ConfigError, match="every user can rename"):
        place.check(tmp_path)
    tmp_path.chmod(0o1777)
    place.check(tmp_path)
    assert not caplog.records


@pytest.mark.component("root")
def test_a_foreign_group_that_can_rename_is_warned_of(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o770)
    place.check(tmp_path)
    assert not caplog.records
    os.chown(tmp_path, 0, 12345)
    place.check(tmp_path)
    assert "chmod +t" in caplog.text


def test_one_process_looks_into_a_drop_box(tmp_path: Path) -> None:
    with place.held(tmp_path) as ours, place.held(tmp_path) as theirs:
        assert (ours, theirs) == (True, False)
    with place.held(tmp_path) as ours:
        assert ours


def test_notes_survive(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")
    odd = Note(name="a\udcff/..", inode=3, key="k", owner="ada", run={"command": "true"})
    notes.keep(NOTE)
    notes.keep(odd)
    notes.keep(odd.evolve(id=7))
    again = Notes(tmp_path / "notes")
    assert {note.name: note for note in again.all()} == {"one": NOTE, odd.name: odd.evolve(id=7)}
    again.drop("one")
    assert [note.name for note in Notes(tmp_path / "notes").all()] == [odd.name]
