"""The reply to a request as JSON, within a size: small files inside it, large ones as links."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from runyard import errors
from runyard.model import globs, json_text, template, units
from runyard.model.reply import Reply
from runyard.model.request import LeftFile, Outcome, RunOutcome

LARGEST_VALUES = 4 << 20  # bytes of a JSON file from which values are taken
_FRAME = len(', "content": ""')

Document = dict[str, Any]


def compose(outcome: Outcome, room: int) -> Document:
    """The reply, no larger than `room` bytes as JSON."""
    if outcome.error:
        return {"error": outcome.error}
    told = [_Told.of(run, outcome.reply) for run in outcome.runs]
    document = {"runs": [one.document for one in told]} if outcome.is_group else told[0].document
    left = room - size_of(document)
    if left < 0:
        return _without_files(outcome, told, document, room)
    _put_inside(told, left)
    return document


def size_of(document: Document) -> int:
    return len(to_bytes(document))


def to_bytes(document: Document) -> bytes:
    return json.dumps(document).encode()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Told:
    """The document of one run, with its files as links at first."""

    document: Document
    files: list[tuple[LeftFile, Document]]  # files that may be embedded, with their entries

    @classmethod
    def of(cls, run: RunOutcome, reply: Reply) -> _Told:
        entries = [(file, _entry(file)) for file in _named(run, reply)]
        document = {name: run.view[name] for name in reply.fields}
        if run.error:
            document["error"] = run.error
        document |= dict(_values(run, reply.values))
        document["outputs"] = [entry for _, entry in entries]
        return cls(document=document, files=[pair for pair in entries if pair[0].size <= reply.inline])


def _named(run: RunOutcome, reply: Reply) -> list[LeftFile]:
    pattern = re.compile(globs.pattern(reply.files), re.DOTALL)
    return [file for file in run.files if pattern.fullmatch(file.path)]


def _entry(file: LeftFile) -> Document:
    return {"path": file.path, "size": file.size, "digest": file.digest, **file.link()}


def _put_inside(told: list[_Told], left: int) -> None:
    """Embed the smallest first, to embed as many as possible."""
    for file, entry in sorted((pair for one in told for pair in one.files), key=lambda pair: pair[0].size):
        cost = 4 * ((file.size + 2) // 3) + _FRAME
        if cost > left:
            return
        entry.pop("url", None)
        entry.pop("expires_at", None)
        entry["content"] = base64.b64encode(file.read()).decode()
        left -= cost


def _without_files(outcome: Outcome, told: list[_Told], document: Document, room: int) -> Document:
    size = size_of(document)
    for one in told:
        one.document["outputs_left_out"] = len(one.document.pop("outputs"))
    if size_of(document) <= room:
        return document
    ids = [run.view["id"] for run in outcome.runs]
    which = f"run {ids[0]}" if len(ids) == 1 else f"runs {ids[0]} to {ids[-1]}"
    return {
        "error": f"the reply about {which} has {units.show_size(size)}, more than the {units.show_size(room)} that the "
        f"queue allows: ask the yard for them, or raise reply_limit of intake.{outcome.queue}"
    }


def _values(run: RunOutcome, places: Mapping[str, str]) -> Iterator[tuple[str, Any]]:
    """Null if there is none: a failed run may not have written its file."""
    by_path = {file.path: file for file in run.files}
    for name, place in places.items():
        path, _, inside = place.partition(":")
        yield name, _value(by_path.get(path), inside)


def _value(file: LeftFile | None, inside: str) -> Any:
    if file is None or file.size > LARGEST_VALUES:
        return None
    try:
        found = json_text.parse(file.read())
        return template.look_up(inside, found) if inside else found
    except (errors.InvalidInput, errors.NotFound, TypeError):
        return None
