"""A Docker on a machine of its own (root only). Its base image is made from Debian's packages: there is no registry."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Self

from tests.labs import waiting
from tests.labs.daemons import ENV, Daemons, LabError
from tests.labs.lab import Lab
from tests.labs.machines import Network

_ROOT = Path(__file__).resolve().parents[2]
_MACHINE = "docks"
_HIERARCHIES = Path("/sys/fs/cgroup")
_PIP = "[global]\nno-index = true\nfind-links = /opt/wheels\n"
_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*")


class DockerLab(Lab):
    """
    env      what makes a command `docker` talk to it
    address  where this machine reaches the ports that containers publish
    base     an image to build others from: Debian and its Python, with what pip installs for runyard
    """

    base = "lab-base"

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="ry-docker-", dir="/var/tmp"))
        self.logs = self.root / "log"
        self.logs.mkdir()
        group = self.root.name
        leftovers = [self.root, *(found / group for found in _HIERARCHIES.iterdir()), _HIERARCHIES / group]
        self._leaver = Daemons(self.logs, leftovers=leftovers)
        self._network = Network(self.root, [_MACHINE])
        self.address = self._network.address_of(_MACHINE)
        self._data = self.root / "data"
        socket = f"unix://{self.root}/docker.sock"
        self.env = {**ENV, "HOME": str(self.root), "DOCKER_HOST": socket, "DOCKER_BUILDKIT": "1"}
        # Debian's own: another one on the PATH may lack the part that builds.
        self.env["PATH"] = f"/usr/bin:/usr/sbin:{ENV['PATH']}"
        self._dockerd = [
            "dockerd", "--config-file", str(self.root / "daemon.json"), "--data-root", str(self._data),
            "--exec-root", "/run/docker", "--pidfile", "/run/docker.pid", "--host", socket,
            "--storage-driver", "overlay2", "--cgroup-parent", f"/{group}",
        ]  # fmt: skip

    def start(self) -> Self:
        (self.root / "daemon.json").write_text("{}")
        self._data.mkdir()
        machine = self._network.power_on(_MACHINE).daemons
        # Another Docker's things lie in the first place; and what lies in memory is gone with the machine, at once.
        for place in ("/run", str(self._data)):
            machine.run("mount", "-t", "tmpfs", "-o", "size=4g", "tmpfs", place)
        machine.spawn("dockerd", self._dockerd)
        waiting.until(self._is_up, "dockerd answers")
        self._import_base()
        return self

    def stop(self) -> None:
        self._network.close()
        self._leaver.close()

    def tidy(self) -> None:
        """No container, and no volume; images stay."""
        for container in self.docker("ps", "--all", "--quiet").split():
            self.docker("rm", "--force", "--volumes", container)
        for volume in self.docker("volume", "ls", "--quiet").split():
            self.docker("volume", "rm", volume)

    def docker(self, *words: str) -> str:
        return self.sh(shlex.join(["docker", *words]), self.root)

    def sh(self, line: str, directory: Path) -> str:
        """What a line for the shell says, in which `docker` is this one."""
        done = subprocess.run(
            ["sh", "-ec", line], cwd=directory, env=self.env, capture_output=True, text=True, timeout=300, check=False
        )
        if done.returncode:
            raise LabError(f"{line}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def inspect(self, container: str, template: str) -> str:
        return self.docker("inspect", "--format", template, container).strip()

    def _is_up(self) -> bool:
        done = subprocess.run(["docker", "version"], env=self.env, capture_output=True, timeout=60, check=False)
        return done.returncode == 0

    def _import_base(self) -> None:
        """Images have no devices of their own: Docker makes those that a container needs."""
        wheels, archive = self.root / "wheels", self.root / "base.tar"
        _download(wheels)
        (self.root / "pip.conf").write_text(_PIP)
        _run(
            "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", "--include=python3-venv", "--skip=output/dev",
            '--aptopt=Acquire::Retries "3"', "--dpkgopt=force-unsafe-io",
            *(f"--dpkgopt=path-exclude={path}" for path in _LEFT_OUT),
            f"--customize-hook=copy-in {wheels} /opt", f"--customize-hook=upload {self.root}/pip.conf /etc/pip.conf",
            _suite(), str(archive),
        )  # fmt: skip
        self.docker("import", str(archive), self.base)
        archive.unlink()
        shutil.rmtree(wheels)


def _download(target: Path) -> None:
    """What an image of runyard installs, and what builds runyard, for the Python of this machine's Debian."""
    project = tomllib.loads((_ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    wanted += [name for extra in ("postgres", "rabbitmq", "s3", "sweep") for name in extras[extra]]
    version = _run("/usr/bin/python3", "-c", "import sys; print('{}.{}'.format(*sys.version_info))").strip()
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet"]
    _run(*pip, "--only-binary=:all:", "--python-version", version, "--dest", str(target), *wanted)


def _suite() -> str:
    lines = Path("/etc/os-release").read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["VERSION_CODENAME"]


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise LabError(f"{command[0]}: exit {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout
