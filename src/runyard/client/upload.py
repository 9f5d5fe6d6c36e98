"""Upload files to the yard: only those it does not have, small ones in packs, large ones resumed after an interruption.

Digests are checked at each end. Bytes that arrive damaged are sent again; a file that has changed since the snapshot
ends the submit.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard import errors
from runyard.client.retries import Patience
from runyard.client.snapshot import ProgressDisplay, Snapshot, reading, unseen
from runyard.model import packs, text_delta

if TYPE_CHECKING:
    from runyard.client.session import Session

TRIES = 3  # with bytes that arrive damaged
LINES = 3  # packs on their way at once
PIECE = 8 << 20  # bytes of a large file in one request
TIMEOUT = 600.0  # the yard reads a large file once more before it keeps it
OCTETS = {"Content-Type": "application/octet-stream"}


def send(
    client: Session,
    snapshots: Iterable[Snapshot],
    progress: ProgressDisplay = unseen,
    further: Mapping[str, bytes] | None = None,
) -> None:
    """All files of these trees, and further texts. A tree is sent last: a tree that the yard has is complete."""
    uploader = _Uploader(client, progress)
    texts = {digest: data for snapshot in snapshots for digest, data in snapshot.texts().items()} | dict(further or {})
    before = {snapshot.tree.digest: _Before(snapshot.before) for snapshot in snapshots if snapshot.before}
    absent = set(uploader.missing([*texts, *(tree.digest for tree in before.values())]))
    known = {digest: tree for digest, tree in before.items() if digest in absent and tree.digest not in absent}
    sources, sizes = {}, {}
    for snapshot in snapshots:
        if (digest := snapshot.tree.digest) in absent:
            had = known[digest].files() if digest in known else set()
            sources.update(snapshot.sources())
            sizes.update({file: size for file, size in snapshot.tree.digests().items() if file not in had})
    uploader.files({digest: (sources[digest], sizes[digest]) for digest in uploader.missing(list(sizes))})
    uploader.texts({digest: data for digest, data in texts.items() if digest in absent}, known)


class _Before:
    """A folder as it was when it was read last. If the yard has its description, it has its files."""

    def __init__(self, description: bytes) -> None:
        self.description = description
        self.digest = f"sha256:{hashlib.sha256(description).hexdigest()}"

    def files(self) -> set[str]:
        return {digest for _, digest, *_ in json.loads(self.description)["files"]}


class _Uploader:
    def __init__(self, client: Session, progress: ProgressDisplay) -> None:
        self._client, self._progress = client, progress
        self._patience = Patience()

    def missing(self, digests: Sequence[str]) -> list[str]:
        found: list[str] = []
        for start in range(0, len(digests), packs.MOST_ASKED):
            asked = {"digests": digests[start : start + packs.MOST_ASKED]}
            found += self._client.call("POST", "/blobs/missing", asked, repeatable=True)["missing"]
            self._patience.met()
        return found

    def files(self, wanted: Mapping[str, tuple[Path, int]]) -> None:
        if not wanted:
            return
        small = {digest: item for digest, item in wanted.items() if item[1] <= packs.LARGE}
        with self._progress("sending", sum(size for _, size in wanted.values())) as advance:
            self._send_small(small, advance)
            for digest, (path, size) in wanted.items():
                if digest not in small:
                    self._send_large(digest, path, size, advance)

    def _send_small(self, wanted: Mapping[str, tuple[Path, int]], advance: Callable[[int], object]) -> None:
        """Over a few connections at once: while one waits for the yard's disk, another sends the next pack."""
        files = list(wanted)
        lines = LINES if sum(size for _, size in wanted.values()) > packs.PACK else 1
        stopped, lock = threading.Event(), threading.Lock()

        def send(share: Sequence[str]) -> None:
            for pack in _packs((digest, _read_small(*wanted[digest])) for digest in share):
                if stopped.is_set():
                    return
                self._send_pack(pack, wanted)
                with lock:
                    advance(sum(len(data) for _, data in pack))

        with ThreadPoolExecutor(lines) as pool:
            try:
                list(pool.map(send, [files[line::lines] for line in range(lines)]))
            except BaseException:
                stopped.set()
                raise

    def texts(self, wanted: Mapping[str, bytes], known: Mapping[str, _Before]) -> None:
        """A tree of very many files may be large itself. `known`: similar texts that the yard has."""
        left = {
            digest: data
            for digest, data in wanted.items()
            if digest not in known or not self._send_edited(digest, data, known[digest])
        }
        small = {digest: data for digest, data in left.items() if len(data) <= packs.LARGE}
        for pack in _packs(small.items()):
            self._send_pack(pack)
        for digest, data in left.items():
            if digest not in small:
                self._transfer("PUT", f"/blobs/{digest}", data)

    def _send_edited(self, digest: str, data: bytes, known: _Before) -> bool:
        """Whether that was worthwhile, and the yard could make the text from the one it has."""
        if max(len(data), len(known.description)) > packs.LARGE:
            return False
        told = {"digest": digest, "base": known.digest, "pieces": text_delta.compare(known.description, data)}
        if len(json.dumps(told["pieces"])) > len(data) // 2:
            return False
        try:
            self._client.call("POST", "/blobs/edit", told, repeatable=True)
        except (errors.NotFound, errors.InvalidInput):
            return False
        return True

    def _send_pack(
        self, pack: Sequence[tuple[str, bytes]], read_from: Mapping[str, tuple[Path, int]] | None = None
    ) -> None:
        """A file that the yard refuses has changed since the snapshot, or was damaged in transfer. Only then is its
        digest computed here, too: the yard does so anyway."""
        body = packs.pack(pack)
        for tries_left in reversed(range(TRIES)):
            try:
                self._transfer("POST", "/blobs/pack", body)
                return
            except errors.InvalidInput as error:
                for digest, data in pack:
                    if read_from is not None:
                        _check_unchanged(digest, data, read_from[digest][0])
                if not tries_left:
                    raise _damaged(error) from None

    def _send_large(self, digest: str, path: Path, size: int, advance: Callable[[int], object]) -> None:
        """The yard deletes a file with another digest: ours has changed, or it was damaged in transfer."""
        for tries_left in reversed(range(TRIES)):
            try:
                self._send_pieces(digest, path, size, advance)
                return
            except errors.InvalidInput as error:
                if reading.read_digest(path, str(path))[0] != digest:
                    raise reading.changed(str(path)) from None
                if not tries_left:
                    raise _damaged(error) from None

    def _send_pieces(self, digest: str, path: Path, size: int, advance: Callable[[int], object]) -> None:
        """From the offset that the yard has; an empty piece asks for it."""
        offset, piece = 0, b""
        with path.open("rb") as file:
            while True:
                answer = self._transfer("PATCH", f"/blobs/{digest}", piece, offset=offset, size=size)
                if answer["complete"]:
                    advance(size - offset)
                    return
                if piece and answer["held"] <= offset:
                    raise errors.RunyardError(f"the yard takes nothing more of {path}", "look into its log")
                advance(answer["held"] - offset)
                offset = answer["held"]
                file.seek(offset)
                if not (piece := file.read(PIECE)):
                    raise reading.changed(str(path))

    def _transfer(self, method: str, path: str, body: bytes, **query: int) -> Any:
        """Repeat after a lost connection: bytes that arrive twice are stored once."""
        while True:
            try:
                with self._client.open(
                    method, path, query=query, body=body, headers=OCTETS, timeout=TIMEOUT, repeatable=True
                ) as stream:
                    answer = stream.json()
                self._patience.met()
                return answer
            except errors.YardUnreachable as error:
                self._patience.endure(error)


def _packs(contents: Iterable[tuple[str, bytes]]) -> Iterator[list[tuple[str, bytes]]]:
    pack: list[tuple[str, bytes]] = []
    held = 0
    for digest, data in contents:
        pack.append((digest, data))
        held += len(data) + packs.HEADER
        if held >= packs.PACK:
            yield pack
            pack, held = [], 0
    if pack:
        yield pack


def _read_small(path: Path, size: int) -> bytes:
    try:
        with path.open("rb", buffering=0) as file:
            data = file.read(size + 1)
    except OSError:
        raise reading.changed(str(path)) from None
    if len(data) != size:
        raise reading.changed(str(path))
    return data


def _check_unchanged(digest: str, data: bytes, path: Path) -> None:
    try:
        packs.check_bytes(digest, data)
    except errors.InvalidInput:
        raise reading.changed(str(path)) from None


def _damaged(error: errors.InvalidInput) -> errors.RunyardError:
    return errors.RunyardError(f"files arrived damaged at the yard {TRIES} times: {error.message}", "check the network")
