"""The yard, from Python:

from runyard import Client

run = Client().submit(["python", "train.py", "--lr", "{lr}"], params={"lr": 0.1}, resources={"cpus": 2})
run.wait()
print(run.state, run.logs(), run.outputs())
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard import errors
from runyard.client import events, find_yard, origin, run_inputs
from runyard.client.run import PAGE, Run, iter_runs
from runyard.client.session import Session
from runyard.client.sweep import Sweep, check_space
from runyard.model import selectors

if TYPE_CHECKING:
    from runyard.client.functions import Function, FunctionCall, Grid
    from runyard.client.snapshot import ProgressDisplay
    from runyard.client.staging import Staging

MOST_IDS_AT_ONCE = 1000  # in one question: the ids travel in its address


def say_on_stderr(message: str) -> None:
    print(f"runyard: {message}", file=sys.stderr)


class Client(Session):
    """A client of one yard. Threads may share it; it connects at the first call.

    `url` and `token` come from the arguments, RUNYARD_URL and RUNYARD_TOKEN, or the files of the home directory. When
    no yard runs for that home, `start` starts one in the background and calls `notify`; never when an address was
    given. Every failure is a runyard.RunyardError.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        home: Path | str | None = None,
        start: bool = True,
        notify: Callable[[str], None] = say_on_stderr,
    ) -> None:
        super().__init__(find_yard.Finder.build(url, token, home, start, notify))

    def submit(
        self,
        command: Sequence[str] | str | None = None,
        *,
        wait: bool = False,
        progress: ProgressDisplay | None = None,
        **spec: Any,
    ) -> Run:
        """Submit one run; returns when the yard has it on disk. `command` is words, or one text for the shell.

        `code` and `data` are sent, see `runyard.client.run_inputs`; `progress` shows how much is done.
        """
        if command is not None:
            spec["command"] = command if isinstance(command, str) else list(command)
        repeatable = bool(spec.get("idempotency_key"))
        answer = self.call("POST", "/runs", *self._complete([spec], progress), repeatable=repeatable)
        run = Run(self, {"id": answer["id"]})
        return run.wait() if wait else run

    def submit_many(self, specs: Iterable[Mapping[str, Any]], *, progress: ProgressDisplay | None = None) -> list[Run]:
        """Submit many runs in one call: all of them, or none. They share one snapshot of their code."""
        runs = self._complete(specs, progress)
        if not runs:
            return []
        repeatable = all(run.get("idempotency_key") for run in runs)
        answer = self.call("POST", "/runs", {"runs": runs}, repeatable=repeatable)
        return [Run(self, {"id": number}) for number in answer["ids"]]

    def map(
        self, function: Function, grid: Grid, *, progress: ProgressDisplay | None = None, **spec: Any
    ) -> list[FunctionCall]:
        """Call a Python function in a run for each configuration: `grid` has a list of values for each keyword, or is a
        list of keywords. `result()` of each is the function's return value; `spec` is common to all runs."""
        from runyard.client import functions

        runs = self.submit_many(functions.specs(function, grid, spec), progress=progress)
        return [functions.FunctionCall(self, {"id": run.id}) for run in runs]

    def plan(self, **spec: Any) -> dict[str, Any]:
        """What would run and where, and `sent`, what would be uploaded; nothing is stored, and nothing sent."""
        staging = self._staging()
        (complete,) = origin.complete(staging.complete([run_inputs.resolve(spec)]))
        planned: dict[str, Any] = self.call("POST", "/plan", complete, repeatable=True)
        return {**planned, "sent": staging.describe()}

    def sweep(
        self,
        command: Sequence[str] | str | None = None,
        *,
        wait: bool = False,
        progress: ProgressDisplay | None = None,
        **document: Any,
    ) -> Sweep:
        """Run one command for many configurations, each `reps` times: `space` or `configurations`, and fields of a run.

        Submitting the same sweep again runs only what has not succeeded yet; `fresh=True` starts a new one.
        """
        if command is not None:
            document["command"] = command if isinstance(command, str) else list(command)
        check_space(document)
        repeatable = not document.get("fresh")
        answer = self.call("POST", "/sweeps", *self._complete([document], progress), repeatable=repeatable)
        sweep = Sweep(self, {"id": answer["id"]}, answer)
        return sweep.wait() if wait else sweep

    def plan_sweep(self, **document: Any) -> dict[str, Any]:
        """How many runs a sweep would make and its first configurations; nothing is stored, and nothing sent."""
        check_space(document)
        staging = self._staging()
        (complete,) = origin.complete(staging.complete([run_inputs.resolve(document)]))
        planned: dict[str, Any] = self.call("POST", "/sweeps/plan", complete, repeatable=True)
        return {**planned, "sent": staging.describe()}

    def sweeps(self, *, limit: int = 50, **filters: Any) -> list[Sweep]:
        """The newest sweeps that match: project, owner, before."""
        answer = self.call("GET", "/sweeps", query={**filters, "limit": limit})
        return [Sweep(self, data) for data in answer["sweeps"]]

    def find_sweep(self, id: int | str) -> Sweep:
        """A sweep by its number (`S1`), or by its name if only one sweep has it."""
        if isinstance(id, str) and selectors.is_name(id):
            return Sweep(self, self.call("GET", "/sweeps/named", query={"name": id}))
        return Sweep(self, self.call("GET", f"/sweeps/{selectors.sweep_number(id)}"))

    def run(self, id: int) -> Run:
        return Run(self, self.call("GET", f"/runs/{id}"))

    def last(self) -> Run:
        """Your newest run."""
        return Run(self, self.call("GET", "/runs/last"))

    def runs(self, *, limit: int = 50, **filters: Any) -> list[Run]:
        """The newest runs that match: state, project, owner, site, tag, name, sweep (`S1` or its name), ids, before."""
        found = []
        for run in self.iter_runs(page=min(limit, PAGE), **filters):
            found.append(run)
            if len(found) >= limit:
                break
        return found

    def iter_runs(self, *, page: int = PAGE, before: int | None = None, **filters: Any) -> Iterator[Run]:
        """All runs that match, newest first, page by page."""
        return iter_runs(self, page=page, before=before, **filters)

    def runs_by_id(self, ids: Iterable[int], **filters: Any) -> dict[int, Run]:
        """Those of the named runs that exist, and match."""
        found = {}
        numbers = list(ids)
        for start in range(0, len(numbers), PAGE):
            for run in self.iter_runs(ids=numbers[start : start + PAGE], **filters):
                found[run.id] = run
        return found

    def cancel(self, ids: Iterable[int]) -> dict[int, Run | errors.RunyardError]:
        """Cancel these runs; for each id the run, or the error."""
        return self._change("cancel", ids)

    def retry(
        self, ids: Iterable[int], *, resume: bool = False, afresh: bool = False
    ) -> dict[int, Run | errors.RunyardError]:
        """Queue ended runs again; for each id the run, or the error. See `Run.retry`."""
        from runyard.client import checkpoints

        return self._change("retry", ids, **checkpoints.word_for(resume=resume, afresh=afresh))

    def rerun(self, ids: Iterable[int], **changes: Any) -> list[Run]:
        """Start runs again as new ones, all of them or none; for `changes` and `notes` see `Run.rerun`."""
        numbers = list(ids)
        if not numbers:
            return []
        answer = self.call("POST", "/runs/rerun", {"ids": numbers, **changes})
        return [Run(self, {"id": id}, notes) for id, notes in zip(answer["ids"], answer["notes"], strict=True)]

    def iter_events(self, id: int, after: int = 0) -> Iterator[dict[str, Any]]:
        """Everything that happened to a run, oldest first."""
        return events.of_run(self, id, after)

    def sites(self) -> list[dict[str, Any]]:
        return list(self.call("GET", "/sites")["sites"])

    def site(self, name: str) -> dict[str, Any]:
        site: dict[str, Any] = self.call("GET", f"/sites/{quoted(name)}")
        return site

    def recipes(self) -> list[dict[str, Any]]:
        return list(self.call("GET", "/recipes")["recipes"])

    def recipe(self, name: str) -> dict[str, Any]:
        recipe: dict[str, Any] = self.call("GET", f"/recipes/{quoted(name)}")
        return recipe

    def put_recipe(self, name: str, recipe: Mapping[str, Any], *, default: bool = False) -> dict[str, Any]:
        """Add a recipe, or replace the one of that name. Its code and data are as they are now."""
        query = {"default": "true"} if default else None
        (whole,) = self._brought([recipe], None)
        put: dict[str, Any] = self.call("PUT", f"/recipes/{quoted(name)}", whole, query=query)
        return put

    def plan_request(self, recipe: str, params: Mapping[str, Any]) -> dict[str, Any]:
        """How many runs a request would start, and the plan of the first; nothing is stored."""
        path = f"/recipes/{quoted(recipe)}/test"
        planned: dict[str, Any] = self.call("POST", path, dict(params), repeatable=True)
        return planned

    def request(self, recipe: str, params: Mapping[str, Any] | None = None) -> list[Run]:
        """Start a recipe; several runs when the parameters are a grid."""
        answer = self.call("POST", f"/recipes/{quoted(recipe)}/runs", dict(params or {}))
        return [Run(self, {"id": number}) for number in answer.get("ids", [answer.get("id")])]

    def replies(self, **filters: Any) -> list[dict[str, Any]]:
        """Requests that came through the broker, newest first: queue, unanswered, before, limit."""
        return list(self.call("GET", "/replies", query=filters)["replies"])

    def resend_replies(self, ids: Iterable[int] = (), queue: str | None = None) -> list[int]:
        """Send replies again: these, or all that are stored for an intake."""
        asked = {"ids": list(ids)} if queue is None else {"queue": queue}
        return list(self.call("POST", "/replies/resend", asked)["ids"])

    def agents(self) -> list[dict[str, Any]]:
        return list(self.call("GET", "/agents")["agents"])

    def health(self) -> dict[str, Any]:
        health: dict[str, Any] = self.call("GET", "/health")
        return health

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _complete(self, specs: Iterable[Mapping[str, Any]], progress: ProgressDisplay | None) -> list[dict[str, Any]]:
        """The specs in the yard's form; their files are uploaded."""
        return origin.complete(self._brought([run_inputs.resolve(spec) for spec in specs], progress))

    def _brought(self, specs: Sequence[Mapping[str, Any]], progress: ProgressDisplay | None) -> list[dict[str, Any]]:
        staging = self._staging(progress)
        complete = staging.complete(specs)
        staging.send(self, self._sent)
        return complete

    def _staging(self, progress: ProgressDisplay | None = None) -> Staging:
        from runyard.client import staging

        return staging.build(self._finder.settings, progress)

    def _change(self, verb: str, ids: Iterable[int], **more: str) -> dict[int, Run | errors.RunyardError]:
        numbers = list(ids)
        outcome: dict[int, Run | errors.RunyardError] = {}
        for start in range(0, len(numbers), MOST_IDS_AT_ONCE):
            part = numbers[start : start + MOST_IDS_AT_ONCE]
            answer = self.call("POST", f"/runs/{verb}", {"ids": part, **more}, repeatable=verb == "cancel")
            outcome.update({data["id"]: Run(self, data) for data in answer["runs"]})
            outcome.update({int(id): errors.from_json(400, {"error": error}) for id, error in answer["errors"].items()})
        return {number: outcome[number] for number in numbers if number in outcome}


def quoted(name: str) -> str:
    from urllib.parse import quote

    return quote(name, safe="")
