"""A cache that two agents keep within its limit at the same time."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from runyard.hosts.far import cache_cleanup, trees
from runyard.hosts.far.cache import CacheFiles


def beat() -> None:
    pass


def add(cache: CacheFiles, data: bytes) -> str:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    cache.receive(digest, 0, [data], beat)
    return digest


def share(cache: CacheFiles, data: bytes) -> str:
    rows = [["a.txt", add(cache, data), len(data), 0]]
    digest = add(cache, json.dumps({"files": rows, "links": []}, separators=(",", ":")).encode())
    cache.share(digest, trees.parse(Path(os.fsdecode(cache.blob(digest))).read_bytes()), beat)
    return digest


def test_what_has_just_arrived_is_not_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent that tidies up at every moment of another one's transfer removes nothing of it."""
    cache, other, rename = CacheFiles(os.fsencode(tmp_path), "one"), CacheFiles(os.fsencode(tmp_path), "two"), os.rename

    def after_tidying(source: bytes, target: bytes) -> None:
        cache_cleanup.tidy(other, os.fsencode(tmp_path / "runs"), [1 << 30, 1], [], 0, beat)
        rename(source, target)

    monkeypatch.setattr(os, "rename", after_tidying)
    digest = add(cache, b"data")
    assert cache.has(digest, 4, beat)


def test_what_somebody_else_has_removed_is_no_trouble(tmp_path: Path) -> None:
    cache, other = CacheFiles(os.fsencode(tmp_path), "one"), CacheFiles(os.fsencode(tmp_path), "two")
    first, second = share(cache, b"first"), share(cache, b"second")
    shelf = cache_cleanup._Shelf(cache, beat)
    os.rename(cache.tree(first), cache.tree(first) + b".0.tmp")  # what the other one is removing just now
    cache_cleanup._evict(cache, shelf, 0, beat)
    assert not os.path.exists(cache.tree(second))
    assert cache_cleanup.tidy(other, os.fsencode(tmp_path / "runs"), [1, 1], [], 0, beat) == 0
