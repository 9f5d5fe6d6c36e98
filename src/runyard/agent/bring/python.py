"""Python environments of runs, found or built at their site before any slot is held."""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runyard import errors, pythons
from runyard.agent.attempts import Attempt, Phase
from runyard.agent.bring.cache import CacheStore, plan_name
from runyard.agent.bring.directory import StagingFailed
from runyard.agent.bring.environment import inherited
from runyard.agent.bring.step import Step, Trouble
from runyard.agent.context import Context
from runyard.agent.part import NEVER
from runyard.agent.waiting import Waits
from runyard.hosts.base import Unreachable
from runyard.model.python_env import SYNC, PythonEnv

LANE = "pythons"
LOOK_S = 2.0  # between two polls of builds
MOST_BUILDS = 3  # builds that were killed, before it fails
TOOLS = ("PIP_", "UV_", "CONDA_", "MAMBA_")  # prefixes of variables that configure these tools

log = logging.getLogger(__name__)

Answer = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonSite:
    """Settings of the site for environments."""

    env: Mapping[str, str]
    inherit: bool  # in addition to the site's own environment
    conda_root: str
    limit: int  # bytes of unused environments


@dataclass(kw_only=True, slots=True)
class Wish:
    """One requested environment, and the attempts that wait for it."""

    python: PythonEnv
    waiting: list[Attempt] = field(default_factory=list)
    build: str = ""
    builds: int = 0

    def attempts(self) -> list[Attempt]:
        """Attempts that still wait: some may have been cancelled."""
        return [attempt for attempt in self.waiting if attempt.phase is Phase.RECEIVED]


@dataclass(frozen=True, kw_only=True, slots=True)
class EnvironmentRequest:
    """A request, as sent to the site."""

    wish: Wish
    attempts: list[Attempt]
    build: str  # known from an earlier answer


def place_of(
    environ: Mapping[str, str], env: Mapping[str, str], conda_root: str, limit: int, *, far: bool
) -> PythonSite:
    """On this machine, tools get only the agent's variables that runs get, and those for the tools."""
    told = {name: value for name, value in environ.items() if name.startswith(TOOLS)}
    mine = {} if far else {**inherited(environ), **told}
    return PythonSite(env={**mine, **env}, inherit=far, conda_root=conda_root, limit=limit)


