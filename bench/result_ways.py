"""The ways of a large result to a program that waits at a queue: runyard's link, and messages in base64."""

from __future__ import annotations

import contextlib
import filecmp
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import pika

from bench import harness
from bench.far_caller import peak
from bench.pipe import Pipe
from tests.labs.rabbitmq import RabbitLab

ROOT = Path(__file__).resolve().parents[1]
REQUESTS, ANSWERS, RECIPE = "jobs", "answers", "result"
CONFIG = f'[intake.{REQUESTS}]\nrecipe = "{RECIPE}"\n'


@dataclass(frozen=True, kw_only=True)
class Taken:
    """Seconds, and megabytes at the most."""

    seconds: float
    sender: float
    broker: float
    caller: float


class ByLink:
    """A run of a yard that takes requests from a queue and answers them; its reply has the link."""

    def __init__(self, place: Path, lab: RabbitLab, result: Path) -> None:
        self._stack = contextlib.ExitStack()
        self._lab, self._result, self._got = lab, result, place / "by-link.bin"
        self._url = lab.url(lab.add_vhost())
        self._yard = self._stack.enter_context(harness.yard(place, cpus=1, broker=self._url, config=CONFIG))
        self._written = self._stack.enter_context(Pipe(place / "written"))
        script = f'cp {result} "$OUTPUT_DIR/result.bin"; {self._written.command}'
        self._yard.client().put_recipe(RECIPE, {"command": ["sh", "-c", script], "cwd": "/"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    def take(self) -> Taken:
        with _calling(self._url, self._result, self._got) as caller:
            for pid in (self._yard.pid, self._lab.pid("n1")):
                _forget_peak(pid)
            self._ask()
            begun = self._written.wait()
            told = _told(caller)
        return Taken(
            seconds=told["ended"] - begun,
            sender=_megabytes(peak(self._yard.pid)),
            broker=_megabytes(peak(self._lab.pid("n1"))),
            caller=_megabytes(told["peak"]),
        )

    def _ask(self) -> None:
        with contextlib.closing(pika.BlockingConnection(pika.URLParameters(self._url))) as connection:
            properties = pika.BasicProperties(reply_to=ANSWERS)  # type: ignore[no-untyped-call]
            connection.channel().basic_publish("", REQUESTS, b"{}", properties)


class ByMessages:
    """A job that sends its result itself, in as many messages as the broker's limit makes of it."""

    def __init__(self, place: Path, lab: RabbitLab, result: Path, largest: int) -> None:
        self._lab, self._result, self._got, self._largest = lab, result, place / "by-messages.bin", largest
        self._url = lab.url(lab.add_vhost())
        self._size = 4 * math.ceil(result.stat().st_size / 3)
        self.count = math.ceil(self._size / largest)

    def take(self) -> Taken:
        with _calling(self._url, self._result, self._got) as caller:
            _forget_peak(self._lab.pid("n1"))
            with self._send(self._largest) as sender:
                sent, told = _told(sender), _told(caller)
        return Taken(
            seconds=told["ended"] - sent["begun"],
            sender=_megabytes(sent["peak"]),
            broker=_megabytes(peak(self._lab.pid("n1"))),
            caller=_megabytes(told["peak"]),
        )

    def in_one(self) -> str:
        """What the broker says to all of it in one message."""
        with self._send(self._size + 4) as sender:
            _, complaint = sender.communicate()
        refused = re.search(r"PRECONDITION_FAILED - ([^']*)", complaint)
        return refused[1] if refused else "taken"

    def _send(self, largest: int) -> subprocess.Popen[str]:
        return _start("base64_sender", self._url, ANSWERS, str(self._result), str(largest))


@contextlib.contextmanager
def _calling(url: str, result: Path, got: Path) -> Iterator[subprocess.Popen[str]]:
    """A caller that listens; what it has got in the end must be the result."""
    with _start("far_caller", url, ANSWERS, str(got), str(result.stat().st_size)) as caller:
        assert caller.stdout is not None
        caller.stdout.readline()
        yield caller
    if not filecmp.cmp(result, got, shallow=False):
        raise SystemExit("the caller did not get what was sent")
    got.unlink()


def _start(program: str, *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", f"bench.{program}", *words]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _told(process: subprocess.Popen[str]) -> dict[str, Any]:
    """What a program prints at its end."""
    said, complaint = process.communicate()
    if process.returncode:
        raise SystemExit(complaint)
    return dict(json.loads(said.splitlines()[-1]))


def _forget_peak(pid: int) -> None:
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def _megabytes(size: int) -> float:
    return size / (1 << 20)
