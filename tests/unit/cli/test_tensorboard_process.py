"""Where TensorBoard is found."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from runyard import errors
from runyard.cli.show import tensorboard_process


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The programs of an environment in which nothing is installed; it is the active one, and ours."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    programs = tmp_path / "bare" / "bin"
    monkeypatch.setenv("PATH", str(programs))
    monkeypatch.setattr(sys, "executable", str(programs / "python"))
    return programs


def test_where_there_is_none_it_says_what_to_install(bare: Path) -> None:
    with pytest.raises(errors.NotFound) as refused:
        tensorboard_process.find()
    assert refused.value.message == "there is no TensorBoard in this environment"
    assert refused.value.fix == "pip install tensorboard"


def test_the_program_of_the_active_environment_comes_first(bare: Path) -> None:
    program = bare / "tensorboard"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert tensorboard_process.find() == [str(program)]


def test_the_package_alone_will_do(bare: Path) -> None:
    packages = subprocess.run(
        [bare / "python", "-c", "import site; print(site.getsitepackages()[0])"],
        capture_output=True,
        text=True,
        check=True,
    )
    Path(packages.stdout.strip(), "tensorboard").mkdir()
    assert tensorboard_process.find() == [str(bare / "python"), "-m", "tensorboard.main"]


def test_a_port_that_is_taken_is_not_given_out() -> None:
    port = tensorboard_process.free_port()
    with socket.socket() as taken:
        taken.bind(("localhost", port))
        assert tensorboard_process.free_port() != port
