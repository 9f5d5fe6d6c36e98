"""Metrics that runs report. Metrics of the yard itself are in `runyard.server.metrics`."""

from __future__ import annotations

from starlette.responses import Response

from runyard.model.json_schema import NUMBER, integer, listed, record, text
from runyard.model.metrics import LONGEST_NAME
from runyard.server.answers import answer
from runyard.server.auth import Access
from runyard.server.call import Call
from runyard.server.parameters import query
from runyard.server.route import Answer, Route
from runyard.server.routes.runs import ID
from runyard.server.schemas import ref
from runyard.yard.metrics.metrics import MOST_SERIES

FARTHEST = 1e18


async def get_metrics(call: Call) -> Response:
    return answer(await call.service.read(call.service.yard.metrics.view, call["id"]))


async def list_points(call: Call) -> Response:
    points = call.service.yard.metrics.points
    found = await call.service.read(points, call["id"], call["name"], after_step=call["after_step"], most=call["max"])
    return answer({"points": found})


ROUTES = (
    Route(
        method="GET", path="/runs/{id}/metrics", handler=get_metrics, access=Access.VIEWER, parameters=(ID,),
        summary="A summary of the metrics of a run",
        answers=(Answer(description="One entry for each name, and the run's summary", schema=ref("Metrics")),),
        errors=(404,),
    ),
    Route(
        method="GET", path="/runs/{id}/metrics/points", handler=list_points, access=Access.VIEWER,
        summary="The values of the metrics of a run",
        description=(
            "In the order of the steps, from all attempts; a step that was repeated after a restart occurs once. "
            "If there are more than `max` values, only the lowest and the highest of each section are returned. All "
            "reported values are in the file metrics.jsonl: /runs/{id}/log?file=metrics.jsonl."
        ),
        parameters=(
            ID,
            query(
                "name", listed(text(minLength=1, maxLength=LONGEST_NAME), maxItems=MOST_SERIES),
                "Only these names, each given as name=…; without it all, if they are few enough", exact=True,
            ),
            query("after_step", {**NUMBER, "minimum": -FARTHEST, "maximum": FARTHEST}, "Only steps after this one"),
            query("max", {**integer("", 1, 100_000), "default": 1000}, "How many values of each name at most"),
        ),
        answers=(
            Answer(
                description="For each name a list of [step, time, value]",
                schema=record({"points": {"type": "object", "additionalProperties": listed(ref("MetricPoint"))}}),
            ),
        ),
        errors=(404,),
    ),
)  # fmt: skip
