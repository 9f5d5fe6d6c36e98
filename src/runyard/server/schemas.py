"""The shapes of bodies and answers, each written once, in the JSON Schema dialect of OpenAPI 3.1.

RunSpec is checked by runyard.model, which finds better words; a test keeps the names here equal to the names there. The
bodies of agents are checked against these schemas by `check`.
"""

from __future__ import annotations

from typing import Any

from runyard.model import resources, roles, spec, states, wire

Schema = dict[str, Any]


def ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(properties: dict[str, Schema], required: list[str] | None = None, **more: Any) -> Schema:
    """An object with these fields and no others; all of them are there unless `required` says which."""
    needed = list(properties) if required is None else required
    return {"type": "object", "properties": properties, "required": needed, "additionalProperties": False, **more}


def _list(items: Schema, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


def _or_null(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), str) and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [schema, {"type": "null"}]}


def _number(description: str, least: int = 0, most: int | None = None) -> Schema:
    limits = {"minimum": least} if most is None else {"minimum": least, "maximum": most}
    return {"type": "integer", "description": description, **limits}


def _text(description: str = "", **more: Any) -> Schema:
    return {"type": "string", **({"description": description} if description else {}), **more}


def _words(values: Any, description: str) -> Schema:
    return {"type": "string", "enum": sorted(str(value) for value in values), "description": description}


ID = _number("The run's number", 1, (1 << 62))
TIME = _or_null({"type": "string", "format": "date-time"})
NUMBER = {"type": "number"}
ANY_OBJECT: Schema = {"type": "object"}
STATE = _words(states.RunState, "Where the run is in its life")
REASON = _or_null(_words(states.Reason, "Why it failed or was cancelled"))
NAME = _text(pattern=f"^{spec.NAME.pattern}$")
SITE_NAME = _text("The site's name", maxLength=100)
DIGEST = _text("SHA-256 of the bytes", pattern="^sha256:[0-9a-f]{64}$")
_SIZE_TEXT = r"^\s*[0-9]+(\.[0-9]+)?\s*[KMGTPkmgtp]?[iI]?[bB]?\s*$"


def _size(description: str) -> Schema:
    return {
        "description": f"{description}: bytes, or like 4G",
        "anyOf": [{"type": "integer", "minimum": 1, "maximum": resources.MAX_MEMORY}, _text(pattern=_SIZE_TEXT)],
    }


def _duration(description: str) -> Schema:
    number = {"type": "number", "exclusiveMinimum": 0, "maximum": resources.MAX_TIME}
    return {"description": f"{description}: seconds, or like 90s, 2h, 1:30:00", "anyOf": [number, {"type": "string"}]}


_COUNT = resources.MAX_COUNT
RESOURCES = _object(
    {
        "cpus": _or_null(_number("CPU slots; thread variables such as OMP_NUM_THREADS follow them", 1, _COUNT)),
        "memory": _or_null(_size("Memory that is reserved and enforced")),
        "gpus": _or_null(_number("GPUs", 0, _COUNT)),
        "gpu_type": _or_null(_text("A part of the GPU's name, such as a100", minLength=1, maxLength=100)),
        "gpu_memory": _or_null(_size("Memory that each GPU must have")),
        "time": _or_null(_duration("Time limit")),
    },
    required=[],
    description="What a run asks for. A field that is missing or null is not asked for.",
)

RETRY = _object(
    {
        "max": _number("How often it is tried again by itself", 0, 100),
        "on": {
            "description": "After which endings",
            "anyOf": [_words(states.FAILURES, "One ending"), _list(_words(states.FAILURES, "An ending"))],
        },
    },
    required=[],
)

STOP = _object(
    {
        "signal": _text(f"The signal that asks it to stop: {', '.join(spec.SIGNALS)}"),
        "grace": {"anyOf": [{"const": 0}, _duration("How long it may take before it is killed")]},
    },
    required=[],
)

_TEXTS = _list({"type": "string"})
_ENV: Schema = {
    "type": "object",
    "propertyNames": {"pattern": f"^{spec.VARIABLE.pattern}$"},
    "additionalProperties": {"type": "string"},
}

