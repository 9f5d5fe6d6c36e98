"""Grid Engine's dialect: qsub, qstat, qacct, qdel, qconf. Seen with 8.1.9.

qstat is read as XML, because its text cuts names after ten characters.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar
from xml.etree import ElementTree

from runyard import errors
from runyard.backends.batch import dialect, gridengine_accounts, gridengine_requests
from runyard.backends.batch.dialect import (
    ClusterFacts,
    Dialect,
    Native,
    Order,
    Stage,
    SubmitAnswer,
    SubmitReply,
    Unanswered,
)
from runyard.backends.batch.gridengine_requests import DEFAULT_MEMORY, VIRTUAL_MEMORY
from runyard.hosts.base import Result
from runyard.model import ranges
from runyard.runner import scheduler_signals

LIMITED = re.compile(r"only \d+ jobs are allowed", re.IGNORECASE)
UNSURE = re.compile(
    r"unable to (send message|contact) to? ?qmaster|got no connection|can't resolve|timeout|timed out|commlib error"
    r"|got send error|got read error|unable to initialize environment",
    re.IGNORECASE,
)
NO_ACCOUNTS = re.compile(r"accounting.*No such file|can't open accounting|no jobs running since startup", re.IGNORECASE)
NOT_FOUND = re.compile(r"job (name|id|number)?.*not found", re.IGNORECASE)


class GridEngine(Dialect):
    title = "Grid Engine"
    template = "gridengine.sh"
    signals = scheduler_signals.GRID_ENGINE
    commands = ("qsub", "qstat", "qdel")
    settings: ClassVar[Mapping[str, str]] = {
        "memory_resource": DEFAULT_MEMORY,  # what --memory asks for
        "gpu_memory_resource": "",  # the same for runs with GPUs; empty: as above, but never a limit of virtual memory
        "gpu_resource": "gpu",
        "parallel_environment": "smp",
        "nodes_environment": "",  # the parallel environment for several nodes; it gives each the same number of slots
    }
    arrays_may_have_gaps = False
    remembers = True
    reasons_apart = True
    task_pattern = "$TASK_ID"
    joined = frozenset({"l"})
    aliases: ClassVar[Mapping[str, str]] = {
        "queue": "q", "project": "P", "account": "A", "priority": "p", "resource": "l", "resources": "l",
        "parallel-environment": "pe", "parallel_environment": "pe",
        "reservation": "R", "advance-reservation": "ar", "mail": "M", "mail-type": "m",
    }  # fmt: skip
    owned: ClassVar[Mapping[str, str]] = {
        "N": "runyard finds its jobs by their names; name the run with --name",
        "t": "runyard makes the arrays itself; submit several runs",
        "tc": "use --option array_limit=N",
        "o": "logs are runyard's; see runyard logs",
        "e": "logs are runyard's; see runyard logs",
        "j": "logs are runyard's; see runyard logs",
        "i": "a run has no standard input",
        "wd": "use --cwd",
        "cwd": "use --cwd",
        "r": "runyard retries by itself; use --retry",
        "v": "use --env",
        "V": "use --env",
        "S": "the job script is runyard's own",
        "b": "the job script is runyard's own",
        "shell": "the job script is runyard's own",
        "hold_jid": "use --after",
        "hold_jid_ad": "use --after",
        "sync": "use --wait",
        "terse": "runyard reads the answer",
        "verify": "use --dry-run",
        "h_rt": "use --time",
        "s_rt": "use --time",
    }

    def __init__(self, settings: Mapping[str, str]) -> None:
        self._settings = {**self.settings, **settings}

    def check_option(self, name: str, value: str) -> None:
        """Of a parallel environment only the name: its slots are the cpus."""
        super().check_option(name, value)
        if name == "pe" and not re.fullmatch(r"[^\s,]+", value):
            raise errors.InvalidInput(f"option pe: {value!r} is not the name of one", "ask for its slots with --cpus")
        for request in value.split(",") if name == "l" else ():
            super().check_option(request.partition("=")[0], "")

    # --- submitting ---------------------------------------------------------------------------------------------

    def submit_command(self, order: Order) -> list[str]:
        words = ["qsub", "-terse", "-N", order.name, "-S", "/bin/sh", "-r", "n", "-j", "y"]
        words += ["-o", self.out_pattern(order), "-wd", order.directory]
        if order.is_array:
            words += ["-t", f"{order.tasks[0]}-{order.tasks[-1]}"]
            words += ["-tc", str(order.at_once)] if order.at_once else []
        words += gridengine_requests.environment(order, self._settings)
        words += ["-notify"] if order.warning and "notify" not in order.options else []
        words += ["-l", ",".join(asked)] if (asked := gridengine_requests.limits(order, self._settings)) else []
        for name, value in order.options.items():
            if name != "pe":
                words += [f"-{name}", value] if value else [f"-{name}"]
        return [*words, order.script, *order.arguments]

    def parse_submit(self, result: Result) -> SubmitAnswer:
        said = dialect.one_line(result.stderr).replace("; Exiting.", "")
        if result.ok:
            match = re.match(rb"(\d+)(\.[\d:-]+)?\s*$", result.stdout)
            if match:
                return SubmitAnswer(reply=SubmitReply.ACCEPTED, id=match[1].decode())
            return SubmitAnswer(reply=SubmitReply.UNSURE, text=f"qsub said {result.stdout[:200]!r}")
        if result.code in dialect.NO_ANSWER or UNSURE.search(said) or not said:
            return SubmitAnswer(reply=SubmitReply.UNSURE, text=said or f"qsub ended with {result.code}")
        reply = SubmitReply.LIMITED if LIMITED.search(said) else SubmitReply.REFUSED
        return SubmitAnswer(reply=reply, text=said.removeprefix("Unable to run job: "))

    def trial_command(self, order: Order) -> list[str]:
        """`qsub -w e` would refuse requests for a measured value, such as mem_free."""
        asked = [*gridengine_requests.nodes(order), *gridengine_requests.gpus(order, self._settings)]
        given = [word for name in ("q", "l") if name in order.options for word in (f"-{name}", order.options[name])]
        return ["qselect", "-l", ",".join(asked), *given]

    # --- looking ------------------------------------------------------------------------------------------------

    def queue_command(self, user: str) -> list[str]:
        """By queue, because a queue tells whether its host still answers; without those that are empty."""
        return ["qstat", "-f", "-ne", "-xml", "-u", user]

    def parse_queue(self, result: Result) -> list[Native]:
        if not result.ok:
            raise Unanswered(dialect.first_line(result.stderr) or f"qstat ended with {result.code}")
        try:
            root = ElementTree.fromstring(result.stdout)
        except ElementTree.ParseError as error:
            raise Unanswered(f"qstat said {result.stdout[:100]!r}: {error}") from None
        found = []
        for queue in root.iter("Queue-List"):
            silent = "u" in (queue.findtext("state") or "")
            node = (queue.findtext("name") or "").partition("@")[2]
            found += [native for job in queue.iter("job_list") for native in _natives(job, node, silent)]
        found += [native for job in root.iterfind("job_info/job_list") for native in _natives(job, "", False)]
        return _joined(found)

    def accounting_command(self, user: str, names: Iterable[str]) -> list[str]:
        """It takes one pattern: what all the names begin with."""
        wanted = sorted(names)
        pattern = wanted[0] if len(wanted) == 1 else _common_start(wanted) + "*"
        return ["qacct", "-o", user, "-j", pattern]

    def parse_accounting(self, result: Result) -> list[Native] | None:
        said = dialect.one_line(result.stderr + b"\n" + result.stdout[:300])
        if not result.ok:
            if NO_ACCOUNTS.search(said):
                return None
            if NOT_FOUND.search(said):
                return []
            raise Unanswered(said or f"qacct ended with {result.code}")
        return gridengine_accounts.parse(result.stdout.decode(errors="replace"))

    # --- the rest -----------------------------------------------------------------------------------------------

    def cancel_command(self, natives: Iterable[Native]) -> list[str]:
        """`12.3-9`: a word per run of tasks, since a comma would begin another job."""
        plain, tasks = dialect.by_job(natives, ".")
        arrays = [f"{job}.{part}" for job, numbers in tasks.items() for part in ranges.show(numbers).split(",")]
        return ["qdel", *plain, *arrays]

    def parse_cancel(self, result: Result) -> bool:
        return result.code is not None and not UNSURE.search(dialect.one_line(result.stderr + result.stdout))

    def explain_command(self, natives: Sequence[Native]) -> list[str]:
        return ["qstat", "-j", ",".join(sorted({native.id.partition(".")[0] for native in natives}))]

    def parse_explain(self, result: Result) -> dict[str, str]:
        """`error reason  3:` is about task 3; a job that is no array is reported as task 1."""
        found: dict[str, str] = {}
        for block in gridengine_accounts.RULER.split(result.stdout.decode(errors="replace")):
            number = re.search(r"^job_number:\s*(\d+)", block, re.MULTILINE)
            if number is None:
                continue
            is_array = "job-array tasks:" in block
            for task, text in re.findall(r"^error reason\s+(\d+):\s*(.*)$", block, re.MULTILINE):
                found[f"{number[1]}.{task}" if is_array else number[1]] = _without_stamp(text)
            waits = re.search(r"^scheduling info:\s*(.*(?:\n[ \t]+.*)*)", block, re.MULTILINE)
            if waits and "no messages available" not in waits[1]:
                found.setdefault(number[1], "; ".join(line.strip() for line in waits[1].splitlines()[:5]))
        return found

    def fact_commands(self, user: str) -> list[list[str]]:
        environment = self._settings["nodes_environment"]
        return [["qconf", "-sconf"], ["qconf", "-sc"], *([["qconf", "-sp", environment]] if environment else [])]

    def parse_facts(self, results: Sequence[Result]) -> ClusterFacts:
        config, complexes, *rest = (r.stdout.decode(errors="replace") if r.ok else "" for r in results)
        rule = re.search(r"^allocation_rule\s+(\S+)", "".join(rest), re.MULTILINE)
        limits = dict(re.findall(r"^(max_\w+)\s+(\d+)", config, re.MULTILINE))
        rows = [line.split() for line in complexes.splitlines() if not line.startswith("#")]
        return ClusterFacts(
            array_size=int(limits.get("max_aj_tasks", 0)) or 75000,
            job_limit=int(limits.get("max_u_jobs", 0)) or None,
            per_slot=frozenset(row[0] for row in rows if len(row) == 8 and row[5] == "YES"),
            memory_resources=_counted_memory(rows),
            slots_of_node=rule[1] if rule else "",
        )

    def propose(self, facts: ClusterFacts) -> str:
        now = self._settings["memory_resource"]
        if not facts.memory_resources or now in facts.memory_resources:
            return ""
        best = facts.memory_resources[0]
        return f"--memory asks for {now}, but this cluster counts {best}: consider --option memory_resource={best}"

    def version_command(self) -> list[str]:
        return ["qstat", "-help"]


def _joined(natives: Iterable[Native]) -> list[Native]:
    """One for each: a job on several nodes is listed with each of their queues, its first node not before the
    others."""
    found: dict[str, Native] = {}
    for native in natives:
        known = found.get(native.id)
        if known is None:
            found[native.id] = native
            continue
        nodes = sorted({*known.node.split(","), native.node})
        silent = known.node_is_silent or native.node_is_silent
        found[native.id] = replace(known, node=",".join(nodes), node_is_silent=silent)
    return list(found.values())


def _common_start(names: Sequence[str]) -> str:
    """Of sorted names the first and the last differ most."""
    pairs = zip(names[0], names[-1], strict=False)
    return "".join(one for one, _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))


def _counted_memory(rows: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Consumables that measure memory; limits of virtual memory last, because they kill programs that merely reserve
    it."""
    names = [row[0] for row in rows if len(row) == 8 and row[2] == "MEMORY" and row[5] in ("YES", "JOB")]
    return tuple(sorted(names, key=lambda name: (name in VIRTUAL_MEMORY, name)))


