"""What is uploaded with a run: a snapshot of its code, and directories of data. See `runyard.model.tree`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from runyard import errors
from runyard.model import fields, paths
from runyard.model.declaration import Declared, field
from runyard.model.digest import check_digest
from runyard.model.json_schema import Schema, listed, record, ref, text
from runyard.model.values import Digest, Flag, Part, Text, Whole

MOST_DATA = 100  # directories of one run


@dataclass(frozen=True, kw_only=True, slots=True)
class Git(Declared):
    place: ClassVar[str] = "git"
    about: ClassVar[str] = "Where the code came from."

    head: str | None = field(Text(64), default=None, help="The commit; null before the first")
    branch: str | None = field(Text(300), default=None, help="Its branch; null when detached")
    remote: str | None = field(Text(1000), default=None, help="Its address, without credentials")
    dirty: bool = field(Flag(), default=False, help="Files differed from the commit, or were new")
    diff: str | None = field(Digest(), default=None, help="Digest of the output of `git diff HEAD`, a blob of the yard")


@dataclass(frozen=True, kw_only=True, slots=True)
class Code(Declared):
    place: ClassVar[str] = "code"
    about: ClassVar[str] = "A snapshot of code, of which each attempt gets a copy as its working directory."

    tree: str = field(Digest(), help="Digest of a tree that the yard has")
    files: int = field(Whole(0, 1 << 30), help="Number of files")
    size: int = field(Whole(0, 1 << 60), help="Total size in bytes")
    git: Git | None = field(Part(Git), default=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Data:
    """A directory to read from: a tree that the yard has, or a path where the run executes. One of the two."""

    to: str  # its name below $RUNYARD_DATA
    tree: str | None = None  # the digest
    path: str | None = None  # absolute, at the site

    @classmethod
    def parse(cls, value: object, where: str) -> Data:
        given = fields.mapping(value, where, ("to", "tree", "path"))
        to, tree, path = paths.relative(given.get("to"), f"{where}.to"), given.get("tree"), given.get("path")
        if (tree is None) == (path is None):
            raise errors.InvalidInput(f"{where}: it is either a tree or a path", "give one of the two")
        if tree is not None:
            return cls(to=to, tree=check_digest(tree, f"{where}.tree"))
        return cls(to=to, path=_site_path(path, f"{where}.path"))

    def to_json(self) -> dict[str, Any]:
        return {"tree": self.tree, "to": self.to} if self.tree else {"path": self.path, "to": self.to}


def parse_data(value: object, where: str = "data") -> tuple[Data, ...]:
    if not isinstance(value, (list, tuple)):
        raise errors.InvalidInput(f"{where}: must be a list", "write it like: data: [{tree: sha256:…, to: corpora}]")
    fields.at_most(len(value), where, MOST_DATA)
    found = tuple(Data.parse(item, f"{where}[{index}]") for index, item in enumerate(value))
    paths.check_apart([item.to for item in found], where)
    return found


_NAME = text("Its name below $RUNYARD_DATA", minLength=1, maxLength=paths.LONGEST_PATH)
DATA_SCHEMA: Schema = {
    "description": "A directory to read from: a tree that the yard has, or a path where the run executes.",
    "anyOf": [
        record({"tree": Digest().schema("Digest of a tree that the yard has"), "to": _NAME}),
        record({"path": text("Absolute", pattern="^/", maxLength=paths.LONGEST_PATH), "to": _NAME}),
    ],
}
FOLDERS = listed(ref("Data"), maxItems=MOST_DATA)


def _site_path(value: object, where: str) -> str:
    path = paths.one_line(value, where)
    if not path.startswith("/"):
        raise errors.InvalidInput(f"{where}: {path!r} is not an absolute path", "start it with /")
    return path