_SPEC_FIELDS: dict[str, Schema] = {
    "command": {
        "description": "An argument vector, or one text for /bin/sh -c. {name} is replaced by a parameter, if there are any",
        "anyOf": [_text(minLength=1), _list({"type": "string"}, minItems=1)],
    },
    "project": _or_null({**NAME, "description": "What it belongs to", "default": "default"}),
    "name": _or_null(_text("A title for people", maxLength=200)),
    "params": _or_null({**ANY_OBJECT, "description": "Parameters, also in the JSON file $RUNYARD_PARAMS"}),
    "env": _or_null({**_ENV, "description": "Environment variables"}),
    "cwd": _or_null(_text("Working directory, absolute; without it a fresh one", pattern="^/", maxLength=4096)),
    "seed": _or_null(_number("Given to the command as $RUNYARD_SEED", 0, (1 << 63) - 1)),
    "resources": _or_null(ref("Resources")),
    "outputs": _or_null({**_TEXTS, "description": "Which files below $OUTPUT_DIR come back", "default": ["**"]}),
    "split_output": _or_null({"type": "boolean", "description": "Also keep stdout and stderr apart"}),
    "site": _or_null({**NAME, "description": "Where to run; without it any site that fits"}),
    "priority": _or_null({"type": "integer", "minimum": -1000, "maximum": 1000, "description": "Higher goes first"}),
    "after": _or_null({"description": "Runs that must succeed first", "anyOf": [ID, _list(ID)]}),
    "retry": _or_null({"anyOf": [_number("As retry.max", 0, 100), ref("Retry")]}),
    "stop": _or_null(ref("Stop")),
    "tags": _or_null({"description": "Words to find it by", "anyOf": [NAME, _list(NAME)]}),
    "idempotency_key": _or_null(_text("The same key again gives the first run again", minLength=1, maxLength=200)),
    "origin": _or_null(
        _object(
            {"host": _text("Where it was submitted", maxLength=300), "env": _ENV},
            required=[],
            description="Environment of the submitter: the default where the run executes on that host",
        )
    ),
}
RUN_SPEC = _object(_SPEC_FIELDS, required=["command"], description="One run as it is handed in.")

_GRANTED = _or_null({**ANY_OBJECT, "description": "The slots it has or had: cpus, memory, gpus by UUID"})
_RUN_FIELDS: dict[str, Schema] = {
    "id": ID,
    "project": _text(),
    "name": _text(),
    "owner": _text("Whose token submitted it"),
    "state": STATE,
    "reason": REASON,
    "detail": _or_null(_text("One sentence more")),
    "exit_code": _or_null({"type": "integer", "description": "The command's own; 128+n after signal n"}),
    "params": ANY_OBJECT,
    "site": _or_null(_text()),
    "node": _or_null(_text("The machine it ran on")),
    "attempt": _number("How often it was started"),
    "priority": {"type": "integer"},
    "tags": _TEXTS,
    "command": _SPEC_FIELDS["command"],
    "resources": {**ANY_OBJECT, "description": "What it asked for"},
    "granted": _GRANTED,
    "created_at": TIME,
    "started_at": TIME,
    "ended_at": TIME,
    "cancel_requested": {"type": "boolean"},
    "peak_memory": _or_null(_number("Bytes")),
    "cpu_time": _or_null({**NUMBER, "description": "Seconds"}),
    "wall_time": _or_null({**NUMBER, "description": "Seconds"}),
}
RUN = _object(_RUN_FIELDS, description="A run as it is listed.")

ATTEMPT = _object(
    {
        "number": _number("Counted from 1", 1),
        "state": _words(states.AttemptState, "Where the attempt is"),
        "outcome": _or_null(_text("The run's state that its ending meant")),
        "reason": REASON,
        "detail": _or_null(_text()),
        "exit_code": _or_null({"type": "integer"}),
        "signal": _or_null({"type": "integer"}),
        "site": _or_null(_text()),
        "agent": _or_null(_text()),
        "node": _or_null(_text()),
        "native_id": _or_null(_text("Its name in the scheduler or operating system")),
        "granted": _GRANTED,
        "record": _or_null({**ANY_OBJECT, "description": "What the runner wrote at the end"}),
        "claimed_at": TIME,
        "started_at": TIME,
        "ended_at": TIME,
        "log_size": _number("Bytes of log held so far"),
    }
)

FULL_RUN = _object(
    {
        **_RUN_FIELDS,
        "spec": {**ANY_OBJECT, "description": "The RunSpec, without fields that have their default"},
        "after": _list(ID),
        "attempts": _list(ref("Attempt")),
    },
    description="A run with its spec and attempts.",
)

EVENT = _object(
    {
        "id": _number("Rises with each event of the yard", 1),
        "run_id": ID,
        "attempt": _number("0 before the first"),
        "at": TIME,
        "kind": _text(),
        "message": _text(),
    }
)

OUTPUT = _object(
    {
        "path": _text("Below the output directory"),
        "size": _number("Bytes"),
        "digest": DIGEST,
        "mode": _number("Permission bits"),
        "attempt": _number("The attempt that made it", 1),
    }
)

GPU = _object(
    {"uuid": _text(), "type": _text("Its name"), "memory": _number("Bytes")},
    required=["uuid"],
)
CAPACITY = _object(
    {
        "cpus": _number("CPU slots", 0, _COUNT),
        "memory": _number("Bytes", 0, resources.MAX_MEMORY),
        "gpus": _list(ref("Gpu")),
    },
    required=["cpus", "memory"],
    description="Slots: all of them, or those that are free.",
)

AGENT = _object(
    {
        "site": _text(),
        "name": _text(),
        "node": _text(),
        "version": _text(),
        "incarnation": _number("Rises with each start"),
        "total": ref("Capacity"),
        "free": ref("Capacity"),
        "seen_at": TIME,
        "unreachable": {"type": "boolean"},
    }
)

