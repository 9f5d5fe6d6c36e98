"""One drop box, served by one process."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from runyard import errors
from runyard.agent.spool import place
from runyard.agent.spool.following import Following
from runyard.agent.spool.link import SpoolLink
from runyard.agent.spool.looking import Most
from runyard.agent.spool.notes import Notes
from runyard.agent.spool.taking import Rules, Taking
from runyard.loop import Loop
from runyard.model.nodes import Limits
from runyard.settings import Settings

AGAIN_S = 10.0  # before the next try at a drop box that another process serves, or that does not exist

log = logging.getLogger(__name__)


class Spool:
    """A background part: `spool(stop)` runs until it is stopped."""

    def __init__(self, box: Path, link: SpoolLink, directory: Path, settings: Settings) -> None:
        """`directory` is the agent's own."""
        self.__name__ = f"drop-box-{box.name}"
        self._box, self._link = box, link
        name = hashlib.sha256(os.fsencode(box)).hexdigest()[:16]
        self._directory = directory / "drop-boxes" / name
        self._rules = Rules(
            most=Most(bytes=settings.spool_limit, files=settings.spool_files),
            limits=Limits(projects=tuple(settings.only_projects), users=tuple(settings.only_users)),
        )

    def __call__(self, stop: threading.Event) -> None:
        told = ""
        while not stop.is_set():
            try:
                with place.held(self._box) as ours:
                    if ours:
                        self._run(stop)
                        return
                trouble = "another process serves it"
            except errors.ConfigError as error:
                trouble = str(error)
            if trouble != told:
                log.warning("drop box %s: %s", self._box, trouble)
            told = trouble
            stop.wait(AGAIN_S)

    @contextlib.contextmanager
    def passing(self) -> Iterator[None]:
        """One pass: bundles are submitted before the block, and their states are written after it. Nothing is done if
        another process serves the drop box."""
        with place.held(self._box) as ours:
            if not ours:
                yield
                return
            taking, following = self._parts()
            taking.settle()
            yield
            following.tick()

    def _run(self, stop: threading.Event) -> None:
        """Uploads of large bundles do not delay the states of others."""
        with contextlib.ExitStack() as stack:
            for loop in self._parts():
                thread = threading.Thread(target=_supervise, args=(loop, stop), name=loop.name, daemon=True)
                thread.start()
                stack.callback(thread.join)
            stop.wait()

    def _parts(self) -> tuple[Taking, Following]:
        kept = Notes(self._directory)
        return Taking(self._box, self._link, kept, self._rules), Following(self._box, self._link, kept)


def _supervise(loop: Loop, stop: threading.Event) -> None:
    while not stop.is_set():
        try:
            loop(stop)
        except Exception:
            log.exception("unexpected error in %s; it continues", loop.name)
            stop.wait(AGAIN_S)
