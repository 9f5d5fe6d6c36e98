"""The contract of a backend: four methods, and promises about when they may be repeated."""

from __future__ import annotations

import abc
import enum
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from runyard.hosts.base import Host
from runyard.model.nodes import ANY_NODE, NodeChoice
from runyard.model.resources import Capacity, Resources
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
    """Jobs with the same request to the scheduler, submitted together."""

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
    """A job that could not be submitted. `final`: trying again cannot help."""

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
class StopRequest:
    """The request to end a job: its stop signal, then after `grace` seconds SIGKILL to the whole tree."""

    job: Job
    reason: str
    grace: float
    waited: float = 0.0  # seconds since it was first wished: a runner that is deaf for too long is overruled


@dataclass(frozen=True, kw_only=True, slots=True)
class Check:
    """The result of one check of a site. `ok` None: it works, with a restriction that the text names."""

    name: str
    ok: bool | None
    text: str
    fix: str = ""


class Backend(abc.ABC):
    """Executes attempts. It knows run directories, and nothing of logs, metrics, outputs or the yard.

    Promises, which `runyard.testing.backend_contract` checks:

    - No important state is in memory: after a restart, a new backend on the same directory does the same.
    - Every method may be repeated. A job never executes its command twice, because `started` is made only once.
    - Each method costs a number of round trips that does not grow with the number of jobs.
    - GONE is returned only with proof, after remaining processes were ended: no process of the job is alive.
    - A job that was stopped before it started never starts. It leaves an exit record with `stopped`.
    - Doubt is UNKNOWN. A method raises only for a site that cannot be used at all (ConfigError).
    - One thread calls the methods. Only `cancel` and `room` may be called from another, at the same time as the others.
    """

    host: Host
    signals: Mapping[str, Any] | None = None  # what a scheduler sends to runners here: see `runner.scheduler_signals`

    @classmethod
    @abc.abstractmethod
    def build(cls, directory: Path, options: Mapping[str, Any], host: Host | None = None) -> Backend:
        """The backend of the site in this directory of that host, or of this machine. Raises ConfigError for options it
        cannot honour."""

    @abc.abstractmethod
    def submit(self, batch: Batch) -> list[Refusal]:
        """Submit the jobs; returns those that could not be submitted."""

    @abc.abstractmethod
    def poll(self, jobs: Sequence[Job]) -> dict[AttemptKey, Sighting]:
        """The state of each of these jobs, with one query for all. Without jobs: continue pending work, such as the
        ends that `cancel` requested."""

    @abc.abstractmethod
    def cancel(self, stops: Sequence[StopRequest]) -> None:
        """Work towards the end of these jobs; called repeatedly until they have ended. It does not wait for a
        scheduler: the next poll sends the requests to it."""

    @abc.abstractmethod
    def explain(self, job: Job) -> str:
        """An explanation for the user: one sentence about one job, at any cost."""

    def capacity(self) -> Capacity | None:
        """The slots of the site. None: those of the machine that its agent runs on, as the agent's settings say. A
        backend that is `Queueing` is not asked."""
        return None

    def close(self) -> None:  # noqa: B027  (most have nothing to release)
        """Release open resources. Jobs continue."""


class Queueing(abc.ABC):
    """The optional capability of a site that has its own queue: it takes jobs by number, not by slots, and keeps
    records of its batches."""

    @abc.abstractmethod
    def room(self) -> int:
        """How many more jobs may be submitted now, by the last poll. Cheap: no round trip."""

    @abc.abstractmethod
    def clear(self, like: str, owner: str, kept: Collection[str]) -> bool:
        """Delete the records of this owner's batches, except for those in `kept`; `like` is the name of any batch of
        the same yard. Running jobs stay, waiting jobs are removed from the queue. False: something is left to
        delete."""


class Permitting(abc.ABC):
    """The optional capability to end runs whose agent is silent for too long: see `Job.permit`."""

    @abc.abstractmethod
    def renew(self, jobs: Sequence[Job], heard_at: float) -> bool:
        """Each of these jobs has a permit, which counts from `heard_at` on, by `kernel.uptime` of this machine. An
        expired permit stays expired. False: the machine could not be reached."""


class Distant(abc.ABC):
    """The optional capability of a machine that may be unreachable while its runs continue. Polls show whether it
    is."""

    @abc.abstractmethod
    def trouble(self) -> str:
        """Why it did not answer the last request; empty if it did. Cheap: no round trip. From any thread."""


class Notifier(abc.ABC):
    """The optional capability to report at once that a job ended. Notices are hints: losing one only costs time."""

    @abc.abstractmethod
    def wake_fds(self) -> list[int]:
        """File descriptors that become readable when there are notices."""

    @abc.abstractmethod
    def notices(self) -> set[str]:
        """Directories of jobs that may have ended since the last call. Never blocks."""
