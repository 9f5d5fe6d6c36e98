"""The contract of a dialect: build a scheduler's commands, and parse its answers. Pure text, no I/O.

Commands go out as words, answers come in as the `Result` of a host. A native job is identified by its name and
task, never by its id alone: schedulers lose jobs in a crash and reuse their ids.
"""

from __future__ import annotations

import abc
import enum
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from runyard import errors
from runyard.backends.base import Ending
from runyard.backends.batch import script
from runyard.hosts.base import Result
from runyard.model.nodes import ANY_NODE, NodeChoice
from runyard.model.resources import Resources

NO_ANSWER = (None, 126, 127)  # exit codes of a program that did not answer in time, or could not be started


class Unanswered(Exception):
    """The scheduler gave no answer that can be trusted. The text is for users; it is never a state."""


class Stage(enum.Enum):
    WAITING = enum.auto()  # in the queue
    STUCK = enum.auto()  # in the queue, and the scheduler has given it up: it needs a person
    RUNNING = enum.auto()
    OVER = enum.auto()
    UNCLEAR = enum.auto()  # a word that we do not know


@dataclass(frozen=True, kw_only=True, slots=True)
class Native:
    """One job, or one task of an array, as the scheduler reports it."""

    name: str
    task: int  # 1 when it is no array
    id: str  # as the cancelling command wants it
    stage: Stage
    word: str  # the scheduler's own: PENDING, Eqw, …
    why: str = ""  # the reason it gives for the stage
    expected: str = ""  # when it may start: 2026-11-15T14:05:00 by the scheduler's clock
    node: str = ""
    node_is_silent: bool = False  # the scheduler has lost sight of the node
    again: bool = False  # it waits, and may have run before: the scheduler has taken it back into its queue
    ending: Ending | None = None  # when it is OVER, where the scheduler knows
    numbers: str = ""  # exit code, times, memory: what there is to say about the end

    @property
    def is_over(self) -> bool:
        return self.stage is Stage.OVER

    @property
    def job(self) -> str:
        """The id of the job or of the whole array."""
        return re.split(r"[_.]", self.id)[0]


@dataclass(frozen=True, kw_only=True, slots=True)
class ClusterFacts:
    """What a cluster's configuration says. None: no limit, or not known."""

    array_size: int = 1000  # the highest task number of an array; 1 where there are no arrays
    task_limit: int | None = None  # most tasks of ours in the queue, waiting and running
    job_limit: int | None = None  # most native jobs of ours, an array being one
    longest: Mapping[str, int] = field(default_factory=dict)  # partition → seconds; "" is the default partition
    slots_of_node: str = ""  # how the parallel environment for several nodes divides its slots: a number, or a word
    per_slot: frozenset[str] = frozenset()  # resources whose request is multiplied by the slots
    memory_resources: tuple[str, ...] = ()  # those that are counted, best first
    nodes: tuple[str, ...] = ()  # their names


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """One native job or array to submit."""

    name: str
    directory: str  # of the batch; the job starts there
    tasks: tuple[int, ...]  # ascending; (1,) is a plain job
    arguments: tuple[str, ...]  # of the script
    resources: Resources
    options: Mapping[str, str]  # what the site, its rules and the run ask for, checked and in long names
    at_once: int | None = None  # most tasks that may run together
    choice: NodeChoice = ANY_NODE
    avoid: tuple[str, ...] = ()  # nodes, where others are left
    warning: int | None = None  # seconds before the native limit at which the job gets a signal
    time_margin: int = 60  # seconds by which the native limit exceeds the runner's own
    facts: ClusterFacts = ClusterFacts()

    @property
    def is_array(self) -> bool:
        return self.tasks != (1,)

    @property
    def script(self) -> str:
        return f"{self.directory}/job.sh"


class SubmitReply(enum.Enum):
    ACCEPTED = enum.auto()
    REFUSED = enum.auto()  # trying again cannot help
    LIMITED = enum.auto()  # not now: too many jobs of ours are there already
    UNSURE = enum.auto()  # it may have been accepted or not


@dataclass(frozen=True, kw_only=True, slots=True)
class SubmitAnswer:
    reply: SubmitReply
    text: str = ""
    id: str = ""


