"""A node behind an sshd on this machine, driven by a yard, and reached by ssh, rsync and scp."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench import harness
from tests.labs.accounts import NODE_PYTHON
from tests.labs.sshd import SshLab
from tests.labs.waiting import until
from tests.labs.yard import Yard

SITE, NODE = "boxes", "hoff"


class Node:
    """`yard` has it as its site; `place` is on its disk, and everybody may write there."""

    def __init__(self, lab: SshLab, yard: Yard, place: Path) -> None:
        self.lab, self.yard, self.place = lab, yard, place
        self._ssh = shutil.copy(lab.configuration, yard.home / "ssh_config")  # connections are shared by its name
        self._add_site()

    def ssh(self, command: str) -> list[str]:
        return [*self._plain_ssh(), NODE, command]

    def rsync(self, folder: Path, target: Path) -> list[str]:
        return ["rsync", "-a", "--stats", "-e", " ".join(self._plain_ssh()), f"{folder}/", f"{NODE}:{target}"]

    def scp(self, source: Path, target: Path) -> list[str]:
        return ["scp", "-q", "-F", str(self.lab.configuration), f"{NODE}:{source}", str(target)]

    def _plain_ssh(self) -> list[str]:
        return ["ssh", "-F", str(self.lab.configuration)]

    def _add_site(self) -> None:
        added = self.yard.cli(
            "site", "add", SITE, "--kind", "ssh", "--ssh", NODE, "--dir", str(self.place / "site"),
            "--python", NODE_PYTHON, "--option", f"ssh_config={self._ssh}", "--option", "cpus=2",
        )  # fmt: skip
        if added.returncode:
            raise SystemExit(added.stderr)
        client = self.yard.client()
        until(lambda: any(agent["state"] == "alive" for agent in client.site(SITE)["agents"]), "the node", timeout_s=60)


@contextmanager
def node(place: Path) -> Iterator[Node]:
    place.chmod(0o755)  # who logs in is somebody else
    disk = Path(tempfile.mkdtemp(prefix="node-", dir=place))
    disk.chmod(0o777)
    with SshLab([NODE]) as lab, harness.yard(place, local_site="named") as yard:
        yield Node(lab, yard, disk)


def write_random(path: Path, size: int) -> None:
    """Bytes that no compression shortens."""
    with path.open("wb") as file:
        for start in range(0, size, 1 << 20):
            file.write(os.urandom(min(1 << 20, size - start)))


def run(command: list[str], **options: object) -> str:
    """What a command says that must succeed."""
    done = subprocess.run(command, check=True, capture_output=True, text=True, **options)  # type: ignore[call-overload]
    return str(done.stdout)
