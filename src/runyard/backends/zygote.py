"""The line to the pre-warmed process that forks runners: found, started, or done without."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import time
from collections.abc import Sequence
from typing import Any

from runyard import runner
from runyard.runner import zygote_link

ANSWER_S = 3.0  # a zygote answers within this time, or is not used
START_S = 20.0
AGAIN_S = 30.0  # after one could not be used

log = logging.getLogger(__name__)


class ZygoteLine:
    """Starts that were asked for and not confirmed yet are in `unconfirmed`: a zygote that dies may have lost them."""

    def __init__(self, site: str, command: Sequence[str], *, used: bool = True) -> None:
        self._site, self._command = site, list(command)
        self._link: zygote_link.ZygoteLink | None = None
        self._not_before = float("-inf") if used else float("inf")
        self.unconfirmed: dict[str, float] = {}  # attempt directory → when it was asked for

    def ensure(self) -> bool:
        """Whether a zygote of our version listens; one is started when there is none."""
        if self._link is None and time.monotonic() >= self._not_before:
            self._link = self._connect() or self._start()
            if self._link is None:
                self._not_before = time.monotonic() + AGAIN_S
        return self._link is not None

    def start(self, directory: str) -> bool:
        """Ask for a runner; whether that was possible."""
        if not self.ensure() or self._link is None:
            return False
        try:
            self._link.start(directory)
        except OSError:
            self._hang_up()
            return False
        self.unconfirmed[directory] = time.monotonic()
        return True

    def poll(self) -> list[dict[str, Any]]:
        """What the zygote has said since, without waiting."""
        if self._link is None:
            return []
        try:
            notices = self._link.poll()
        except (OSError, EOFError, ValueError):
            self._hang_up()
            return []
        for notice in notices:
            self.unconfirmed.pop(notice.get("started") or notice.get("failed") or "", None)
        if any(time.monotonic() > asked_at + ANSWER_S for asked_at in self.unconfirmed.values()):
            log.warning("the zygote of %s does not answer; runners are started without it", self._site)
            self._hang_up()
            self._not_before = time.monotonic() + AGAIN_S
        return notices

    def take_lost_starts(self) -> list[str]:
        """Starts that will not be confirmed any more. Repeating them is safe: only one runner gets past `started`."""
        if self._link is not None:
            return []
        lost, self.unconfirmed = list(self.unconfirmed), {}
        return lost

    def filenos(self) -> list[int]:
        return [] if self._link is None else [self._link.fileno()]

    def close(self) -> None:
        if self._link is not None:
            self._link.close()
            self._link = None

    def _hang_up(self) -> None:
        log.info("the zygote of %s is gone", self._site)
        self.close()

    def _connect(self) -> zygote_link.ZygoteLink | None:
        try:
            connected = zygote_link.connect(self._site)
        except OSError:
            return None
        version = _version(connected)
        if version == runner.digest():
            return connected
        if version:
            self._dismiss(connected)
        connected.close()
        return None

    def _dismiss(self, connected: zygote_link.ZygoteLink) -> None:
        """Another version makes room: it lets go of the socket at once, and ends after the runners it has."""
        deadline = time.monotonic() + ANSWER_S
        with contextlib.suppress(OSError):
            connected.quit()
            while os.path.exists(os.path.join(self._site, zygote_link.SOCKET)) and time.monotonic() < deadline:
                time.sleep(0.005)

    def _start(self) -> zygote_link.ZygoteLink | None:
        try:
            subprocess.run(
                [*self._command, "zygote", self._site], timeout=START_S, check=True, env=clean_environment(),
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            )  # fmt: skip
        except subprocess.CalledProcessError as error:
            log.warning(
                "no zygote could be started for %s: %s", self._site, error.stderr.decode(errors="replace").strip()
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            log.warning("no zygote could be started for %s: %s", self._site, error)
        return self._connect()


def clean_environment() -> dict[str, str]:
    """Runners get their environment from their spec; what the agent knows is not theirs to have."""
    return {name: value for name, value in os.environ.items() if not name.startswith("RUNYARD_")}


def _version(connected: zygote_link.ZygoteLink) -> str:
    """The digest of the zygote's files; empty when it does not answer in time."""
    deadline = time.monotonic() + ANSWER_S
    try:
        connected.ping()
        while (left := deadline - time.monotonic()) > 0:
            for notice in connected.wait(left):
                if "pong" in notice:
                    return str(notice["runner"])
    except (OSError, EOFError, ValueError):
        return ""
    return ""
