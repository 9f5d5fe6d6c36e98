"""(i) `POST /request` with a run configuration, against a web server with Flask and Celery on the same broker.

What an answer means: runyard's, that the run is committed to disk; a confirmed one of Flask and Celery, that the broker
has the task on disk; any other of theirs, that the task was written to a socket.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

from bench import broker_sides, harness, posting
from bench.harness import Result
from runyard.cli.input import spec_file
from tests.labs import waiting
from tests.labs.rabbitmq import RabbitLab
from tests.labs.yard import Yard

REQUESTS, CONNECTIONS, REPETITIONS = 1500, 32, 5
EXAMPLE = Path(__file__).parents[1] / "examples" / "ic-train"
# Flask's web servers, and whether Celery waits for the broker's word.
ALTERNATIVES = [
    ("waitress", False),
    ("waitress", True),
    ("gunicorn", False),
    ("gunicorn", True),
    ("Flask's own server", False),
]
# To be ahead of: the Training Runs server as it was, and those that promise as much as runyard.
TO_BEAT = [("waitress", False), ("waitress", True), ("gunicorn", True)]


def measure(place: Path) -> Iterator[Result]:
    if harness.lacks("i", *broker_sides.NEEDED):
        return
    with ExitStack() as stack:
        lab = stack.enter_context(broker_sides.broker(place))
        ours, others = _yards(stack, lab, place), _web_servers(stack, lab)
        rates = harness.interleaved(
            REPETITIONS,
            {side: partial(posting.rate, target, REQUESTS, CONNECTIONS) for side, target in (ours | others).items()},
        )
    for store in ours:
        yield from (result(store, rates[store], other, rates[other]) for other in others)


def name(kind: str, confirmed: bool) -> str:
    return f"Flask and Celery on {kind}, {'confirmed' if confirmed else 'unconfirmed'}"


def result(store: str, rate: float, against: str, alternative: float) -> Result:
    has_target = against in [name(*one) for one in TO_BEAT]
    return Result(
        letter="i",
        what=f"`POST /request` answered when committed, {CONNECTIONS} connections, {store}",
        value=rate,
        against=against,
        alternative=alternative,
        unit="requests/s",
        target="ahead" if has_target else "",
        met=rate > alternative if has_target else None,
    )


def _yards(stack: ExitStack, lab: RabbitLab, place: Path) -> dict[str, posting.Target]:
    """One as it comes, and one for many machines; both with the broker, and with their only slot taken."""
    alone = harness.yard(place, cpus=1, broker=lab.url(lab.add_vhost()))
    many = broker_sides.yard_with_agent(place, lab)
    yards = {"SQLite": alone, "PostgreSQL and an agent": many}
    return {store: _target(stack.enter_context(yard)) for store, yard in yards.items()}


def _target(yard: Yard) -> posting.Target:
    _occupy(yard)
    recipe = {**spec_file.read(str(EXAMPLE / "recipe.yaml")), "cwd": str(EXAMPLE)}
    return broker_sides.requests(yard, recipe, _configuration())


def _occupy(yard: Yard) -> None:
    client = yard.client()
    client.submit(command=["sleep", "1000"], cwd="/", priority=1000)
    waiting.until(lambda: client.health()["runs"].get("running"), "the slot taken", timeout_s=60)


def _configuration() -> dict[str, Any]:
    return dict(json.loads((EXAMPLE / "run.json").read_text()))


def _web_servers(stack: ExitStack, lab: RabbitLab) -> dict[str, posting.Target]:
    """No worker: as long as one trains, it takes nothing either."""
    url, found = lab.url(lab.add_vhost()), {}
    for kind, confirmed in ALTERNATIVES:
        address = stack.enter_context(broker_sides.web_server(kind, url, confirmed=confirmed))
        found[name(kind, confirmed)] = posting.Target(url=address, path="/request", body=_configuration())
    return found
