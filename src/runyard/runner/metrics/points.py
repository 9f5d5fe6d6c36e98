"""What every source gives: some values by name, with the step they belong to and the moment they were made."""

import math
from typing import Any, Dict, List, NamedTuple, Optional, Union

Number = Union[int, float]

STEPS = ("step", "global_step", "iteration", "iter", "epoch")  # the first of them that is there
TIMES = ("t", "time", "timestamp", "_timestamp", "wall_time")

_LARGEST_STEP = 1 << 62
_FIRST_MOMENT = 1e9  # seconds since 1970: less is a duration, whatever the column is called


class MetricPoint(NamedTuple):
    values: Dict[str, Number]
    step: Optional[Number] = None
    at: Optional[float] = None  # None: now
    is_summary: bool = False  # one value for the whole run


Points = List[MetricPoint]


def number(value: Any) -> Optional[Number]:
    """None for what is none: a truth value is not, and JSON knows whole numbers that no computer adds up."""
    if isinstance(value, float):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value if abs(value) < 1 << 63 else None
    return None


def from_text(text: str) -> Optional[Number]:
    """As a program printed it, with what stood around it: `0.25,` and `97%)`."""
    try:
        return float(text.strip(" \t\r,;:%()[]{}'\""))
    except ValueError:
        return None


def as_step(value: Optional[Number]) -> Optional[Number]:
    """3.0 is step 3. A step that is no number is none."""
    if value is None or not math.isfinite(value) or abs(value) > _LARGEST_STEP:
        return None
    return int(value) if value == int(value) else value


def as_moment(value: Optional[Number]) -> Optional[float]:
    return float(value) if value is not None and math.isfinite(value) and value >= _FIRST_MOMENT else None


def from_fields(fields: Dict[str, Number]) -> MetricPoint:
    """A row of a table or a JSON object: the step and the time are among the values, under names that people use."""
    plain = {name.strip().lower().replace(" ", "_"): name for name in fields}
    step_name = next((plain[name] for name in STEPS if name in plain), None)
    time_name = next((plain[name] for name in TIMES if name in plain), None)
    values = {name: value for name, value in fields.items() if name != step_name}
    at = as_moment(fields[time_name]) if time_name is not None else None
    if at is not None and time_name is not None:
        del values[time_name]
    return MetricPoint(values, as_step(fields[step_name]) if step_name is not None else None, at)
