"""The contract of a backend: four verbs, and promises about when they may be repeated."""

from __future__ import annotations

import abc
import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from runyard.hosts.base import Host
from runyard.model.nodes import ANY_NODE, NodeChoice
from runyard.model.resources import Resources
from runyard.model.wire import AttemptKey

Ending = Literal["preempted", "node_lost", "timeout", "oom", "external", "launch", "rejected", "error"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Job:
    """One attempt as a backend knows it. Its identity is (batch, index): native ids can be reused."""

    key: AttemptKey
    directory: str  # absolute; holds spec.json before the job is submitted
    tag: str  # in the environment of every process of it; empty when unknown
    batch: str
    index: int
    permit: float | None = None  # seconds: it ends by itself so long after the yard last heard of its agent


@dataclass(frozen=True, kw_only=True, slots=True)
class Batch:
    """Jobs that a scheduler is asked for in the same words, submitted at once."""

    name: str
    resources: Resources
    jobs: tuple[Job, ...]
    options: Mapping[str, str] = field(default_factory=dict)  # what the runs ask of the scheduler, in its own words
    choice: NodeChoice = ANY_NODE  # of the runs
    avoid: tuple[str, ...] = ()  # nodes that failed an earlier attempt, by the names that sightings gave
    warning: int | None = None  # seconds before its time limit at which a scheduler is asked to warn it as well
    owner: str = ""  # the site that has it, by the name that its yard gave it
    heard_at: float = float("-inf")  # when permits begin: see `Permitting`


@dataclass(frozen=True, kw_only=True, slots=True)
class Refusal:
    """A job that could not be handed over. `final`: trying again cannot help."""

    key: AttemptKey
    text: str
    final: bool = False
    ending: Ending | None = None  # what a final one means for the run; None: it could not be launched


class Presence(enum.StrEnum):
    """What a backend can say about a job."""

    ABSENT = "absent"  # it has not begun, and nothing is under way that could begin it
    PENDING = "pending"  # accepted; waits in the backend's own queue
    ALIVE = "alive"  # it has begun, and something of it runs
    GONE = "gone"  # it is over: proven that nothing of it runs any more, nor ever will
    UNKNOWN = "unknown"  # no trustworthy answer; never a reason to act


@dataclass(frozen=True, kw_only=True, slots=True)
class Sighting:
    presence: Presence
    text: str = ""  # one line for people: why it waits, or how we know that it is gone
    native_id: str | None = None
    ending: Ending | None = None  # how a job without an exit record ended, where the backend knows
    node: str | None = None  # where it runs or ran, where the backend knows


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    """The wish to end a job: its stop signal, then after `grace` seconds SIGKILL to the whole tree."""

    job: Job
    reason: str
    grace: float
    waited: float = 0.0  # seconds since it was first wished: a runner that is deaf for too long is overruled


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """One thing of a site that was tried. `ok` None: it works, with a restriction that the text names."""

    name: str
    ok: bool | None
    text: str
    fix: str = ""


class Backend(abc.ABC):
    """Has attempts executed. It knows run directories and nothing of logs, metrics, outputs or the yard.

    Promises, which `runyard.testing.backend_contract` checks:

    - Nothing is remembered that matters: after a restart, a fresh backend on the same directory does the same.
    - Every verb may be repeated. A job never executes its command twice, because `started` is made only once.
    - Each verb costs a number of round trips that does not grow with the number of jobs.
    - GONE is said only with proof, and a job's remains are ended before: after it, no process of the job lives.
    - A job that was stopped before it began never begins. It leaves an exit record that says `stopped`.
    - Doubt is UNKNOWN. A verb raises only for a site that cannot be used at all (ConfigError).
    - One thread calls the verbs. Only `cancel` and `room` may come from another, while one of the others is at work.
    """

    host: Host

    @classmethod
    @abc.abstractmethod
    def build(cls, directory: Path, options: Mapping[str, Any], host: Host | None = None) -> Backend:
        """The backend of the site in this directory of that host, or of this machine. Raises ConfigError for options it
        cannot honour."""

    @abc.abstractmethod
    def submit(self, batch: Batch) -> list[Refusal]:
        """Hand the jobs over; those it could not hand over come back."""

    @abc.abstractmethod
    def poll(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        """What is known of each of these jobs, with one question for all. Without any: carry on with what is under way,
        such as the ends that `cancel` has asked for."""

    @abc.abstractmethod
    def cancel(self, stops: Sequence[Stop]) -> None:
        """Work towards the end of these jobs; called again and again until they are gone. It does not wait for a
        scheduler: what that has to be told is told by the next poll."""

    @abc.abstractmethod
    def explain(self, job: Job) -> str:
        """For a person who asks why: one sentence about one job, at whatever cost."""

    def close(self) -> None:  # noqa: B027  (most have nothing to release)
        """Release what is held open. Jobs go on."""


class Queueing(abc.ABC):
    """The optional power of a site that has a queue of its own: it takes jobs by number, not by slots, and keeps notes
    of the batches that it was handed."""

    @abc.abstractmethod
    def room(self) -> int:
        """How many more jobs may be handed over now, by the last poll. Cheap: it asks nobody."""

    @abc.abstractmethod
    def clear(self, like: str, owner: str, kept: Collection[str]) -> bool:
        """Remove what is noted of this owner's batches, except for those in `kept`; `like` is the name of any batch of
        the same yard. What runs stays, what waits is taken out of the queue. False: something is left to clear."""


class Permitting(abc.ABC):
    """The optional power to have runs end by themselves when nobody speaks for them any more: see `Job.permit`."""

    @abc.abstractmethod
    def renew(self, jobs: Sequence[Job], heard_at: float) -> bool:
        """Each of these jobs has a permit, which counts from `heard_at` on, by `kernel.uptime` of this machine. One
        that ran out stays so. False: nobody could be told."""


class Distant(abc.ABC):
    """The optional power of a machine that may not answer while its runs go on. Polls tell whether it does."""

    @abc.abstractmethod
    def trouble(self) -> str:
        """Why it did not answer when it was last asked; empty when it did. Cheap: it asks nobody. From any thread."""


class Notifier(abc.ABC):
    """The optional power to say at once that something ended. Notices are hints: losing one costs time, no more."""

    @abc.abstractmethod
    def wake_fds(self) -> list[int]:
        """File descriptors that become readable when there are notices."""

    @abc.abstractmethod
    def notices(self) -> set[str]:
        """Directories of jobs that may have ended since the last call. Never blocks."""
