"""What `pip install` brings: everything that runyard needs at run time, and nothing of the tests."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "runyard"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    return next(place.glob("*.whl"))


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    packed = set(zipfile.ZipFile(wheel).namelist())
    sources = {
        f"runyard/{path.relative_to(SOURCE)}"
        for path in SOURCE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert sources <= packed
    assert all(name.startswith(("runyard/", "runyard-")) for name in packed)


def test_the_installed_command_works(wheel: Path, tmp_path: Path) -> None:
    """From an empty directory, out of the wheel alone."""
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "-t", str(tmp_path), str(wheel)], check=True
    )
    program = "import runyard; assert runyard.__file__.startswith(%r); from runyard.cli.main import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", program % str(tmp_path), "--version"],
        env={"PYTHONPATH": str(tmp_path)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "0.1" in done.stdout
