"""Recipes: commands that administrators allow other programs to start, and the runs of their requests."""

from __future__ import annotations

import functools
import hashlib
import json
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection

from runyard import errors
from runyard.broker.hints import Hints
from runyard.model import fields, input_file, spec_values
from runyard.model.input_file import InputFile
from runyard.model.recipe import Recipe
from runyard.model.reply import Reply
from runyard.model.roles import Caller
from runyard.model.spec import RunSpec
from runyard.store import BulkWork, Store, recipes, runs, site_rows
from runyard.store.rows import AnyRow
from runyard.yard import views
from runyard.yard.blobs import YardBlobs
from runyard.yard.runs import submit
from runyard.yard.runs.submit import Handed, Submitted, Submitter
from runyard.yard.runs.upload_check import UploadCheck

CHANGED = "recipes"  # the hint that one of them is new, other or gone
LONGEST_KEY = 150  # what is longer is kept as its digest
REMEMBERED_S = 5.0  # how long another server's change may go unnoticed, where its hint is lost
Params = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True, slots=True)
class Requested:
    recipe: str
    runs: list[Submitted]


class Ready(Handed):
    """A request with checked parameters."""

    def start(self, connection: Connection, now: float) -> Requested:
        return start_all(connection, now, [self])[0]


def start_all(connection: Connection, now: float, ready: Sequence[Ready]) -> list[Requested]:
    found = submit.submit_all(connection, now, ready)
    return [Requested(recipe=str(one.source.recipe), runs=runs) for one, runs in zip(ready, found, strict=True)]


class Recipes:
    def __init__(self, store: Store, hints: Hints, blobs: YardBlobs) -> None:
        self._store, self._hints, self._blobs = store, hints, blobs
        self._requests: BulkWork[Ready, Requested] = BulkWork(
            work=lambda connection, ready: start_all(connection, store.now(), ready),
            then=lambda found: submit.tell_sites(hints, (run for one in found for run in one.runs)),
        )
        self._remembered: dict[str | None, tuple[float, AnyRow]] = {}
        hints.listen(CHANGED, self._forget)

    def every(self, caller: Caller) -> list[dict[str, Any]]:
        """Recipes that the caller may start; users who may see all runs see all recipes."""
        with self._store.read() as connection:
            found = [(row, _parse(row)) for row in recipes.every(connection)]
        return [
            _summary(row, recipe)
            for row, recipe in found
            if caller.sees_all or recipe.may_be_called_by(caller, row.name)
        ]

    def get(self, name: str) -> dict[str, Any]:
        with self._store.read() as connection:
            return _view(_find(connection, name))

    def put(self, caller: Caller, name: str, recipe: Recipe, *, default: bool) -> Future[dict[str, Any]]:
        """Add it, or replace the one of that name; runs that were started do not change."""
        spec_values.name_text(name, "name")
        submit.check_inputs(self._blobs, [recipe.run])
        UploadCheck(self._blobs).check([recipe.run])

        def work(connection: Connection) -> dict[str, Any]:
            _check_site(connection, recipe.run.site)
            known = recipes.get(connection, name)
            recipes.put(
                connection, name, config=json.dumps(recipe.to_json()), is_default=known.is_default if known else 0,
                changed_by=caller.name, changed_at=self._store.now(),
            )  # fmt: skip
            if default:
                recipes.make_default(connection, name)
            return _view(_find(connection, name))

        return self._store.write(work, lambda _: self._hints.ring(CHANGED))

    def remove(self, name: str) -> Future[None]:
        def work(connection: Connection) -> None:
            _find(connection, name)
            recipes.remove(connection, name)

        return self._store.write(work, lambda _: self._hints.ring(CHANGED))

    def is_quick(self, name: str | None, bodies: Sequence[Params], idempotency_key: str | None) -> bool:
        """Whether `request` needs neither a query before it writes nor a long computation."""
        return idempotency_key is None and len(bodies) == 1 and self._remember(name) is not None

    def request(
        self, caller: Caller, name: str | None, bodies: Sequence[Params], *, idempotency_key: str | None = None
    ) -> Future[Requested]:
        """Start one run for each body, all in one commit; `name` None means the default recipe.

        A repeated key returns the first runs, even if the recipe has changed since.
        """
        row, recipe = self._callable(caller, name)
        keys = _keys(idempotency_key, len(bodies))
        digests = {key: _digest(row.name, body, len(bodies)) for key, body in zip(keys, bodies, strict=False)}
        repeated = self._repeated(caller.name, digests)
        if repeated is not None:
            return _done(Requested(recipe=row.name, runs=repeated))
        specs = _prepare(row.name, recipe, bodies)
        specs = [run.evolve(idempotency_key=key) for run, key in zip(specs, keys, strict=True)] if keys else specs
        source = Submitter(owner=caller.name, recipe=row.name, digests=digests)
        return self._store.write_in(self._requests, Ready(source=source, specs=specs))

    def ready(
        self, caller: Caller, name: str | None, bodies: Sequence[Params], inputs: Sequence[InputFile] = ()
    ) -> Ready:
        """The runs that these bodies describe, checked, to be stored together with something else. `inputs` are further
        files of each of them, besides those of the recipe."""
        row, recipe = self._callable(caller, name)
        specs = _prepare(row.name, recipe, bodies)
        if inputs:
            specs = [run.evolve(inputs=(*run.inputs, *inputs)) for run in specs]
            input_file.check_apart(specs[0].inputs)
            submit.check_inputs(self._blobs, specs)
        return Ready(source=Submitter(owner=caller.name, recipe=row.name), specs=specs)

    def reply_of(self, connection: Connection, name: str | None) -> Reply:
        """What replies of the recipe contain; the default if the recipe was deleted."""
        row = recipes.get(connection, name) if name is not None else None
        return _parse(row).reply if row is not None else Reply()

    def prepare(self, caller: Caller, name: str | None, bodies: Sequence[Params]) -> list[RunSpec]:
        """The runs that `request` would store, checked in the same way."""
        row, recipe = self._callable(caller, name)
        specs = _prepare(row.name, recipe, bodies)
        with self._store.read() as connection:
            for run in {(run.resources, run.choice): run for run in specs}.values():
                submit.check(connection, caller.name, run)
        return specs

    def run(self, caller: Caller, name: str, run_id: int) -> dict[str, Any]:
        """The state of a request: fewer fields than a run, because callers are not trusted."""
        with self._store.read() as connection:
            row = runs.get(connection, run_id)
        if row is None or row.recipe != name or not caller.may_see(row.owner):
            raise errors.NotFound(f"recipe {name!r} has no run {run_id} of yours", f"ask for /recipes/{name}/runs")
        return views.request_view(row)

    def runs(self, caller: Caller, name: str, **page: Any) -> list[dict[str, Any]]:
        owner = None if caller.sees_all else caller.name
        with self._store.read() as connection:
            _find(connection, name)
            found = runs.list_page(connection, recipe=name, owner=owner, **page)
        return [views.request_view(row) for row in found]

    def _callable(self, caller: Caller, name: str | None) -> tuple[AnyRow, Recipe]:
        row = self._row(name)
        recipe = _parse(row)
        if not recipe.may_be_called_by(caller, row.name):
            raise errors.Forbidden(
                f"{caller.name!r} may not call recipe {row.name!r}", "ask an admin of this yard to name it as a caller"
            )
        return row, recipe

    def _row(self, name: str | None) -> AnyRow:
        """Cached for a moment: other programs start the same recipe again and again."""
        row = self._remember(name)
        if row is None:
            remembered = self._remembered  # a change that comes meanwhile puts another in its place
            with self._store.read() as connection:
                row = _find(connection, name)
            remembered[name] = (time.monotonic() + REMEMBERED_S, row)
        return row

    def _remember(self, name: str | None) -> AnyRow | None:
        until, row = self._remembered.get(name, (0.0, None))
        return row if time.monotonic() < until else None

    def _forget(self) -> None:
        self._remembered = {}

    def _repeated(self, owner: str, digests: Mapping[str, str]) -> list[Submitted] | None:
        """The runs of a request that was submitted before."""
        if not digests:
            return None
        with self._store.read() as connection:
            found = [runs.by_idempotency_key(connection, owner, key) for key in digests]
        rows = [
            row for row, digest in zip(found, digests.values(), strict=True) if row and row.idempotency_digest == digest
        ]
        return [Submitted(id=row.id, created=False) for row in rows] if len(rows) == len(digests) else None


