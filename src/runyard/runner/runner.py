"""From a directory to its exit record: claim it, write our identity, run the attempt, write the record."""

import os
import time
from typing import Any, Dict, NamedTuple, Optional, Tuple

from . import attempt, json_files, kernel, memory, output, scratch, spec, tree

_IDENTITY = "started/runner.json"
_SPARE = (_IDENTITY, "spec.json")  # of no use when all is over: on a full disk one of them becomes the exit record
_PATIENCE_S = 900.0  # for the exit record, where there is no room even so


class AttemptOutcome(NamedTuple):
    is_recorded: bool
    is_clean: bool  # nothing of the attempt is left in this process: it may take another one


def main(directory: bytes) -> int:
    return 0 if run(directory, may_stay=False).is_recorded else 1


def run(directory: bytes, may_stay: bool) -> AttemptOutcome:
    """`may_stay`: this process may take another attempt afterwards. One that is here for this alone first removes what
    others left on this node when they died; for those that stay, an agent does."""
    os.chdir(directory)
    if not claim():
        return AttemptOutcome(is_recorded=True, is_clean=True)
    kernel.adopt_orphans()
    own = tree.look(os.getpid())
    assert own is not None
    record, is_clean, place = live(own, not may_stay)
    is_recorded = json_files.write_patiently(attempt.STATUS, record, _PATIENCE_S, _SPARE)
    if place is not None:
        (scratch.leave if may_stay and is_clean else scratch.remove)(place)
    return AttemptOutcome(is_recorded, is_clean)


def claim() -> bool:
    """mkdir is atomic, on NFS too: exactly one runner ever gets past this."""
    try:
        os.mkdir("started")
        return True
    except FileExistsError:
        line = json_files.line({"pid": os.getpid(), "node": kernel.node(), "t": round(time.time(), 3)})
        with open("duplicates", "ab", buffering=0) as file:
            file.write(line)
        return False


def live(own: tree.Process, tidies: bool) -> Tuple[Dict[str, Any], bool, Optional[bytes]]:
    """Returns the exit record, whether this process can be reused, and the scratch directory to delete."""
    judge, place = None, None
    try:
        wanted = spec.load()
        judge = memory.appoint(wanted)
        place = scratch.prepare(wanted, own, tidies)
        introduce(own, judge.cgroup if judge is not None else None, place)
        life = attempt.RunnerAttempt(wanted, judge)
    except (spec.BadSpec, OSError) as error:
        if judge is not None:
            judge.close()
        return never_started(error), False, place
    life.run()
    life.close()
    return life.record(), life.is_brief, place


def introduce(own: tree.Process, cgroup: Optional[str], place: bytes) -> None:
    """The identity of the runner, to check whether it is alive, and to clean up after it."""
    identity = {
        "pid": own.pid,
        "start_time": own.start_time,
        "boot_id": kernel.boot_id(),
        "node": kernel.node(),
        "session": own.session if own.session == own.pid else None,  # a session of others is not ours to clean up
        "cgroup": cgroup,
        "scratch": json_files.to_text(place),
    }
    json_files.write(_IDENTITY, identity)


def never_started(error: Exception) -> Dict[str, Any]:
    now = time.time()
    ending = "disk" if isinstance(error, OSError) and error.errno in json_files.FULL else "launch"
    trouble = error if isinstance(error, spec.BadSpec) else "the attempt's directory cannot be written: %s" % error
    return {
        "state": "ended", "beat": 1, "pid": os.getpid(), "child": None, "started_at": now, "ended_at": now,
        "ending": ending, "exit_code": None, "signal": None, "message": str(trouble), "stop_reason": None,
        "tree_gone": True, "leftovers": 0, "wall_time": 0.0, "cpu_time": 0.0, "peak_memory": 0, "memory_judge": None,
        "sizes": output.sizes(),
    }  # fmt: skip
