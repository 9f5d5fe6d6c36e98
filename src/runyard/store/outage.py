"""PostgreSQL that is unavailable: restarted, stopped, or unreachable. Requests during that time are refused with one
sentence, and not executed later. Closed connections are replaced as soon as it is available again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from sqlalchemy import exc

from runyard import errors
from runyard.store.reserve import is_full

AWAY = "the yard's PostgreSQL does not answer"
UNDONE = f"{AWAY}, and nothing was recorded"
# The last command was COMMIT, and its result is unknown. Repeating it could do it twice.
IN_DOUBT = "the yard's PostgreSQL went away in the middle of this, so it may have been recorded or not"
_FIXES = {
    IN_DOUBT: "look whether it was, as with `runyard ls`, before you try again; an idempotency key spares you that"
}
_FIX = "try again in a moment: the yard goes on by itself when PostgreSQL is back"
# Classes of SQLSTATE: connections that are lost or refused, no room for one more, shut down or starting up.
_PASSING = ("08", "53", "57")
_TWICE = "This connection is closed"  # what the pool says when it has replaced one in vain


def is_away(error: BaseException) -> bool:
    """Whether the same query may succeed later."""
    if isinstance(error, exc.DBAPIError):
        return not is_full(error) and (error.connection_invalidated or _is_passing(error))
    if isinstance(error, exc.InvalidRequestError):
        return str(error).startswith(_TWICE)
    return isinstance(error, exc.TimeoutError)  # all connections are in use, by queries without an answer


def _is_passing(error: exc.DBAPIError) -> bool:
    """Errors of psycopg have a SQLSTATE, which is None if PostgreSQL could not be reached at all."""
    if not isinstance(error, exc.OperationalError):
        return False
    state = getattr(error.orig, "sqlstate", "")
    return state is None or state.startswith(_PASSING)


@contextlib.contextmanager
def told(message: str = AWAY) -> Iterator[None]:
    """The reason is in the yard's log. Clients of the yard need not learn the database's address."""
    try:
        yield
    except exc.SQLAlchemyError as error:
        if not is_away(error):
            raise
        raise errors.StoreError(message, _FIXES.get(message, _FIX)) from None
