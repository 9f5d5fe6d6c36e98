"""The API for programs inside a run; it also works outside a run:

from runyard import job

lr = job.params()["lr"]
with job.checkpointing(save) as ckpt:
    for step in range(load(ckpt.resume_from), 1000):
        job.log(step=step, loss=train(lr))
        if job.should_stop():
            break
job.summary(accuracy=evaluate())

Standard library only, python3 ≥ 3.6: if runyard is not installed, a run finds a copy of this package alone. The
contract with the runner is in docs/internals/run-directory.md.
"""

from .checkpoints import Checkpoints, checkpointing
from .metrics import log, summary
from .run_facts import index, outputs, params, seed
from .stop_request import should_stop

__all__ = ["Checkpoints", "checkpointing", "index", "log", "outputs", "params", "seed", "should_stop", "summary"]
