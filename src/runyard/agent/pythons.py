"""Python environments that runs ask for, found or built at their site before any slot is held."""

from __future__ import annotations

import functools
import hashlib
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from runyard import errors, pythons
from runyard.agent.attempts import Attempt, Phase
from runyard.agent.environment import inherited
from runyard.agent.errands import Errands
from runyard.agent.link import Link
from runyard.agent.stage import StagingFailed
from runyard.agent.staging import STAGED, Brought, Store, Trouble, plan_name
from runyard.backends.base import Presence, Sighting
from runyard.hosts.base import Host, Unreachable
from runyard.model.python_env import SYNC, PythonEnv

LANE = "pythons"
LOOK_S = 2.0  # between two questions how far builds are
MOST_BUILDS = 3  # that were killed, before it is given up
TOOLS = ("PIP_", "UV_", "CONDA_", "MAMBA_")  # begin the names of variables by which those are told how to do it

log = logging.getLogger(__name__)

Answer = dict[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """What is said of the site."""

    env: Mapping[str, str]
    inherit: bool  # beside what the site itself has
    conda_root: str
    limit: int  # bytes of environments that nobody needs


@dataclass(kw_only=True, slots=True)
class Wish:
    """One environment, and who waits for it."""

    python: PythonEnv
    waiting: list[Attempt] = field(default_factory=list)
    build: str = ""
    builds: int = 0

    def attempts(self) -> list[Attempt]:
        """Some may have been told to end meanwhile."""
        return [attempt for attempt in self.waiting if attempt.phase is Phase.RECEIVED]


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A wish, as the site was asked for it."""

    wish: Wish
    attempts: list[Attempt]
    build: str  # that was told before


def place_of(environ: Mapping[str, str], env: Mapping[str, str], conda_root: str, limit: int, *, far: bool) -> Place:
    """On this machine, tools get no more of the agent's own variables than runs do, and what is said to them."""
    told = {name: value for name, value in environ.items() if name.startswith(TOOLS)}
    mine = {} if far else {**inherited(environ), **told}
    return Place(env={**mine, **env}, inherit=far, conda_root=conda_root, limit=limit)


class Pythons:
    def __init__(
        self, link: Link, host: Host, errands: Errands, store: Store, place: Place, clock: Callable[[], float]
    ) -> None:
        self._link, self._host, self._errands, self._store = link, host, errands, store
        self._place, self._clock = place, clock
        self._wishes: dict[PythonEnv, Wish] = {}
        self._texts: dict[str, str] = {}
        self._brought: Brought = lambda attempt, trouble: None
        self._asking = False
        self._due_at = float("inf")

    def bring(self, attempt: Attempt, brought: Brought) -> None:
        """`brought` is called: now where it asks for nothing, or else later."""
        assert attempt.spec is not None, "only what was understood is staged"
        python = _without_record(attempt.spec.python_env)
        if not python.of_site:
            brought(attempt, None)
            return
        attempt.bringing, self._brought = True, brought
        self._wishes.setdefault(python, Wish(python=python)).waiting.append(attempt)
        self._due_at = self._clock()

    def advance(self) -> None:
        """Ask for all of them at once."""
        if self._asking or self._clock() < self._due_at:
            return
        wishes = [wish for wish in self._wishes.values() if wish.attempts()]
        self._wishes = {wish.python: wish for wish in wishes}
        self._due_at = self._clock() + LOOK_S if wishes else float("inf")
        if wishes:
            self._asking = True
            asked = [Asked(wish=wish, attempts=wish.attempts(), build=wish.build) for wish in wishes]
            work = functools.partial(self._ask, asked, self._store.agent, self._store.living())
            self._errands.send(LANE, work, functools.partial(self._answered, asked))

    def next_due(self) -> float:
        return float("inf") if self._asking else self._due_at

    # --- away from the loop -------------------------------------------------------------------------------------

    def _ask(self, asked: Sequence[Asked], agent: str, living: list[str]) -> list[Answer]:
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

    def _question(self, asked: Asked) -> dict[str, Any]:
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

    def _answered(self, asked: Sequence[Asked], answers: list[Answer] | None, error: Exception | None) -> None:
        self._asking = False
        for number, one in enumerate(asked):
            if answers is None:
                self._end(one, _trouble(error))
            else:
                self._hear(one, answers[number])

    def _hear(self, asked: Asked, answer: Answer) -> None:
        wish = asked.wish
        if "prefix" in answer:
            self._end(asked, None, answer["prefix"])
        elif "failed" in answer:
            self._end(asked, _failure(wish, answer["failed"]))
        elif answer["build"] != wish.build and wish.builds == MOST_BUILDS:
            said = answer["told"] or "it said nothing"
            self._end(asked, _failure(wish, f"what builds it died {MOST_BUILDS} times: {said}"))
        else:
            wish.builds += answer["build"] != wish.build
            wish.build = answer["build"]
            told = "building the Python environment" + (f": {answer['told']}" if answer["told"] else "")
            for attempt in wish.attempts():
                attempt.sighting = Sighting(presence=Presence.UNKNOWN, text=told)

    def _end(self, asked: Asked, trouble: Trouble | None, prefix: str | None = None) -> None:
        """For those that were asked for: only they are noted at the site as needing it."""
        asked.wish.waiting = [attempt for attempt in asked.wish.waiting if attempt not in asked.attempts]
        if asked.wish.waiting:
            self._due_at = self._clock()
        else:
            self._wishes.pop(asked.wish.python, None)
        for attempt in asked.attempts:
            attempt.bringing, attempt.python = False, prefix
            if trouble is None and attempt.told_detail is not None:
                attempt.sighting = Sighting(presence=Presence.UNKNOWN, text=STAGED)
            self._brought(attempt, trouble)


def _without_record(python: PythonEnv) -> PythonEnv:
    """Who asks for the same asks for it together, whatever they had themselves."""
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
    log.error("Python environments cannot be looked for", exc_info=error)
    return StagingFailed(f"its Python environment cannot be made: {error!r}")


@functools.cache
def _digest() -> str:
    """Names this version of what is copied to sites."""
    total = hashlib.sha256()
    for name, content in pythons.files().items():
        total.update(b"%s\0%d\0%s" % (name.encode(), len(content), content))
    return total.hexdigest()[:16]
