"""Driver, toolkit and runtime: on machines made of files, with programs that say what the real ones say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from runyard.cli.doctor.gpu_checks import Machine


class Bench:
    """A machine that a test puts together."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "bin").mkdir()

    def machine(self, library: str = "libnvidia-ml-of-nobody.so") -> Machine:
        return Machine(root=self.root, path=str(self.root / "bin"), library=library)

    def card(self, vendor: str = "0x10de") -> None:
        self.file("sys/bus/pci/devices/0000:01:00.0/vendor", vendor)
        self.file("sys/bus/pci/devices/0000:01:00.0/class", "0x030200")

    def module(self) -> None:
        self.file("sys/module/nvidia/version", "550.54.15\n")

    def program(self, name: str, says: str) -> None:
        self.file(f"bin/{name}", f"#!/bin/sh\n{says}\n").chmod(0o755)

    def file(self, name: str, text: str = "") -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def library(self, code: int) -> str:
        """One whose start gives this code."""
        text = f"int nvmlInit_v2(void) {{ return {code}; }}\nint nvmlShutdown(void) {{ return 0; }}\n"
        source = self.file("nvml.c", text)
        made = self.root / f"nvml-{code}.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-o", made, source], check=True)
        return str(made)


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(tmp_path)


def test_a_machine_without_a_gpu_needs_nothing(bench: Bench) -> None:
    bench.card(vendor="0x8086")
    bench.program("docker", "exit 1")
    machine = bench.machine()
    assert {said[0] for said in (machine.driver(), machine.toolkit(), machine.runtime())} == {"ok"}


def test_a_gpu_without_a_driver(bench: Bench) -> None:
    bench.card()
    verdict, _, fix = bench.machine().driver()
    assert (verdict, fix) == ("warn", "apt-get install nvidia-driver, then reboot")


def test_a_driver_that_is_well(bench: Bench) -> None:
    bench.module()
    assert bench.machine(bench.library(0)).driver() == ("ok", "version 550.54.15")


def test_a_library_of_another_version(bench: Bench) -> None:
    bench.module()
    assert bench.machine(bench.library(18)).driver()[::2] == ("fail", "reboot")


@pytest.mark.parametrize(("inside", "fix"), [(True, "start the container with --gpus all"), (False, "libnvidia-ml1")])
def test_a_driver_whose_library_is_missing(bench: Bench, inside: bool, fix: str) -> None:
    bench.module()
    if inside:
        bench.file(".dockerenv")
    verdict, message, told = bench.machine().driver()
    assert (verdict, fix in told) == ("warn", True)
    assert "550.54.15" in message


def test_containers_need_the_toolkit(bench: Bench) -> None:
    bench.card()
    assert bench.machine().toolkit() == ("ok", "not needed here")
    bench.program("docker", "exit 0")
    verdict, _, fix = bench.machine().toolkit()
    assert (verdict, "nvidia-container-toolkit" in fix) == ("warn", True)
    bench.program("nvidia-ctk", "echo NVIDIA Container Toolkit CLI version 1.16.2; echo commit: 1")
    assert bench.machine().toolkit() == ("ok", "NVIDIA Container Toolkit CLI version 1.16.2")


@pytest.mark.parametrize(
    ("says", "verdict", "fix"),
    [
        ("""echo '{"nvidia": {"path": "nvidia-container-runtime"}, "runc": {"path": "runc"}}'""", "ok", ""),
        ("""echo '{"runc": {"path": "runc"}}'""", "warn", "nvidia-ctk runtime configure --runtime=docker"),
        ("""echo null""", "warn", "nvidia-ctk runtime configure --runtime=docker"),
        ("""echo no daemon >&2; exit 1""", "warn", "systemctl start docker"),
    ],
)
def test_docker_must_know_the_runtime(bench: Bench, says: str, verdict: str, fix: str) -> None:
    bench.card()
    bench.program("docker", says)
    found, *more = bench.machine().runtime()
    assert found == verdict
    assert fix in more[-1]


def test_podman_needs_a_description(bench: Bench) -> None:
    bench.card()
    bench.program("podman", "exit 0")
    assert "nvidia-ctk cdi generate" in bench.machine().runtime()[-1]
    bench.file("etc/cdi/nvidia.yaml")
    assert bench.machine().runtime()[0] == "ok"
