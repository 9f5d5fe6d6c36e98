"""Three nodes over ssh with a drive that they share, and a project as people had it for LudwigCluster."""

from __future__ import annotations

import contextlib
import csv
import functools
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from runyard.bridges.ludwig import Client
from runyard.client.run import Run
from tests.acceptance.witness import until
from tests.labs import trainer
from tests.labs.accounts import NODE_PYTHON, Account
from tests.labs.nodes import NodeLab
from tests.labs.yard import Yard

SITE = "boxes"


class LudwigLab:
    def __init__(self, nodes: NodeLab) -> None:
        self.nodes = nodes
        self.yard = Yard(local_site="named")
        self.place = Path(tempfile.mkdtemp(prefix="ry-ludwig-", dir="/var/tmp"))
        self.place.chmod(0o755)
        self.share, self.project = self.place / "drive", self.place / "project"
        self.share.mkdir()
        self.share.chmod(0o777)  # the nodes have another account
        self.project.mkdir()
        self.python, self.env = _interpreter(nodes.user)

    def start(self) -> LudwigLab:
        config = shutil.copy(self.nodes.configuration, self.yard.home / "ssh_config")
        (self.yard.home / "config.toml").write_text("lease = 5\n")
        self.yard.start()
        logins = [word for name in self.nodes.names for word in ("--ssh", name)]
        added = self.yard.cli(
            "site", "add", SITE, "--kind", "ssh", "--dir", self.nodes.directory, "--python", NODE_PYTHON,
            "--option", f"ssh_config={config}", "--option", "cpus=2", *logins,
        )  # fmt: skip
        assert added.returncode == 0, added.stderr
        self.until_alive(*self.nodes.names)
        return self

    def remove(self) -> None:
        self.yard.remove()
        shutil.rmtree(self.place, ignore_errors=True)

    def until_alive(self, *names: str) -> None:
        def alive() -> bool:
            shown = self.yard.client().site(SITE)["nodes"]
            return {node["name"] for node in shown if node["state"] == "alive"} >= set(names)

        until(alive, what=f"{names} in use", timeout=300)

    def client(self, project: str, param2default: Mapping[str, Any] | None = None) -> Client:
        return Client(project, param2default, share=self.share, python=self.python, yard=self.yard.client())

    def submit(self, client: Client, *arguments: Any, **options: Any) -> list[Run]:
        """From the project's folder."""
        with contextlib.chdir(self.project):
            return client.submit(*arguments, env=self.env, **options)

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    def ended(self, runs: Iterable[Run]) -> list[dict[str, Any]]:
        client = self.yard.client()
        ids = [run.id for run in runs]
        until(lambda: all(run.final for run in client.runs_by_id(ids).values()), what="all runs over", timeout=400)
        found = client.runs_by_id(ids)
        return [found[number].data for number in ids]

    def succeeded(self, runs: Iterable[Run]) -> list[dict[str, Any]]:
        shown = self.ended(runs)
        bad = [(run["id"], run["detail"], self.log(run["id"])) for run in shown if run["state"] != "succeeded"]
        assert not bad, bad
        return shown

    def log(self, run: int) -> str:
        return self.yard.cli("logs", str(run)).stdout

    def results(self, project: str) -> Counter[str]:
        """How many jobs of each configuration have left something."""
        return Counter(path.parent.name for path in (self.share / project / "runs").glob("param_*/*num*"))


@functools.cache
def _interpreter(account: Account) -> tuple[str, dict[str, str]]:
    return trainer.interpreter_for(account)


def read_csv(path: Path) -> list[list[str]]:
    with path.open() as file:
        return list(csv.reader(file))


def leftovers(folder: Path) -> Iterator[str]:
    """Files that only an unfinished job would leave."""
    for place, _, names in os.walk(folder):
        yield from (name for name in names if name.endswith(".pkl") or ".incoming" in place)
