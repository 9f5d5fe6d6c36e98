"""Watches attempts on the machine where they run: the state of each, and how to end it.

An agent on this machine calls it directly. For a remote node it runs there: see `node`.
"""

import errno
import os
import signal
import time
from typing import Any, Dict, NamedTuple, Optional

from . import json_files, kernel, leftovers, permit, tree

ABSENT, PENDING, ALIVE, GONE, UNKNOWN = "absent", "pending", "alive", "gone", "unknown"

DEAF_S = 15.0  # beyond the grace: a runner that did not hear a stop by then is killed
HEARD_S = 60.0  # a runner that has heard it, but shows no beat for so long, counts as deaf too
_SWEEP_LOOKS = 5
_SWEEP_PAUSE_S = 0.02

Json = Dict[str, Any]


class RunnerProcess(NamedTuple):
    """The runner of an attempt, from started/runner.json."""

    pid: int
    start_time: int
    boot_id: str
    node: str

    @property
    def alive(self) -> bool:
        return self.boot_id == kernel.boot_id() and tree.is_alive(self.pid, self.start_time)

    def send(self, number: signal.Signals) -> None:
        """To exactly this process: a descriptor prevents the reuse of its pid between the check and the signal."""
        try:
            descriptor = kernel.open_process(self.pid)
            try:
                if self.alive:
                    kernel.send_signal(self.pid, descriptor, number)
            finally:
                if descriptor is not None:
                    os.close(descriptor)
        except OSError:  # it ended meanwhile
            pass


class Attendant:
    def __init__(self) -> None:
        self._swept: Dict[bytes, int] = {}  # how many processes a dead runner left, while they are being ended

    def look(self, directory: bytes) -> Json:
        """The state of an attempt, with a text for users. Remaining processes of a dead runner are ended."""
        found = runner_of(directory)
        if found is not None:
            return self._look_at_runner(directory, found)
        if not _has_started(directory):
            return sighting(ABSENT)
        if _has_record(directory):
            return sighting(GONE, "it left a record")
        return sighting(UNKNOWN, "its runner began, and did not say who it is")

    def stop(self, directory: bytes, reason: str, grace: float, waited: float) -> bool:
        """Work towards its end; `waited` is the time since the request. False: its runner did not react, and was
        killed."""
        return _prevent(directory, reason) or _ask_to_stop(directory, reason, grace, waited)

    def renew(self, directory: bytes, until: float) -> None:
        """It may live until then, by `kernel.uptime`. An expired permit stays expired, also for a runner that is
        suspended and does not know it yet: the run may be running elsewhere."""
        if not permit.is_over(json_files.read(directory + b"/control.json")):
            _write_control(directory, permit=permit.document(until))

    def _look_at_runner(self, directory: bytes, found: RunnerProcess) -> Json:
        if found.alive:
            return sighting(ALIVE, native_id=str(found.pid))
        if found.boot_id != kernel.boot_id():
            if found.node != kernel.node():
                return sighting(UNKNOWN, "its runner is on another machine, " + found.node, node=found.node)
            leftovers.Traces(directory).remove_scratch()
            return sighting(GONE, "%s was restarted while it ran" % found.node)
        if _has_record(directory):
            leftovers.Traces(directory).remove_scratch()
            return sighting(GONE, "it left a record")
        return self._clear_away(directory)

    def _clear_away(self, directory: bytes) -> Json:
        """After a runner that died without a record, its processes are searched for and killed, until none is left."""
        traces = leftovers.Traces(directory)
        for _ in range(_SWEEP_LOOKS):
            left = traces.find()
            if not left:
                traces.remove_cgroup()
                traces.remove_scratch()
                return sighting(GONE, _told(self._swept.pop(directory, 0)))
            tree.end_all(traces.find)
            self._swept[directory] = max(self._swept.get(directory, 0), len(left))
            time.sleep(_SWEEP_PAUSE_S)
        return sighting(ALIVE, "its runner died; %d of its processes cannot be ended" % len(left))


def sighting(presence: str, text: str = "", native_id: Optional[str] = None, node: Optional[str] = None) -> Json:
    return {"presence": presence, "text": text, "native_id": native_id, "node": node}


def runner_of(directory: bytes) -> Optional[RunnerProcess]:
    said = json_files.read(directory + b"/started/runner.json")
    try:
        return RunnerProcess(said["pid"], said["start_time"], said["boot_id"], said["node"])
    except (TypeError, KeyError):
        return None


def _told(killed: int) -> str:
    if not killed:
        return "its runner died without a record, and took everything with it"
    return "its runner died without a record; %d processes that it left were ended" % killed


def _has_started(directory: bytes) -> bool:
    """Only a definite no counts: anything else may be a file system that does not answer."""
    try:
        os.stat(directory + b"/started")
    except OSError as error:
        return error.errno not in (errno.ENOENT, errno.ENOTDIR)
    return True


def _has_record(directory: bytes) -> bool:
    status = json_files.read(directory + b"/status.json")
    return isinstance(status, dict) and status.get("state") == "ended"


def _prevent(directory: bytes, reason: str) -> bool:
    """Make `started` before any runner can: then the attempt never starts. False if a runner was faster."""
    try:
        os.makedirs(directory, 0o700, exist_ok=True)
        try:
            os.mkdir(directory + b"/started", 0o700)
        except FileExistsError:
            return False
        record = {
            "state": "ended", "beat": 1, "ending": "stopped", "stop_reason": reason, "exit_code": None,
            "signal": None, "message": "it was stopped before it began", "tree_gone": True, "leftovers": 0,
            "ended_at": time.time(), "sizes": {},
        }  # fmt: skip
        _write_or_undo(directory, record)
    except OSError:  # it is asked for again
        pass
    return True


def _write_or_undo(directory: bytes, record: Json) -> None:
    """`started` without a record would stay undecided for ever. A runner that found it has exited."""
    try:
        json_files.write(directory + b"/status.json", record)
    except OSError:
        os.rmdir(directory + b"/started")
        raise


def _ask_to_stop(directory: bytes, reason: str, grace: float, waited: float) -> bool:
    is_written = _write_control(directory, stop={"reason": reason, "grace": grace})
    found = runner_of(directory)
    if found is None:
        return True
    told = _age(directory + b"/control.json") if is_written else 0.0  # maybe by a tick of cron before this one
    is_deaf = max(waited, told) > grace + DEAF_S and not _has_heard(directory)
    request = (
        signal.SIGUSR2 if is_written else signal.SIGTERM
    )  # which needs no words, on a disk that has no room for any
    found.send(signal.SIGKILL if is_deaf else request)
    return not is_deaf


def _write_control(directory: bytes, **wishes: Json) -> bool:
    """Keeps the other entries. A failed write is repeated by the caller."""
    control = directory + b"/control.json"
    known = json_files.read(control)
    document = dict(known if isinstance(known, dict) else {}, **wishes)
    if document == known:
        return True
    try:
        json_files.write(control, document)
        return True
    except OSError:
        return False


def _has_heard(directory: bytes) -> bool:
    """A runner that is ending its tree reports it with each beat. Processes that it cannot kill cannot be killed at
    all."""
    status = json_files.read(directory + b"/status.json")
    is_ending = isinstance(status, dict) and bool(status.get("ending"))
    return is_ending and _age(directory + b"/status.json") < HEARD_S


def _age(path: bytes) -> float:
    try:
        return time.time() - os.stat(path).st_mtime
    except OSError:
        return 0.0
