"""Runs as they are shown. As they are submitted: runyard.model.spec."""

from __future__ import annotations

from runyard.model import declaration
from runyard.model.json_schema import (
    ANYTHING,
    BOOLEAN,
    NUMBER,
    TEXTS,
    described,
    integer,
    listed,
    or_null,
    record,
    ref,
    text,
)
from runyard.model.spec import RunSpec
from runyard.server.schemas.common import (
    ATTEMPT_STATE,
    DIGEST,
    ENVIRONMENT,
    GRANTED,
    REASON,
    RUN_ID,
    RUN_STATE,
    SWEEP_ID,
    TIME,
)

_SPEC = {name: one.value.schema(one.help) for name, one in declaration.declared(RunSpec).items()}

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
        "params_as": or_null(_SPEC["params_as"]),
        "site": or_null(text()),
        "node": or_null(text("The machine it ran on")),
        "attempt": integer("How often it was started"),
        "priority": {"type": "integer"},
        "tags": TEXTS,
        "command": _SPEC["command"],
        "index": or_null(_SPEC["index"]),
        "array": or_null(ref("Array")),
        "dialect": or_null(_SPEC["dialect"]),
        "recipe": or_null(text("The recipe that made it")),
        "seed": or_null(_SPEC["seed"]),
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
