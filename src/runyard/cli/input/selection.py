"""The runs that a command is given: `42 43`, `3-9`, `last`, `S1` or the name of a sweep, or filters such as
`--state queued --project digits`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import click

from runyard import errors
from runyard.cli.input import option_groups
from runyard.client import Client, Run, Sweep
from runyard.model import selectors
from runyard.model.states import FINAL, RunState

STATES = tuple(state.value for state in RunState)
ACTIVE = tuple(state.value for state in RunState if state not in FINAL)
FILTERS = ("state", "project", "owner", "site", "tag", "name", "sweep")

OPTIONS = (
    click.option("--state", multiple=True, type=click.Choice([*STATES, "active"]), metavar="STATE",
                 help="queued, starting, running, succeeded, failed, cancelled; active: unfinished. Repeatable."),
    click.option("--project", multiple=True, metavar="NAME", help="Only runs of this project. Repeatable."),
    click.option("--owner", metavar="NAME", help="Only runs of this user."),
    click.option("--site", metavar="NAME", help="Only runs at this site."),
    click.option("--tag", metavar="TAG", help="Only runs with this tag."),
    click.option("--name", metavar="TEXT", help="Only runs with this name."),
    click.option("--sweep", metavar="SWEEP", help="Only runs of this sweep: S1, or its name."),
)  # fmt: skip
filter_options = option_groups.together(*OPTIONS)


def query(given: Mapping[str, Any], default_states: Iterable[str] = ()) -> dict[str, Any]:
    """The filters that were given, as arguments of the client."""
    for name in FILTERS:
        if "" in _listed(given.get(name)):
            raise errors.InvalidInput(f"--{name} is empty", "give a value, or leave the option out to select all")
    found = {name: given[name] for name in FILTERS if given.get(name)}
    states = [word for state in found.get("state", ()) for word in (ACTIVE if state == "active" else (state,))]
    return {**found, "state": states or list(default_states)}


def as_words(given: Mapping[str, Any]) -> list[str]:
    """The filters as typed on the command line."""
    pairs = [(name, item) for name in FILTERS for item in _listed(given.get(name))]
    return [word for name, item in pairs for word in (f"--{name}", item)]


def _listed(value: str | Iterable[str] | None) -> list[str]:
    """The values of a filter, single or repeatable."""
    if value is None:
        return []
    return [value] if isinstance(value, str) else list(value)


def select(
    client: Client, words: Iterable[str], given: Mapping[str, Any] | None = None, *, states: Iterable[str] = ()
) -> list[Run]:
    """The selected runs, in the order given. Filters alone select runs in `states`."""
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
    """The runs that another one starts after; the yard checks that they exist."""
    chosen = selectors.parse_selectors(words)
    last = [client.last().id] if chosen.last else []
    return [*chosen.ids, *last, *of_sweeps(client, chosen.sweeps)]


def one(client: Client, words: Iterable[str]) -> Run:
    """Exactly one run; by default, the caller's newest."""
    named = _named(client, list(words) or ["last"])
    if len(named) != 1:
        raise errors.InvalidInput(f"this command needs one run, and {len(named)} were named")
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
    """A sweep named where a run is possible too."""
    try:
        return client.find_sweep(word)
    except errors.NotFound as error:
        if isinstance(word, int):
            raise
        told = f"{word!r} is not a run, and there is no sweep with that name"
        raise errors.InvalidInput(told, f"name runs like 42, 3-9, last or S1; {error.fix}") from None
