"""Submitted bundles: write their state, log and results beside them, and handle cancel requests."""

from __future__ import annotations

import functools
import logging
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

from runyard import errors
from runyard.agent.spool import place, shelf
from runyard.agent.spool.link import SpoolLink
from runyard.agent.spool.notes import Note, Notes
from runyard.agent.spool.shelf import NotOurs, Shelf
from runyard.loop import Loop
from runyard.model import bundle as names
from runyard.model.states import FINAL, RunState

FOLLOW_S = 1.0
SHOWN = (
    "id", "name", "project", "owner", "state", "reason", "detail", "exit_code", "site", "node", "attempt",
    "created_at", "started_at", "ended_at",
)  # fmt: skip

log = logging.getLogger(__name__)
Json = dict[str, Any]


class Following(Loop):
    again_s = FOLLOW_S

    def __init__(self, box: Path, link: SpoolLink, kept: Notes) -> None:
        super().__init__(f"drop-box-states-{box.name}")
        self._path, self._link, self._notes = box, link, kept
        self._written: dict[str, Json] = {}
        self._told: dict[str, str] = {}

    def tick(self) -> bool:
        try:
            with place.opened(self._path) as box:
                there = set(os.listdir(box))
                self._forget(box, there)
                self._refuse(box)
                self._stop(box, there)
                self._follow(box)
        except (errors.RunyardError, OSError) as error:
            self._tell("", error)
        else:
            self._told.pop("", None)
        return False

    def _tell(self, name: str, error: Exception) -> None:
        if str(error) != self._told.get(name):
            log.warning("drop box %s: %s%s", self._path, f"{name}: " if name else "", error)
        self._told[name] = str(error)

    def _forget(self, box: int, there: set[str]) -> None:
        """The state of a finished bundle is deleted after its owner has deleted the bundle."""
        for note in self._notes.all():
            if note.over and f"{note.name}{names.HANDED_IN}" not in there:
                shelf.remove(box, note)
                self._notes.drop(note.name)
                self._told.pop(note.name, None)

    def _refuse(self, box: int) -> None:
        for note in self._notes.all():
            if note.refused and not note.over and self._put(box, note, functools.partial(_write_refusal, note)):
                self._notes.keep(note.evolve(over=True))

    def _stop(self, box: int, there: set[str]) -> None:
        """Cancel requests are accepted from the owner, from root and from the agent's own user."""
        for note in self._notes.all():
            wish = f"{note.name}{names.CANCEL}"
            if note.id is None or note.cancelled or note.over or wish not in there:
                continue
            if self._is_entitled(box, note, wish):
                self._cancel(note, note.id)

    def _is_entitled(self, box: int, note: Note, wish: str) -> bool:
        status = os.stat(wish, dir_fd=box, follow_symlinks=False)
        try:
            owner = os.stat(f"{note.name}{names.HANDED_IN}", dir_fd=box, follow_symlinks=False).st_uid
        except FileNotFoundError:
            owner = os.geteuid()
        return stat.S_ISREG(status.st_mode) and status.st_uid in (owner, os.geteuid())

    def _cancel(self, note: Note, run: int) -> None:
        try:
            self._link.cancel(run)
        except errors.Conflict as error:  # it has finished by itself
            log.info("drop box %s: %s", self._path, error)
        self._notes.keep(note.evolve(cancelled=True))

    def _follow(self, box: int) -> None:
        live = {note.id: note for note in self._notes.all() if note.id is not None and not note.over}
        for run in self._link.look(list(live)) if live else []:
            note = live[run["id"]]
            written = self._put(box, note, functools.partial(self._write, note, run))
            if written and RunState(run["state"]) in FINAL:
                self._notes.keep(note.evolve(over=True))
                self._written.pop(note.name, None)

    def _put(self, box: int, note: Note, write: Callable[[Shelf], None]) -> bool:
        """False: to be retried. If a directory of another user is in the way, the run continues without a state."""
        try:
            with shelf.opened(box, note) as beside:
                write(beside)
        except NotOurs as error:
            self._tell(note.name, error)
        except (OSError, errors.NotFound) as error:  # the yard may have lost a result: others do not wait for it
            self._tell(note.name, error)
            return False
        return True

    def _write(self, note: Note, run: Json, beside: Shelf) -> None:
        """The final state is written after the whole log and all results."""
        state: Json = {"bundle": note.name, **{name: run.get(name) for name in SHOWN}}
        self._copy_log(beside, run)
        if RunState(run["state"]) in FINAL:
            state["outputs"] = self.bring_outputs(beside, run["id"])
        if self._written.get(note.name) != state:
            beside.write_state(state)
            self._written[note.name] = state

    def _copy_log(self, beside: Shelf, run: Json) -> None:
        if not run["attempt"]:
            return
        while data := self._link.read_log(run["id"], beside.log_size()):
            beside.add_to_log(data)

    def bring_outputs(self, beside: Shelf, run: int) -> list[Json]:
        outputs = self._link.outputs(run)
        if outputs and not beside.has_outputs():
            with beside.outputs() as brought:
                for output in outputs:
                    if not brought.has(output["path"], output["digest"]):
                        chunks = self._link.get_blob(output["digest"])
                        brought.write(output["path"], output["digest"], chunks, bool(output["mode"] & 0o100))
        return [{name: output[name] for name in ("path", "size", "digest")} for output in outputs]


def _write_refusal(note: Note, beside: Shelf) -> None:
    beside.write_state({"bundle": note.name, "id": None, "state": names.REFUSED, "detail": note.refused})
