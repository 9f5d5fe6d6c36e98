"""A kind of site from a plug-in runs runs: with slots as its backend says, and without a queue of its own."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard import errors, kinds
from runyard.agent import sites
from runyard.agent.errands import InlineErrands
from runyard.model.site import SiteSpec
from runyard.model.spec import RunSpec
from runyard.server.embedded import DirectLink
from runyard.settings import Settings
from runyard.testing.backend_contract import until
from runyard.yard import Yard

PLUG_IN = """
from runyard.backends.local import LocalBackend
from runyard.model.resources import Capacity

class Plain(LocalBackend):
    @classmethod
    def build(cls, directory, options, host=None):
        return cls(directory, zygote=False)

class Small(Plain):
    def capacity(self):
        return Capacity(cpus=3, memory=1 << 30)

class Boundless(Plain):
    def capacity(self):
        return Capacity(elastic=True)
"""


@pytest.fixture
def yard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Yard]:
    """With a distribution installed that has three kinds of sites."""
    (tmp_path / "ry_kinds.py").write_text(PLUG_IN)
    info = tmp_path / "ry_kinds-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: ry-kinds\nVersion: 1\n")
    points = "".join(f"{name.lower()} = ry_kinds:{name}\n" for name in ("Plain", "Small", "Boundless"))
    (info / "entry_points.txt").write_text(f"[{kinds.GROUP}]\n{points}")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    kinds.plug_ins.cache_clear()
    with contextlib.closing(Yard.open(Settings(home=tmp_path / "home"))) as opened:
        yield opened
    kinds.plug_ins.cache_clear()
    sys.modules.pop("ry_kinds", None)


def serve(yard: Yard, kind: str, home: Path) -> sites.Server:
    yard.sites.ensure("lab", kind).result()
    link = DirectLink(yard, yard.owner())
    return sites.build(link, "lab", SiteSpec(kind=kind), Settings(home=home, cpus=2), InlineErrands())


@pytest.mark.parametrize(("kind", "cpus"), [("plain", 2), ("small", 3)])
def test_a_kind_without_a_queue_of_its_own_runs_a_run(yard: Yard, tmp_path: Path, kind: str, cpus: int) -> None:
    with contextlib.closing(serve(yard, kind, tmp_path / "home")) as agent:
        run = yard.submit(yard.owner(), [RunSpec.parse({"command": ["echo", "hello"]})]).result()[0].id

        def is_over() -> bool:
            agent.tick()
            return yard.run_states([run])[run] in ("succeeded", "failed")

        until(is_over, "the end of the run")
        assert yard.get_run(run)["state"] == "succeeded"
        assert yard.read_log(run, 0, 100) == b"hello\n"
        assert [agent["total"]["cpus"] for agent in yard.sites.get("lab")["agents"]] == [cpus]


def test_a_kind_that_takes_everything_without_a_queue_is_refused(yard: Yard, tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match=r"'boundless'.*Queueing"):
        serve(yard, "boundless", tmp_path / "home")
