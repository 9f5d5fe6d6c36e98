"""The life of one attempt: start the user's process, watch it, end its whole tree, write down how it ended.

The current directory is the attempt's, so that every file here has a short name, whatever the path above it.
"""

import gc
import os
import signal
import time
from typing import Any, Dict, List, Optional

from . import cgroup, child, kernel, memory, output, records, spec, timers, tree, usage

_FIRST_BEAT_S = 0.1  # a run that is over sooner costs no status but the last
_FIRST_SAMPLE_S = 0.2
_MERGE_S = 0.1
_GOODBYE_S = 0.5  # for what the first process leaves behind, such as a `tee` that still writes
_LEFTOVER_GRACE_S = 2.0
_KILL_AGAIN_S, _KILL_AGAIN_MOST_S = 0.05, 1.0
_PATIENCE_S = 900.0  # for the exit record on a full disk


def main(directory: bytes) -> int:
    os.chdir(directory)
    if not claim():
        return 0
    record = live()
    return 0 if records.write_patiently("status.json", record, _PATIENCE_S) else 1


def claim() -> bool:
    """mkdir is atomic, on NFS too: exactly one runner ever gets past this."""
    try:
        os.mkdir("started")
        return True
    except FileExistsError:
        line = records.line({"pid": os.getpid(), "node": kernel.node(), "t": round(time.time(), 3)})
        with open("duplicates", "ab", buffering=0) as file:
            file.write(line)
        return False


def live() -> Dict[str, Any]:
    """Returns the exit record."""
    kernel.adopt_orphans()
    try:
        wanted = spec.load()
        judge_group = _make_group(wanted)
        _introduce(judge_group)
        attempt = Attempt(wanted, judge_group)
    except spec.BadSpec as error:
        return _not_started(str(error))
    except OSError as error:
        return _not_started("the attempt's directory cannot be used: %s" % error)
    attempt.run()
    return attempt.record()


def _make_group(wanted: spec.Spec) -> Optional[cgroup.Group]:
    if wanted.memory_limit is None or not wanted.may_use_cgroup:
        return None
    name = cgroup.safe_name("runyard-%s-%d-%d" % (wanted.key, os.getpid(), time.time()))
    return cgroup.make(name, int(wanted.memory_limit))


def _introduce(group: Optional[cgroup.Group]) -> None:
    """Who the runner is, for whoever has to find out whether it still lives, or has to clean up after it."""
    own = tree.look(os.getpid())
    assert own is not None
    identity = {
        "pid": own.pid,
        "start_time": own.start_time,
        "boot_id": kernel.boot_id(),
        "node": kernel.node(),
        "session": own.session if own.session == own.pid else None,  # a foreign session is nobody's to clean up
        "cgroup": group.path if group is not None else None,
    }
    records.write("started/runner.json", identity)
