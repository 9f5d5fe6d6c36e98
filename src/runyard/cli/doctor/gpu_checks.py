"""What runs need to use a GPU, here and in containers: a driver, NVIDIA's container toolkit, and a container engine
configured for it. A machine without an NVIDIA GPU needs none of it."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runyard.app.diagnosis import NVML_LIBRARY
from runyard.cli.doctor.verdicts import FAIL, OK, WARN, Said

NVIDIA = "0x10de"
DISPLAY = "0x03"  # the class of graphics cards and accelerators on the PCI bus
MISMATCH = 18  # NVML: the library is of another version than the kernel's module
PATIENCE_S = 10
DEVICES = ("etc/cdi", "var/run/cdi")  # directories of CDI device descriptions for containers


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    root: Path = Path("/")
    path: str = field(default_factory=lambda: os.environ.get("PATH", os.defpath))
    library: str = NVML_LIBRARY

    def driver(self) -> Said:
        library, module = self._library_says(), self._module()
        if library == 0:
            return OK, f"version {module}" if module else "answers"
        if library == MISMATCH:
            return FAIL, "its library and its kernel module are of different versions", "reboot"
        if module:
            return WARN, f"version {module} is loaded, but its library does not answer", self._library_fix()
        if self._has_gpu():
            return WARN, "there is an NVIDIA GPU, but no driver for it", "apt-get install nvidia-driver, then reboot"
        return OK, "none, and no NVIDIA GPU"

    def toolkit(self) -> Said:
        if not self._gives_gpus_to_containers():
            return OK, "not needed here"
        said = self._answer(["nvidia-ctk", "--version"])
        if said is None:
            fix = "apt-get install nvidia-container-toolkit (from NVIDIA's repository)"
            return WARN, "containers cannot use the GPU: NVIDIA's container toolkit is not installed", fix
        return OK, said.splitlines()[0]

    def runtime(self) -> Said:
        """Docker uses the toolkit through a runtime or a CDI description, podman through the latter."""
        if not self._gives_gpus_to_containers():
            return OK, "not needed here"
        if described := [path for place in DEVICES for path in (self.root / place).glob("nvidia*")]:
            return OK, f"{self._engines()[0]}, by {described[0]}"
        if "docker" in self._engines():
            return self._docker()
        fix = "nvidia-ctk cdi generate --output=/etc/cdi/nvidia.yaml"
        return WARN, "podman has no CDI description of the GPUs", fix

    def _docker(self) -> Said:
        try:
            known = json.loads(self._answer(["docker", "info", "--format", "{{json .Runtimes}}"]) or "")
        except ValueError:
            return WARN, "docker does not answer", "systemctl start docker, and add your account to the group docker"
        if known and "nvidia" in known:
            return OK, "docker has the runtime nvidia"
        fix = "nvidia-ctk runtime configure --runtime=docker && systemctl restart docker"
        return WARN, "docker lacks the runtime nvidia, so --gpus fails", fix

    def _gives_gpus_to_containers(self) -> bool:
        """Inside a container the host is responsible for it."""
        has_gpu = self._has_gpu() or self._module() is not None
        return has_gpu and bool(self._engines()) and not self._is_container()

    def _engines(self) -> list[str]:
        return [name for name in ("docker", "podman") if shutil.which(name, path=self.path)]

    def _is_container(self) -> bool:
        return any((self.root / name).exists() for name in (".dockerenv", "run/.containerenv"))

    def _has_gpu(self) -> bool:
        places = (self.root / "sys/bus/pci/devices").glob("*")
        return any(
            _read(place / "vendor").startswith(NVIDIA) and _read(place / "class").startswith(DISPLAY)
            for place in places
        )

    def _module(self) -> str | None:
        """The version of the kernel's module, visible in a container too."""
        return _read(self.root / "sys/module/nvidia/version").strip() or None

    def _library_says(self) -> int | None:
        """NVML's return code, 0 for success; None if there is no library."""
        try:
            library = ctypes.CDLL(self.library)
            code = int(library.nvmlInit_v2())
        except (OSError, AttributeError):
            return None
        if code == 0:
            library.nvmlShutdown()
        return code

    def _library_fix(self) -> str:
        if self._is_container():
            return "start the container with --gpus all"
        return f"apt-get install libnvidia-ml1, which has {NVML_LIBRARY}; if it is installed, run nvidia-smi"

    def _answer(self, command: Sequence[str]) -> str | None:
        """A program's output; None if it is not installed, fails or takes too long."""
        program = shutil.which(command[0], path=self.path)
        if program is None:
            return None
        try:
            done = subprocess.run(
                [program, *command[1:]], capture_output=True, text=True, timeout=PATIENCE_S, check=True
            )
        except (OSError, subprocess.SubprocessError):
            return None
        return done.stdout.strip() or None


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""
