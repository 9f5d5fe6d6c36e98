"""Agents of one site that share a yard and a message broker, and what the broker itself says of them."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from tests.acceptance import doomed
from tests.acceptance.witness import Witness, until
from tests.labs import commands
from tests.labs.rabbitmq import RabbitLab
from tests.labs.yard import Yard

SITE = "pool"
QUEUE = f"runyard.tickets.{SITE}"
STATISTICS_S = 10.0  # how old the broker's counts may be on a busy machine


class Pool:
    """Agents of one site, each in a directory of its own, as on machines of their own."""

    def __init__(self, yard: Yard) -> None:
        self._yard = yard
        added = yard.cli("site", "add", SITE, "--kind", "local", "--served-by", "agent")
        assert added.returncode == 0, added.stderr
        words = ("--role", "agent", "--site", SITE, "-q")
        self.token = yard.cli("token", "create", "pool-agent", *words).stdout.strip()
        self._env = {**yard.env, "RUNYARD_URL": yard.url, "RUNYARD_TOKEN": self.token}

    def lead_to(self, url: str) -> None:
        """Agents that start from now on reach the yard there."""
        self._env["RUNYARD_URL"] = url

    @contextlib.contextmanager
    def agent(
        self, name: str, *more: str, cpus: int = 1, broker: str = "", program: Sequence[str] = ()
    ) -> Iterator[commands.Started]:
        """`more` are further words for it; `broker` is another way to it than the yard's, `program` what Python runs
        instead of runyard itself."""
        process = self._spawn(name, [*program], cpus, broker, more)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(120)

    def agent_that_dies(self, name: str, step: str) -> None:
        """One that ends itself by SIGKILL at that step; see `doomed`. Returns when it has."""
        note = self.home(name) / "died"
        note.unlink(missing_ok=True)
        process = self._spawn(name, ["-c", Path(doomed.__file__).read_text(), step, str(note)], 1, "")
        try:
            process.wait(240)
        finally:
            process.kill()
            process.wait()
        assert note.exists(), f"it ended before it came to {step}:\n{self.log(name)}"

    def home(self, name: str) -> Path:
        """Below the yard's, so that its removal ends what is left."""
        home = self._yard.home / name
        home.mkdir(exist_ok=True)
        return home

    def log(self, name: str) -> str:
        return (self.home(name) / "agent.log").read_text()

    def _spawn(
        self, name: str, program: list[str], cpus: int, broker: str, more: Sequence[str] = ()
    ) -> commands.Started:
        home = self.home(name)
        env = {**self._env, "RUNYARD_HOME": str(home), "RUNYARD_CPUS": str(cpus)}
        if broker:
            env["RUNYARD_BROKER"] = broker
        words = ["agent", "--site", SITE, "--dir", str(home / "site"), *more]
        with (home / "agent.log").open("ab") as log:
            if not program:
                return commands.start(words, env=env, cwd=os.getcwd(), log=log)
            command = [sys.executable, *program, *words]
            return subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log)


class Tickets:
    """The site's queue, by the broker's own word, which is a second old."""

    def __init__(self, lab: RabbitLab, url: str) -> None:
        self._lab, self.vhost = lab, unquote(url.rpartition("/")[2])

    def prefetches(self) -> list[int]:
        """How many each agent that listens would take at once."""
        found = self._lab.admin("GET", "consumers", self.vhost)
        return [one["prefetch_count"] for one in found if one["queue"]["name"] == QUEUE]

    def until_taken_by(self, agents: int) -> None:
        until(lambda: len(self.prefetches()) == agents, what=f"{agents} agents listening", timeout=240)

    @contextlib.contextmanager
    def redeemed(self) -> Iterator[None]:
        """What happens inside has an agent take a ticket and acknowledge it."""
        before = self.count("ack")
        yield
        until(lambda: self.count("ack") > before, what="a ticket redeemed", timeout=240)

    def count_within(self, what: str, wanted: int) -> bool:
        """Whether the count gets there while the broker's word on it can be old."""
        deadline = time.monotonic() + STATISTICS_S
        while self.count(what) < wanted:
            if time.monotonic() > deadline:
                return False
            time.sleep(0.2)
        return True

    def publish(self) -> None:
        """One more, whether runs wait or not."""
        body = {
            "routing_key": QUEUE,
            "properties": {"type": "runyard.ticket", "delivery_mode": 2},
            "payload": json.dumps({"site": SITE}),
            "payload_encoding": "string",
        }
        assert self._lab.admin("POST", "exchanges", self.vhost, "amq.default", "publish", body=body)["routed"]

    def held(self) -> int | None:
        return self._lab.queue(self.vhost, QUEUE).get("messages_unacknowledged")

    def count(self, what: str) -> int:
        """How many were `ack`nowledged, or `redeliver`ed, since the queue has its leader."""
        return int(self._lab.queue(self.vhost, QUEUE).get("message_stats", {}).get(what, 0))


class Work:
    """Short runs for the pool, and the proof that each of them was executed once."""

    def __init__(self, yard: Yard, directory: Path, body: str = "sleep 0.2") -> None:
        self._client, self._body, self.witness = yard.client(), body, Witness(directory)
        self._hold = directory / "hold"
        self.ids: list[int] = []

    def give(self, count: int, **fields: Any) -> None:
        self.give_each([fields] * count)

    def give_each(self, fields: list[dict[str, Any]], at: Yard | None = None) -> None:
        """`at` another server than the usual one."""
        command, client = self.witness.command(self._body), at.client() if at else self._client
        specs = [{"command": command, "site": SITE, **each} for each in fields]
        self.ids += [run.id for run in client.submit_many(specs)]

    @contextlib.contextmanager
    def under_way(self, count: int, ended: int = 10, at: Yard | None = None) -> Iterator[None]:
        """So many, of which some are over inside, and those after them do not end before it is left: however long
        anybody takes to look, there is something to be disturbed."""
        self._hold.touch()
        is_held = f"[ -e {self._hold} ] && [ $(grep -c ^end {self.witness.path}) -ge {ended} ]"
        command = self.witness.command(f"{self._body}; while {is_held}; do sleep 0.1; done")
        self.give_each([{"command": command}] * count, at)
        until(lambda: self.witness.count("end").total() >= ended, what=f"{ended} runs over", timeout=240)
        try:
            yield
        finally:
            self._hold.unlink()

    def until_done_once(self) -> None:
        until(self._is_over, what="every run over", timeout=240 + len(self.ids))
        for run in self._client.runs_by_id(self.ids).values():
            assert (run.state, run.attempt) == ("succeeded", 1), run.data
        assert self.witness.count("start") == self.witness.count("end") == dict.fromkeys(self.ids, 1)

    def _is_over(self) -> bool:
        return all(run.final for run in self._client.runs_by_id(self.ids).values())
