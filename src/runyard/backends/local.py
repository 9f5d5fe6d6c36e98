"""Runs on this machine: a runner per attempt, forked by the zygote or started by itself."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runyard import errors, machine, runner
from runyard.backends.base import Backend, Batch, Job, Notifier, Permitting, Presence, Refusal, Sighting, StopRequest
from runyard.backends.zygote import ZygoteLine, clean_environment
from runyard.hosts import local
from runyard.hosts.base import Host
from runyard.hosts.local import LocalHost
from runyard.model import fields
from runyard.model.wire import AttemptKey
from runyard.runner.supervisor import Attendant

log = logging.getLogger(__name__)


class LocalBackend(Backend, Notifier, Permitting):
    def __init__(self, directory: Path, python: str = "", *, zygote: bool = True) -> None:
        """`zygote`: whether a process for fast starts may stay alive when this one ends."""
        self.host = LocalHost()
        self._directory = os.fspath(directory)
        local.make_directory(self._directory)
        # Isolated: neither the user's modules nor site-packages have any business in a runner.
        self._command = [python or sys.executable, "-I", "-S", runner.install(self._directory)]
        self._zygote = ZygoteLine(self._directory, self._command, used=zygote)
        self._spawned: dict[str, int] = {}  # attempt directory → process number of the runner
        self._attendant = Attendant()
        self._is_warm = False

    @classmethod
    def build(cls, directory: Path, options: Mapping[str, Any], host: Host | None = None) -> LocalBackend:
        if host is not None and not isinstance(host, LocalHost):
            raise errors.ConfigError("a site of kind 'local' is the machine its agent runs on", "leave --ssh out")
        try:
            given = fields.mapping(options, "local", ("python", "zygote"))
            python = fields.text(given.get("python", ""), "local.python", 4096, empty=True)
            return cls(directory, python, zygote=given.get("zygote", "yes") == "yes")
        except errors.InvalidInput as error:
            raise errors.ConfigError(error.message, error.fix) from None
        except OSError as error:
            raise errors.ConfigError(f"{directory} cannot be used: {error.strerror}") from None

    # --- the four verbs -----------------------------------------------------------------------------------------

    def submit(self, batch: Batch) -> list[Refusal]:
        self.renew([job for job in batch.jobs if job.permit is not None], batch.heard_at)
        found = (self._start(job) for job in batch.jobs)
        return [refusal for refusal in found if refusal is not None]

    def poll(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        return {job.key: self._sight(job) for job in jobs}

    def cancel(self, stops: Sequence[StopRequest]) -> None:
        for stop in stops:
            self._stop(stop)

    def explain(self, job: Job) -> str:
        sighting = self._sight(job)
        runs = f"its runner is process {sighting.native_id}" if sighting.native_id else ""
        return sighting.text or runs or f"it is {sighting.presence} on {machine.node_name()}"

    def renew(self, jobs: Sequence[Job], heard_at: float) -> bool:
        for job in jobs:
            self._attendant.renew(os.fsencode(job.directory), heard_at + (job.permit or 0))
        return True

    def close(self) -> None:
        self._zygote.close()

    # --- notices ------------------------------------------------------------------------------------------------

    def wake_fds(self) -> list[int]:
        return self._zygote.filenos()

    def notices(self) -> set[str]:
        if not self._is_warm:
            self._is_warm = True
            self._zygote.ensure()
        said = self._zygote.poll()
        refused = [notice["failed"] for notice in said if "failed" in notice]
        for directory in (*refused, *self._zygote.take_lost_starts()):
            self._spawn(directory)
        return {notice["ended"] for notice in said if "ended" in notice} | self._reap_spawned()

    def _reap_spawned(self) -> set[str]:
        ended = {directory for directory, pid in self._spawned.items() if os.waitpid(pid, os.WNOHANG)[0]}
        for directory in ended:
            del self._spawned[directory]
        return ended

    # --- starting -----------------------------------------------------------------------------------------------

    def _start(self, job: Job) -> Refusal | None:
        if self._zygote.start(job.directory):
            return None
        problem = self._spawn(job.directory)
        return None if problem is None else Refusal(key=job.key, text=f"no runner could be started: {problem}")

    def _spawn(self, directory: str) -> str | None:
        """Start a runner with its own interpreter; returns the error, if any."""
        try:
            quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
            arguments = [*self._command, "run", directory]
            self._spawned[directory] = os.posix_spawn(arguments[0], arguments, clean_environment(), file_actions=quiet)
        except OSError as error:
            return (error.strerror or str(error)).lower()
        return None

    # --- looking ------------------------------------------------------------------------------------------------

    def _sight(self, job: Job) -> Sighting:
        found = self._attendant.look(os.fsencode(job.directory))
        under_way = job.directory in self._zygote.unconfirmed or job.directory in self._spawned
        if found["presence"] == Presence.ABSENT and under_way:
            return Sighting(presence=Presence.PENDING)
        return sighting(found)

    # --- stopping -----------------------------------------------------------------------------------------------

    def _stop(self, stop: StopRequest) -> None:
        if not self._attendant.stop(os.fsencode(stop.job.directory), stop.reason, stop.grace, stop.waited):
            log.warning("the runner of attempt %s does not hear; it is killed", stop.job.key)


def sighting(found: Mapping[str, Any]) -> Sighting:
    """From an answer of `runner.supervisor`."""
    return Sighting(
        presence=Presence(found["presence"]), text=found["text"], native_id=found["native_id"], node=found["node"]
    )
