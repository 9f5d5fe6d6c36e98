"""What a scheduler means by a signal to the runner. Each dialect has its table, which is in spec.json.

| scheduler   | signal     | sent when                                                 | to whom              |
|-------------|------------|-----------------------------------------------------------|----------------------|
| Slurm       | USR1, USR2 | `--signal=B:…`: the time limit is near                    | the runner alone     |
| Slurm       | TERM       | scancel, preemption, the time limit; SIGKILL follows      | all of its processes |
| Grid Engine | USR1       | `s_rt`: the time limit is near; `-notify`: before SIGSTOP | most often all       |
| Grid Engine | USR2       | `-notify`: before SIGKILL, as by qdel                     | most often all       |
| none        | USR2       | the agent has written control.json                        | the runner alone     |

A table: `means`, by the names of signals, WARNING or END (TERM is always END); `to_all`, the signals that the scheduler
sends to all processes of a job itself, where the file in the directory of that variable has that line.
"""

import os
import signal
from typing import Any, Dict, Optional

WARNING, END, OTHER = "warning", "end", "other"

Table = Dict[str, Any]

SLURM: Table = {"means": {"USR1": WARNING, "USR2": WARNING}}
GRID_ENGINE: Table = {
    "means": {"USR1": WARNING, "USR2": END},
    # By a group of its own, which all processes of a job have, unless an administrator forbade it.
    "to_all": {
        "signals": ["USR1", "USR2"],
        "variable": "SGE_JOB_SPOOL_DIR",
        "file": "config",
        "line": "enable_addgrp_kill=1",
    },
}


def by_name(scheduler: str) -> Optional[Table]:
    """For a spec.json of an earlier version, which names the scheduler and has no table."""
    return GRID_ENGINE if scheduler == "gridengine" else SLURM if scheduler else None


def meaning(table: Optional[Table], number: int) -> str:
    if number == signal.SIGTERM:
        return END
    return str((table or {}).get("means", {}).get(_name(number), OTHER))


def reached_all(table: Optional[Table], number: int) -> bool:
    """Whether the user's processes have had this signal from the scheduler itself."""
    to_all = (table or {}).get("to_all")
    if not to_all or _name(number) not in to_all["signals"]:
        return False
    try:
        with open(os.path.join(os.environ[to_all["variable"]], to_all["file"]), "rb") as file:
            return to_all["line"].encode() in file.read().split(b"\n")
    except (KeyError, OSError):
        return False


def _name(number: int) -> str:
    """Empty for a number without a name: a real-time signal, or a wait that was interrupted by a stop."""
    try:
        return signal.Signals(number).name[len("SIG") :]
    except ValueError:
        return ""
