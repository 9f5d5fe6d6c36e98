"""Rows of blobs of deleted checkpoints: they will be deleted, unless a client asks for them."""

from __future__ import annotations

import enum
from collections.abc import Collection, Iterable

from sqlalchemy import Connection, delete, exists, func, insert, select, update

from runyard.store.rows import portions
from runyard.store.tables import condemned, outputs


class DeletionState(enum.StrEnum):
    PRUNED = "pruned"  # a tree whose checkpoint went; its files are not in the list yet
    CONDEMNED = "condemned"  # to be deleted, when no client has asked for it for a while and nothing refers to it
    GOING = "going"  # it is being removed
    GONE = "gone"  # it counts as missing, whatever a file system may still show of it


_IS_EMPTY = select(~exists(select(condemned.c.digest)))
_LOST = (DeletionState.GOING, DeletionState.GONE)


# --- entering ---------------------------------------------------------------------------------------------------------


def prune(connection: Connection, now: float, trees: Iterable[str]) -> None:
    """Call in the transaction that deletes their checkpoints."""
    _put(connection, now, trees, DeletionState.PRUNED, over=(DeletionState.CONDEMNED, DeletionState.GONE))


def condemn(connection: Connection, now: float, digests: Iterable[str]) -> None:
    _put(connection, now, digests, DeletionState.CONDEMNED, over=(DeletionState.CONDEMNED,))


def expanded(connection: Connection, now: float, tree: str) -> None:
    """All its files are condemned, and so is the tree itself."""
    place = (condemned.c.digest == tree, condemned.c.state == DeletionState.PRUNED)
    connection.execute(update(condemned).where(*place).values(state=DeletionState.CONDEMNED, since=now))


def distrust(connection: Connection, now: float, digest: str) -> None:
    """It counts as missing for a while, until it is uploaded again."""
    _put(connection, now, [digest], DeletionState.GONE, over=(DeletionState.PRUNED, DeletionState.CONDEMNED))


def _put(
    connection: Connection, now: float, digests: Iterable[str], fate: DeletionState, over: tuple[DeletionState, ...]
) -> None:
    """Insert rows, replacing those in one of the states of `over`."""
    for some in portions(sorted(set(digests))):
        known = states(connection, some)
        place = (condemned.c.digest.in_(some), condemned.c.state.in_(over))
        connection.execute(update(condemned).where(*place).values(state=fate, since=now))
        fresh = [{"digest": digest, "state": fate, "since": now} for digest in some if digest not in known]
        if fresh:
            connection.execute(insert(condemned), fresh)


# --- staying ----------------------------------------------------------------------------------------------------------


def states(connection: Connection, digests: Iterable[str]) -> dict[str, DeletionState]:
    """States of those that have a row."""
    return {digest: fate for digest, (fate, _) in _rows(connection, digests).items()}


def looked_at(connection: Connection, digests: Iterable[str], before: float) -> tuple[set[str], set[str]]:
    """Those that no longer exist, and those that no client has asked for since then."""
    if connection.execute(_IS_EMPTY).scalar_one():
        return set(), set()
    rows = _rows(connection, digests)
    lost = {digest for digest, (fate, _) in rows.items() if fate in _LOST}
    return lost, {
        digest for digest, (fate, since) in rows.items() if fate == DeletionState.CONDEMNED and since < before
    }


def renew(connection: Connection, now: float, digests: Collection[str]) -> set[str]:
    """A client has asked for these. Returns those that no longer exist."""
    for some in portions(sorted(digests)):
        place = (condemned.c.digest.in_(some), condemned.c.state == DeletionState.CONDEMNED)
        connection.execute(update(condemned).where(*place).values(since=now))
    return {digest for digest, fate in states(connection, digests).items() if fate in _LOST}


def pardon(connection: Connection, digests: Collection[str]) -> set[str]:
    """Delete these rows, except those of blobs being deleted, which are returned."""
    for some in portions(sorted(digests)):
        connection.execute(
            delete(condemned).where(condemned.c.digest.in_(some), condemned.c.state != DeletionState.GOING)
        )
    return set(states(connection, digests))


# --- going ------------------------------------------------------------------------------------------------------------


def in_state(connection: Connection, fate: DeletionState, limit: int, before: float | None = None) -> list[str]:
    """Oldest first. `before`: only those in this state since before then."""
    query = select(condemned.c.digest).where(condemned.c.state == fate)
    query = query if before is None else query.where(condemned.c.since <= before)
    return list(connection.execute(query.order_by(condemned.c.since).limit(limit)).scalars())


def claim(connection: Connection, now: float, digests: Collection[str], before: float) -> list[str]:
    """Claim those that are still condemned and that no client has asked for since then: they are ours to delete."""
    ours: list[str] = []
    for some in portions(sorted(digests)):
        place = (
            condemned.c.digest.in_(some),
            condemned.c.state == DeletionState.CONDEMNED,
            condemned.c.since <= before,
        )
        ours += connection.execute(select(condemned.c.digest).where(*place)).scalars()
        connection.execute(update(condemned).where(*place).values(state=DeletionState.GOING, since=now))
    return ours


def acquit(connection: Connection, _now: float, digests: Collection[str], before: float) -> None:
    """Something refers to these: delete their rows, unless they have changed since then."""
    for some in portions(sorted(digests)):
        place = (
            condemned.c.digest.in_(some),
            condemned.c.state == DeletionState.CONDEMNED,
            condemned.c.since <= before,
        )
        connection.execute(delete(condemned).where(*place))


def removed(connection: Connection, now: float, digests: Collection[str]) -> None:
    for some in portions(sorted(digests)):
        place = (condemned.c.digest.in_(some), condemned.c.state == DeletionState.GOING)
        connection.execute(update(condemned).where(*place).values(state=DeletionState.GONE, since=now))


def forget(connection: Connection, _now: float, before: float) -> None:
    connection.execute(delete(condemned).where(condemned.c.state == DeletionState.GONE, condemned.c.since <= before))


def among_outputs(connection: Connection, first_run: int, last_run: int) -> set[str]:
    """Condemned blobs that are outputs of these runs."""
    query = select(outputs.c.digest).join(condemned, condemned.c.digest == outputs.c.digest)
    query = query.where(outputs.c.run_id.between(first_run, last_run), condemned.c.state == DeletionState.CONDEMNED)
    return set(connection.execute(query.distinct()).scalars())


def last_output(connection: Connection) -> int:
    """The newest run that has any."""
    return connection.execute(select(func.max(outputs.c.run_id))).scalar() or 0


def _rows(connection: Connection, digests: Iterable[str]) -> dict[str, tuple[DeletionState, float]]:
    found: dict[str, tuple[DeletionState, float]] = {}
    for some in portions(sorted(digests)):
        rows = connection.execute(select(condemned).where(condemned.c.digest.in_(some)))
        found.update({row.digest: (DeletionState(row.state), row.since) for row in rows})
    return found