SITE = _object(
    {
        "name": _text(),
        "kind": _text("Which backend serves it"),
        "drained": {"type": "boolean", "description": "True: takes no new runs"},
        "explicit": {"type": "boolean", "description": "True: takes only runs that name it"},
        "note": _text("Why, for people"),
        "total": ref("Capacity"),
        "free": ref("Capacity"),
        "agents": _list(ref("Agent")),
        "runs": {"type": "object", "additionalProperties": _number("Runs"), "description": "Runs there by state"},
    },
)

PLAN = _object(
    {
        "site": _or_null(_text("Where it would run now")),
        "argv": _TEXTS,
        "cwd": _or_null(_text()),
        "env": {"type": "object", "additionalProperties": {"type": "string"}},
        "resources": ANY_OBJECT,
        "detail": _text("One sentence for people"),
        "queue_position": _or_null(_number("How many runs go first")),
    }
)

_ROLE = _words(roles.Role, "What its holder may do")
_TOKEN_FIELDS: dict[str, Schema] = {
    "id": _number("To revoke it by", 1),
    "name": _text(),
    "role": _ROLE,
    "site": _or_null(_text("Of an agent")),
    "created_at": TIME,
    "revoked_at": TIME,
}
TOKEN = _object(_TOKEN_FIELDS)
NEW_TOKEN = _object({"name": NAME, "role": _ROLE, "site": _or_null(NAME)}, required=["name", "role"])
SECRET = _object(
    {
        "id": _number("To revoke it by", 1),
        "name": _text(),
        "role": _ROLE,
        "secret": _text("The token itself; it is shown this once"),
    }
)

ERROR = _object(
    {
        "error": _object(
            {
                "code": _text("Stable, for programs: invalid, not_found, conflict, …"),
                "message": _text("One sentence"),
                "fix": _text("The next command or the right value; may be empty"),
            }
        )
    }
)

USAGE = {**ANY_OBJECT, "description": "One sample: t, cpu (cores), threads, processes, rss, gpus"}

_KEY = _text("run.attempt, such as 42.1", pattern=r"^[1-9][0-9]{0,17}\.[1-9][0-9]{0,8}$")
HELLO = _object(
    {
        "site": NAME,
        "agent": NAME,
        "node": _text(minLength=1, maxLength=300),
        "boot_id": _text(maxLength=100),
        "version": _text(maxLength=100),
        "total": ref("Capacity"),
    }
)
REPORTED_OUTPUT = _object(
    {
        "path": _text(minLength=1, maxLength=4096),
        "size": _number("Bytes", 0, (1 << 62)),
        "digest": DIGEST,
        "mode": _number("Permission bits", 0, 0o7777),
    }
)
REPORT = _object(
    {
        "key": _KEY,
        "state": _words(states.AttemptState, "Where the attempt is"),
        "node": _or_null(_text(maxLength=300)),
        "detail": _or_null(_text(maxLength=4096)),
        "granted": _or_null(ANY_OBJECT),
        "native_id": _or_null(_text(maxLength=300)),
        "started_at": _or_null(NUMBER),
        "record": _or_null(ANY_OBJECT),
        "gone": _or_null(_text(maxLength=4096)),
        "outputs": _list(ref("ReportedOutput")),
    },
    required=["key", "state"],
)
SYNC = _object(
    {
        "site": NAME,
        "agent": NAME,
        "incarnation": _number("From hello", 0, (1 << 62)),
        "free": ref("Capacity"),
        "ahead": _number("How many more to take than fit now", 0, 10_000),
        "reports": _list(ref("Report")),
    },
    required=["site", "agent", "incarnation", "free"],
)
CLAIM = _object(
    {
        "key": _KEY,
        "batch": _text("The unique name of its batch"),
        "position": _number("Its index in the batch", 1),
        "spec": ANY_OBJECT,
        "argv": _TEXTS,
        "resources": ANY_OBJECT,
        "state": _words(states.AttemptState, "Where the attempt is"),
    }
)
SYNC_ANSWER = _object(
    {
        "claims": _list(ref("Claim")),
        "stops": _list(_object({"key": _KEY, "reason": _text()})),
        "settled": _list(_KEY),
        "more": {"type": "boolean", "description": "Runs are waiting that would fit"},
    }
)
RELAYED_FILE = {"type": "string", "enum": list(wire.RELAYED_FILES)}

COMPONENTS: dict[str, Schema] = {
    "RunSpec": RUN_SPEC,
    "Resources": RESOURCES,
    "Retry": RETRY,
    "Stop": STOP,
    "Run": RUN,
    "FullRun": FULL_RUN,
    "Attempt": ATTEMPT,
    "Event": EVENT,
    "Output": OUTPUT,
    "Gpu": GPU,
    "Capacity": CAPACITY,
    "Site": SITE,
    "Agent": AGENT,
    "Plan": PLAN,
    "Token": TOKEN,
    "NewToken": NEW_TOKEN,
    "Secret": SECRET,
    "Hello": HELLO,
    "Report": REPORT,
    "ReportedOutput": REPORTED_OUTPUT,
    "SyncRequest": SYNC,
    "SyncResponse": SYNC_ANSWER,
    "Claim": CLAIM,
    "Usage": USAGE,
    "Error": ERROR,
}
