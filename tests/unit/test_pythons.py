"""What of a site's Python environments stays, and what goes when there are too many."""

from __future__ import annotations

import os
from pathlib import Path

from runyard.pythons import inventory


def make(root: Path, name: str, used: float, *attempts: str, agent: str = "a1") -> Path:
    place = root / name
    (place / "one" / "bin").mkdir(parents=True)
    (place / "one" / "bin" / "python").write_text("x" * 1000)
    (place / "one" / "bin" / "python").chmod(0o700)
    inventory.succeed(str(place), "one")
    inventory.pin(str(place), agent, list(attempts))
    os.utime(place, (used, used))
    return place


def tidy(root: Path, agent: str, living: list[str], limit: int) -> None:
    inventory.tidy(str(root), inventory.over(str(root), agent, living), limit)


def there(*places: Path) -> list[bool]:
    return [inventory.current(str(place)) is not None for place in places]


def test_what_was_used_least_recently_goes_and_never_what_is_needed(tmp_path: Path) -> None:
    oldest = make(tmp_path, "oldest", 1.0, "7-a1")
    old, new = make(tmp_path, "old", 2.0, "3-a1"), make(tmp_path, "new", 3.0)
    tidy(tmp_path, "a1", ["7-a1"], 2500)
    assert there(oldest, old, new) == [True, False, True]


def test_others_pins_count_whatever_we_say(tmp_path: Path) -> None:
    theirs = make(tmp_path, "theirs", 1.0, "7-a1", agent="a10")
    tidy(tmp_path, "a1", [], 0)
    assert there(theirs) == [True]


def test_what_is_pinned_after_the_question_stays(tmp_path: Path) -> None:
    place = make(tmp_path, "one", 1.0, "3-a1")
    over = inventory.over(str(tmp_path), "a1", ["7-a1"])
    inventory.pin(str(place), "a1", ["9-a1"])
    inventory.tidy(str(tmp_path), over, 0)
    assert there(place) == [True]
    assert os.listdir(place / "pins") == ["a1.9-a1"]


def test_use_is_noted(tmp_path: Path) -> None:
    first, second = make(tmp_path, "first", 1.0), make(tmp_path, "second", 2.0)
    assert there(first) == [True]
    tidy(tmp_path, "a1", [], 1500)
    assert there(first, second) == [True, False]


def test_one_whose_interpreter_is_gone_is_none(tmp_path: Path) -> None:
    place = make(tmp_path, "one", 1.0)
    (place / "one" / "bin" / "python").unlink()
    assert there(place) == [False]


def test_logins_of_an_index_are_not_for_everybody(tmp_path: Path) -> None:
    log = tmp_path / "build.log"
    log.write_text("ERROR: https://me:secret@index.example/simple/x: 401\nsee https://docs.example/a@b\n")
    assert inventory.tail(str(log)) == ["ERROR: https://index.example/simple/x: 401", "see https://docs.example/a@b"]
