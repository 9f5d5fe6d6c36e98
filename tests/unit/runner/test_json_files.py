from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard.runner import json_files

any_bytes = st.binary(max_size=200)


@given(any_bytes)
def test_any_bytes_survive_a_document(data: bytes) -> None:
    text = json_files.to_text(data)
    line = json_files.line({"text": text})
    assert line.isascii()
    assert line.count(b"\n") == 1
    assert json_files.to_bytes(text) == data


def test_a_document_comes_back(tmp_path: Path) -> None:
    path = str(tmp_path / "document.json")
    for document in ({"text": json_files.to_text(b"\xff\n\xc3\xbc")}, {"other": [1, None]}):
        json_files.write(path, document)
        assert json_files.read(path) == document
    assert os.listdir(tmp_path) == ["document.json"]


def test_a_document_may_be_written_with_raw_bytes_too(tmp_path: Path) -> None:
    (tmp_path / "raw").write_bytes(b'{"text": "\xc3\xbc \xff \\udc80"}')
    document = json_files.read(str(tmp_path / "raw"))
    assert json_files.to_bytes(document["text"]) == b"\xc3\xbc \xff \x80"


@pytest.mark.parametrize("content", [b"", b"{", b'{"a": 1', b"\xff"])
def test_half_a_document_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "half").write_bytes(content)
    assert json_files.read(str(tmp_path / "half")) is None
    assert json_files.read(str(tmp_path / "missing")) is None


def test_a_large_document_is_read_to_its_end(tmp_path: Path) -> None:
    json_files.write(str(tmp_path / "large"), {"text": "x" * 1_000_000})
    assert len(json_files.read(str(tmp_path / "large"))["text"]) == 1_000_000


def test_patience_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert json_files.write_patiently("missing/status.json", {}, patience_s=0.1) is False


def test_nobody_waits_for_a_removed_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert json_files.write_patiently("status.json", {}, patience_s=600) is False
