"""Code and data from a person's folder to the runs: on one machine, on nodes behind ssh, on clusters."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acceptance import test_ssh_nodes
from tests.acceptance.cluster_yard import SITE, ClusterYard
from tests.acceptance.test_ssh_nodes import NodeYard
from tests.labs.cluster import Cluster
from tests.labs.nodes import NodeLab
from tests.labs.waiting import until
from tests.labs.yard import Yard

pytestmark = pytest.mark.component("git")

PROGRAM = "import sys\nprint(sys.argv[1], open('lib/rate').read(), open('new').read(), open('corpora/words').read())\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "project")


def make_project(folder: Path) -> Path:
    """A checkout with a commit, an edit, a new file, something ignored, and data."""
    files = {"train.py": PROGRAM, "lib/rate": "0.1", "old.ckpt": "x", "corpora/words": "a"}
    for name, text in {**files, ".gitignore": "*.ckpt\n/corpora\n"}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    identity = ["-c", "user.name=Ada", "-c", "user.email=ada@lab.example"]
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    (folder / "lib/rate").write_text("0.2")
    (folder / "new").write_text("dirty")
    return folder


def submit(yard: Yard, folder: Path, *words: str) -> int:
    done = yard.cli("submit", "--quiet", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    return int(done.stdout.split()[-1])


def test_what_was_submitted_is_what_runs(make_yard: Callable[..., Yard], project: Path, tmp_path: Path) -> None:
    yard = make_yard(cpus=1)
    waits = yard.client().submit(["sh", "-c", f"until [ -e {tmp_path}/go-on ]; do sleep 0.1; done"], code=False)
    runs = [submit(yard, project, "--data", "corpora", "--", "python3", "train.py", str(n)) for n in range(3)]
    (project / "lib/rate").write_text("9")
    (project / "corpora/words").write_text("z")
    (project / "new").unlink()
    (tmp_path / "go-on").touch()
    for number, run in enumerate(runs):
        assert yard.client().run(run).wait(timeout=120).state == "succeeded", yard.client().run(run).logs()
        assert yard.client().run(run).logs() == f"{number} 0.2 dirty a\n"
    assert waits.wait(timeout=120).state == "succeeded"
    until(lambda: not list(yard.runs.glob("*/a*/code")), what="the copies are gone")


def test_a_path_at_the_site_is_used_where_it_is(make_yard: Callable[..., Yard], project: Path, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    (tmp_path / "there/words").write_text("at the site")
    yard = make_yard(cpus=1)
    good = submit(yard, project, "--data", f"corpora={tmp_path}/there", "--", "python3", "train.py", "1")
    lost = submit(yard, project, "--data", "/no/such/place", "--", "true")
    assert yard.client().run(good).wait(timeout=120).logs() == "1 0.2 dirty at the site\n"
    ended = yard.client().run(lost).wait(timeout=120)
    assert (ended.state, ended.reason) == ("failed", "staging")
    assert "/no/such/place: does not exist at this site" in yard.cli("show", str(lost)).stdout


# --- where the yard's own disk is not the run's -----------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Far:
    """A yard with a site somewhere else, and a person's project from which it is used."""

    cli: Callable[..., subprocess.CompletedProcess[str]]
    project: Path
    site: str

    def submit(self, *words: str) -> str:
        told = ("--quiet", "--site", self.site, "--code", ".", "--data", "corpora", "--", "python3", "train.py", *words)
        done = self.cli("submit", *told, cwd=self.project)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def log(self, run: str) -> str:
        waited = self.cli("wait", run, "--timeout", "180s", timeout=240)
        assert waited.returncode == 0, waited.stderr + self.cli("show", run).stdout
        return self.cli("logs", run).stdout


def nodes(request: pytest.FixtureRequest) -> Iterator[Far]:
    lab: NodeLab = request.getfixturevalue("node_lab")()
    yard = Yard(local_site="named")
    try:
        boxes = NodeYard(lab, yard)
        boxes.add_site()
        boxes.until_up()
        yield Far(cli=yard.cli, project=make_project(yard.home / "project"), site=test_ssh_nodes.SITE)
    finally:
        yard.remove()


def cluster(request: pytest.FixtureRequest) -> Iterator[Far]:
    lab: Cluster = request.getfixturevalue(f"{request.param}_lab")()
    yard = ClusterYard(lab, request.param)
    yard.start()
    try:
        yard.add_site()
        project = make_project(yard.home / "project")
        for path in (project, *project.rglob("*")):
            lab.user.own(path)
        yield Far(cli=yard.cli, project=project, site=SITE)
    finally:
        yard.stop()


@pytest.fixture(params=["ssh", "slurm", "gridengine"])
def far(request: pytest.FixtureRequest) -> Iterator[Far]:
    yield from nodes(request) if request.param == "ssh" else cluster(request)


def test_a_dirty_checkout_and_its_data_arrive_elsewhere(far: Far) -> None:
    first = far.submit("1")
    (far.project / "lib/rate").write_text("9")
    (far.project / "corpora/words").write_text("z")
    second = far.submit("2")
    (far.project / "lib/rate").write_text("never")
    assert far.log(first) == "1 0.2 dirty a\n"
    assert far.log(second) == "2 9 dirty z\n"
