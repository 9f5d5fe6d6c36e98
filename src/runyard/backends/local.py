"""Runs on this machine: a runner per attempt, forked by the zygote or started by itself."""

from __future__ import annotations

import contextlib
import errno
import json
import logging
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runyard import errors, machine, runner
from runyard.backends.base import Backend, Batch, Job, Notifier, Presence, Refusal, Sighting, Stop
from runyard.backends.zygote import ZygoteLine, clean_environment
from runyard.hosts import local
from runyard.hosts.base import Host
from runyard.hosts.local import LocalHost
from runyard.model import fields
from runyard.model.wire import AttemptKey
from runyard.runner import records, sweep, tree

DEAF_S = 15.0  # beyond the grace: a runner that did not hear a stop by then is killed
HEARD_S = 60.0  # a runner that has heard it, but shows no beat for so long, counts as deaf too
SWEEP_LOOKS = 5
SWEEP_PAUSE_S = 0.02

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Runner:
    """Who runs an attempt, as started/runner.json says."""

    pid: int
    start_time: int
    boot_id: str
    node: str

    @property
    def alive(self) -> bool:
        return self.boot_id == machine.boot_id() and tree.is_alive(self.pid, self.start_time)

    def send(self, number: signal.Signals) -> None:
        """To this very process: a descriptor keeps its number from being reused between the look and the signal."""
        with contextlib.suppress(OSError):
            descriptor = os.pidfd_open(self.pid)
            try:
                if self.alive:
                    signal.pidfd_send_signal(descriptor, number)
            finally:
                os.close(descriptor)


