"""One look at many attempt directories."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runyard.hosts import scan as scanning
from runyard.hosts.base import CHUNK, Known, Seen
from runyard.hosts.scan import scan


def known(directory: str = "1/a1", **given: object) -> Known:
    return Known(**{"directory": directory, "offsets": {"log": 0}, **given})  # type: ignore[arg-type]


def attempt(root: Path, name: str = "1/a1", **files: str) -> Path:
    directory = root / name
    (directory / "started").mkdir(parents=True)
    for file, text in files.items():
        (directory / file.replace("_", ".")).write_text(text)
    return directory


def one(found: list[Seen]) -> Seen:
    [seen] = found
    return seen


def test_what_does_not_exist_is_no_news(tmp_path: Path) -> None:
    assert scan(str(tmp_path), [known()]) == []


def test_new_bytes_come_from_the_known_offset(tmp_path: Path) -> None:
    attempt(tmp_path, log="0123456789")
    seen = one(scan(str(tmp_path), [known(offsets={"log": 4, "stderr": 0}, started=True)]))
    assert seen.data == {"log": b"456789"}
    assert seen.sizes == {"log": 10}


def test_a_status_is_read_when_it_changed(tmp_path: Path) -> None:
    directory = attempt(tmp_path, status_json=json.dumps({"state": "running", "beat": 1}))
    first = one(scan(str(tmp_path), [known()]))
    assert (first.started, first.status) == (True, {"state": "running", "beat": 1})
    again = known(version=first.version, started=True)
    assert scan(str(tmp_path), [again]) == []
    draft = directory / "draft"
    draft.write_text(json.dumps({"state": "ended", "beat": 2}))
    draft.rename(directory / "status.json")
    assert one(scan(str(tmp_path), [again])).status == {"state": "ended", "beat": 2}


@pytest.mark.parametrize("half", ["", '{"state": "run', "[1, 2]", "\x00\x00"])
def test_half_a_status_is_unknown_and_read_again(tmp_path: Path, half: str) -> None:
    directory = attempt(tmp_path, status_json=half)
    assert scan(str(tmp_path), [known(started=True)]) == []
    (directory / "status.json").write_text('{"state": "ended"}')
    assert one(scan(str(tmp_path), [known(started=True)])).status == {"state": "ended"}


def test_started_alone_is_news(tmp_path: Path) -> None:
    attempt(tmp_path)
    assert one(scan(str(tmp_path), [known()])).started
    assert scan(str(tmp_path), [known(started=True)]) == []


def test_a_scan_brings_only_so_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scanning, "SCAN_BYTES", CHUNK + 10)
    for number in (1, 2, 3):
        attempt(tmp_path, f"{number}/a1", log="x" * (CHUNK + 5))
    found = scan(str(tmp_path), [known(f"{number}/a1", started=True) for number in (1, 2, 3)])
    assert [len(seen.data["log"]) for seen in found] == [CHUNK, 10]
