"""The kind of a project: with its own `run.py`, or with a package that has `job.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runyard import errors


@dataclass(frozen=True, kw_only=True, slots=True)
class ProjectLayout:
    root: Path
    sources: tuple[Path, ...]  # relative to it
    program: str | None = None  # the project's own run.py
    package: str | None = None  # the one with job.py

    @classmethod
    def find(cls, root: Path, src_ps: Sequence[Path | str], run_f_name: str | None) -> ProjectLayout:
        if isinstance(src_ps, (str, Path)) or not src_ps:
            raise errors.InvalidInput("src_ps: it must be a list of folders", "write it like: src_ps=[Path('src')]")
        sources = tuple(_below(root, Path(path)) for path in src_ps)
        if run_f_name is not None and (root / run_f_name).is_file():
            return cls(root=root, sources=sources, program=run_f_name)
        for source in sources:
            if (root / source / "job.py").is_file():
                return cls(root=root, sources=sources, package=source.name)
        raise errors.InvalidInput(
            f"there is neither {root / (run_f_name or 'run.py')} nor a job.py in {', '.join(map(str, sources))}",
            "submit from the project's folder; job.py has main(param2val), which returns named series",
        )

    @property
    def code(self) -> tuple[str, ...]:
        """What is sent."""
        return (*map(str, self.sources), *([self.program] if self.program else []))

    @property
    def import_from(self) -> list[str]:
        """The parent folder of each source: it is imported by its own name, from any path."""
        return list(dict.fromkeys([".", *(str(source.parent) for source in self.sources)]))


def _below(root: Path, path: Path) -> Path:
    place = (root / path.expanduser()).resolve()
    if not place.is_dir():
        raise errors.InvalidInput(f"src_ps: there is no folder {root / path}", "check the path, and where you are")
    if not place.is_relative_to(root) or place == root:
        raise errors.InvalidInput(f"src_ps: {path} is not below {root}", "submit from the folder that has it in it")
    return place.relative_to(root)