class LocalBackend(Backend, Notifier):
    def __init__(self, directory: Path, python: str = "", *, zygote: bool = True) -> None:
        """`zygote`: whether a process that makes starts fast may stay behind when this one ends."""
        self.host = LocalHost()
        self._directory = os.fspath(directory)
        local.make_directory(self._directory)
        # Isolated: neither the user's modules nor site-packages have any business in a runner.
        self._command = [python or sys.executable, "-I", "-S", runner.install(self._directory)]
        self._zygote = ZygoteLine(self._directory, self._command, used=zygote)
        self._spawned: dict[str, int] = {}  # attempt directory → process number of the runner
        self._swept: dict[str, int] = {}
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
        found = (self._start(job) for job in batch.jobs)
        return [refusal for refusal in found if refusal is not None]

    def poll(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        return {job.key: self._sight(job) for job in jobs}

    def cancel(self, stops: Sequence[Stop]) -> None:
        for stop in stops:
            if not self._prevent(stop):
                self._ask_to_stop(stop)

    def explain(self, job: Job) -> str:
        sighting = self._sight(job)
        runs = f"its runner is process {sighting.native_id}" if sighting.native_id else ""
        return sighting.text or runs or f"it is {sighting.presence} on {machine.node_name()}"

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
        """A runner with an interpreter of its own; what went wrong, if anything."""
        try:
            quiet = [(os.POSIX_SPAWN_OPEN, number, os.devnull, os.O_RDWR, 0) for number in range(3)]
            arguments = [*self._command, "run", directory]
            self._spawned[directory] = os.posix_spawn(arguments[0], arguments, clean_environment(), file_actions=quiet)
        except OSError as error:
            return (error.strerror or str(error)).lower()
        return None

    # --- looking ------------------------------------------------------------------------------------------------

    def _sight(self, job: Job) -> Sighting:
        found = _runner_of(job.directory)
        if found is not None:
            return self._sight_runner(job.directory, found)
        if not _has_started(job.directory):
            under_way = job.directory in self._zygote.unconfirmed or job.directory in self._spawned
            return Sighting(presence=Presence.PENDING if under_way else Presence.ABSENT)
        if _has_record(job.directory):
            return _gone("it left a record")
        return Sighting(presence=Presence.UNKNOWN, text="its runner began, and did not say who it is")

    def _sight_runner(self, directory: str, found: Runner) -> Sighting:
        if found.alive:
            return Sighting(presence=Presence.ALIVE, native_id=str(found.pid))
        if found.boot_id != machine.boot_id():
            if found.node != machine.node_name():
                text = f"its runner is on another machine, {found.node}"
                return Sighting(presence=Presence.UNKNOWN, text=text, node=found.node)
            return _gone(f"{found.node} was restarted while it ran")
        if _has_record(directory):
            return _gone("it left a record")
        return self._clear_away(directory)

    def _clear_away(self, directory: str) -> Sighting:
        """A runner that died without a record is followed by a search for what it left, until there is nothing."""
        traces = sweep.Traces(os.fsencode(directory))
        for _ in range(SWEEP_LOOKS):
            left = traces.find()
            if not left:
                traces.remove_cgroup()
                return _gone(_told(self._swept.pop(directory, 0)))
            tree.end_all(traces.find)
            self._swept[directory] = max(self._swept.get(directory, 0), len(left))
            time.sleep(SWEEP_PAUSE_S)
        return Sighting(presence=Presence.ALIVE, text=f"its runner died; {len(left)} of its processes cannot be ended")

    # --- stopping -----------------------------------------------------------------------------------------------

    def _prevent(self, stop: Stop) -> bool:
        """Make `started` before any runner can: then it never begins. False when one was faster."""
        directory = stop.job.directory
        with contextlib.suppress(OSError):
            local.make_directory(directory)
            try:
                os.mkdir(f"{directory}/started", 0o700)
            except FileExistsError:
                return False
            now = time.time()
            record = {
                "state": "ended", "beat": 1, "ending": "stopped", "stop_reason": stop.reason, "exit_code": None,
                "signal": None, "message": "it was stopped before it began", "tree_gone": True, "leftovers": 0,
                "ended_at": now, "sizes": {},
            }  # fmt: skip
            local.write_file(f"{directory}/status.json", json.dumps(record).encode())
        return True

    def _ask_to_stop(self, stop: Stop) -> None:
        directory = stop.job.directory
        wish = {"stop": {"reason": stop.reason, "grace": stop.grace}}
        if records.read(f"{directory}/control.json") != wish:
            with contextlib.suppress(OSError):
                local.write_file(f"{directory}/control.json", json.dumps(wish).encode())
        found = _runner_of(directory)
        if found is None:
            return
        if stop.waited > stop.grace + DEAF_S and not _has_heard(directory):
            log.warning("the runner of attempt %s does not hear; it is killed", stop.job.key)
            found.send(signal.SIGKILL)
        else:
            found.send(signal.SIGUSR2)


def _runner_of(directory: str) -> Runner | None:
    said = records.read(f"{directory}/started/runner.json")
    try:
        return Runner(pid=said["pid"], start_time=said["start_time"], boot_id=said["boot_id"], node=said["node"])
    except (TypeError, KeyError):
        return None


def _gone(text: str) -> Sighting:
    return Sighting(presence=Presence.GONE, text=text)


def _told(killed: int) -> str:
    if not killed:
        return "its runner died without a record, and took everything with it"
    return f"its runner died without a record; {killed} processes that it left were ended"


def _has_started(directory: str) -> bool:
    """Only a clear no counts as one: anything else may be a file system that does not answer."""
    try:
        os.stat(f"{directory}/started")
    except OSError as error:
        return error.errno not in (errno.ENOENT, errno.ENOTDIR)
    return True


def _has_record(directory: str) -> bool:
    status = records.read(f"{directory}/status.json")
    return isinstance(status, dict) and status.get("state") == "ended"


def _has_heard(directory: str) -> bool:
    """A runner that is ending its tree says so with each beat. What it cannot kill, nobody can."""
    status = records.read(f"{directory}/status.json")
    try:
        age = time.time() - os.stat(f"{directory}/status.json").st_mtime
    except OSError:
        return False
    return isinstance(status, dict) and bool(status.get("ending")) and age < HEARD_S
