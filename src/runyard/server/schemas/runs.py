"""Runs: as they are handed in, and as they are shown."""

from __future__ import annotations

from runyard.model import (
    array,
    checkpoints,
    input_file,
    metric_patterns,
    passing,
    python_env,
    resources,
    signals,
    spec,
    states,
)
from runyard.server.schemas.build import (
    ANYTHING,
    BOOLEAN,
    NUMBER,
    TEXTS,
    Schema,
    described,
    duration,
    integer,
    listed,
    one_of,
    or_null,
    record,
    ref,
    size,
    text,
)
from runyard.server.schemas.common import (
    ATTEMPT_STATE,
    DIGEST,
    ENVIRONMENT,
    GRANTED,
    NAME,
    OPTIONS,
    REASON,
    RUN_ID,
    RUN_STATE,
    SWEEP_ID,
    TIME,
)
from runyard.server.schemas.nodes import LABELS, node_names
from runyard.server.schemas.staged import FOLDERS

RESOURCES = record(
    {
        "nodes": or_null(
            integer("Nodes; its process starts on the first, and the rest is asked for of each", 1, resources.MAX_COUNT)
        ),
        "cpus": or_null(
            integer("CPU slots; thread variables such as OMP_NUM_THREADS follow them", 1, resources.MAX_COUNT)
        ),
        "memory": or_null(size("Memory that is reserved and enforced")),
        "gpus": or_null(integer("GPUs", 0, resources.MAX_COUNT)),
        "gpu_type": or_null(text("A part of the GPU's name, such as a100", minLength=1, maxLength=100)),
        "gpu_memory": or_null(size("Memory that each GPU must have")),
        "time": or_null(duration("Time limit")),
    },
    required=[],
    description="What a run asks for. A field that is missing or null is not asked for.",
)

RETRY = record(
    {
        "max": integer("How often it is tried again by itself", 0, 100),
        "on": {
            "description": "After which endings",
            "anyOf": [one_of(states.FAILURES), listed(one_of(states.FAILURES))],
        },
    },
    required=[],
)

STOP = record(
    {
        "signal": text(f"The signal that asks it to stop: {', '.join(signals.KNOWN)}"),
        "grace": {"anyOf": [{"const": 0}, duration("How long it may take before it is killed")]},
    },
    required=[],
)

CHECKPOINT = record(
    {
        "signal": text(f"The signal that warns it before its time limit: {', '.join(signals.KNOWN)}"),
        "grace": {"anyOf": [{"const": 0}, duration("How long before the limit")]},
        "max_attempts": integer("How many attempts it may take", 1, 10_000),
        "every": {
            "description": "How often what it saved comes to the yard; without it, as the site says",
            "anyOf": [duration("While it runs, and at the end of an attempt"), one_of(("", "end", "never"))],
        },
        "keep": integer("How many of them the yard keeps", 1, checkpoints.MOST_KEPT),
        "prune": {
            "description": "Of files with such names, only so many stay at the site, too",
            "anyOf": [text(minLength=1), TEXTS],
        },
    },
    required=[],
    description="A run that can go on from what it saved: warned before its limit, it goes on in another attempt.",
)

ARRAY = record(
    {
        "index": integer("The number of this task", 0, array.MOST),
        "first": integer("The lowest number of a task", 0, array.MOST),
        "last": integer("The highest number of a task", 0, array.MOST),
        "step": integer("From one number to the next", 1, array.MOST),
        "offset": integer("How many tasks come before it; its id less this is the id of the first", 0, array.MOST),
        "count": integer("How many tasks there are", 1, array.MOST),
        "limit": integer("Most of them that run together", 1, array.MOST),
    },
    required=["index", "first", "last"],
    description="A run's place in an array of runs, which were submitted in one call.",
)


def output_file(description: str) -> Schema:
    return text(
        f"{description}: absolute; %j is the run's id, %A its array's, %N the node", pattern="^/", maxLength=4096
    )


COMMAND: Schema = {
    "description": "Words to execute, or one text for /bin/sh -c; with a script, its arguments. "
    "With params, {name} is replaced by a parameter",
    "anyOf": [text(minLength=1), listed({"type": "string"})],
}
PARAMS_AS = one_of(passing.WAYS, "How parameters that the command does not name are added to it, or to the environment")
INDEX = integer("Its number in its sweep: {index} in the command, $RUNYARD_INDEX", 1, spec.MOST_RUNS)
DIALECT = one_of(spec.DIALECTS, "Whose variables it finds, such as SLURM_JOB_ID or JOB_ID")
ORIGIN = record(
    {
        "host": text("Where it was submitted", maxLength=300),
        "env": ENVIRONMENT,
        "run": or_null(described(RUN_ID, "The run that it was made again from")),
    },
    required=[],
    description="Environment of the submitter: the default where the run executes on that host",
)

