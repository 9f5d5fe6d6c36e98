"""Another machine as a host, through OpenSSH and the python3 it has. Nothing needs to be installed there."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from runyard.hosts import far, scan, trouble
from runyard.hosts.base import (
    CHUNK,
    SCAN_BYTES,
    Host,
    Known,
    Listing,
    Parcel,
    Result,
    Search,
    Seen,
    Source,
    Unreachable,
)
from runyard.hosts.conversation import Conversation, Frame, NoAnswer, question
from runyard.hosts.far import desk
from runyard.hosts.local import listing
from runyard.hosts.logins import Login, Logins
from runyard.hosts.spool import Spool

PATIENCE_S = 30.0  # without any sign that the work goes on
TRANSFER_S = 15.0  # beyond a command's own time-out, which is enforced over there


class SshHost:
    pause = 2.0  # a scan starts an interpreter on a machine that many people share
    copies = True

    def __init__(
        self, logins: Sequence[str], spool: Path, *, python: str = "python3", config: str | None = None
    ) -> None:
        """`spool`: a directory on this machine for files on their way; `config`: instead of ~/.ssh/config."""
        self._logins = Logins(logins, os.path.expanduser(config) if config else None)
        self._spool = Spool(spool)
        self._python = python
        self.command_line = f'{quoted(python)} {far.OPTIONS} -c "{far.BOOT}"'

    def run(self, argv: Sequence[str], *, timeout: float, input: bytes = b"") -> Result:
        request = {"do": "run", "argv": list(argv), "timeout": timeout, "input": len(input)}
        try:
            code, stdout, stderr = self._ask(request, [input], timeout + TRANSFER_S)
        except OSError as error:
            return Result(code=None, stderr=str(error).encode())
        return Result(code=json.loads(code[1]), stdout=stdout[1], stderr=stderr[1])

    def put(self, root: str, files: Mapping[str, bytes], directories: Iterable[str] = ()) -> None:
        self._ask({"do": "put", "root": root, "directories": list(directories), **_sizes(files)}, files.values())

    def install(self, target: str, files: Mapping[str, bytes]) -> None:
        self._ask({"do": "install", "target": target, **_sizes(files)}, files.values())

    def deliver(self, parcels: Sequence[Parcel]) -> None:
        told = [{"targets": list(parcel.targets), "digest": parcel.digest} for parcel in parcels]
        with self._answering({"do": "deliver", "parcels": told}, more=_pieces(parcels)) as frames:
            list(frames)

    def fetch(self, path: str) -> bytes:
        (_, problem), *data = self._ask({"do": "fetch", "paths": [path]})
        if not data:
            raise OSError(*json.loads(problem), path)
        return data[0][1]

    def fetch_many(self, paths: Sequence[str]) -> dict[str, bytes]:
        if not paths:
            return {}
        answers = documents(self._ask({"do": "fetch", "paths": list(paths)}))
        return {path: data[0] for path, (_, data) in zip(paths, answers, strict=True) if data}

    def filled(self, directories: Sequence[str]) -> set[str]:
        if not directories:
            return set()
        [(_, found)] = self._ask({"do": "filled", "directories": list(directories)})
        return set(json.loads(found))

    def scan(self, root: str, known: Iterable[Known]) -> list[Seen]:
        asked = {"do": "scan", "root": root, "known": scan.question(known), "chunk": CHUNK, "budget": SCAN_BYTES}
        return [scan.answer(found, pieces) for found, pieces in documents(self._ask(asked))]

    def find(self, searches: Sequence[Search]) -> list[Listing]:
        asked = {"do": "find", "searches": [dataclasses.asdict(search) for search in searches]}
        found: list[list[dict[str, Any]]] = [[] for _ in searches]
        for told, _ in documents(self._ask(asked)) if searches else ():
            found[told["search"]].append(told)
        return [listing(told) for told in found]

    @contextlib.contextmanager
    def borrow(self, sources: Sequence[Source]) -> Iterator[dict[str, Path]]:
        with self._spool.files(sources, self._stream) as found:
            yield found

    def _stream(self, sources: Sequence[tuple[Source, int]]) -> Iterator[tuple[int, bytes]]:
        """The bytes of several files from their offsets on, each piece with the number of its file."""
        asked = [{"path": source.path, "size": source.size, "offset": offset} for source, offset in sources]
        number = 0
        with self._answering({"do": "stream", "sources": asked}) as frames:
            for kind, payload in frames:
                if kind == desk.DOCUMENT:
                    number = json.loads(payload)
                else:
                    yield number, payload

    # --- one round trip -----------------------------------------------------------------------------------------

    def _ask(
        self, request: Mapping[str, Any], payload: Iterable[bytes] = (), patience: float = PATIENCE_S
    ) -> list[Frame]:
        with self._answering(request, payload, patience) as frames:
            return list(frames)

    @contextlib.contextmanager
    def _answering(
        self, request: Mapping[str, Any], payload: Iterable[bytes] = (), patience: float = PATIENCE_S,
        more: Iterable[bytes] = (),
    ) -> Iterator[Iterator[Frame]]:  # fmt: skip
        """Raises Unreachable without an answer, and the far side's OSError."""
        login = self._logins.choose()
        spoken = Conversation(login.command(self.command_line), question(request, list(payload)), patience, more)
        try:
            with spoken:
                yield spoken.frames()
        except NoAnswer as failure:
            raise Unreachable(self._reason(login, failure)) from failure
        finally:
            if spoken.whole:
                self._logins.answered(login)

    def _reason(self, login: Login, failure: NoAnswer) -> str:
        if failure.code is None:
            told = f"{login.name}: {failure}"
            self._logins.hangs(login, told)
            return told
        if failure.code == trouble.SSH_FAILED:
            return trouble.of_connection(login.name, failure.said, login.by_hand)
        interpreter = trouble.of_interpreter(login.name, self._python, failure.said, failure.code)
        if interpreter and not failure.begun:
            return interpreter
        return f"{login.name}: {failure}: {trouble.last_line(failure.said)}".rstrip(": ")


def quoted(word: str) -> str:
    """For the shell of whoever logs in. Everything else travels by standard input, where no shell reads it."""
    return shlex.quote(word)


def documents(frames: Iterable[Frame]) -> Iterator[tuple[Any, list[bytes]]]:
    """Each document with the data that follow it."""
    document, data, any_yet = None, list[bytes](), False
    for kind, payload in frames:
        if kind == desk.DATA:
            data.append(payload)
            continue
        if any_yet:
            yield document, data
        document, data, any_yet = json.loads(payload), [], True
    if any_yet:
        yield document, data


def _pieces(parcels: Iterable[Parcel]) -> Iterator[bytes]:
    for parcel in parcels:
        for piece in filter(None, parcel.read()):
            yield desk.PIECE.pack(len(piece)) + piece
        yield desk.PIECE.pack(0)


def _sizes(files: Mapping[str, bytes]) -> dict[str, Any]:
    return {"files": [[name, len(data)] for name, data in files.items()]}


def _proof(host: SshHost) -> Host:
    return host
