from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard import runner
from runyard.runner import zygote_link
from tests.integration.runner import attempts
from tests.labs import components
from tests.labs.pythons import OTHER_PYTHONS


@pytest.fixture(params=["own", *OTHER_PYTHONS])
def python(request: pytest.FixtureRequest) -> str:
    """Each interpreter of the machine that a runner may have to live with."""
    return sys.executable if request.param == "own" else str(components.python(request.param))


@pytest.fixture
def site(tmp_path: Path) -> Path:
    directory = tmp_path / "site"
    directory.mkdir(mode=0o700)
    return directory


@pytest.fixture
def runner_directory(site: Path) -> str:
    return runner.install(str(site))


@pytest.fixture
def new_attempt(site: Path, runner_directory: str) -> Iterator[attempts.NewAttempt]:
    made: list[attempts.Attempt] = []

    def make(argv: list[str], python: str = sys.executable, **spec: Any) -> attempts.Attempt:
        directory = site / "runs" / str(len(made) + 1) / "a1"
        made.append(attempts.Attempt(directory, runner_directory, python, argv=argv, **spec))
        return made[-1]

    yield make
    for attempt in made:
        attempt.clean_up()


class Zygote:
    def __init__(self, site: Path, runner_directory: str, python: str = sys.executable) -> None:
        self.site = site
        self.command = [python, "-I", "-S", runner_directory, "zygote", str(site)]
        subprocess.run(self.command, check=True, stdin=subprocess.DEVNULL, timeout=attempts.PATIENCE_S)
        self.link = zygote_link.connect(site)
        self.notices: list[dict[str, Any]] = []
        self.pid = int(self.ask()["pid"])

    def ask(self) -> dict[str, Any]:
        self.link.ping()
        return self.notice("pong")

    def start(self, attempt: attempts.Attempt) -> int:
        self.link.start(attempt.directory)
        return int(self.notice("started", attempt)["pid"])

    def ended(self, attempt: attempts.Attempt) -> dict[str, Any]:
        return self.notice("ended", attempt)

    def waiting_runner(self, new_attempt: attempts.NewAttempt) -> int:
        """One that has ended a short run and waits for the next; on a busy machine not every run is short."""

        def again() -> int | None:
            short = new_attempt(["true"])
            pid = self.start(short)
            self.ended(short)
            return pid if short.record()["beat"] == 1 and attempts.lives(pid) else None

        return int(attempts.until(again))

    def start_behind(
        self, new_attempt: attempts.NewAttempt, argv: list[str], meanwhile: Callable[[int], None] = lambda pid: None
    ) -> tuple[int, attempts.Attempt, attempts.Attempt]:
        """The runner of a short run that took another, the short one, and the other. Where the machine is busy it takes
        some tries: no runner waits for long."""

        def again() -> tuple[int, attempts.Attempt, attempts.Attempt] | None:
            short, other = new_attempt(["true"]), new_attempt(argv)
            pid = self.start(short)
            self.ended(short)
            with contextlib.suppress(ProcessLookupError):
                meanwhile(pid)
            return (pid, short, other) if self.start(other) == pid else None

        pid, short, other = attempts.until(again)
        return pid, short, other

    def notice(self, kind: str, attempt: attempts.Attempt | None = None) -> dict[str, Any]:
        """The next notice of that kind, of that attempt if one is given; others are kept for later."""

        def is_meant(notice: dict[str, Any]) -> bool:
            return kind in notice and (attempt is None or notice[kind] == str(attempt.directory))

        def find() -> dict[str, Any] | None:
            found = next(filter(is_meant, self.notices), None)
            if found is None:
                self.notices += self.link.wait(0.1)
            return found

        found: dict[str, Any] = attempts.until(find)
        self.notices.remove(found)
        return found

    def kill(self) -> None:
        self.link.close()
        if attempts.lives(self.pid):
            os.kill(self.pid, signal.SIGKILL)
        attempts.until(lambda: not attempts.lives(self.pid))


NewZygote = Callable[..., Zygote]


@pytest.fixture
def new_zygote(site: Path, runner_directory: str) -> Iterator[NewZygote]:
    made: list[Zygote] = []

    def make(python: str = sys.executable) -> Zygote:
        made.append(Zygote(site, runner_directory, python))
        return made[-1]

    yield make
    for zygote in made:
        zygote.kill()


@pytest.fixture(params=["by itself", "by a zygote"])
def run(request: pytest.FixtureRequest, new_zygote: NewZygote) -> Callable[[attempts.Attempt], dict[str, Any]]:
    """Each way in which a runner comes into being; they start programs differently. Returns the exit record."""
    if request.param == "by itself":
        return lambda attempt: attempt.run()
    zygotes: list[Zygote] = []

    def by_zygote(attempt: attempts.Attempt) -> dict[str, Any]:
        zygotes.extend([] if zygotes else [new_zygote(attempt.command[0])])
        zygotes[0].start(attempt)
        return attempt.record()

    return by_zygote