INPUT = record(
    {
        "digest": described(DIGEST, "Of a file that the yard has"),
        "url": text("Instead of a digest: where it is fetched from", maxLength=input_file.LONGEST_URL),
        "secret": text("Name of the site's secret that is shown there", maxLength=100),
        "to": text("Where, below the inputs directory", minLength=1, maxLength=input_file.LONGEST_PATH),
    },
    required=[],
)

RECORDED = record(
    {
        "python": text("Version of the submitter's interpreter", maxLength=100),
        "prefix": text("Where it was", maxLength=4096),
        "packages": integer("How many were installed", 0, 1 << 30),
        "freeze": or_null(described(DIGEST, "The list as pip reads it")),
        "conda": or_null(described(DIGEST, "The list as conda reads it")),
        "notes": listed(text(maxLength=1000), maxItems=python_env.MOST_NOTES),
    },
    required=[],
    description="What the submitter had.",
)

PYTHON_ENV: Schema = {
    "description": "Its Python environment: record, sync, none, conda:NAME or conda:/path; or built from a file",
    "anyOf": [
        text(minLength=1, maxLength=4096),
        record(
            {
                "use": text("record, sync, none, file, conda:NAME", minLength=1, maxLength=4096),
                "file": or_null(described(DIGEST, "What it is built from; of sync, the lock")),
                "kind": one_of(python_env.KINDS, "Who builds it"),
                "name": text("Of the file", maxLength=300),
                "python": text("The version that it needs, like 3.11", maxLength=20),
                "record": or_null(RECORDED),
            },
            required=[],
        ),
    ],
}

METRIC_PATTERNS = record(
    {
        "stdout": {
            "description": "Regular expressions for lines that it prints; each named group is a metric",
            "anyOf": [
                text(minLength=1, maxLength=metric_patterns.LONGEST),
                listed(text(maxLength=metric_patterns.LONGEST), maxItems=metric_patterns.MOST),
            ],
        },
    },
    required=[],
    description="Where metrics are read from, beside the files below $OUTPUT_DIR.",
)

RUN_SPEC = record(
    {
        "command": COMMAND,
        "script": or_null(text("A program's text, with a #! line or for /bin/sh", minLength=1)),
        "project": or_null({**NAME, "description": "What it belongs to", "default": "default"}),
        "name": or_null(text("A title for people", maxLength=200)),
        "params": or_null(described(ANYTHING, "Parameters, also in the JSON file $RUNYARD_PARAMS")),
        "params_as": or_null(PARAMS_AS),
        "env": or_null(described(ENVIRONMENT, "Environment variables")),
        "cwd": or_null(
            text("Working directory, absolute; without it the code, or a fresh one", pattern="^/", maxLength=4096)
        ),
        "code": or_null(ref("Code")),
        "data": or_null(FOLDERS),
        "python_env": or_null(PYTHON_ENV),
        "seed": or_null(integer("Given to the command as $RUNYARD_SEED", 0, (1 << 63) - 1)),
        "resources": or_null(ref("Resources")),
        "inputs": or_null(
            {**listed(INPUT, maxItems=input_file.MOST), "description": "Files that it finds below $RUNYARD_INPUTS"}
        ),
        "outputs": or_null({**TEXTS, "description": "Which files below $OUTPUT_DIR come back", "default": ["**"]}),
        "metrics": or_null(METRIC_PATTERNS),
        "keep": or_null(text("What stays at the site afterwards: none, unsaved, outputs, failed:3d, all:7d")),
        "split_output": or_null(described(BOOLEAN, "Also keep stdout and stderr apart")),
        "stdout": or_null(output_file("A file for standard output")),
        "stderr": or_null(output_file("A file for standard error; without it, where standard output goes")),
        "open_mode": or_null(one_of(spec.OPEN_MODES, "append: others write to these files as well")),
        "site": or_null(described(NAME, "Where to run; without it any site that fits")),
        "node": or_null(node_names("A node of the site, or several: any of them")),
        "exclude": or_null(node_names("Nodes that it must not use")),
        "labels": or_null(described(LABELS, "What the node must have, such as fast or rack=a")),
        "priority": or_null(integer("Higher goes first", -1000, 1000)),
        "after": or_null({"description": "Runs that must succeed first", "anyOf": [RUN_ID, listed(RUN_ID)]}),
        "after_any": or_null({"description": "Runs that must end first", "anyOf": [RUN_ID, listed(RUN_ID)]}),
        "index": or_null(INDEX),
        "array": or_null(ref("Array")),
        "dialect": or_null(DIALECT),
        "retry": or_null({"anyOf": [integer("As retry.max", 0, 100), ref("Retry")]}),
        "stop": or_null(ref("Stop")),
        "checkpoint": {"anyOf": [ref("Checkpoint"), {"type": ["boolean", "null"]}]},
        "options": or_null(described(OPTIONS, "For the site's scheduler, in its own words")),
        "tags": or_null({"description": "Words to find it by", "anyOf": [NAME, listed(NAME)]}),
        "idempotency_key": or_null(text("The same key again gives the first run again", minLength=1, maxLength=200)),
        "origin": or_null(ORIGIN),
    },
    required=["command"],
    description="One run as it is handed in.",
)

