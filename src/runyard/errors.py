"""Every error runyard raises on purpose.

RunyardError
├── InvalidInput        the input is malformed or out of range
│   └── Unsatisfiable   valid, but no site can ever run it
├── Unauthorized        no token, or an unknown one
├── Forbidden           a known token whose role does not allow this
├── NotFound            no such run, site, file
├── Conflict            the current state does not allow it
│   └── Stale           a request of an agent with an old incarnation
├── TooLarge            a body over its limit
├── DiskFull            the yard could not write
├── ConfigError         a configuration file or variable is wrong
├── InUse               another process holds an exclusive resource
│   ├── HomeInUse       this home directory
│   └── SiteInUse       this site: it has an agent
├── YardUnreachable     no answer from the yard
│   ├── BlobStoreError  no answer from its blob store
│   └── StoreError      no answer from its PostgreSQL
└── BrokerError         the message broker cannot be used
    ├── BrokerUnreachable   no connection to it, or no answer: trying again may help
    └── BrokerRefused       it refuses: the configuration must be changed
        └── Unroutable      it has no queue for this message

An error crosses HTTP as `{"error": {"code", "message", "fix"}}` and the client rebuilds the same class from `code`.
`message` is one sentence; `fix` names the next command or the right value, and may be empty.
"""

from __future__ import annotations

from typing import ClassVar


class RunyardError(Exception):
    """Something went wrong in runyard."""

    code: ClassVar[str] = "error"
    status: ClassVar[int] = 500
    exit_code: ClassVar[int] = 1

    def __init__(self, message: str = "", fix: str = "") -> None:
        self.message = message or (type(self).__doc__ or "").strip().splitlines()[0]
        self.fix = fix
        super().__init__(self.message)

    def to_json(self) -> dict[str, dict[str, str]]:
        return {"error": {"code": self.code, "message": self.message, "fix": self.fix}}


class InvalidInput(RunyardError):
    """The input is not valid."""

    code = "invalid"
    status = 400
    exit_code = 2


class Unsatisfiable(InvalidInput):
    """No site can ever satisfy this request."""

    code = "unsatisfiable"
    status = 422


class Unauthorized(RunyardError):
    """This request carries no valid token."""

    code = "unauthorized"
    status = 401


class Forbidden(RunyardError):
    """Your role does not allow this."""

    code = "forbidden"
    status = 403


class NotFound(RunyardError):
    """There is no such thing."""

    code = "not_found"
    status = 404


class Conflict(RunyardError):
    """The current state does not allow this."""

    code = "conflict"
    status = 409


class Stale(Conflict):
    """A newer incarnation of this agent has taken over."""

    code = "stale"


class TooLarge(RunyardError):
    """The request is too large. `limit`: the maximum in bytes, if known."""

    code = "too_large"
    status = 413

    def __init__(self, message: str = "", fix: str = "", *, limit: int | None = None) -> None:
        super().__init__(message, fix)
        self.limit = limit


class DiskFull(RunyardError):
    """The yard's disk is full; nothing was recorded."""

    code = "disk_full"
    status = 507

    def __init__(self, message: str = "", fix: str = "free some space and try again") -> None:
        super().__init__(message, fix)


class ConfigError(RunyardError):
    """The configuration is not valid."""

    code = "config"
    exit_code = 2


class InUse(RunyardError):
    """Another process holds it. `elsewhere`: on another machine, whose processes cannot be checked from here."""

    code = "in_use"

    def __init__(self, message: str = "", fix: str = "", *, elsewhere: bool = False) -> None:
        super().__init__(message, fix)
        self.elsewhere = elsewhere


class HomeInUse(InUse):
    """Another process is using this home directory."""

    code = "home_in_use"


class SiteInUse(InUse):
    """Another process is serving this site."""

    code = "site_in_use"


class YardUnreachable(RunyardError):
    """The yard does not answer."""

    code = "unreachable"
    status = 503
    exit_code = 205


class BlobStoreError(YardUnreachable):
    """The yard's blob store cannot be used."""

    code = "blob_store"
    exit_code = 1


class StoreError(YardUnreachable):
    """The yard's store does not answer."""

    code = "store"


class BrokerError(RunyardError):
    """The message broker cannot be used."""

    code = "broker"
    status = 503


class BrokerUnreachable(BrokerError):
    """The message broker does not answer."""

    code = "broker_unreachable"


class BrokerRefused(BrokerError):
    """The message broker refuses this."""

    code = "broker_refused"


class Unroutable(BrokerRefused):
    """The message broker has no queue for this message."""

    code = "unroutable"


def from_json(status: int, body: object) -> RunyardError:
    """Rebuild the error that a server sent, or a plain one if the body is not from a yard."""
    detail = body.get("error") if isinstance(body, dict) else None
    if not isinstance(detail, dict):
        return RunyardError(f"the server answered {status} without an explanation")
    kind = _by_code().get(str(detail.get("code")), RunyardError)
    return kind(str(detail.get("message", "")), str(detail.get("fix", "")))


def _by_code() -> dict[str, type[RunyardError]]:
    found: dict[str, type[RunyardError]] = {}
    todo: list[type[RunyardError]] = [RunyardError]
    while todo:
        kind = todo.pop()
        found[kind.code] = kind
        todo.extend(kind.__subclasses__())
    return found
