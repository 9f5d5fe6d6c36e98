"""An index of one's own: packages that are made here, in a directory that pip finds them in."""

from __future__ import annotations

import io
import tarfile
import zipfile
from pathlib import Path

# A build that waits: its package is there only when somebody says so.
SLOW = """
import os, time, zipfile
def build_wheel(directory, config_settings=None, metadata_directory=None):
    open({begun!r}, "w").close()
    while not os.path.exists({go!r}):
        time.sleep(0.05)
    name = "slow-1.0-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, name), "w") as made:
        made.writestr("slow.py", "version = '1.0'")
        made.writestr("slow-1.0.dist-info/METADATA", "Metadata-Version: 2.1\\nName: slow\\nVersion: 1.0\\n")
        made.writestr("slow-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        made.writestr("slow-1.0.dist-info/RECORD", "")
    return name
"""


class Index:
    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(exist_ok=True)

    @property
    def env(self) -> dict[str, str]:
        """For a site: nothing comes from anywhere else."""
        return {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.directory)}

    def add(self, name: str, version: str = "1.0") -> Path:
        """A package that can tell its version."""
        info = f"{name}-{version}.dist-info"
        path = self.directory / f"{name}-{version}-py3-none-any.whl"
        with zipfile.ZipFile(path, "w") as made:
            made.writestr(f"{name}.py", f"version = {version!r}\n")
            made.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
            made.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            made.writestr(f"{info}/RECORD", "")
        return path

    def add_slow(self, begun: Path, go: Path) -> None:
        """`slow` says that its build has begun, and waits for leave to end it."""
        files = {
            "pyproject.toml": '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n',
            "backend.py": SLOW.format(begun=str(begun), go=str(go)),
            "PKG-INFO": "Metadata-Version: 2.1\nName: slow\nVersion: 1.0\n",
        }
        with tarfile.open(self.directory / "slow-1.0.tar.gz", "w:gz") as made:
            for name, text in files.items():
                entry = tarfile.TarInfo(f"slow-1.0/{name}")
                entry.size = len(text)
                made.addfile(entry, io.BytesIO(text.encode()))