def _natives(job: ElementTree.Element, node: str, silent: bool) -> Iterable[Native]:
    number, name, word = (job.findtext(tag) or "" for tag in ("JB_job_number", "JB_name", "state"))
    if not number.isdigit() or not name:
        raise Unanswered("qstat listed a job without number or name")
    stage = _stage(word)
    for task in _tasks(job.findtext("tasks") or ""):
        yield Native(
            name=name,
            task=task or 1,
            id=f"{number}.{task}" if task else number,
            stage=stage,
            word=word,
            why=_why(word),
            node=node,
            node_is_silent=silent,
            again=stage is Stage.WAITING and "R" in word,
        )


def _stage(word: str) -> Stage:
    """States are letters, each with a meaning of its own: `hRq`, `dr`, `Eqw`."""
    if "E" in word:
        return Stage.STUCK
    if set(word) & set("rtsSTdN"):
        return Stage.RUNNING
    if set(word) & set("qwhR"):
        return Stage.WAITING
    return Stage.UNCLEAR


def _why(word: str) -> str:
    for letters, meaning in (("sST", "suspended"), ("d", "being deleted"), ("R", "rescheduled"), ("h", "held")):
        if set(word) & set(letters):
            return f"{meaning} ({word})"
    return "" if word == "qw" else word


def _tasks(text: str) -> list[int | None]:
    """`3,4,8-16:2`; without any, the job is no array."""
    found: list[int | None] = []
    for part in filter(None, text.split(",")):
        first, last, step = re.fullmatch(r"(\d+)(?:-(\d+)(?::(\d+))?)?", part.strip()).groups()  # type: ignore[union-attr]
        found += range(int(first), int(last or first) + 1, int(step or 1))
    return found or [None]


def _without_stamp(text: str) -> str:
    """`11/15/2026 05:26:10 [1002:27866]: error: can't chdir` → the message."""
    return re.sub(r"^\d\d/\d\d/\d{4} \d\d:\d\d:\d\d \[\d+:\d+\]: (error: )?", "", text).strip()
