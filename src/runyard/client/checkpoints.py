"""Checkpoints that the yard has, fetched to this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard import errors
from runyard.client import fetch
from runyard.client.fetch import Progress
from runyard.client.outputs import LONGEST_POLL, Output
from runyard.model.tree import Tree

if TYPE_CHECKING:
    from runyard.client.session import Session


@dataclass(frozen=True, kw_only=True, slots=True)
class SavedCheckpoint:
    """The checkpoint directory of a run at one time."""

    number: int
    attempt: int
    at: str
    tree: str | None  # None: it is at its site only
    size: int
    files: int
    site: str
    agent: str


def of_run(client: Session, run: int) -> list[SavedCheckpoint]:
    return _all(client.call("GET", f"/runs/{run}/checkpoints"))


def current(client: Session, run: int, timeout: float) -> tuple[list[SavedCheckpoint], bool]:
    found = client.call(
        "POST", f"/runs/{run}/checkpoints", query={"timeout": timeout}, timeout=timeout + LONGEST_POLL, repeatable=True
    )
    return _all(found), found["current"]


def within_reach(run: int, found: Iterable[SavedCheckpoint]) -> list[SavedCheckpoint]:
    """Those that can be fetched, oldest first; raises NotFound if there are none."""
    every = list(found)
    there = [checkpoint for checkpoint in every if checkpoint.tree is not None]
    if there:
        return there
    if every:
        where = f"run {run} keeps its checkpoints at site {every[-1].site}, and they were not sent to the yard"
        raise errors.NotFound(where, "send them: `checkpoint: {every: 10m}`, or the site's option checkpoint_every")
    raise errors.NotFound(f"run {run} has saved nothing", "a run keeps what it writes into $CHECKPOINT_DIR")


def contents(client: Session, checkpoint: SavedCheckpoint) -> list[Output]:
    with client.open("GET", f"/blobs/{checkpoint.tree}") as answer:
        data = answer.read()
    if f"sha256:{hashlib.sha256(data).hexdigest()}" != checkpoint.tree:
        raise errors.RunyardError("the description of a checkpoint arrived damaged", "try again")
    return [
        Output(path=file.path, size=file.size, digest=file.digest, mode=0o755 if file.executable else 0o644)
        for file in Tree.parse(data).files
    ]


def bring(client: Session, files: Iterable[Output], directory: Path, progress: Progress | None = None) -> list[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    return fetch.bring(client, files, directory, progress or (lambda size: None))


def word_for(*, resume: bool, afresh: bool) -> dict[str, str]:
    """The parameter of a retry request."""
    if resume and afresh:
        raise errors.InvalidInput("resume and afresh exclude each other", "choose one of them")
    return {"checkpoints": "resume" if resume else "afresh"} if resume or afresh else {}


def _all(answer: Mapping[str, Any]) -> list[SavedCheckpoint]:
    names = SavedCheckpoint.__slots__
    return [SavedCheckpoint(**{name: item[name] for name in names}) for item in answer["checkpoints"]]
