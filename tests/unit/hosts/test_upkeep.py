"""A cache that two agents keep within its limit at the same time."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from runyard.hosts.far import trees, upkeep
from runyard.hosts.far.stock import Stock


def beat() -> None:
    pass


def add(stock: Stock, data: bytes) -> str:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    stock.receive(digest, 0, [data], beat)
    return digest


def share(stock: Stock, data: bytes) -> str:
    rows = [["a.txt", add(stock, data), len(data), 0]]
    digest = add(stock, json.dumps({"files": rows, "links": []}, separators=(",", ":")).encode())
    stock.share(digest, trees.parse(Path(os.fsdecode(stock.blob(digest))).read_bytes()), beat)
    return digest


def test_what_has_just_arrived_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that tidies up at every moment of another one's transfer removes nothing of it."""
    stock, other, rename = Stock(os.fsencode(tmp_path), "one"), Stock(os.fsencode(tmp_path), "two"), os.rename

    def after_tidying(source: bytes, target: bytes) -> None:
        upkeep.tidy(other, os.fsencode(tmp_path / "runs"), [1 << 30, 1], [], 0, beat)
        rename(source, target)

    monkeypatch.setattr(os, "rename", after_tidying)
    digest = add(stock, b"data")
    assert stock.has(digest, 4, beat)


def test_what_somebody_else_has_removed_is_no_trouble(tmp_path: Path) -> None:
    stock, other = Stock(os.fsencode(tmp_path), "one"), Stock(os.fsencode(tmp_path), "two")
    first, second = share(stock, b"first"), share(stock, b"second")
    shelf = upkeep._Shelf(stock, beat)
    os.rename(stock.tree(first), stock.tree(first) + b".0.tmp")  # what the other one is removing just now
    upkeep._evict(stock, shelf, 0, beat)
    assert not os.path.exists(stock.tree(second))
    assert upkeep.tidy(other, os.fsencode(tmp_path / "runs"), [1, 1], [], 0, beat) == 0
