from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.client.snapshot import Camera, Snapshot, SnapshotLimits, take_code, take_data

Git = Callable[..., str]
NOBODY = 65534


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def public() -> Iterator[Path]:
    """A folder that every account may enter, unlike those of pytest."""
    with tempfile.TemporaryDirectory(prefix="ry-public-") as place:
        os.chmod(place, 0o755)
        yield Path(place)


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Root may read everything; nobody may not. Others are refused as they are."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(before)


@pytest.fixture
def camera(tmp_path: Path) -> Camera:
    return Camera(
        limits=SnapshotLimits(code=1 << 20, code_files=100, data=1 << 20, data_files=100), cache=tmp_path / "cache"
    )


@pytest.fixture
def git(project: Path, monkeypatch: pytest.MonkeyPatch, component: Callable[[str], str]) -> Git:
    """The real git in the project, with the configuration of nobody."""
    component("git")
    for name, value in {
        "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_AUTHOR_NAME": "Ada",
        "GIT_AUTHOR_EMAIL": "ada@lab.example", "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@lab.example",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)

    def call(*words: str, at: Path = project) -> str:
        allowed = ("-c", "protocol.file.allow=always", "-c", "init.defaultBranch=main")
        return subprocess.run(["git", *allowed, *words], cwd=at, check=True, capture_output=True, text=True).stdout

    return call


@pytest.fixture
def checkout(project: Path, git: Git) -> Path:
    """A commit with two files, an ignore rule, and one change to it."""
    git("init")
    write(project, {"train.py": "print(1)\n", "lib/nets.py": "", ".gitignore": "*.ckpt\nruns/\n"})
    git("add", ".")
    git("commit", "-m", "first")
    return project


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def paths(snapshot: Snapshot) -> list[str]:
    return [file.path for file in snapshot.tree.files]


def code(root: Path, camera: Camera, *names: str, **options: object) -> Snapshot:
    return take_code(root, names or (".",), camera, **options)  # type: ignore[arg-type]


def data(folder: Path, camera: Camera) -> Snapshot:
    return take_data(folder, camera)