class Dialect(abc.ABC):
    """Every method is a function of its arguments and of the site's settings."""

    title: ClassVar[str]  # what people call it
    template: ClassVar[str]  # the job script's file in templates/: see `job_script`
    signals: ClassVar[Mapping[str, Any]]  # what it sends to runners: see `runner.scheduler_signals`
    commands: ClassVar[tuple[str, ...]]  # the programs that must be there
    settings: ClassVar[Mapping[str, str]] = {}  # options of a site that are this dialect's own, with their defaults
    aliases: ClassVar[Mapping[str, str]]  # other names of options → those used here
    owned: ClassVar[Mapping[str, str]]  # options that runyard gives itself → what to use instead
    joined: ClassVar[frozenset[str]] = frozenset()  # options whose values add up; of others the last one counts
    hidden_variables: ClassVar[tuple[str, ...]] = ()  # that would make a client leave out jobs
    variables: ClassVar[tuple[str, ...]] = ()  # NAME=value that its clients need
    submit_sees: ClassVar[str] = "*"  # which variables, as a pattern of sh: jobs get all that the submitting client has
    arrays_may_have_gaps: ClassVar[bool]
    remembers: ClassVar[bool]  # an acknowledged job survives every crash of the scheduler
    reasons_apart: ClassVar[bool] = False  # why a job waits is not in the answer about the queue

    @abc.abstractmethod
    def __init__(self, settings: Mapping[str, str]) -> None: ...

    @classmethod
    def job_script(cls) -> str:
        """The template of the script that is submitted. A plug-in gives its own text; `@common@` in it finds the
        attempt's directory by `$task` and becomes its runner."""
        return script.template(cls.template)

    def option_name(self, given: str) -> str:
        """The canonical name of an option."""
        plain = given.lstrip("-")
        return self.aliases.get(plain, plain)

    def check_option(self, name: str, value: str) -> None:
        """Raises InvalidInput for options that runyard sets itself."""
        if name in self.owned:
            raise errors.InvalidInput(f"the option {name!r} is runyard's own", self.owned[name])

    @abc.abstractmethod
    def submit_command(self, order: Order) -> list[str]:
        """Raises InvalidInput for requests that this scheduler does not support."""

    @abc.abstractmethod
    def parse_submit(self, result: Result) -> SubmitAnswer: ...

    @abc.abstractmethod
    def trial_command(self, order: Order) -> list[str]:
        """Submits nothing; succeeds only if the request leaves a node on which it could ever run."""

    @abc.abstractmethod
    def queue_command(self, user: str) -> list[str]:
        """All jobs of the user, ours or not."""

    @abc.abstractmethod
    def parse_queue(self, result: Result) -> list[Native]:
        """Raises Unanswered."""

    @abc.abstractmethod
    def accounting_command(self, user: str, names: Iterable[str]) -> list[str]: ...

    @abc.abstractmethod
    def parse_accounting(self, result: Result) -> list[Native] | None:
        """Only ended jobs. None: this cluster has no accounting. Raises Unanswered."""

    @abc.abstractmethod
    def cancel_command(self, natives: Iterable[Native]) -> list[str]: ...

    @abc.abstractmethod
    def parse_cancel(self, result: Result) -> bool:
        """Whether the scheduler accepted it. A job that had already ended is no failure."""

    @abc.abstractmethod
    def explain_command(self, natives: Sequence[Native]) -> list[str]:
        """All details that the scheduler has about these jobs."""

    @abc.abstractmethod
    def parse_explain(self, result: Result) -> dict[str, str]:
        """One sentence per native id, where there is one; empty when there is no answer."""

    @abc.abstractmethod
    def fact_commands(self, user: str) -> list[list[str]]: ...

    @abc.abstractmethod
    def parse_facts(self, results: Sequence[Result]) -> ClusterFacts:
        """As much as was answered."""

    @abc.abstractmethod
    def version_command(self) -> list[str]: ...

    def propose(self, facts: ClusterFacts) -> str:
        """Advice about a setting that does not fit this cluster; empty if there is none."""
        return ""

    def ending_of_words(self, said: str) -> Ending | None:
        """Messages of the scheduler itself in a task's output: evidence if there is no accounting."""
        return None

    def out_pattern(self, order: Order) -> str:
        """The path of a task's own output, in the scheduler's patterns: output before the runner starts."""
        task = self.task_pattern if order.is_array else "1"
        return f"{order.directory}/{out_name(order.name, task)}"

    task_pattern: ClassVar[str]


def out_name(native_name: str, task: int | str) -> str:
    return f"{native_name}.{task}.out"


def first_line(data: bytes) -> str:
    """The first line with a message of a failed command."""
    lines = (line.strip() for line in data.decode(errors="replace").splitlines())
    return next((line for line in lines if line), "")


def one_line(data: bytes) -> str:
    """The whole output, for users."""
    return "; ".join(line.strip() for line in data.decode(errors="replace").splitlines() if line.strip())


def by_job(natives: Iterable[Native], separator: str) -> tuple[list[str], dict[str, list[int]]]:
    """Ids of plain jobs, and the tasks of each array."""
    plain: set[str] = set()
    tasks: dict[str, list[int]] = {}
    for native in natives:
        job, _, task = native.id.partition(separator)
        if task:
            tasks.setdefault(job, []).append(int(task))
        else:
            plain.add(job)
    return sorted(plain), tasks
