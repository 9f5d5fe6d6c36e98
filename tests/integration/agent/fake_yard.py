"""A yard in memory, as far as an agent can tell: it hands out claims, holds bytes and settles what is reported."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from runyard import errors
from runyard.model.resources import Capacity, Resources
from runyard.model.spec import RunSpec
from runyard.model.states import AttemptState
from runyard.model.tree import Tree, TreeFile
from runyard.model.wire import (
    AttemptKey,
    Claim,
    Hello,
    OutputWish,
    Report,
    Resume,
    StopOrder,
    SyncRequest,
    SyncResponse,
)

PIECE = 1 << 20  # bytes that come at once


class FakeYard:
    """Implements `runyard.agent.link.Link`.

    `reachable = False` makes every call fail; `loses_answer = "claims"` or `"settled"` does what the next such sync
    asks and loses its answer.
    """

    def __init__(self) -> None:
        self.incarnation = 0
        self.queue: list[Claim] = []
        self.owned: dict[AttemptKey, Claim] = {}
        self.files: dict[tuple[AttemptKey, str], bytes] = {}
        self.blobs: dict[str, bytes] = {}
        self.fetched: list[str] = []  # blobs, in the order in which they were sent
        self.ended: dict[AttemptKey, Report] = {}
        self.stops: dict[AttemptKey, str] = {}
        self.wanted: list[OutputWish] = []
        self.expired: dict[int, int] = {}  # runs whose checkpoints nobody needs, with their newest attempts
        self.reports: list[Report] = []
        self.requests: list[SyncRequest] = []
        self.reachable = True
        self.loses_answer = ""
        self.settles = True
        self._made = 0

    # --- what a test does ---------------------------------------------------------------------------------------

    def submit(
        self, command: list[str] | str, *, key: AttemptKey | None = None, batch: str = "",
        resume: Resume | None = None, **fields: Any,
    ) -> AttemptKey:  # fmt: skip
        """`resume`: what a later attempt goes on from; it is told that it was here before."""
        spec = RunSpec.parse({"command": command, **fields})
        self._made += 1
        which = key or AttemptKey(run=self._made, attempt=1)
        made = Claim(
            key=which, batch=batch or f"batch-{self._made}", position=1, spec=spec.to_json(), argv=spec.argv(),
            resources=spec.resources, resume=resume or (Resume(held=True) if which.attempt > 1 else None),
        )  # fmt: skip
        self.queue.append(made)
        return made.key

    def store(self, data: bytes) -> str:
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        self.blobs[digest] = data
        return digest

    def store_folder(self, files: dict[str, bytes], *executable: str) -> str:
        """Its tree's digest."""
        entries = [TreeFile(path, self.store(data), len(data), path in executable) for path, data in files.items()]
        return self.store(Tree.build(entries).encode())

    def cancel(self, which: AttemptKey, reason: str = "user") -> None:
        self.stops[which] = reason

    def give_up(self, which: AttemptKey) -> None:
        """As after a long silence: the attempt is settled as lost, and nobody may report it any more."""
        del self.owned[which]

    def log(self, which: AttemptKey) -> str:
        return self.files.get((which, "log"), b"").decode()

    # --- Link ---------------------------------------------------------------------------------------------------

    def hello(self, hello: Hello) -> tuple[int, list[Claim]]:
        self._reach()
        self.incarnation += 1
        return self.incarnation, list(self.owned.values())

    def sync(self, request: SyncRequest) -> SyncResponse:
        self._reach()
        self._fence(request.incarnation)
        self.requests.append(request)
        settled, given_up, stops = [], [], []
        for report in request.reports:
            self.reports.append(report)
            if report.state is AttemptState.ENDED and self.settles:
                settled.append(report.key)
                self._settle(report)
                given_up += [report.key] if report.key not in self.ended else []
            elif report.key not in self.owned:
                stops.append(StopOrder(key=report.key, reason="superseded"))
            elif report.state is AttemptState.RUNNING:
                self._advance(report.key)
        stops += [StopOrder(key=which, reason=reason) for which, reason in self.stops.items()]
        response = SyncResponse(
            claims=self._claim(request.free, request.ahead), stops=stops, settled=settled, given_up=given_up,
            wanted=self.wanted, more=bool(self.queue),
        )  # fmt: skip
        if self.loses_answer and getattr(response, self.loses_answer):
            self.loses_answer = ""
            raise errors.YardUnreachable("the answer was lost")
        return response

    def append(
        self, site: str, agent: str, incarnation: int, key: AttemptKey, file: str, offset: int, data: bytes
    ) -> int:
        self._reach()
        self._fence(incarnation)
        if key not in self.owned:
            raise errors.Stale(f"attempt {key} is not yours any more")
        held = self.files.setdefault((key, file), b"")
        if offset <= len(held) < offset + len(data):
            self.files[key, file] = held[:offset] + data
        return len(self.files[key, file])

    def missing_blobs(self, digests: Iterable[str]) -> set[str]:
        self._reach()
        return set(digests) - set(self.blobs)

    def put_blob(self, digest: str, path: Path, movable: bool) -> None:
        self._reach()
        data = path.read_bytes()
        if digest != f"sha256:{hashlib.sha256(data).hexdigest()}":
            raise errors.InvalidInput("another digest")
        self.blobs[digest] = data

    def get_blob(self, digest: str, offset: int = 0) -> Iterator[bytes]:
        self._reach()
        if digest not in self.blobs:
            raise errors.NotFound(f"there is no blob {digest}")
        self.fetched.append(digest)
        for start in range(offset, len(self.blobs[digest]), PIECE):
            yield self.blobs[digest][start : start + PIECE]

    def get_blobs(self, digests: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        if lost := [digest for digest in digests if digest not in self.blobs]:
            raise errors.NotFound(f"there is no blob {lost[0]}")
        for digest in digests:
            yield digest, b"".join(self.get_blob(digest))

    def expired_checkpoints(self, site: str, agent: str, incarnation: int, runs: Sequence[int]) -> dict[int, int]:
        self._reach()
        self._fence(incarnation)
        return {run: self.expired[run] for run in runs if run in self.expired}

    def on_news(self, site: str, callback: Callable[[], None]) -> None:
        self.ring = callback

    def close(self) -> None:
        self.ring = lambda: None

    # --- inside -------------------------------------------------------------------------------------------------

    def _reach(self) -> None:
        if not self.reachable:
            raise errors.YardUnreachable("nobody answers")

    def _fence(self, incarnation: int) -> None:
        if incarnation != self.incarnation:
            raise errors.Stale(f"incarnation {incarnation} is over")

    def _settle(self, report: Report) -> None:
        assert report.key not in self.ended or report.key not in self.owned, "settled twice"
        self.stops.pop(report.key, None)
        if self.owned.pop(report.key, None) is not None:
            self.ended[report.key] = report

    def _advance(self, which: AttemptKey) -> None:
        given = self.owned[which].to_json()
        self.owned[which] = Claim.parse({**given, "state": AttemptState.RUNNING})

    def _claim(self, free: Capacity, ahead: int) -> list[Claim]:
        claims = []
        while self.queue:
            asked: Resources = self.queue[0].resources
            if not free.shortages(asked):
                free = free.minus(asked)
            elif ahead > 0:
                ahead -= 1
            else:
                break
            claims.append(self.queue.pop(0))
            self.owned[claims[-1].key] = claims[-1]
        return claims
