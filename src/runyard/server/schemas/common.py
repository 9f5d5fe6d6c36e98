"""Values that several shapes share."""

from __future__ import annotations

from runyard.model import spec_values, states, values
from runyard.model.json_schema import ANYTHING, Schema, described, integer, one_of, or_null, record, text

RUN_ID = integer("The run's number", 1, (1 << 62))
SWEEP_ID = integer("The sweep's number: 1 for what people write as S1", 1, (1 << 62))
TIME: Schema = {"type": ["string", "null"], "format": "date-time"}
NAME = spec_values.NAME.schema("")
ENVIRONMENT = spec_values.ENV.schema("")
OPTIONS = spec_values.OPTIONS.schema("")
DIGEST = values.Digest().schema("")
RUN_STATE = one_of(states.RunState, "Where the run is in its life")
ATTEMPT_STATE = one_of(states.AttemptState, "Where the attempt is in its life")
REASON = or_null(one_of(states.Reason, "Why it failed or was cancelled"))
GRANTED = or_null(described(ANYTHING, "The slots it has or had: cpus, memory, gpus by UUID"))

ERROR = record(
    {
        "error": record(
            {
                "code": text("Stable, for programs: invalid, not_found, conflict, …"),
                "message": text("One sentence"),
                "fix": text("The next command or the right value; may be empty"),
            }
        )
    }
)
