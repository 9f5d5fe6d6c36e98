"""What a run brings along: the snapshot of its code, and folders of data. See `runyard.model.tree`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import fields, paths
from runyard.model.digest import check_digest

MOST_DATA = 100  # folders of one run


@dataclass(frozen=True, kw_only=True, slots=True)
class Git:
    """Where the code came from."""

    head: str | None = None  # the commit; None before the first
    branch: str | None = None  # None: detached
    remote: str | None = None  # its address, without credentials
    dirty: bool = False  # files differed from the commit, or were new
    diff: str | None = None  # digest of what `git diff HEAD` said

    @classmethod
    def parse(cls, value: object, where: str) -> Git:
        given = fields.mapping(value, where, ("head", "branch", "remote", "dirty", "diff"))
        return cls(
            head=_text_or_none(given, "head", where, 64),
            branch=_text_or_none(given, "branch", where, 300),
            remote=_text_or_none(given, "remote", where, 1000),
            dirty=fields.boolean(given.get("dirty", False), f"{where}.dirty"),
            diff=check_digest(given["diff"], f"{where}.diff") if given.get("diff") is not None else None,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "head": self.head, "branch": self.branch, "remote": self.remote, "dirty": self.dirty, "diff": self.diff
        }  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Code:
    """A snapshot that each attempt gets a copy of, as its working directory."""

    tree: str  # the digest
    files: int
    size: int  # bytes of all files
    git: Git | None = None

    @classmethod
    def parse(cls, value: object) -> Code:
        given = fields.mapping(value, "code", ("tree", "files", "size", "git"))
        git = given.get("git")
        return cls(
            tree=check_digest(given.get("tree"), "code.tree"),
            files=fields.integer(given.get("files"), "code.files", 0, 1 << 30),
            size=fields.integer(given.get("size"), "code.size", 0, 1 << 60),
            git=None if git is None else Git.parse(git, "code.git"),
        )

    def to_json(self) -> dict[str, Any]:
        git = None if self.git is None else self.git.to_json()
        return {"tree": self.tree, "files": self.files, "size": self.size, "git": git}


@dataclass(frozen=True, kw_only=True, slots=True)
class Data:
    """A folder to read from: a tree that the yard has, or a path where the run executes. One of the two."""

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


def parse_data(value: object) -> tuple[Data, ...]:
    if not isinstance(value, (list, tuple)):
        raise errors.InvalidInput("data: must be a list", "write it like: data: [{tree: sha256:…, to: corpora}]")
    fields.at_most(len(value), "data", MOST_DATA)
    found = tuple(Data.parse(item, f"data[{index}]") for index, item in enumerate(value))
    paths.check_apart([item.to for item in found], "data")
    return found


def _site_path(value: object, where: str) -> str:
    path = paths.one_line(value, where)
    if not path.startswith("/"):
        raise errors.InvalidInput(f"{where}: {path!r} is not an absolute path", "start it with /")
    return path


def _text_or_none(given: dict[str, Any], name: str, where: str, longest: int) -> str | None:
    value = given.get(name)
    return None if value is None else fields.text(value, f"{where}.{name}", longest)
