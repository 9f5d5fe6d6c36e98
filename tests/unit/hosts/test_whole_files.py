"""A search for whole files leaves out what is written to while it is read."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runyard.hosts.base import OutputSearch
from runyard.hosts.far import outputs


def find(place: Path, beat: Callable[[], None], *, whole: bool) -> list[dict[str, Any]]:
    search = OutputSearch(directory=str(place), pattern=".*", whole=whole)
    return list(outputs.find(dataclasses.asdict(search), beat))


def test_one_that_grows_is_torn(tmp_path: Path) -> None:
    growing, still = tmp_path / "growing", tmp_path / "still"
    growing.write_bytes(b"x")
    still.write_bytes(b"x")

    def write_more() -> None:
        with growing.open("ab") as file:
            file.write(b"y" if growing.stat().st_size < 100 else b"")

    found = find(tmp_path, write_more, whole=True)
    assert [each.get("torn", each.get("path")) for each in found] == ["growing", "still"]
    assert "torn" in found[0] and "torn" not in found[1]


def test_one_that_is_rewritten_in_place_is_torn(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10)
    assert find(tmp_path, lambda: _overwrite(tmp_path / "a"), whole=True) == [{"torn": "a"}]
    assert "digest" in find(tmp_path, lambda: _overwrite(tmp_path / "a"), whole=False)[0], "whoever asks for the rest"


def test_one_that_is_replaced_by_a_rename_is_whole(tmp_path: Path) -> None:
    """As programs should save: what was opened is the file of before, and nobody writes to it."""
    (tmp_path / "a").write_bytes(b"old")

    def replace() -> None:
        beside = tmp_path.parent / f"{tmp_path.name}-beside"
        beside.write_bytes(b"new")
        beside.rename(tmp_path / "a")

    [found] = find(tmp_path, replace, whole=True)
    assert found["size"] == 3 and "torn" not in found


def _overwrite(path: Path) -> None:
    with path.open("r+b") as file:
        file.write(b"z")
    path.touch()
