"""Input files given by URL, fetched before any slot is held. The agent stores them until the site has them.

Runs that are staged at the same time share one download; a later run downloads again, because the file may have
changed on the server.
"""

from __future__ import annotations

import functools
import hashlib
import logging
import secrets
import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from runyard.agent.attempts import Attempt, Phase
from runyard.agent.bring.directory import StagingFailed
from runyard.agent.bring.step import Step
from runyard.agent.bring.web_files import NotFetched, WebFetcher
from runyard.agent.errands import Errands
from runyard.agent.link import Link
from runyard.agent.waiting import Waits
from runyard.model import units
from runyard.model.input_file import InputFile, shown_url

LANES = tuple(f"downloads-{number}" for number in range(8))  # so that a slow server blocks few others
CHUNK = 1 << 20

log = logging.getLogger(__name__)

Address = tuple[str, str]  # the url, and the name of a secret


@dataclass(kw_only=True, slots=True)
class Download:
    path: Path
    lane: str
    digest: str = ""  # once it is complete
    users: list[Attempt] = field(default_factory=list)
    seen: int = 0  # bytes; another thread counts

    @property
    def is_wanted(self) -> bool:
        return any(user.phase is Phase.RECEIVED for user in self.users)


class WebInputs(Step):
    def __init__(self, link: Link, directory: Path, fetcher: WebFetcher, errands: Errands, waits: Waits) -> None:
        """Files of an earlier incarnation are deleted from the directory."""
        super().__init__()
        self._link, self._directory, self._fetcher = link, directory, fetcher
        self._errands, self._waits = errands, waits
        self._downloads: dict[Address, Download] = {}
        shutil.rmtree(directory, ignore_errors=True)

    def begin(self, attempts: Sequence[Attempt]) -> None:
        self._forget()
        for attempt in attempts:
            for item in _of_web(attempt):
                self._want((item.url, item.secret), attempt)
        self._settle(attempts)

    def advance(self) -> None:
        """Show the progress of the downloads."""
        for (url, _), download in self._downloads.items():
            if not download.digest and download.seen:
                self._waits.show(download.users, f"fetching {shown_url(url)}: {units.show_size(download.seen)}")

    def release(self, attempt: Attempt) -> None:
        """Its staging has finished or failed."""
        for download in self._downloads.values():
            download.users = [user for user in download.users if user is not attempt]
        self._forget()

    # --- what the yard does not have ----------------------------------------------------------------------------

    def get_blob(self, digest: str, offset: int = 0) -> Iterator[bytes]:
        """Like `Link.get_blob`, but also for downloaded files."""
        path = next((one.path for one in tuple(self._downloads.values()) if one.digest == digest), None)
        return self._link.get_blob(digest, offset) if path is None else _read(path, offset)

    def get_blobs(self, digests: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        return self._link.get_blobs(digests)

    def missing_blobs(self, digests: Iterable[str]) -> set[str]:
        return self._link.missing_blobs(digests)

    # --- inside -------------------------------------------------------------------------------------------------

    def _want(self, address: Address, attempt: Attempt) -> None:
        known = self._downloads.get(address)
        if known is not None:
            known.users.append(attempt)
            return
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = Download(path=self._directory / secrets.token_hex(8), lane=self._quietest(), users=[attempt])
        self._downloads[address] = made
        work = functools.partial(self._fetch, address, made)
        self._errands.send(made.lane, work, functools.partial(self._fetched, address))

    def _quietest(self) -> str:
        busy = Counter(one.lane for one in self._downloads.values() if not one.digest)
        return min(LANES, key=lambda lane: busy[lane])

    def _fetch(self, address: Address, download: Download) -> str:
        def count(seen: int) -> None:
            download.seen = seen
            if not download.is_wanted:
                raise NotFetched("no run waits for it any more")

        self._fetcher.fetch(*address, download.path, count)
        total = hashlib.sha256()
        for piece in _read(download.path, 0):
            total.update(piece)
        return f"sha256:{total.hexdigest()}"

    def _fetched(self, address: Address, digest: str | None, error: Exception | None) -> None:
        download = self._downloads[address]
        if digest is not None:
            download.digest = digest
            self._settle(download.users)
            return
        del self._downloads[address]
        download.path.unlink(missing_ok=True)
        trouble = _trouble(address, error)
        for attempt in download.users:
            self.finish(attempt, trouble)

    def _settle(self, attempts: Sequence[Attempt]) -> None:
        """Finish attempts whose last file has arrived."""
        for attempt in attempts:
            found = {item.to: self._downloads.get((item.url, item.secret)) for item in _of_web(attempt)}
            if all(one is not None and one.digest for one in found.values()):
                attempt.web.fetched = {to: one.digest for to, one in found.items() if one is not None}
                self.finish(attempt)

    def _forget(self) -> None:
        """Drop downloads that no attempt waits for. A running download stops by itself."""
        for address, download in tuple(self._downloads.items()):
            if download.digest and not download.is_wanted:
                download.path.unlink(missing_ok=True)
                del self._downloads[address]


def _of_web(attempt: Attempt) -> list[InputFile]:
    return [item for item in attempt.spec.inputs if item.url]


def _trouble(address: Address, error: Exception | None) -> StagingFailed:
    if isinstance(error, NotFetched):
        return StagingFailed(f"its inputs cannot be fetched: {error}")
    if isinstance(error, OSError):
        return StagingFailed.because(error)
    log.error("an input cannot be fetched: %s", shown_url(address[0]), exc_info=error)
    return StagingFailed(f"its inputs cannot be fetched: {shown_url(address[0])}: {type(error).__name__}")


def _read(path: Path, offset: int) -> Iterator[bytes]:
    with path.open("rb") as file:
        file.seek(offset)
        while piece := file.read(CHUNK):
            yield piece
