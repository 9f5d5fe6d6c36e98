"""Sweeps: as they are handed in, and as they are shown."""

from __future__ import annotations

from runyard.model.states import RunState
from runyard.model.sweep import document, objective, space, stopping
from runyard.server.schemas.build import (
    ANYTHING,
    BOOLEAN,
    Schema,
    described,
    integer,
    listed,
    one_of,
    or_null,
    record,
    ref,
    text,
)
from runyard.server.schemas.common import REASON, RUN_ID, RUN_STATE, SWEEP_ID, TIME
from runyard.server.schemas.runs import RUN_SPEC

SWEEP_STATES = ("queued", "running", "succeeded", "failed", "cancelled")
TRIAL_STATES = ("waiting", "queued", "running", "succeeded", "stopped", "failed", "cancelled")
VALUE: Schema = {"anyOf": [{"type": ["number", "null"]}, one_of(("nan", "inf", "-inf"))]}
STEP = or_null({"type": "number"})
METHOD = one_of(document.Method, "How configurations are chosen; tpe, gp and cmaes look at results")

OBJECTIVE = record(
    {
        "metric": text("As runs report it", minLength=1),
        "goal": one_of(objective.Goal),
        "at": one_of(objective.At, "Which of a run's values counts"),
    },
    required=["metric"],
)

EARLY_STOP: Schema = record(
    {
        "rule": one_of(stopping.Rule, "asha: the best 1/factor go on; median: those not worse than the median"),
        "first": {"type": "number", "description": "The step at which runs are first compared"},
        "factor": integer("From one comparison to the next, times so many steps", 2, stopping.LARGEST_FACTOR),
        "trials": integer("That must have come so far before one is stopped", 2),
        "last": {"type": "number", "description": "The step at which a run is through, and is not stopped any more"},
    },
    required=["rule"],
)

_STOP: Schema = {
    "description": "A rule by which runs are stopped early; with it, how a run is asked to stop",
    "anyOf": [
        one_of(stopping.Rule),
        record({**EARLY_STOP["properties"], "signal": text(), "grace": {}}, required=[]),
    ],
}

SWEEP_SPEC = record(
    {
        **{name: RUN_SPEC["properties"][name] for name in document.RUN_FIELDS if name != "stop"},
        "name": or_null(text("By which it is known when it is handed in again", maxLength=document.LONGEST_NAME)),
        "space": or_null(
            described(
                ANYTHING,
                'Values of each parameter: [0.1, 0.01], "2..8", {"from": 1e-5, "to": 0.1, "log": true}, '
                '{"choices": […], "when": {"other": "value"}}; names may nest',
            )
        ),
        "configurations": or_null(described(listed(ANYTHING, minItems=1), "Instead of a space: parameters of each")),
        document.LIST: or_null(described(listed(ANYTHING, minItems=1), "Another word for configurations")),
        "method": or_null(METHOD),
        "trials": or_null(integer("Configurations at most; a grid has all", 1, space.MOST)),
        "reps": or_null(
            integer("How often each configuration runs, each time with its own seed", 1, document.MOST_REPS)
        ),
        "seed": or_null(integer("The same again gives the same sweep", 0, (1 << 63) - 1)),
        "parallel": or_null(integer("Runs at a time", 1, space.MOST)),
        "minimize": or_null(text("A metric that is to be small", minLength=1)),
        "maximize": or_null(text("A metric that is to be large", minLength=1)),
        "objective": or_null(ref("Objective")),
        "stop": or_null(_STOP),
        "fresh": or_null(described(BOOLEAN, "Begin a new sweep, though this one is known")),
    },
    required=["command"],
    description="Many runs of one command. The further fields are those of a run.",
)

_CHANGE: dict[str, Schema] = {
    "created": integer("Runs that are new, also those that are made when there is room for them"),
    "reused": integer("Runs that were there, and live or have a result"),
    "retried": integer("Runs that had failed or were cancelled, and are started again"),
    "differs": described(
        listed(text()), "In what runs that were there differ from what was handed in, such as code; fresh runs it all"
    ),
}

SUBMITTED_SWEEP = record(
    {"id": SWEEP_ID, "runs": described(listed(RUN_ID), "All that there are by now"), **_CHANGE},
)

PLANNED_SWEEP = record(
    {
        "trials": integer("Configurations"),
        "reps": integer("Runs of each", 1),
        "runs": integer("In all, with those that are there already"),
        "sites": listed(text(), minItems=1),
        "configurations": described(listed(ANYTHING), "The first ones; none where results decide"),
        "document": described(ANYTHING, "The SweepSpec, in full"),
        "sweep": or_null(described(SWEEP_ID, "The one that is known already; null: it would be a new one")),
        **_CHANGE,
    },
    description="What a sweep would be, and what would become of its runs.",
)

TRIAL_RUN = record(
    {
        "id": RUN_ID,
        "rep": integer("Counted from 1", 1),
        "seed": integer("Given to the command as $RUNYARD_SEED"),
        "index": integer("{index} in the command", 1),
        "state": RUN_STATE,
        "reason": REASON,
        "value": VALUE,
        "step": STEP,
    }
)

TRIAL = record(
    {
        "number": integer("Counted from 1", 1),
        "params": ANYTHING,
        "state": one_of(TRIAL_STATES, "waiting: none of its runs is made yet; stopped: others were better by then"),
        "value": described(VALUE, "The mean of the objective over repetitions that have succeeded"),
        "low": described(VALUE, "Where the true mean begins, with 95 % confidence; null for one repetition"),
        "high": described(VALUE, "And where it ends"),
        "n": integer("Repetitions in the mean"),
        "runs": listed(ref("TrialRun")),
    },
    description="A configuration of a sweep.",
)

SWEEP = record(
    {
        "id": SWEEP_ID,
        "name": text(),
        "project": text(),
        "owner": text("Whose token handed it in"),
        "state": one_of(SWEEP_STATES, "Of all its runs together"),
        "detail": or_null(text("One sentence more")),
        "method": METHOD,
        "objective": or_null(ref("Objective")),
        "stop": or_null(ref("EarlyStop")),
        "reps": integer("", 1),
        "seed": integer(),
        "parallel": or_null(integer("Runs at a time", 1)),
        "trials": record(
            {
                "planned": integer("That it will have"),
                "made": integer("That are chosen by now"),
                "ended": integer("Of which all runs have ended"),
            }
        ),
        "runs": record(
            {name: integer() for name in (*RunState, "early_stop")}, description="How many are in each state"
        ),
        "steps": or_null(
            record(
                {"done": {"type": "number"}, "full": {"type": "number"}},
                description="Steps of runs that have ended, and had they all gone as far as the longest",
            )
        ),
        "best": or_null(ref("Trial")),
        "created_at": TIME,
        "changed_at": TIME,
        "document": described(ANYTHING, "The SweepSpec"),
    },
    description="A sweep.",
)

DECISION = record(
    {
        "number": integer("Counted from 1", 1),
        "at": TIME,
        "kind": one_of(("ask", "tell", "rung", "stop")),
        "trial": integer("", 1),
        "run": or_null(RUN_ID),
        "body": described(ANYTHING, "What was decided, and by which values of metrics"),
    }
)

REPLAY = record(
    {
        "decisions": integer("How many were made again"),
        "different": listed(
            record(
                {
                    "number": integer("", 1),
                    "kind": text(),
                    "recorded": or_null(ANYTHING),
                    "computed": or_null(ANYTHING),
                }
            )
        ),
    }
)
