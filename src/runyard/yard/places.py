"""Where runs execute, for people: sites and the agents that serve them, shown and changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection

from runyard.broker.hints import Hints
from runyard.model.site import SiteSpec
from runyard.store import Store, places
from runyard.store.rows import AnyRow
from runyard.yard import sites, views

SITES_CHANGED = "sites"  # the hint for whoever serves sites from this process

Shown = dict[str, Any]
Change = Callable[[Connection, float], None]


class Places:
    def __init__(self, store: Store, hints: Hints, lease: float) -> None:
        self._store, self._hints, self._lease = store, hints, lease

    def sites(self) -> list[Shown]:
        with self._store.read() as connection:
            return [self._view(connection, row) for row in places.all_sites(connection)]

    def site(self, name: str) -> Shown:
        with self._store.read() as connection:
            return sites.full_view(connection, sites.get(connection, name), self._store.now(), self._lease)

    def agents(self) -> list[Shown]:
        now = self._store.now()
        with self._store.read() as connection:
            return [views.agent_view(row, now, self._lease) for row in places.all_agents(connection)]

    def ensure(self, name: str, kind: str, *, explicit: bool = False, note: str = "") -> Future[Shown]:
        return self._change(
            name, lambda connection, now: sites.ensure(connection, now, name, kind, explicit=explicit, note=note)
        )

    def add(self, name: str, described: SiteSpec) -> Future[Shown]:
        return self._change(name, lambda connection, now: sites.add(connection, now, name, described))

    def edit(self, name: str, changes: Mapping[str, Any]) -> Future[Shown]:
        return self._change(name, lambda connection, _: sites.edit(connection, name, changes))

    def drain(self, name: str, drained: bool) -> Future[Shown]:
        """A drained site starts nothing new; what runs there goes on."""

        def change(connection: Connection, now: float) -> None:
            sites.get(connection, name)
            places.change_site(connection, name, drained=int(drained), drained_at=now if drained else None)

        return self._change(name, change)

    def remove(self, name: str) -> Future[None]:
        return self._store.write(
            lambda connection: sites.remove(connection, name), lambda _: self._hints.ring(SITES_CHANGED)
        )

    def _change(self, name: str, change: Change) -> Future[Shown]:
        def work(connection: Connection) -> Shown:
            change(connection, self._store.now())
            return self._view(connection, sites.get(connection, name))

        def then(_: Shown) -> None:
            self._hints.ring(f"site:{name}")
            self._hints.ring(SITES_CHANGED)

        return self._store.write(work, then)

    def _view(self, connection: Connection, row: AnyRow) -> Shown:
        return sites.view(connection, row, self._store.now(), self._lease)
