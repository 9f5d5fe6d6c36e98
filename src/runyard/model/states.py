"""The states of runs and attempts, and the only moves between them."""

from __future__ import annotations

import enum

from runyard import errors


class RunState(enum.StrEnum):
    QUEUED = "queued"  # committed; waits for a slot, for other runs, or for its retry time
    STARTING = "starting"  # an agent has it: claimed, staging, or pending in a cluster's own queue
    RUNNING = "running"  # the user's process was started
    SUCCEEDED = "succeeded"  # it exited with 0
    FAILED = "failed"  # it ended otherwise; `reason` says how
    CANCELLED = "cancelled"  # it was stopped; `reason` says by whom

    @property
    def final(self) -> bool:
        return self in FINAL


FINAL = frozenset({RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED})


class AttemptState(enum.StrEnum):
    CLAIMED = "claimed"  # belongs to an agent, which stages and submits it
    SUBMITTED = "submitted"  # submitted to the backend: pending there
    RUNNING = "running"  # its runner has started the user's process
    ENDED = "ended"  # settled; never changes again


class Reason(enum.StrEnum):
    """Why a run failed or was cancelled."""

    ERROR = "error"  # the command exited non-zero or died by a signal of its own
    OOM = "oom"  # it needed more memory than it was granted
    TIMEOUT = "timeout"  # it reached its time limit
    PREEMPTED = "preempted"  # the scheduler stopped it in favour of another job
    NODE_LOST = "node_lost"  # the scheduler reports that the node failed
    LOST = "lost"  # it ended without a record: runner killed, machine rebooted, agent silent too long
    LAUNCH = "launch"  # the command could not be started
    STAGING = "staging"  # its directory, code or data could not be prepared
    REJECTED = "rejected"  # the scheduler refused it
    DEPENDENCY = "dependency"  # a run it comes after did not succeed
    DISK = "disk"  # the disk was full
    USER = "user"  # cancelled through runyard on a user's request
    EXTERNAL = "external"  # cancelled by other means, such as scancel
    EARLY_STOP = "early_stop"  # a sweep stopped it


FAILURES = frozenset(
    {
        Reason.ERROR, Reason.OOM, Reason.TIMEOUT, Reason.PREEMPTED, Reason.NODE_LOST, Reason.LOST,
        Reason.LAUNCH, Reason.STAGING, Reason.REJECTED, Reason.DEPENDENCY, Reason.DISK,
    }
)  # fmt: skip

RUN_MOVES: dict[RunState, frozenset[RunState]] = {
    RunState.QUEUED: frozenset({RunState.STARTING, RunState.FAILED, RunState.CANCELLED}),
    RunState.STARTING: frozenset({RunState.RUNNING, RunState.QUEUED, *FINAL}),
    RunState.RUNNING: frozenset({RunState.QUEUED, *FINAL}),
    RunState.SUCCEEDED: frozenset({RunState.QUEUED}),
    RunState.FAILED: frozenset({RunState.QUEUED}),
    RunState.CANCELLED: frozenset({RunState.QUEUED}),
}

_ATTEMPT_ORDER = list(AttemptState)


def check_run_move(run_id: int, now: RunState, then: RunState) -> None:
    if then not in RUN_MOVES[now]:
        raise errors.Conflict(f"run {run_id} is {now} and cannot become {then}")


def attempt_advances(now: AttemptState, then: AttemptState) -> bool:
    """Whether `then` is news: a late or repeated report never moves an attempt backwards."""
    return _ATTEMPT_ORDER.index(then) > _ATTEMPT_ORDER.index(now)
