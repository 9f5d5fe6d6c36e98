"""Turns a bundle into a run: its directories become trees, which the run refers to by digest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from runyard import errors
from runyard.agent.spool import looking
from runyard.agent.spool.looking import Bundle
from runyard.model import bundle as names
from runyard.model import fields, json_text, staged
from runyard.model.bundle import CODE, DATA, FILES, LINKS, RUN
from runyard.model.digest import check_digest
from runyard.model.spec import RunSpec
from runyard.model.tree import Tree, TreeFile, TreeLink

HALF = "submit it again: it was copied incompletely, or changed meanwhile"


@dataclass(kw_only=True, slots=True)
class Request:
    """What is sent to the yard."""

    run: dict[str, Any]
    files: dict[str, str] = field(default_factory=dict)  # by digest, the path in the bundle
    texts: dict[str, bytes] = field(default_factory=dict)  # by digest, contents without a file: the trees

    @property
    def project(self) -> str:
        return str(self.run.get("project", "default"))


def read(bundle: int, seen: Bundle) -> Request:
    """Raises InvalidInput, with a sentence for the submitter."""
    _check_parts(seen)
    return _Reading(bundle, seen).request()


def _check_parts(seen: Bundle) -> None:
    for path in (*seen.files, *seen.folders):
        top = path.partition("/")[0]
        if top not in names.PARTS:
            raise errors.InvalidInput(f"{path} does not belong in a bundle", f"it has {', '.join(names.PARTS)}")
    if RUN not in seen.files:
        raise errors.InvalidInput(f"it has no {RUN}", "rename a bundle to NAME.run when it is complete")


class _Reading:
    def __init__(self, bundle: int, seen: Bundle) -> None:
        self._bundle, self._seen = bundle, seen
        self._links = self._read_links()
        self._request = Request(run={})

    def request(self) -> Request:
        run = self._object(RUN)
        names.check_fields(run)
        run["code"] = self._code(run.get("code"))
        run["data"] = self._data(run.get("data"))
        if self._links:
            raise errors.InvalidInput(f"{LINKS}: {next(iter(self._links))!r} is not a directory of this bundle")
        spec = RunSpec.parse({name: value for name, value in run.items() if value not in (None, [])})
        self._add_loose(spec)
        self._request.run = spec.to_json()
        return self._request

    def _object(self, path: str) -> dict[str, Any]:
        text = looking.read_text(self._bundle, path, self._seen.files[path], names.LARGEST_TEXT)
        try:
            return json_text.parse_object(text)
        except errors.InvalidInput as error:
            raise errors.InvalidInput(f"{path}: {error.message}", error.fix) from None

    def _read_links(self) -> dict[str, list[TreeLink]]:
        found = {}
        for folder, rows in (self._object(LINKS) if LINKS in self._seen.files else {}).items():
            if not isinstance(rows, list) or not all(isinstance(row, list) and len(row) == 2 for row in rows):
                raise errors.InvalidInput(f"{LINKS}: {folder!r} must be a list of [path, target]")
            found[folder] = [TreeLink(*row) for row in rows]
        return found

    def _code(self, said: object) -> dict[str, Any] | None:
        if said is None and CODE not in self._seen.folders:
            return None
        given = fields.mapping(said or {}, "run.json: code", ("tree", "files", "size", "git"))
        tree = self._tree(CODE, given.get("tree"))
        return {"tree": tree.digest, "files": len(tree.files), "size": tree.size, "git": given.get("git")}

    def _data(self, said: object) -> list[dict[str, Any]]:
        """The directories that run.json names, or by default all."""
        items = self._folders_of_data() if said is None else said
        if not isinstance(items, list):
            raise errors.InvalidInput("run.json: data: must be a list", 'write it like: "data": [{"to": "corpora"}]')
        found, told = [], list[str]()
        for item in items:
            given = fields.mapping(item, "run.json: data", ("tree", "to"))
            to = fields.text(given.get("to"), "run.json: data.to", 1024)
            found.append({"to": to, "tree": self._tree(f"{DATA}/{to}", given.get("tree")).digest})
            told.append(f"{DATA}/{to}/")
        self._check_told(told)
        staged.parse_data(found)
        return found

    def _folders_of_data(self) -> list[dict[str, Any]]:
        tops = [path.partition("/")[2] for path in self._seen.folders if path.startswith(f"{DATA}/")]
        return [{"to": top} for top in sorted(tops) if "/" not in top]

    def _check_told(self, told: Iterable[str]) -> None:
        known = tuple(told)
        for path in self._seen.files:
            if path.startswith(f"{DATA}/") and not path.startswith(known):
                raise errors.InvalidInput(f"{path} is in no directory that run.json names", "name it, or remove it")

    def _tree(self, folder: str, said: object) -> Tree:
        inside = {path: status for path, status in self._seen.files.items() if path.startswith(f"{folder}/")}
        files = [self._file(path, folder) for path in inside]
        tree = Tree.build(files, self._links.pop(folder, ()))
        if said is not None and check_digest(said, "run.json: tree") != tree.digest:
            raise errors.InvalidInput(f"{folder} does not have the digest in run.json", HALF)
        self._request.texts[tree.digest] = tree.encode()
        return tree

    def _file(self, path: str, folder: str) -> TreeFile:
        status = self._seen.files[path]
        digest = looking.read_digest(self._bundle, path, status)
        self._request.files[digest] = path
        return TreeFile(path[len(folder) + 1 :], digest, status.st_size, bool(status.st_mode & 0o100))

    def _add_loose(self, spec: RunSpec) -> None:
        """Files that a run names by digest must be in the bundle, so that no user can read other files of the yard."""
        git = spec.code.git if spec.code else None
        wanted = {*spec.python_env.digests(), *(item.digest for item in spec.inputs)}
        wanted |= {git.diff} if git and git.diff else set()
        for digest in sorted(filter(None, wanted)):
            path = f"{FILES}/{digest.removeprefix('sha256:')}"
            if path not in self._seen.files:
                raise errors.InvalidInput(f"run.json names {digest}, and there is no {path}", HALF)
            if looking.read_digest(self._bundle, path, self._seen.files[path]) != digest:
                raise errors.InvalidInput(f"{path} does not have the digest in its name", HALF)
            self._request.files[digest] = path