class Pythons(Step):
    def __init__(self, context: Context, store: CacheStore, place: PythonSite, waits: Waits) -> None:
        super().__init__()
        self._link, self._host, self._errands, self._clock = context.link, context.host, context.errands, context.clock
        self._store, self._place, self._waits = store, place, waits
        self._wishes: dict[PythonEnv, Wish] = {}
        self._texts: dict[str, str] = {}
        self._asking = False
        self._due_at = NEVER

    def begin(self, attempts: Sequence[Attempt]) -> None:
        for attempt in attempts:
            python = _without_record(attempt.spec.python_env)
            if python.of_site:
                self._wishes.setdefault(python, Wish(python=python)).waiting.append(attempt)
                self._due_at = self._clock()
            else:
                self.finish(attempt)
        self.advance()

    def advance(self) -> None:
        """Request all of them at once."""
        if self._asking or self._clock() < self._due_at:
            return
        wishes = [wish for wish in self._wishes.values() if wish.attempts()]
        self._wishes = {wish.python: wish for wish in wishes}
        self._due_at = self._clock() + LOOK_S if wishes else NEVER
        if wishes:
            self._asking = True
            asked = [EnvironmentRequest(wish=wish, attempts=wish.attempts(), build=wish.build) for wish in wishes]
            work = functools.partial(self._ask, asked, self._store.agent, self._store.living())
            self._errands.send(LANE, work, functools.partial(self._answered, asked))

    def next_due(self) -> float:
        return NEVER if self._asking else self._due_at

    # --- away from the loop -------------------------------------------------------------------------------------

    def _ask(self, asked: Sequence[EnvironmentRequest], agent: str, living: list[str]) -> list[Answer]:
        site = self._store.runs.rpartition("/")[0]
        package = f"{site}/pythons-{_digest()}"
        questions, lost = [], {}
        for number, one in enumerate(asked):
            try:
                questions.append(self._question(one))
            except errors.NotFound as error:
                lost[number] = {"failed": error.message}
        self._host.install(package, pythons.files())
        arguments = {
            "program": package, "root": f"{site}/envs", "agent": agent, "living": living,
            "limit": self._place.limit, "asked": questions,
        }  # fmt: skip
        found = iter(self._host.call(package, "environments.look", arguments) if questions else ())
        return [lost[number] if number in lost else next(found) for number in range(len(asked))]

    def _question(self, asked: EnvironmentRequest) -> dict[str, Any]:
        python = asked.wish.python
        said = {
            "attempts": [plan_name(attempt) for attempt in asked.attempts], "build": asked.build,
            "env": dict(self._place.env), "inherit": self._place.inherit, "conda_root": self._place.conda_root,
        }  # fmt: skip
        if python.conda is not None:
            return {**said, "kind": "there", "named": python.conda}
        assert python.file is not None, "of the site, and not there already"
        explicit = python.use == SYNC
        text = self._text(python.file)
        return {**said, "kind": python.kind, "text": text, "python": python.python, "explicit": explicit}

    def _text(self, digest: str) -> str:
        if digest not in self._texts:
            data = b"".join(self._link.get_blob(digest))
            self._texts[digest] = data.decode("utf-8", "surrogateescape")
        return self._texts[digest]

    # --- back in it ---------------------------------------------------------------------------------------------

    def _answered(
        self, asked: Sequence[EnvironmentRequest], answers: list[Answer] | None, error: Exception | None
    ) -> None:
        self._asking = False
        for number, one in enumerate(asked):
            if answers is None:
                self._end(one, _trouble(error))
            else:
                self._hear(one, answers[number])

    def _hear(self, asked: EnvironmentRequest, answer: Answer) -> None:
        wish = asked.wish
        if "prefix" in answer:
            self._end(asked, None, answer["prefix"])
        elif "failed" in answer:
            self._end(asked, _failure(wish, answer["failed"]))
        elif answer["build"] != wish.build and wish.builds == MOST_BUILDS:
            said = answer["told"] or "without output"
            self._end(asked, _failure(wish, f"the build was killed {MOST_BUILDS} times: {said}"))
        else:
            wish.builds += answer["build"] != wish.build
            wish.build = answer["build"]
            told = "building the Python environment" + (f": {answer['told']}" if answer["told"] else "")
            self._waits.show(wish.attempts(), told)

    def _end(self, asked: EnvironmentRequest, trouble: Trouble | None, prefix: str | None = None) -> None:
        """For the attempts in the request: only they are recorded at the site as users of it."""
        asked.wish.waiting = [attempt for attempt in asked.wish.waiting if attempt not in asked.attempts]
        if asked.wish.waiting:
            self._due_at = self._clock()
        else:
            self._wishes.pop(asked.wish.python, None)
        for attempt in asked.attempts:
            attempt.environment.prefix = prefix
            if trouble is None:
                self._waits.show_staged(attempt)
            self.finish(attempt, trouble)


def _without_record(python: PythonEnv) -> PythonEnv:
    """Equal requests are shared, whatever the submitters' own environments were."""
    return PythonEnv(
        use=python.use, file=python.file, kind=python.kind, name=python.name, python=python.python
    )  # fmt: skip


def _failure(wish: Wish, why: str) -> StagingFailed:
    if wish.python.conda is not None:
        return StagingFailed(why)
    return StagingFailed(f"the Python environment cannot be built from {wish.python.name or 'its file'}: {why}")


def _trouble(error: Exception | None) -> Trouble:
    if isinstance(error, (Unreachable, errors.YardUnreachable)):
        return error
    if isinstance(error, OSError):
        return StagingFailed.because(error)
    log.error("the request for Python environments failed", exc_info=error)
    return StagingFailed(f"its Python environment cannot be built: {error!r}")


@functools.cache
def _digest() -> str:
    """Identifies this version of the code that is copied to sites."""
    total = hashlib.sha256()
    for name, content in pythons.files().items():
        total.update(b"%s\0%d\0%s" % (name.encode(), len(content), content))
    return total.hexdigest()[:16]
