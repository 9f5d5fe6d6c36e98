"""What a scheduler means by a signal to the runner.

| scheduler   | signal     | sent when                                                 | to whom              |
|-------------|------------|-----------------------------------------------------------|----------------------|
| Slurm       | USR1, USR2 | `--signal=B:…`: the time limit is near                    | the runner alone     |
| Slurm       | TERM       | scancel, preemption, the time limit; SIGKILL follows      | all of its processes |
| Grid Engine | USR1       | `s_rt`: the time limit is near; `-notify`: before SIGSTOP | most often all       |
| Grid Engine | USR2       | `-notify`: before SIGKILL, as by qdel                     | most often all       |
| none        | USR2       | the agent has written control.json                        | the runner alone     |
"""

import os
import signal

from . import spec

WARNING, END, OTHER = "warning", "end", "other"


def meaning(scheduler: str, number: int) -> str:
    if number == signal.SIGTERM or (scheduler == spec.GRID_ENGINE and number == signal.SIGUSR2):
        return END
    return WARNING if scheduler and number in spec.USER_SIGNALS else OTHER


def reached_all(scheduler: str, number: int) -> bool:
    """Whether the user's processes have had this user signal from the scheduler itself."""
    return scheduler == spec.GRID_ENGINE and number in spec.USER_SIGNALS and _grid_engine_signals_all()


def _grid_engine_signals_all() -> bool:
    """It does so by a group of its own, which all processes of a job have, unless an administrator forbade it."""
    try:
        with open(os.path.join(os.environ["SGE_JOB_SPOOL_DIR"], "config"), "rb") as file:
            return b"enable_addgrp_kill=1\n" in file.read()
    except (KeyError, OSError):
        return False
