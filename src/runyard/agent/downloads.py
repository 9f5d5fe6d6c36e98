"""Files that runs ask for by address, fetched before any slot is held. They lie at the agent until the site has them.

Runs that are staged at the same time share one download; a later run fetches anew, because a web server may have
something else by then.
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
from runyard.agent.errands import Errands
from runyard.agent.fetching import Fetcher, NotFetched
from runyard.agent.link import Link
from runyard.agent.stage import StagingFailed
from runyard.agent.staging import Brought
from runyard.backends.base import Presence, Sighting
from runyard.model import units
from runyard.model.input_file import InputFile, shown_url

LANES = tuple(f"downloads-{number}" for number in range(8))  # so that a slow server keeps few others waiting
FETCHED = "fetched the input"
CHUNK = 1 << 20

log = logging.getLogger(__name__)

Address = tuple[str, str]  # the url, and the name of a secret


@dataclass(kw_only=True, slots=True)
class Download:
    path: Path
    lane: str
    digest: str = ""  # once it is whole
    users: list[Attempt] = field(default_factory=list)
    seen: int = 0  # bytes; another thread counts

    @property
    def is_wanted(self) -> bool:
        return any(user.phase is Phase.RECEIVED for user in self.users)


class Downloads:
    def __init__(self, link: Link, directory: Path, fetcher: Fetcher, errands: Errands) -> None:
        """What an earlier incarnation left in the directory is of no use to anybody."""
        self._link, self._directory, self._fetcher, self._errands = link, directory, fetcher, errands
        self._downloads: dict[Address, Download] = {}
        shutil.rmtree(directory, ignore_errors=True)

    def bring(self, attempt: Attempt, brought: Brought) -> bool:
        """False: it asks for nothing from the web. Else `brought` is called later."""
        wanted = _of_web(attempt)
        if not wanted:
            return False
        self._forget()
        attempt.bringing = True
        for item in wanted:
            self._want((item.url, item.secret), attempt, brought)
        self._settle([attempt], brought)
        return True

    def tell(self) -> None:
        """Note at the attempts how far it is."""
        for (url, _), download in self._downloads.items():
            if not download.digest and download.seen:
                text = f"fetching {shown_url(url)}: {units.show_size(download.seen)}"
                for attempt in download.users:
                    attempt.sighting = Sighting(presence=Presence.UNKNOWN, text=text)

    def release(self, attempt: Attempt) -> None:
        """It has everything, or it never will."""
        for download in self._downloads.values():
            download.users = [user for user in download.users if user is not attempt]
        self._forget()

    # --- what the yard does not have ----------------------------------------------------------------------------

    def get_blob(self, digest: str, offset: int = 0) -> Iterator[bytes]:
        """As `Link.get_blob`, and from here where it was fetched."""
        path = next((one.path for one in tuple(self._downloads.values()) if one.digest == digest), None)
        return self._link.get_blob(digest, offset) if path is None else _read(path, offset)

    def get_blobs(self, digests: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        return self._link.get_blobs(digests)

    def missing_blobs(self, digests: Iterable[str]) -> set[str]:
        return self._link.missing_blobs(digests)

    # --- inside -------------------------------------------------------------------------------------------------

    def _want(self, address: Address, attempt: Attempt, brought: Brought) -> None:
        known = self._downloads.get(address)
        if known is not None:
            known.users.append(attempt)
            return
        self._directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        made = Download(path=self._directory / secrets.token_hex(8), lane=self._quietest(), users=[attempt])
        self._downloads[address] = made
        work = functools.partial(self._fetch, address, made)
        self._errands.send(made.lane, work, functools.partial(self._fetched, address, brought))

    def _quietest(self) -> str:
        busy = Counter(one.lane for one in self._downloads.values() if not one.digest)
        return min(LANES, key=lambda lane: busy[lane])

    def _fetch(self, address: Address, download: Download) -> str:
        def count(seen: int) -> None:
            download.seen = seen
            if not download.is_wanted:
                raise NotFetched("nobody waits for it any more")

        self._fetcher.fetch(*address, download.path, count)
        total = hashlib.sha256()
        for piece in _read(download.path, 0):
            total.update(piece)
        return f"sha256:{total.hexdigest()}"

    def _fetched(self, address: Address, brought: Brought, digest: str | None, error: Exception | None) -> None:
        download = self._downloads[address]
        if digest is not None:
            download.digest = digest
            self._settle(download.users, brought)
            return
        del self._downloads[address]
        download.path.unlink(missing_ok=True)
        trouble = _trouble(address, error)
        for attempt in download.users:
            attempt.bringing = False
            brought(attempt, trouble)

    def _settle(self, attempts: Sequence[Attempt], brought: Brought) -> None:
        """Those whose last file has come."""
        for attempt in tuple(attempts):
            found = {item.to: self._downloads.get((item.url, item.secret)) for item in _of_web(attempt)}
            if not attempt.bringing or not all(one is not None and one.digest for one in found.values()):
                continue
            attempt.bringing = False
            attempt.fetched = {to: one.digest for to, one in found.items() if one is not None}
            _note(attempt)
            brought(attempt, None)

    def _forget(self) -> None:
        """What nobody waits for any more. One that is under way notices by itself."""
        for address, download in tuple(self._downloads.items()):
            if download.digest and not download.is_wanted:
                download.path.unlink(missing_ok=True)
                del self._downloads[address]


def _of_web(attempt: Attempt) -> list[InputFile]:
    assert attempt.spec is not None, "only what was understood is staged"
    return [item for item in attempt.spec.inputs if item.url]


def _note(attempt: Attempt) -> None:
    """For the run's history: which bytes it had."""
    attempt.notes = [note for note in attempt.notes if not note.startswith(FETCHED)]
    attempt.notes += [f"{FETCHED} {to} {digest}" for to, digest in attempt.fetched.items()]


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
