"""(j) From `POST /request` to the first byte that the run's process writes, one run at a time, with an idle agent.

An agent hears of work by the broker's tickets and by asking the yard for news; whichever comes first wakes it. So it is
also measured with tickets alone, by an agent that never asks for news. The other side is a web server with Flask and
Celery whose worker starts the same command.
"""

from __future__ import annotations

import http.client
import json
import random
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench import broker_sides, harness, posting
from bench.harness import Result
from bench.pipe import GIVEN_UP_S, Pipe
from tests.labs.rabbitmq import RabbitLab
from tests.labs.yard import Yard

STARTS, MOST_MS = 120, 100
PAUSE_S = 0.1  # at least so long nothing happens before a request
TICKETS_ALONE = """
from runyard.agent.http import HttpLink
from runyard.cli.main import main
HttpLink.on_news = lambda link, site, callback: None
main()
"""
CELERY = "Flask, Celery and its worker"


def measure(place: Path) -> Iterator[Result]:
    if harness.lacks("j", *broker_sides.NEEDED):
        return
    with ExitStack() as stack:
        pipe = stack.enter_context(Pipe(place / "starts"))
        sides = _sides(stack, place, pipe)
        for _ in range(STARTS):
            for side in sides:
                side.take(pipe)
    theirs = next(side for side in sides if side.name == CELERY)
    yield from (result(side, theirs, name) for side in sides if side is not theirs for name in SHARES)


SHARES = {"median": 0.5, "95th percentile": 0.95}


def result(ours: Side, theirs: Side, name: str) -> Result:
    value, alternative = (1000 * harness.percentile(side.taken, SHARES[name]) for side in (ours, theirs))
    return Result(
        letter="j",
        what=f"`POST /request` to the first byte of its process, {name} of {STARTS}, {ours.name}",
        value=value,
        against=CELERY,
        alternative=alternative,
        unit="ms",
        target=f"under {MOST_MS} ms" if name == "median" else "",
        met=value < MOST_MS if name == "median" else None,
    )


@dataclass
class Side:
    name: str
    target: posting.Target
    connection: socket.socket  # to the target
    settle: Callable[[dict[str, Any]], object]  # waits until what a request started is over and told
    taken: list[float] = field(default_factory=list)

    def take(self, pipe: Pipe) -> None:
        time.sleep(PAUSE_S * random.uniform(1, 2))
        begin = time.monotonic()
        self.connection.sendall(self.target.request())
        self.taken.append(pipe.wait() - begin)  # which may be before the answer
        answer = http.client.HTTPResponse(self.connection, method="POST")
        answer.begin()
        self.settle(json.loads(answer.read()))


def _sides(stack: ExitStack, place: Path, pipe: Pipe) -> list[Side]:
    lab = stack.enter_context(broker_sides.broker(place))
    tickets = ("-c", TICKETS_ALONE)
    yards = {
        "PostgreSQL, RabbitMQ and an agent": broker_sides.yard_with_agent(place, lab),
        "the same by tickets alone": broker_sides.yard_with_agent(place, lab, tickets),
        "a yard as it comes": harness.yard(place, cpus=1),
    }
    ours = [_ours(stack, name, stack.enter_context(yard), pipe) for name, yard in yards.items()]
    return [*ours, _theirs(stack, lab, pipe)]


def _ours(stack: ExitStack, name: str, yard: Yard, pipe: Pipe) -> Side:
    client = yard.client()
    target = broker_sides.requests(yard, {"command": ["sh", "-c", pipe.command], "cwd": "/"}, {})
    return Side(name, target, _connected(stack, target), lambda answer: client.run(answer["id"]).wait(GIVEN_UP_S))


def _theirs(stack: ExitStack, lab: RabbitLab, pipe: Pipe) -> Side:
    vhost = lab.add_vhost()
    url = stack.enter_context(broker_sides.web_server("waitress", lab.url(vhost)))
    stack.enter_context(broker_sides.worker(lab, vhost))
    target = posting.Target(url=url, path="/request", body={"command": ["sh", "-c", pipe.command]})
    return Side(CELERY, target, _connected(stack, target), lambda answer: None)


def _connected(stack: ExitStack, target: posting.Target) -> socket.socket:
    return stack.enter_context(socket.create_connection(target.address))
