"""Whose files they are: an OUTPUT_DIR that the user named may hold those of others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runyard.runner.metrics import folder
from tests.unit.runner.metrics.desk import Desk


@pytest.fixture
def place(outputs: Path, tmp_path: Path) -> Path:
    """A folder of the user's own."""
    path = tmp_path / "experiments"
    path.mkdir()
    return path


def rows(*pairs: tuple[int, float]) -> str:
    return "".join(f"{step},{loss}\n" for step, loss in pairs)


def test_what_was_there_is_not_read(place: Path) -> None:
    (place / "old.csv").write_text("step,loss\n1,0.5\n")
    (place / "old.npz").write_bytes(b"")
    desk = Desk(place)
    (place / "new.csv").write_text("step,loss\n2,0.25\n")
    desk.look()
    desk.finish()
    assert desk.points() == [("new/loss", 2, 0.25)]


def test_of_a_file_that_was_there_the_new_part_is_read(place: Path) -> None:
    path = place / "metrics.csv"
    path.write_text("step,loss,acc\n1,0.5,0.1\n")
    desk = Desk(place)
    with path.open("a") as file:
        file.write("2,0.25,0.2\n")
    desk.look()
    assert desk.points() == [("loss", 2, 0.25), ("acc", 2, 0.2)]


@pytest.mark.parametrize(
    "again",
    [rows((1, 0.5), (2, 0.25)), rows((1, 0.75)), rows((1, 0.25), (2, 0.125)), rows((1, 0.75), (2, 0.5), (3, 0.25))],
    ids=["the same", "shorter", "as long", "longer"],
)
def test_a_file_that_was_there_and_is_written_anew_is_read_from_its_beginning(place: Path, again: str) -> None:
    path = place / "metrics.csv"
    path.write_text("step,loss\n" + rows((1, 0.5), (2, 0.25)))
    os.utime(path, (1e9, 1e9))
    desk = Desk(place)
    path.write_text("step,loss\n" + again)
    desk.finish()
    assert "".join(f"{step},{loss}\n" for step, loss in desk.curve("loss")) == again


def test_another_file_of_the_same_name_is_read_from_its_beginning(place: Path) -> None:
    path = place / "metrics.csv"
    path.write_text("step,loss\n1,0.5\n")
    desk = Desk(place)
    (place / "draft").write_text("step,loss\n1,0.75\n2,0.5\n")
    (place / "draft").rename(path)
    desk.finish()
    assert desk.curve("loss") == [(1, 0.75), (2, 0.5)]


def test_links_are_not_followed(desk: Desk, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "metrics.csv").write_text("step,loss\n1,0.5\n")
    (desk.outputs / "linked").symlink_to(elsewhere)
    (desk.outputs / "metrics.csv").symlink_to(elsewhere / "metrics.csv")
    os.mkfifo(desk.outputs / "metrics.jsonl")
    desk.look()
    desk.finish()
    assert not desk.lines()


@pytest.mark.parametrize("up", [".", "..", "../../.."])
def test_the_attempts_own_files_and_those_of_other_runs_are_left_alone(outputs: Path, up: str) -> None:
    """What is read is written to a metrics.jsonl, which may lie below the folder that is read."""
    place = Path(up).resolve()
    other = outputs.parents[2] / "2" / "a1"
    other.mkdir(parents=True)
    desk = Desk(place)
    for path in (other / "metrics.jsonl", Path("metrics.jsonl")):
        path.write_text('{"t": 1763181001.0, "step": 1, "m": {"loss": 0.5}}\n')
    for _ in range(3):
        desk.look()
    desk.finish()
    assert len(desk.lines()) == 1


def test_hidden_folders_are_left_alone(desk: Desk) -> None:
    for name in (".venv", "__pycache__"):
        (desk.outputs / name).mkdir()
        (desk.outputs / name / "metrics.csv").write_text("step,loss\n1,0.5\n")
    desk.finish()
    assert not desk.lines()


def test_a_look_is_bounded(outputs: Path, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond the bound it is time that tells what is new."""
    monkeypatch.setattr(folder, "_MOST_ENTRIES", 5)
    Path("started").mkdir()
    (outputs.parent / "started" / "runner.json").write_text("{}")
    for number in range(20):
        path = place / f"{number}.csv"
        path.write_text("step,loss\n1,0.5\n")
        os.utime(path, (1e9, 1e9))
    desk = Desk(place)
    assert not desk.folder.written()
    for number in range(20):
        (place / f"{number}.csv").write_text("step,loss\n1,0.25\n")
    assert len(desk.folder.written()) == 5


def test_a_folder_that_is_not_there_yet(tmp_path: Path, outputs: Path) -> None:
    desk = Desk(tmp_path / "later")
    assert not desk.look()
    (tmp_path / "later").mkdir()
    (tmp_path / "later" / "metrics.csv").write_text("step,loss\n1,0.5\n")
    desk.look()
    assert desk.points() == [("loss", 1, 0.5)]


def test_files_that_come_and_go(desk: Desk) -> None:
    path = desk.outputs / "metrics.csv"
    path.write_text("step,loss\n1,0.5\n")
    found = desk.folder.written()
    path.unlink()
    assert not desk.reader.take(found, float("inf"))
    path.mkdir()
    assert not desk.reader.take(found, float("inf"))
    path.rmdir()
    path.write_text("step,loss\n1,0.5\n")
    desk.look()
    assert desk.points() == [("loss", 1, 0.5)]
