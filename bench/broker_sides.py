"""A RabbitMQ with two set-ups on it: runyard for many machines, and a web server with Flask and Celery."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import harness, posting
from tests.acceptance.pool import SITE, Pool
from tests.labs import components, waiting
from tests.labs.postgres import Server
from tests.labs.rabbitmq import Options, RabbitLab
from tests.labs.yard import Yard

NEEDED = ("rabbitmq", "postgresql", "flask, celery")
RECIPE = "bench"
HERE = Path(__file__).parent
THREADS = 4  # waitress's default

# What serves Flask on a port.
WEB_SERVERS: dict[str, Callable[[str], list[str]]] = {
    "waitress": lambda port: ["python", "old_server.py", "waitress", port],
    "gunicorn": lambda port: [
        "gunicorn", "--bind", f"127.0.0.1:{port}", "--workers", "2", "--worker-class", "gthread",
        "--threads", str(THREADS), "--keep-alive", "60", "--log-level", "warning", "old_server:app",
    ],
    "Flask's own server": lambda port: ["python", "old_server.py", "flask", port],
}  # fmt: skip
WORKER = ["celery", "--app", "old_server:tasks", "worker", "--pool", "solo", "--loglevel", "error"]


@contextmanager
def broker(place: Path, **overrides: Any) -> Iterator[RabbitLab]:
    """One node, with its data on the disk where everything else is."""
    place.chmod(0o755)  # PostgreSQL is not who measures
    with RabbitLab(Options(overrides=tuple(overrides.items())), below=place) as lab:
        yield lab


@contextmanager
def database(place: Path) -> Iterator[str]:
    """PostgreSQL that keeps what it has committed."""
    server = Server(below=place, durable=True)
    server.start()
    try:
        with server.database() as url:
            yield url
    finally:
        server.stop()


@contextmanager
def web_server(kind: str, url: str, *, confirmed: bool = False) -> Iterator[str]:
    """The address of Flask with Celery, when it accepts connections."""
    (port,) = waiting.free_ports(1)
    with _program(WEB_SERVERS[kind](str(port)), url, confirmed=confirmed):
        waiting.until(lambda: waiting.accepts("127.0.0.1", port), f"{kind} listening", timeout_s=60)
        yield f"http://127.0.0.1:{port}"


@contextmanager
def worker(lab: RabbitLab, vhost: str) -> Iterator[None]:
    """Celery's, as the Training Runs server had it: one task at a time, in its own process."""
    with _program(WORKER, lab.url(vhost)):
        waiting.until(lambda: _listens(lab, vhost), "Celery's worker listening", timeout_s=60, every_s=0.2)
        yield


def _listens(lab: RabbitLab, vhost: str) -> bool:
    return any(one["queue"]["name"] == "celery" for one in lab.admin("GET", "consumers", vhost))


@contextmanager
def _program(words: Sequence[str], url: str, *, confirmed: bool = False) -> Iterator[None]:
    """One of those that `make bench-deps` installs, until the end of the block."""
    environment = {**os.environ, "BROKER": url.replace("amqp://", "pyamqp://", 1), "CONFIRMED": str(int(confirmed))}
    program = str(components.BENCH_PYTHON.parent / words[0])
    null = subprocess.DEVNULL
    process = subprocess.Popen([program, *words[1:]], cwd=HERE, env=environment, stdin=null, stdout=null, stderr=null)
    try:
        yield
    finally:
        process.terminate()
        process.wait(30)


@contextmanager
def yard_with_agent(
    place: Path, lab: RabbitLab, program: Sequence[str] = ("-m", "runyard"), **settings: Any
) -> Iterator[Yard]:
    """As docs/howto/many-machines.md has it: PostgreSQL, RabbitMQ, and a worker of one slot which has its tickets."""
    vhost = lab.add_vhost()
    with (
        database(place) as store,
        harness.yard(place, cpus=1, broker=lab.url(vhost), store=store, local_site="named", **settings) as yard,
        Pool(yard).agent("worker", program=program),
    ):
        waiting.until(lambda: _takes_tickets(lab, vhost), "the agent listening", timeout_s=60, every_s=0.2)
        yield yard


def _takes_tickets(lab: RabbitLab, vhost: str) -> bool:
    return any(one["queue"]["name"] == f"runyard.tickets.{SITE}" for one in lab.admin("GET", "consumers", vhost))


def requests(yard: Yard, recipe: dict[str, Any], body: dict[str, Any]) -> posting.Target:
    """`POST /request` with that body, to the recipe, which is the yard's default from now on."""
    yard.client().put_recipe(RECIPE, recipe, default=True)
    return posting.Target(url=yard.url, path="/request", body=body, token=yard.token)