def _find(connection: Connection, name: str | None) -> AnyRow:
    if name is None:
        row = recipes.default(connection)
        if row is None:
            fix = "an admin chooses one with `runyard recipe add NAME -f recipe.yaml --default`"
            raise errors.NotFound("this yard has no default recipe", fix)
        return row
    row = recipes.get(connection, name)
    if row is None:
        known = [row.name for row in recipes.every(connection)]
        fix = fields.nearest(name, known) if known else "list them with `runyard recipe list`"
        raise errors.NotFound(f"there is no recipe {name!r}", fix)
    return row


def _parse(row: AnyRow) -> Recipe:
    return _parse_config(row.config)


@functools.lru_cache(maxsize=128)
def _parse_config(config: str) -> Recipe:
    """Keyed by the text, so that a cached value is never outdated."""
    return Recipe.parse(json.loads(config))


def _check_site(connection: Connection, site: str | None) -> None:
    known = site_rows.landscape(connection).sites
    if site is not None and site not in known:
        raise errors.InvalidInput(f"site: there is no site {site!r}", fields.nearest(site, known))


def _prepare(name: str, recipe: Recipe, bodies: Sequence[Params]) -> list[RunSpec]:
    specs = []
    for index, body in enumerate(bodies):
        with submit.numbered(index if len(bodies) > 1 else None):
            specs.append(recipe.prepare(name, body))
    return specs


def _keys(key: str | None, count: int) -> list[str]:
    if key is None:
        return []
    fields.text(key, "idempotency key", 4096)
    short = key if len(key) <= LONGEST_KEY else f"sha256:{hashlib.sha256(key.encode()).hexdigest()}"
    return [short, *(f"{short}#{index}" for index in range(1, count))]


def _digest(name: str, body: Params, count: int) -> str:
    """Digest of a request as it was sent: the run that the recipe makes of it may change."""
    asked = {"recipe": name, "params": body, "of": count}
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


def _done(requested: Requested) -> Future[Requested]:
    future: Future[Requested] = Future()
    future.set_result(requested)
    return future


def _view(row: AnyRow) -> dict[str, Any]:
    return {
        "name": row.name,
        "default": bool(row.is_default),
        "changed_by": row.changed_by,
        "changed_at": views.iso(row.changed_at),
        "config": _parse(row).to_json(),
    }


def _summary(row: AnyRow, recipe: Recipe) -> dict[str, Any]:
    return {
        "name": row.name,
        "default": bool(row.is_default),
        "description": recipe.description,
        "schema": recipe.schema,
        "callers": list(recipe.callers),
    }
