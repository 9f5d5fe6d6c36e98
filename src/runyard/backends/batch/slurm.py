"""Slurm's dialect: sbatch, squeue, sacct, scancel, scontrol. Tested with 22.05; only old and stable options are used.

Text with `-o` and `-P`, no JSON: `squeue --json` ignores its filters, and `sacct --json` calls failed jobs successful.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from runyard import errors
from runyard.backends.base import Ending
from runyard.backends.batch import dialect, slurm_nodes
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
from runyard.hosts.base import Result
from runyard.model import native_units, ranges, units
from runyard.model.native_units import Writing
from runyard.runner import scheduler_signals

STAGES: dict[str, Stage] = {
    "PENDING": Stage.WAITING,
    "REQUEUED": Stage.WAITING,
    "REQUEUE_HOLD": Stage.WAITING,
    "REQUEUE_FED": Stage.WAITING,
    "RESV_DEL_HOLD": Stage.WAITING,
    "SPECIAL_EXIT": Stage.STUCK,
    "CONFIGURING": Stage.RUNNING,
    "RUNNING": Stage.RUNNING,
    "SUSPENDED": Stage.RUNNING,
    "STOPPED": Stage.RUNNING,
    "SIGNALING": Stage.RUNNING,
    "STAGE_OUT": Stage.RUNNING,
    "RESIZING": Stage.RUNNING,
    "COMPLETING": Stage.RUNNING,
}
ENDINGS: dict[str, Ending | None] = {
    "COMPLETED": None,
    "FAILED": None,  # of the script, which only ever starts the runner: whose fault it was, others know better
    "CANCELLED": "external",
    "REVOKED": "external",
    "TIMEOUT": "timeout",
    "DEADLINE": "timeout",
    "OUT_OF_MEMORY": "oom",
    "PREEMPTED": "preempted",
    "NODE_FAIL": "node_lost",
    "BOOT_FAIL": "node_lost",
}
WORDS: tuple[tuple[str, Ending], ...] = (
    (r"oom.?kill|exceeded (job )?memory limit|out of memory", "oom"),
    (r"DUE TO TIME LIMIT", "timeout"),
    (r"DUE TO PREEMPTION", "preempted"),
    (r"DUE TO NODE ?FAIL", "node_lost"),
    (r"slurmstepd\S*: error: .*CANCELLED AT", "external"),
)
STUCK_REASONS = ("launch failed requeued held", "JobHoldMaxRequeue")
REQUEUED = "BeginTime"  # why it waits for two minutes after it was requeued; and what waits for a --begin of the user

LIMITED = re.compile(r"(Assoc|QOS)\w*Submit\w*Limit|MaxSubmitJob")
UNSURE = re.compile(
    r"timed out|Zero Bytes|Unable to contact|temporarily unable|Protocol authentication error|Connection refused"
    r"|Connection reset|Transport endpoint|Communication connection failure|Unexpected message|in standby mode",
    re.IGNORECASE,
)
NO_ACCOUNTS = re.compile(r"accounting storage is disabled", re.IGNORECASE)

QUEUE_FORMAT = "%F|%K|%T|%S|%N|%r|%j"  # the name last: it is the only one that may hold a bar
ACCOUNT_FIELDS = "JobID,State,ExitCode,End,ElapsedRaw,TimelimitRaw,ReqMem,NodeList,JobName"
ACCOUNT_SINCE = "now-30days"
# Of the submitter's environment; the rest may hold secrets. The last three are for sbatch itself.
PASSED_ON = "HOME|USER|LOGNAME|SHELL|PATH|LANG|TZ|LD_LIBRARY_PATH|SLURM_*|SBATCH_*"
NO_TASK = "N/A"
LONGEST_WARNING = 65535  # seconds that Slurm takes


class Slurm(Dialect):
    title = "Slurm"
    template = "slurm.sh"
    signals = scheduler_signals.SLURM
    commands = ("sbatch", "squeue", "scancel", "scontrol")
    arrays_may_have_gaps = True
    remembers = False  # what came within five seconds of a crash of the controller is lost, and its id given away
    task_pattern = "%a"
    hidden_variables = (
        "SQUEUE_ACCOUNT", "SQUEUE_CLUSTERS", "SQUEUE_LICENSES", "SQUEUE_NAMES", "SQUEUE_PARTITION", "SQUEUE_QOS",
        "SLURM_CLUSTERS", "SLURM_TIME_FORMAT",
    )  # fmt: skip
    variables = ("SLURM_BITSTR_LEN=0",)  # lists of tasks are printed in full
    submit_sees = PASSED_ON
    aliases: ClassVar[Mapping[str, str]] = {
        "A": "account", "p": "partition", "q": "qos", "C": "constraint", "w": "nodelist", "x": "exclude",
        "L": "licenses", "M": "clusters", "N": "nodes", "n": "ntasks", "G": "gpus", "t": "time", "J": "job-name",
        "a": "array", "o": "output", "e": "error", "i": "input", "D": "chdir", "c": "cpus-per-task", "d": "dependency",
        "W": "wait", "b": "begin", "k": "no-kill", "s": "oversubscribe", "tasks-per-node": "ntasks-per-node",
    }  # fmt: skip
    owned: ClassVar[Mapping[str, str]] = {
        "job-name": "runyard finds its jobs by their names; name the run with --name",
        "array": "runyard makes the arrays itself; submit several runs",
        "output": "logs are runyard's; see runyard logs",
        "error": "logs are runyard's; see runyard logs",
        "input": "a run has no standard input",
        "open-mode": "logs are runyard's; see runyard logs",
        "chdir": "use --cwd",
        "nodes": "use --nodes",
        "time": "use --time",
        "mem": "use --memory",
        "mem-per-cpu": "use --memory",
        "mem-per-gpu": "use --memory",
        "cpus-per-task": "use --cpus",
        "export": "use --env",
        "export-file": "use --env",
        "requeue": "runyard retries by itself; use --retry",
        "no-requeue": "runyard retries by itself; use --retry",
        "dependency": "use --after",
        "wrap": "give the command after --",
        "parsable": "runyard reads the answer",
        "wait": "use --wait",
        "clusters": "make a site of each cluster",
        "test-only": "use --dry-run",
    }

    def __init__(self, settings: Mapping[str, str]) -> None:
        """There is nothing to set."""

    def option_name(self, given: str) -> str:
        return super().option_name(given).replace("_", "-")

    def check_option(self, name: str, value: str) -> None:
        """runyard has no notation for all the memory of a node."""
        if (name, value) != ("mem", "0"):
            super().check_option(name, value)

    # --- submitting ---------------------------------------------------------------------------------------------

    def submit_command(self, order: Order) -> list[str]:
        words = ["sbatch", "--parsable", f"--job-name={order.name}", "--no-requeue", f"--chdir={order.directory}"]
        # A list of names would have each task wait for `su -` on its node, to load what the user's login would set.
        words += [f"--output={self.out_pattern(order)}", "--open-mode=append", "--export=ALL"]
        if order.is_array:
            words.append(f"--array={ranges.show(order.tasks)}" + (f"%{order.at_once}" if order.at_once else ""))
        asked = {**self._resources(order), **order.options, **slurm_nodes.chosen(order)}
        words += [f"--{name}={value}" if value else f"--{name}" for name, value in asked.items()]
        return [*words, order.script, *order.arguments]

    def _resources(self, order: Order) -> dict[str, str]:
        wanted = order.resources
        asked = {"nodes": str(wanted.nodes)}
        if not any(name.startswith("ntasks") for name in order.options):
            asked["ntasks"] = str(wanted.nodes)  # the script runs once, on the first; this is what an srun in it starts
        asked["cpus-per-task"] = str(wanted.cpus)
        if wanted.memory:
            asked["mem"] = f"{native_units.whole_megabytes(wanted.memory)}M"
        if wanted.gpus and not {"gres", "gpus", "gpus-per-node", "gpus-per-task"} & set(order.options):
            asked["gres"] = _gres(order)
        if wanted.time:
            asked["time"] = str(_minutes(order, wanted.time))
        if order.warning:
            asked["signal"] = f"B:USR1@{min(order.warning, LONGEST_WARNING)}"  # B: to the script, which is the runner
        return asked

    def parse_submit(self, result: Result) -> SubmitAnswer:
        said = dialect.one_line(result.stderr)
        if result.ok:
            match = re.match(rb"(\d+)(;|\s*$)", result.stdout)
            if match:
                return SubmitAnswer(reply=SubmitReply.ACCEPTED, id=match[1].decode())
            return SubmitAnswer(reply=SubmitReply.UNSURE, text=f"sbatch said {result.stdout[:200]!r}")
        if result.code in dialect.NO_ANSWER or UNSURE.search(said) or not said:
            return SubmitAnswer(reply=SubmitReply.UNSURE, text=said or f"sbatch ended with {result.code}")
        reply = SubmitReply.LIMITED if LIMITED.search(said) else SubmitReply.REFUSED
        return SubmitAnswer(reply=reply, text=said.replace("sbatch: error: ", ""))

    def trial_command(self, order: Order) -> list[str]:
        """A real submit that is refused leaves a FAILED job under our name."""
        program, *words = self.submit_command(order)
        return [program, "--test-only", *words]

    # --- looking ------------------------------------------------------------------------------------------------

    def queue_command(self, user: str) -> list[str]:
        """Finished jobs too: until MinJobAge has passed they are listed here, with or without accounting."""
        return ["squeue", "--noheader", "--array", "--states=all", f"--user={user}", f"--format={QUEUE_FORMAT}"]

    def parse_queue(self, result: Result) -> list[Native]:
        if not result.ok:
            raise Unanswered(dialect.first_line(result.stderr) or f"squeue ended with {result.code}")
        return [_waiting_or_not(line) for line in result.stdout.decode(errors="replace").splitlines() if line.strip()]

    def accounting_command(self, user: str, names: Iterable[str]) -> list[str]:
        words = ["sacct", "--noheader", "--parsable2", "--allocations", f"--user={user}"]
        named = f"--name={','.join(sorted(names))}"
        return [*words, f"--starttime={ACCOUNT_SINCE}", named, f"--format={ACCOUNT_FIELDS}"]

    def parse_accounting(self, result: Result) -> list[Native] | None:
        said = dialect.one_line(result.stderr)
        if NO_ACCOUNTS.search(said):
            return None
        if not result.ok:
            raise Unanswered(said or f"sacct ended with {result.code}")
        rows = [line.split("|", 8) for line in result.stdout.decode(errors="replace").splitlines() if line]
        if any(len(row) != 9 for row in rows):
            raise Unanswered(f"sacct said {result.stdout[:200]!r}")
        return [native for row in rows for native in _accounts(row)]

    # --- the rest -----------------------------------------------------------------------------------------------

    def cancel_command(self, natives: Iterable[Native]) -> list[str]:
        """`12_[1-16,18]`: one word per array, however many tasks it has."""
        plain, tasks = dialect.by_job(natives, "_")
        return ["scancel", *plain, *(f"{job}_[{ranges.show(numbers)}]" for job, numbers in tasks.items())]

    def parse_cancel(self, result: Result) -> bool:
        return result.code is not None and not UNSURE.search(dialect.one_line(result.stderr))

    def explain_command(self, natives: Sequence[Native]) -> list[str]:
        """scontrol takes one job."""
        return ["scontrol", "show", "job", "--oneliner", natives[0].id]

    def parse_explain(self, result: Result) -> dict[str, str]:
        if not result.ok:
            return {}
        said = dict(re.findall(r"(\w+)=(\S*)", result.stdout.decode(errors="replace").partition("\n")[0]))
        task = said.get("ArrayTaskId", "")
        job = f"{said['ArrayJobId']}_{task}" if task.isdigit() else said.get("JobId", "")
        return {job: _explanation(said)}

    def fact_commands(self, user: str) -> list[list[str]]:
        limits = ["sacctmgr", "--noheader", "--parsable2", "show", "assoc", "where", f"user={user}"]
        return [
            ["scontrol", "show", "config"],
            ["sinfo", "--noheader", "--format=%P|%l"],
            [*limits, "format=account,partition,maxsubmit"],
            ["sinfo", "--noheader", "--Node", "--format=%N"],
        ]

    def parse_facts(self, results: Sequence[Result]) -> ClusterFacts:
        config, partitions, associations, nodes = (r.stdout.decode(errors="replace") if r.ok else "" for r in results)
        size = re.search(r"^MaxArraySize\s*=\s*(\d+)", config, re.MULTILINE)
        submits = [row.split("|")[2] for row in associations.splitlines() if row.count("|") == 2]
        limits = [int(number) for number in submits if number.isdigit()]
        return ClusterFacts(
            array_size=max(1, int(size[1]) - 1) if size else ClusterFacts().array_size,
            # With several accounts the one in use is not known here: sbatch itself says when it is full.
            task_limit=limits[0] if len(submits) == 1 and limits else None,
            longest=_longest(partitions),
            nodes=tuple(dict.fromkeys(nodes.split())),
        )

    def version_command(self) -> list[str]:
        return ["sbatch", "--version"]

    def ending_of_words(self, said: str) -> Ending | None:
        return next((ending for pattern, ending in WORDS if re.search(pattern, said, re.IGNORECASE)), None)


def _gres(order: Order) -> str:
    wanted = order.resources
    if wanted.gpu_memory:
        raise errors.InvalidInput(
            "Slurm cannot be asked for GPUs by their memory", "name a type with --gpu-type, or give the site a rule"
        )
    return f"gpu:{wanted.gpu_type}:{wanted.gpus}" if wanted.gpu_type else f"gpu:{wanted.gpus}"


def _minutes(order: Order, seconds: int) -> int:
    """A little more than the runner's own limit, but never so much that the partition refuses it."""
    longest = order.facts.longest.get(order.options.get("partition", ""))
    wanted = seconds + order.time_margin
    return native_units.whole_minutes(max(seconds, min(wanted, longest)) if longest else wanted)


