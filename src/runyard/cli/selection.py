"""Which runs a command means: `42 43`, `3-9`, `last`, `S1` or the name of a sweep, or filters such as
`--state queued --project digits`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from runyard import errors
from runyard.cli import options
from runyard.client import Client, Run, Sweep
from runyard.model import selectors
from runyard.model.states import FINAL, RunState

STATES = tuple(state.value for state in RunState)
ACTIVE = tuple(state.value for state in RunState if state not in FINAL)
FILTERS = ("state", "project", "owner", "site", "tag", "name", "sweep")

OPTIONS = (
    click.option("--state", multiple=True, type=click.Choice([*STATES, "active"]), metavar="STATE",
                 help="queued, starting, running, succeeded, failed, cancelled; active: not ended. Repeatable."),
    click.option("--project", multiple=True, metavar="NAME", help="Of this project. Repeatable."),
    click.option("--owner", metavar="NAME", help="Of this person."),
    click.option("--site", metavar="NAME", help="At this site."),
    click.option("--tag", metavar="TAG", help="With this tag."),
    click.option("--name", metavar="TEXT", help="With this name."),
    click.option("--sweep", metavar="SWEEP", help="Of this sweep: S1, or its name."),
)  # fmt: skip
filter_options = options.together(*OPTIONS)


def query(given: Mapping[str, Any], default_states: Iterable[str] = ()) -> dict[str, Any]:
    """The filters that were given, as the client takes them."""
    for name in FILTERS:
        if "" in _listed(given.get(name)):
            raise errors.InvalidInput(f"--{name} is empty", "name one, or leave it out to mean all")
    found = {name: given[name] for name in FILTERS if given.get(name)}
    states = [word for state in found.get("state", ()) for word in (ACTIVE if state == "active" else (state,))]
    return {**found, "state": states or list(default_states)}


def as_words(given: Mapping[str, Any]) -> list[str]:
    """The filters as one types them."""
    pairs = [(name, item) for name in FILTERS for item in _listed(given.get(name))]
    return [word for name, item in pairs for word in (f"--{name}", item)]


def _listed(value: str | Iterable[str] | None) -> list[str]:
    """Of a filter that is given once, or of one that may be repeated."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def select(
    client: Client, words: Iterable[str], given: Mapping[str, Any] | None = None, *, states: Iterable[str] = ()
) -> list[Run]:
    """The runs that are meant, in the order they were named. Filters alone mean runs in `states`."""
    filters = query(given or {}, states if not words else ())
    filtering = any(filters.values())
    if not words:
        if not any((given or {}).get(name) for name in FILTERS):
            raise errors.InvalidInput("no run was named", "name runs like 42, 3-9, last or S1, or by --state, --tag, …")
        return list(client.iter_runs(**filters))
    named = _named(client, words)
    if not filtering:
        return named
    kept = client.runs_by_id((run.id for run in named), **filters)
    return [run for run in named if run.id in kept]


def parents(client: Client, words: Iterable[str]) -> list[int]:
    """The runs that another one is to start after; whether they are there, the yard says."""
    chosen = selectors.parse_selectors(words)
    last = [client.last().id] if chosen.last else []
    return [*chosen.ids, *last, *of_sweeps(client, chosen.sweeps)]


def one(client: Client, words: Iterable[str]) -> Run:
    """Exactly one run; without a word, the newest of the caller."""
    named = _named(client, list(words) or ["last"])
    if len(named) != 1:
        raise errors.InvalidInput(f"this works on one run, and {len(named)} were named")
    return named[0]


def _named(client: Client, words: Iterable[str]) -> list[Run]:
    chosen = selectors.parse_selectors(words)
    ids = list(dict.fromkeys([*chosen.ids, *of_sweeps(client, chosen.sweeps)]))
    found = client.runs_by_id(ids) if ids else {}
    missing = [number for number in ids if number not in found]
    if missing:
        raise errors.NotFound(f"there is no run {missing[0]}", "runyard ls")
    runs = [found[number] for number in ids]
    if chosen.last:
        last = client.last()
        runs += [] if last.id in found else [last]
    return runs


def of_sweeps(client: Client, words: Iterable[int | str]) -> list[int]:
    """The runs of these sweeps, each in the order of its configurations."""
    return [run.id for word in words for run in sweep(client, word).runs()]


def sweep(client: Client, word: int | str) -> Sweep:
    """One that was named where a run can be, too."""
    try:
        return client.find_sweep(word)
    except errors.NotFound as error:
        if isinstance(word, int):
            raise
        told = f"{word!r} is not a run, and no sweep is called so"
        raise errors.InvalidInput(told, f"name runs like 42, 3-9, last or S1; {error.fix}") from None
