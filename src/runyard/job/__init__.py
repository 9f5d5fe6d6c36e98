"""What a program may use inside a run, and what does no harm outside of one:

from runyard import job

lr = job.params()["lr"]
with job.checkpointing(save) as ckpt:
    for step in range(load(ckpt.resume_from), 1000):
        job.log(step=step, loss=train(lr))
        if job.should_stop():
            break
job.summary(accuracy=evaluate())

Standard library only, python3 ≥ 3.6: where runyard is not installed, a run finds a copy of this package alone. The
contract with the runner is in docs/internals/run-directory.md.
"""

from .asking import should_stop
from .checkpoints import Checkpoints, checkpointing
from .facts import index, outputs, params, seed
from .metrics import log, summary

__all__ = ["Checkpoints", "checkpointing", "index", "log", "outputs", "params", "seed", "should_stop", "summary"]
