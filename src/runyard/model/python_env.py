"""Which Python environment a run has: that of its site, one that is built there, or one that is there already.

record        nothing is done for the run; what the submitter had is noted, as it always is unless it says `none`
sync          the submitter's environment, built again at the site from a lock
conda:NAME    a conda environment that the site has, by its name or path
file          built at the site from a requirements.txt or an environment.yml
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import fields, paths
from runyard.model.digest import check_digest

RECORD, SYNC, NONE, FILE, CONDA = "record", "sync", "none", "file", "conda:"
PIP, BY_CONDA = "pip", "conda"  # who builds it
KINDS = (PIP, BY_CONDA)
LARGEST_FILE = 1 << 20  # bytes of a lock, a requirements.txt or an environment.yml
MOST_NOTES = 20

_USES = (RECORD, SYNC, NONE, FILE)
_FIELDS = ("use", "file", "kind", "name", "python", "record")
_ENV_NAME = re.compile(r"[\w.+-]{1,200}")
_VERSION = re.compile(r"\d{1,3}\.\d{1,3}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Recorded:
    """What the submitter had. The lists themselves are files that the yard has."""

    python: str  # its version
    prefix: str = ""
    packages: int = 0
    freeze: str | None = None  # digest of the list as pip reads it
    conda: str | None = None  # digest of the list as conda reads it
    notes: tuple[str, ...] = ()  # what that list cannot bring back

    @classmethod
    def parse(cls, value: object, where: str) -> Recorded:
        given = fields.mapping(value, where, ("python", "prefix", "packages", "freeze", "conda", "notes"))
        notes = fields.texts(given.get("notes", []), f"{where}.notes", 1000)
        return cls(
            python=fields.text(given.get("python", ""), f"{where}.python", 100, empty=True),
            prefix=fields.text(given.get("prefix", ""), f"{where}.prefix", 4096, empty=True, raw=True),
            packages=fields.integer(given.get("packages", 0), f"{where}.packages", 0, 1 << 30),
            freeze=_digest(given.get("freeze"), f"{where}.freeze"),
            conda=_digest(given.get("conda"), f"{where}.conda"),
            notes=tuple(notes[:MOST_NOTES]),
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "python": self.python, "prefix": self.prefix, "packages": self.packages, "freeze": self.freeze,
            "conda": self.conda, "notes": list(self.notes),
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonEnv:
    use: str = RECORD
    file: str | None = None  # digest of what it is built from; of `sync`, the lock
    kind: str = PIP  # who builds it from that
    name: str = ""  # of the file, for people
    python: str = ""  # the version that it needs, like 3.11; empty: what the site has
    record: Recorded | None = None

    @classmethod
    def parse(cls, value: object) -> PythonEnv:
        where = "python_env"
        given = {"use": value} if isinstance(value, str) else fields.mapping(value, where, _FIELDS)
        record = given.get("record")
        made = cls(
            use=_use(given.get("use", FILE if given.get("file") else RECORD)),
            file=_digest(given.get("file"), f"{where}.file"),
            kind=fields.one_of(given.get("kind", PIP), f"{where}.kind", KINDS),
            name=fields.text(given.get("name", ""), f"{where}.name", 300, empty=True),
            python=_version(given.get("python", ""), f"{where}.python"),
            record=None if record is None else Recorded.parse(record, f"{where}.record"),
        )
        return made._checked()

    @property
    def conda(self) -> str | None:
        """Name or path of an environment that the site has."""
        return self.use[len(CONDA) :] if self.use.startswith(CONDA) else None

    @property
    def of_site(self) -> bool:
        """Whether something is to be built or found at the site."""
        return self.file is not None or self.conda is not None

    def digests(self) -> set[str]:
        """Of the files that the yard must have."""
        noted = (self.record.freeze, self.record.conda) if self.record is not None else ()
        return {digest for digest in (self.file, *noted) if digest is not None}

    def to_json(self) -> dict[str, Any] | str:
        """The shortest that parses to the same."""
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
            raise errors.InvalidInput(f"python_env: there is nothing to build for {self.use!r}", "leave `file` out")
        return self


def _use(value: object) -> str:
    text = fields.text(value, "python_env", 4096)
    if not text.startswith(CONDA):
        return fields.one_of(text, "python_env", _USES)
    named = text[len(CONDA) :]
    if not named.startswith("/") and not _ENV_NAME.fullmatch(named):
        raise errors.InvalidInput(
            f"python_env: {named!r} is no name of a conda environment", "write conda:NAME or conda:/path/at/the/site"
        )
    return CONDA + (paths.one_line(named, "python_env") if named.startswith("/") else named)


def _version(value: object, where: str) -> str:
    text = fields.text(value, where, 20, empty=True)
    if text and not _VERSION.fullmatch(text):
        raise errors.InvalidInput(f"{where}: {text!r} is no version of Python", "write it like 3.11")
    return text


def _digest(value: object, where: str) -> str | None:
    return None if value is None else check_digest(value, where)
