"""Runs that agents submit for users without a token, from drop boxes: in the user's name, at the agent's own site.

Only the machine of a drop box knows who wrote into it, so its agent names the owner. The yard's admin lists the sites
whose agents are trusted with that (`spool_sites`). Such runs are identified by their idempotency keys, and an agent
sees no others.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from runyard import errors
from runyard.model.roles import Caller, Role
from runyard.model.spec import RunSpec
from runyard.model.spec_values import name_text
from runyard.store import runs
from runyard.store.rows import AnyRow
from runyard.yard.runs.submit import Submitted
from runyard.yard.views import RunFilter

if TYPE_CHECKING:
    from runyard.yard.yard import Outcomes, Yard

ANY_SITE = ""  # of a drop box that the yard itself looks into


class DropBoxes:
    """The drop boxes of one site's agents."""

    def __init__(self, yard: Yard, caller: Caller, site: str) -> None:
        """Raises Forbidden."""
        self._yard, self._caller, self._site = yard, caller, site
        self._prefix = f"spool/{site}/"
        if caller.role != Role.ADMIN:
            self._check_agent()

    def submit(self, owner: str, key: str, spec: RunSpec) -> Future[list[Submitted]]:
        """Submit a run of this user; the same key always means the same run."""
        name_text(owner, "owner")
        self._check_spec(owner, spec)
        placed = spec.evolve(site=self._site or spec.site, idempotency_key=f"{self._prefix}{key}")
        return self._yard.submit(_person(owner), [placed])

    def runs(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        known = tuple(row.id for row in self._rows(ids))
        return self._yard.list_runs(RunFilter(ids=known, limit=len(known))) if known else []

    def log(self, run: int, offset: int, limit: int) -> bytes:
        return self._yard.read_log(self._row(run).id, offset, limit)

    def outputs(self, run: int) -> list[dict[str, Any]]:
        return self._yard.outputs(self._row(run).id)

    def cancel(self, run: int) -> Future[Outcomes]:
        return self._yard.cancel(_person(self._row(run).owner), [run])

    def _check_agent(self) -> None:
        if self._caller.site != self._site:
            raise errors.Forbidden(f"your token serves site {self._caller.site!r}, not {self._site!r}")
        if self._site not in self._yard.settings.spool_sites:
            raise errors.Forbidden(
                f"this yard takes no runs from drop boxes of the site {self._site!r}",
                f'its admin writes spool_sites = ["{self._site}"] into config.toml',
            )

    def _check_spec(self, owner: str, spec: RunSpec) -> None:
        if self._site and spec.site not in (None, self._site):
            raise errors.InvalidInput(f"site: this drop box belongs to {self._site!r}", "leave the site out")
        if not self._caller.limits.allow(owner, spec.project):
            raise errors.InvalidInput(f"this drop box is for {self._caller.limits.describe()}", "ask its admin")

    def _row(self, run: int) -> AnyRow:
        for row in self._rows([run]):
            return row
        raise errors.NotFound(f"there is no run {run} of a drop box of {self._site or 'this yard'}")

    def _rows(self, ids: Sequence[int]) -> list[AnyRow]:
        with self._yard.store.read() as connection:
            found = runs.get_many(connection, ids)
        return [row for row in found if (row.idempotency_key or "").startswith(self._prefix)]


def _person(name: str) -> Caller:
    return Caller(name=name, role=Role.MEMBER)