RUN = record(
    {
        "id": RUN_ID,
        "project": text(),
        "name": text(),
        "owner": text("Whose token submitted it"),
        "state": RUN_STATE,
        "reason": REASON,
        "detail": or_null(text("One sentence more")),
        "exit_code": or_null(described({"type": "integer"}, "The command's own; 128+n after signal n")),
        "params": ANYTHING,
        "params_as": or_null(PARAMS_AS),
        "site": or_null(text()),
        "node": or_null(text("The machine it ran on")),
        "attempt": integer("How often it was started"),
        "priority": {"type": "integer"},
        "tags": TEXTS,
        "command": COMMAND,
        "index": or_null(INDEX),
        "array": or_null(ref("Array")),
        "dialect": or_null(DIALECT),
        "recipe": or_null(text("The recipe that made it")),
        "seed": or_null(integer("Given to the command as $RUNYARD_SEED", 0, (1 << 63) - 1)),
        "sweep": or_null(
            record({"id": SWEEP_ID, "trial": integer("Counted from 1", 1), "rep": integer("Counted from 1", 1)})
        ),
        "rerun_of": or_null(described(RUN_ID, "The run that it was made again from")),
        "resources": described(ANYTHING, "What it asked for"),
        "granted": GRANTED,
        "created_at": TIME,
        "started_at": TIME,
        "ended_at": TIME,
        "cancel_requested": BOOLEAN,
        "peak_memory": or_null(integer("Bytes")),
        "cpu_time": or_null(described(NUMBER, "Seconds")),
        "wall_time": or_null(described(NUMBER, "Seconds")),
    },
    description="A run as it is listed.",
)

ATTEMPT = record(
    {
        "number": integer("Counted from 1", 1),
        "state": ATTEMPT_STATE,
        "outcome": or_null(text("The run's state that its ending meant")),
        "reason": REASON,
        "detail": or_null(text()),
        "exit_code": or_null({"type": "integer"}),
        "signal": or_null({"type": "integer"}),
        "site": text(),
        "agent": text(),
        "node": or_null(text()),
        "native_id": or_null(text("Its name in the scheduler or operating system")),
        "granted": GRANTED,
        "record": or_null(described(ANYTHING, "What the runner wrote at the end")),
        "claimed_at": TIME,
        "started_at": TIME,
        "ended_at": TIME,
        "log_size": integer("Bytes of log held so far"),
    }
)

FULL_RUN = record(
    {
        **RUN["properties"],
        "spec": described(ANYTHING, "The RunSpec, without fields that have their default"),
        "after": listed(RUN_ID),
        "checkpoint": or_null(described(ref("SavedCheckpoint"), "The newest that it saved")),
        "attempts": listed(ref("Attempt")),
    },
    description="A run with its spec and attempts.",
)

SAVED_CHECKPOINT = record(
    {
        "number": integer("Counted from 1", 1),
        "attempt": integer("The attempt that saved it", 1),
        "at": TIME,
        "tree": or_null(described(DIGEST, "The folder of its files, a blob; null: it is at its site only")),
        "size": integer("Bytes"),
        "files": integer("How many"),
        "site": text("Where it was saved"),
        "agent": text("By whose attempt"),
    },
    description="What a run saved, as it was at one time.",
)

SUBMITTED = record(
    {"id": RUN_ID, "state": RUN_STATE, "url": text("Where the run is, on this server"), "created": BOOLEAN},
    description="A run that was accepted.",
)

EVENT = record(
    {
        "id": integer("Rises with each event of the yard", 1),
        "attempt": integer("0 before the first"),
        "at": TIME,
        "kind": text(),
        "message": text(),
    }
)

OUTPUT = record(
    {
        "path": text("Below the output directory"),
        "size": integer("Bytes"),
        "digest": DIGEST,
        "mode": integer("Permission bits"),
        "attempt": integer("The attempt that made it", 1),
    }
)

PLAN = record(
    {
        "site": text("Where it would run: a site, or any"),
        "sites": listed(text(), minItems=1),
        "argv": TEXTS,
        "cwd": or_null(text()),
        "env": ENVIRONMENT,
        "resources": ANYTHING,
        "waiting": integer("How many runs wait there now"),
        "spec": ANYTHING,
    },
    description="What a submit would do.",
)

USAGE = described(ANYTHING, "One sample: t, cpu (cores), threads, processes, rss, gpus")
