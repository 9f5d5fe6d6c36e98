"""Sweeps as they are shown. As they are submitted: runyard.model.sweep.document."""

from __future__ import annotations

from runyard.model.declaration import declared
from runyard.model.json_schema import (
    ANYTHING,
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
from runyard.model.states import RunState
from runyard.model.sweep import SweepSpec
from runyard.server.schemas.common import REASON, RUN_ID, RUN_STATE, SWEEP_ID, TIME

SWEEP_STATES = ("queued", "running", "succeeded", "failed", "cancelled")
TRIAL_STATES = ("waiting", "queued", "running", "succeeded", "stopped", "failed", "cancelled")
VALUE: Schema = {"anyOf": [{"type": ["number", "null"]}, one_of(("nan", "inf", "-inf"))]}
STEP = or_null({"type": "number"})
METHOD = declared(SweepSpec)["method"].value.schema(declared(SweepSpec)["method"].help)

_CHANGE: dict[str, Schema] = {
    "created": integer("Runs that are new, also those that are made when there is room for them"),
    "reused": integer("Runs that were there, and live or have a result"),
    "retried": integer("Runs that had failed or were cancelled, and are started again"),
    "differs": described(
        listed(text()), "What differs between existing runs and this submission, such as code; fresh runs all again"
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
