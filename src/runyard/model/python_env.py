"""The Python environment of a run: the site's own, one that is built there, or an existing one.

record        the site's own; the submitter's packages are recorded, as always except with `none`
sync          the submitter's environment, rebuilt at the site from a lock
conda:NAME    a conda environment of the site, by its name or path
file          built at the site from a requirements.txt or an environment.yml
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from runyard import errors
from runyard.model import fields, paths
from runyard.model.declaration import Declared, field, read
from runyard.model.json_schema import listed, text
from runyard.model.values import Checked, Choice, Digest, Part, Text, Whole

RECORD, SYNC, NONE, FILE, CONDA = "record", "sync", "none", "file", "conda:"
PIP, BY_CONDA = "pip", "conda"  # the tool that builds it
KINDS = (PIP, BY_CONDA)
LARGEST_FILE = 1 << 20  # bytes of a lock, a requirements.txt or an environment.yml
MOST_NOTES = 20

_USES = (RECORD, SYNC, NONE, FILE)
_ENV_NAME = re.compile(r"[\w.+-]{1,200}")
_VERSION = re.compile(r"\d{1,3}\.\d{1,3}")


def _notes(value: object, where: str) -> tuple[str, ...]:
    return tuple(fields.texts(value, where, 1000)[:MOST_NOTES])


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded(Declared):
    """The submitter's environment. The package lists are blobs of the yard."""

    place: ClassVar[str] = "record"
    about: ClassVar[str] = "The submitter's environment."

    python: str = field(Text(100, empty=True), default="", help="Version of the submitter's interpreter")
    prefix: str = field(Text(4096, empty=True, raw=True), default="", help="Its directory")
    packages: int = field(Whole(0, 1 << 30), default=0, help="Number of installed packages")
    freeze: str | None = field(Digest(), default=None, help="The list for pip")
    conda: str | None = field(Digest(), default=None, help="The list for conda")
    notes: tuple[str, ...] = field(
        Checked(_notes, listed(text(maxLength=1000), maxItems=MOST_NOTES)), default=(),
        help="What that list cannot restore",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonEnv(Declared):
    place: ClassVar[str] = "python_env"
    short: ClassVar[str] = "use"

    use: str = field(
        Checked(lambda value, where: _use(value, where), text(minLength=1, maxLength=4096)), default=RECORD,
        help="record, sync, none, file, conda:NAME or conda:/path",
    )  # fmt: skip
    file: str | None = field(Digest(), default=None, help="The file it is built from; for sync, the lock")
    kind: str = field(Choice(KINDS), default=PIP, help="The tool that builds it")
    name: str = field(Text(300, empty=True), default="", help="Name of the file, for display")
    python: str = field(
        Checked(lambda value, where: _version(value, where), text(maxLength=20)), default="",
        help="The Python version that it needs, like 3.11; empty: the site's",
    )  # fmt: skip
    record: Recorded | None = field(Part(Recorded, inline=True), default=None)

    @classmethod
    def parse(cls, value: object, where: str = "") -> PythonEnv:
        found = read(cls, value, where)
        usual = FILE if found.get("file") else RECORD
        return cls(**{"use": usual, **found})._checked()

    @property
    def conda(self) -> str | None:
        """Name or path of an environment of the site."""
        return self.use[len(CONDA) :] if self.use.startswith(CONDA) else None

    @property
    def of_site(self) -> bool:
        """Whether it must be built or found at the site."""
        return self.file is not None or self.conda is not None

    def digests(self) -> set[str]:
        """Digests of the files that the yard must have."""
        noted = (self.record.freeze, self.record.conda) if self.record is not None else ()
        return {digest for digest in (self.file, *noted) if digest is not None}

    def to_json(self) -> dict[str, Any] | str:
        """The shortest JSON that parses to the same."""
        if self.file is None and self.record is None:
            return self.use
        shown: dict[str, Any] = {"use": self.use}
        if self.file is not None:
            shown |= {"file": self.file, "kind": self.kind, "name": self.name, "python": self.python}
        if self.record is not None:
            shown["record"] = self.record.to_json()
        return shown

    def _checked(self) -> PythonEnv:
        builds = self.use in (SYNC, FILE)
        if builds and self.file is None:
            raise errors.InvalidInput(
                f"python_env: {self.use!r} needs the digest of a file to build from",
                "submit with runyard's own client, which sends it",
            )
        if self.file is not None and not builds:
            raise errors.InvalidInput(f"python_env: {self.use!r} builds nothing", "leave `file` out")
        return self


def _use(value: object, place: str) -> str:
    where = place.removesuffix(".use")
    text = fields.text(value, where, 4096)
    if not text.startswith(CONDA):
        return fields.one_of(text, where, _USES)
    named = text[len(CONDA) :]
    if not named.startswith("/") and not _ENV_NAME.fullmatch(named):
        raise errors.InvalidInput(
            f"{where}: {named!r} is not a name of a conda environment", "write conda:NAME or conda:/path/at/the/site"
        )
    return CONDA + (paths.one_line(named, where) if named.startswith("/") else named)


def _version(value: object, where: str) -> str:
    text = fields.text(value, where, 20, empty=True)
    if text and not _VERSION.fullmatch(text):
        raise errors.InvalidInput(f"{where}: {text!r} is not a version of Python", "write it like 3.11")
    return text
