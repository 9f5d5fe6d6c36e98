"""Backends by name, built in or plugged in."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard import errors, kinds
from runyard.backends import capacity, registry
from runyard.backends.base import Batch, Job
from runyard.backends.batch.lifecycle import BatchBackend
from runyard.backends.local import LocalBackend
from runyard.model.resources import Resources
from runyard.model.wire import AttemptKey

PLUG_IN = """
from runyard.backends.batch.slurm import Slurm
from runyard.backends.local import LocalBackend

class Mine(LocalBackend):
    pass

class Quiet(Slurm):
    title = "Quiet"
    signals = {"means": {"USR1": "end"}}

    @classmethod
    def job_script(cls):
        return "#!/bin/sh\\ntask=$QUIET_TASK\\n@common@\\n"

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
    (info / "entry_points.txt").write_text(
        f"[{kinds.GROUP}]\n{lines}[{kinds.DIALECTS}]\nquiet = ry_test_plugin:Quiet\nloud = ry_test_plugin:Mine\n"
    )
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
def test_a_dialect_is_a_kind_of_site_too(tmp_path: Path) -> None:
    made = registry.load("quiet").build(tmp_path, {"account": "lab"})
    assert isinstance(made, BatchBackend) and made.signals == {"means": {"USR1": "end"}}
    job = Job(key=AttemptKey(run=1, attempt=1), directory=str(tmp_path), tag="", batch="ry-x-1-1", index=1)
    said = made.dry_run(Batch(name="ry-x-1-1", resources=Resources(), jobs=(job,)))
    assert said.script.startswith("#!/bin/sh\ntask=$QUIET_TASK\n") and "exec" in said.script
    assert capacity.of_backend(made, "quiet", capacity.of_this_machine).elastic
    with pytest.raises(errors.ConfigError, match=r"is not a runyard\.backends\.batch\.dialect\.Dialect"):
        registry.load("loud")


@pytest.mark.usefixtures("installed")
def test_a_broken_plug_in_is_told_and_disturbs_nobody() -> None:
    with pytest.raises(errors.ConfigError, match="ry_no_such_module"):
        registry.load("gone")
    with pytest.raises(errors.ConfigError, match="not a"):
        registry.load("odd")
    assert set(registry.broken()) == {"gone", "odd", "loud"}


@pytest.mark.usefixtures("installed")
def test_a_plug_in_cannot_take_a_built_in_name(caplog: pytest.LogCaptureFixture) -> None:
    assert "local" in kinds.names()
    assert registry.load("local") is LocalBackend
    assert "built-in" in caplog.text


@pytest.mark.usefixtures("installed")
def test_a_kind_is_known_by_its_name_alone() -> None:
    kinds.check("slurm")
    kinds.check("mine")
    kinds.check("quiet")
    with pytest.raises(errors.InvalidInput, match="there is no kind of site 'slrum'") as caught:
        kinds.check("slrum")
    assert "'slurm'" in caught.value.fix
