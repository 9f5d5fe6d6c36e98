"""Runs on a machine that is reached by OpenSSH and where nothing is installed: one backend for each node.

The node runs the same code as a local backend, `runner.node`, which is copied with the runner. Each method is one round
trip.
"""

from __future__ import annotations

import errno
import logging
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from runyard import errors, runner
from runyard.backends.base import Backend, Batch, Distant, Job, Permitting, Presence, Refusal, Sighting, StopRequest
from runyard.hosts.base import Host, Unreachable
from runyard.hosts.ssh import SshHost
from runyard.model import fields
from runyard.model.wire import AttemptKey
from runyard.runner import kernel

NEW_DIRECTORY = "choose another with: runyard site edit SITE --dir DIRECTORY"

log = logging.getLogger(__name__)


class Moment(NamedTuple):
    """A reading of the node's clock, and of ours when it arrived: a lower bound of the node's clock now."""

    boot_id: str
    there: float
    here: float

    def there_at(self, here: float) -> float:
        """A lower bound of the node's clock when ours shows `here`."""
        return self.there + here - self.here


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeFacts:
    """A node's report about itself."""

    node: str  # as it calls itself
    boot_id: str
    python: str
    cpus: int
    memory: int
    gpus: list[dict[str, Any]] = field(default_factory=list)
    survives_sessions: bool = True  # runs go on when the last connection ends


def directory_trouble(node: str, directory: str, error: OSError) -> tuple[str, str]:
    """The sentence and its fix."""
    return f"{directory} on {node} cannot be used: {(error.strerror or str(error)).lower()}", NEW_DIRECTORY


class SshBackend(Backend, Distant, Permitting):
    def __init__(self, host: SshHost, directory: str, node: str) -> None:
        self.host: SshHost = host
        self.directory, self.node = directory, node
        self._package = f"{directory}/runner-{runner.digest()}"
        self._moment: Moment | None = None

    @classmethod
    def build(cls, directory: Path, options: Mapping[str, Any], host: Host | None = None) -> SshBackend:
        if not isinstance(host, SshHost):
            raise errors.ConfigError("a site of kind 'ssh' has nodes", "name each of them with --ssh LOGIN")
        try:
            given = fields.mapping(options, "ssh", ("node",))
            return cls(host, os.fspath(directory), fields.text(given.get("node", ""), "ssh.node", 300))
        except errors.InvalidInput as error:
            raise errors.ConfigError(error.message, error.fix) from None

    # --- the four verbs -----------------------------------------------------------------------------------------

    def submit(self, batch: Batch) -> list[Refusal]:
        """Without an answer it is not known whether they started: the next poll shows it."""
        permitted = [job for job in batch.jobs if job.permit is not None]
        try:
            self._moment = self._tell() if permitted else self._moment  # it may have been restarted since
            words = self._words(permitted, batch.heard_at)
            problems = self._call("start", directories=[job.directory for job in batch.jobs], **words)
        except Unreachable as error:
            log.warning("it is not known yet whether runs started on %s: %s", self.node, error)
            return []
        except OSError as error:
            problems = [(error.strerror or str(error)).lower()] * len(batch.jobs)
        told = zip(batch.jobs, problems, strict=True)
        return [Refusal(key=job.key, text=f"no runner could be started: {problem}") for job, problem in told if problem]

    def poll(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        try:
            found = self._call("look", directories=[job.directory for job in jobs])
        except OSError as error:
            doubt = Sighting(presence=Presence.UNKNOWN, text=str(error), node=self.node)
            return {job.key: doubt for job in jobs}
        return {job.key: self._sighting(told) for job, told in zip(jobs, found, strict=True)}

    def cancel(self, stops: Sequence[StopRequest]) -> None:
        asked = [
            {"directory": stop.job.directory, "reason": stop.reason, "grace": stop.grace, "waited": stop.waited}
            for stop in stops
        ]
        try:
            heard = self._call("stop", stops=asked)
        except OSError as error:
            log.warning("runs on %s cannot be stopped now: %s", self.node, error)
            return
        for stop, is_heard in zip(stops, heard, strict=True):
            if not is_heard:
                log.warning("the runner of attempt %s does not hear; it is killed", stop.job.key)

    def explain(self, job: Job) -> str:
        seen = self.poll([job])[job.key]
        runs = f"its runner is process {seen.native_id} on {self.node}" if seen.native_id else ""
        return seen.text or runs or f"it is {seen.presence} on {self.node}"

    def renew(self, jobs: Sequence[Job], heard_at: float) -> bool:
        try:
            known = self._moment = self._moment or self._tell()
            self._moment = self._tell(**self._words(jobs, heard_at))
        except OSError as error:
            log.warning("permits of runs on %s are not renewed: %s", self.node, error)
            return False
        return self._moment.boot_id == known.boot_id

    def close(self) -> None:
        self.host.close()

    def _words(self, jobs: Sequence[Job], heard_at: float) -> dict[str, Any]:
        """Permits that end at moments of the node's own clock: a delay in transfer does not make them longer."""
        if self._moment is None:
            return {}
        ends = [(job.directory, self._moment.there_at(heard_at + (job.permit or 0))) for job in jobs]
        return {"boot_id": self._moment.boot_id, "permits": ends}

    def _tell(self, boot_id: str = "", permits: Sequence[tuple[str, float]] = ()) -> Moment:
        told = self._call("renew", boot_id=boot_id, permits=permits)
        return Moment(told["boot_id"], told["uptime"], kernel.uptime())

    # --- the node -----------------------------------------------------------------------------------------------

    def trouble(self) -> str:
        return self.host.trouble

    def facts(self) -> NodeFacts:
        """The node's resources. Raises Unreachable, and ConfigError if its directory cannot be used."""
        try:
            return NodeFacts(**self._call("describe"))
        except Unreachable:
            raise
        except OSError as error:
            raise errors.ConfigError(*directory_trouble(self.node, self.directory, error)) from None

    def _call(self, function: str, **arguments: Any) -> Any:
        """The runner is copied if it is missing: at first, after an update, after a clean-up."""
        try:
            return self.host.call(self._package, f"node.{function}", arguments)
        except OSError as error:
            if error.errno != errno.ENOENT:
                raise
        self.host.install(self._package, runner.files())
        return self.host.call(self._package, f"node.{function}", arguments)

    def _sighting(self, told: Mapping[str, Any]) -> Sighting:
        """By the site's name for the node: its own host name may differ."""
        return Sighting(
            presence=Presence(told["presence"]), text=told["text"], native_id=told["native_id"], node=self.node
        )
