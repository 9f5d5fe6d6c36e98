"""Backends by name, built in or plugged in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard import errors, kinds
from runyard.backends import registry
from runyard.backends.local import LocalBackend

PLUG_IN = """
from runyard.backends.local import LocalBackend

class Mine(LocalBackend):
    pass

thing = 42
"""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A distribution with one good plug-in, and some that are not."""
    (tmp_path / "ry_test_plugin.py").write_text(PLUG_IN)
    info = tmp_path / "ry_test_plugin-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ry-test-plugin\nVersion: 1\n")
    points = {
        "mine": "ry_test_plugin:Mine",
        "gone": "ry_no_such_module:Gone",
        "odd": "ry_test_plugin:thing",
        "local": "ry_test_plugin:Mine",
    }
    lines = "".join(f"{name} = {place}\n" for name, place in points.items())
    (info / "entry_points.txt").write_text(f"[{kinds.GROUP}]\n{lines}")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    kinds.plug_ins.cache_clear()
    yield
    kinds.plug_ins.cache_clear()
    sys.modules.pop("ry_test_plugin", None)


def test_built_in_ones_are_there() -> None:
    assert registry.load("local") is LocalBackend


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(errors.ConfigError) as caught:
        registry.load("lokal")
    assert "'local'" in caught.value.fix


@pytest.mark.usefixtures("installed")
def test_a_plug_in_is_loaded_by_its_name() -> None:
    assert registry.load("mine").__name__ == "Mine"
    assert {"local", "mine"} <= set(kinds.names())


@pytest.mark.usefixtures("installed")
def test_a_broken_plug_in_is_told_and_disturbs_nobody() -> None:
    with pytest.raises(errors.ConfigError, match="ry_no_such_module"):
        registry.load("gone")
    with pytest.raises(errors.ConfigError, match="not a"):
        registry.load("odd")
    assert set(registry.broken()) == {"gone", "odd"}


@pytest.mark.usefixtures("installed")
def test_a_plug_in_cannot_take_a_built_in_name(caplog: pytest.LogCaptureFixture) -> None:
    assert "local" in kinds.names()
    assert registry.load("local") is LocalBackend
    assert "built-in" in caplog.text


@pytest.mark.usefixtures("installed")
def test_a_kind_is_known_by_its_name_alone() -> None:
    kinds.check("slurm")
    kinds.check("mine")
    with pytest.raises(errors.InvalidInput, match="there is no kind of site 'slrum'") as caught:
        kinds.check("slrum")
    assert "'slurm'" in caught.value.fix