def _longest(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for line in text.splitlines():
        name, _, limit = line.strip().partition("|")
        seconds = native_units.parse_time(limit, Writing.SLURM) if limit[:1].isdigit() else None
        if seconds is not None:
            found[name.rstrip("*")] = seconds
            if name.endswith("*"):
                found[""] = seconds
    return found


def _waiting_or_not(line: str) -> Native:
    job, task, word, start, nodes, why, name = [*line.split("|", 6), *[""] * 7][:7]
    if not job.isdigit() or not name:
        raise Unanswered(f"squeue said {line[:200]!r}")
    stage = STAGES.get(word, Stage.OVER if word in ENDINGS else Stage.UNCLEAR)
    if stage is Stage.WAITING and why in STUCK_REASONS:
        stage = Stage.STUCK
    return Native(
        name=name,
        task=int(task) if task.isdigit() else 1,
        id=f"{job}_{task}" if task != NO_TASK else job,
        stage=stage,
        word=word,
        why="" if why == "None" else why,
        expected=start if stage is Stage.WAITING and start[:1].isdigit() else "",
        again=stage is Stage.WAITING and (word != "PENDING" or why == REQUEUED),
        node=nodes,
        ending=ENDINGS.get(word),
    )


def _accounts(row: Sequence[str]) -> list[Native]:
    """Nothing for jobs that have not ended: the end time must be known, because after an outage the state comes first.

    Tasks that were cancelled while they waited are listed together: `12_[3-7,9%2]`.
    """
    job, state, code, end, elapsed, limit, memory, nodes, name = row
    number, _, tasks = job.partition("_")
    word = state.partition(" ")[0]
    if word not in ENDINGS or end == "Unknown" or not number.isdigit():
        return []
    over = Native(
        name=name,
        task=1,
        id=number,
        stage=Stage.OVER,
        word=state,
        node="" if nodes == "None assigned" else nodes,
        ending=ENDINGS[word],
        numbers=_numbers(word, code, elapsed, limit, memory),
    )
    return [replace(over, task=task, id=f"{number}_{task}") for task in _tasks(tasks)] if tasks else [over]


def _tasks(text: str) -> list[int]:
    parts = [part.partition("-") for part in text.strip("[]").partition("%")[0].split(",")]
    bounds = [(first, last or first) for first, _, last in parts]
    return [task for first, last in bounds if first.isdigit() for task in range(int(first), int(last) + 1)]


def _numbers(word: str, code: str, elapsed: str, limit: str, memory: str) -> str:
    parts = [f"exit code {code}"] if code != "0:0" else []
    if elapsed.isdigit():
        of = f" of {units.show_duration(int(limit) * 60)}" if word == "TIMEOUT" and limit.isdigit() else ""
        parts.append(f"after {units.show_duration(int(elapsed))}{of}")
    if word == "OUT_OF_MEMORY":
        parts.append(f"with {memory} of memory")
    return ", ".join(parts)


def _explanation(said: Mapping[str, str]) -> str:
    told = [f"Slurm: job {said.get('JobId', '?')} is {said.get('JobState', 'unknown')}"]
    if said.get("Reason", "None") != "None":
        told.append(f"reason {said['Reason']}")
    if said.get("JobState") == "PENDING" and said.get("StartTime", "Unknown") != "Unknown":
        told.append(f"expected to start at {said['StartTime']}")
    if said.get("NodeList", "(null)") not in ("(null)", ""):
        told.append(f"on {said['NodeList']}")
    asked = " ".join(f"{name}={said[name]}" for name in ("Partition", "Account", "QOS", "TRES") if name in said)
    return ", ".join([*told, asked])
