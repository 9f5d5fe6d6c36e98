"""A file that a run asks for: by the digest of its bytes, under a name below the run's inputs directory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from runyard import errors
from runyard.model import fields
from runyard.model.digest import check_digest

MOST = 1_000  # of one run
LONGEST_PATH = 1024
LONGEST_NAME = 255  # bytes, as file systems have it


@dataclass(frozen=True, kw_only=True, slots=True)
class InputFile:
    digest: str
    to: str  # below the inputs directory

    @classmethod
    def parse(cls, value: object, where: str) -> InputFile:
        given = fields.mapping(value, where, ("digest", "to"))
        return cls(
            digest=check_digest(given.get("digest"), f"{where}.digest"), to=_path(given.get("to"), f"{where}.to")
        )

    def to_json(self) -> dict[str, Any]:
        return {"digest": self.digest, "to": self.to}


def parse(value: object) -> tuple[InputFile, ...]:
    if not isinstance(value, (list, tuple)):
        raise errors.InvalidInput("inputs: must be a list", "write it like: inputs: [{digest: sha256:…, to: data.csv}]")
    fields.at_most(len(value), "inputs", MOST)
    found = tuple(InputFile.parse(item, f"inputs[{index}]") for index, item in enumerate(value))
    check_apart(found)
    return found


def check_apart(inputs: Iterable[InputFile]) -> None:
    """No two at one place, and none where another needs a directory."""
    taken: set[PurePosixPath] = set()
    for item in inputs:
        path = PurePosixPath(item.to)
        if path in taken:
            raise errors.InvalidInput(f"inputs: two of them go to {item.to!r}", "give each a place of its own")
        taken.add(path)
    for path in taken:
        if above := taken.intersection(path.parents):
            raise errors.InvalidInput(f"inputs: {str(above.pop())!r} is a file, and {str(path)!r} lies below it")


def _path(value: object, where: str) -> str:
    text = fields.text(value, where, LONGEST_PATH)
    if text.startswith("/") or ".." in text.split("/"):
        raise errors.InvalidInput(f"{where}: {text!r} leads out of the inputs directory", "use a relative path")
    path = PurePosixPath(text)
    if not path.parts:
        raise errors.InvalidInput(f"{where}: {text!r} is no name of a file", "use a relative path, such as data/x.csv")
    if any(len(part.encode()) > LONGEST_NAME for part in path.parts):
        raise errors.InvalidInput(f"{where}: a name in it is longer than {LONGEST_NAME} bytes")
    return str(path)
