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

from runyard.hosts import far, scan, ssh_errors, staging
from runyard.hosts.base import (
    CHUNK,
    SCAN_BYTES,
    BuildPlan,
    BuildResult,
    Cache,
    Host,
    KnownFiles,
    Leaving,
    Listing,
    OutputSearch,
    Parcel,
    Result,
    Seen,
    SourceFile,
    Unreachable,
)
from runyard.hosts.channel import Channel, ChannelPool, Conversation, Frame, NoAnswer, question
from runyard.hosts.far import server
from runyard.hosts.local import listing
from runyard.hosts.logins import Login, Logins
from runyard.hosts.partial_files import PartialFiles

PATIENCE_S = 30.0  # without a heartbeat
PAUSE_S, BUSY_PAUSE_S = 0.2, 2.0  # between two scans; without a line, each starts an interpreter over there
LINES = 2  # that wait for the next request; while more are needed at once, there are more
TRANSFER_S = 15.0  # beyond a command's own time-out, which is enforced over there


class SshHost:
    copies = True

    def __init__(
        self, logins: Sequence[str], spool: Path, *, python: str = "python3", config: str | None = None,
        standing: bool = False,
    ) -> None:  # fmt: skip
        """`spool`: a directory on this machine for partial files; `config`: instead of ~/.ssh/config; `standing`: keep
        a process there between two requests; not for login nodes."""
        self.pause = PAUSE_S if standing else BUSY_PAUSE_S
        self.trouble = ""  # why the last request had no answer
        self._lines = ChannelPool(LINES if standing else 0)
        self._logins = Logins(logins, os.path.expanduser(config) if config else None)
        self._spool = PartialFiles(spool)
        self._python = python
        self.command_line = f'{quoted(python)} {far.OPTIONS} -c "{far.BOOT}"'

    def run(self, argv: Sequence[str], *, timeout: float, input: bytes = b"") -> Result:
        request = {"do": "run", "argv": list(argv), "timeout": timeout, "input": len(input)}
        try:
            code, stdout, stderr = self._ask(request, [input], timeout + TRANSFER_S)
        except OSError as error:
            return Result(code=None, stderr=str(error).encode())
        return Result(code=json.loads(code[1]), stdout=stdout[1], stderr=stderr[1])

    def call(self, package: str, function: str, arguments: Mapping[str, Any]) -> Any:
        asked = {"do": "call", "package": package, "function": function, "arguments": dict(arguments)}
        [(_, answer)] = self._ask(asked)
        return json.loads(answer)

    def close(self) -> None:
        """Keep no connection open any more. The host can still be used."""
        self._lines.close()

    def put(self, root: str, files: Mapping[str, bytes], directories: Iterable[str] = ()) -> None:
        self._ask({"do": "put", "root": root, "directories": list(directories), **_sizes(files)}, files.values())

    def install(self, target: str, files: Mapping[str, bytes]) -> None:
        self._ask({"do": "install", "target": target, **_sizes(files)}, files.values())

    def deliver(self, cache: Cache, parcels: Iterable[Parcel]) -> None:
        with self._answering({"do": "deliver", **_cached(cache)}, more=staging.stream(parcels)) as frames:
            list(frames)

    def build(self, cache: Cache, plans: Sequence[BuildPlan]) -> BuildResult:
        asked = {"do": "build", **_cached(cache), "plans": staging.question(plans)}
        return staging.answer(plans, (told for told, _ in documents(self._ask(asked))))

    def tidy(self, cache: Cache, limit: int, *, runs: str, living: Sequence[str] | None = None) -> int:
        alive = None if living is None else list(living)
        [(_, left)] = self._ask({"do": "tidy", **_cached(cache), "limit": limit, "runs": runs, "living": alive})
        return int(json.loads(left))

    def leave(self, cache: Cache, runs: str, leaving: Leaving) -> None:
        self._ask({"do": "leave", **_cached(cache), "runs": runs, "leaving": dict(leaving)})

    def saved(self, cache: Cache, runs: str) -> list[int]:
        [(_, found)] = self._ask({"do": "saved", **_cached(cache), "runs": runs})
        return list(json.loads(found))

    def forget(self, runs: str, expired: Mapping[int, int]) -> None:
        self._ask({"do": "forget", "runs": runs, "expired": list(expired.items())})

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

    def room(self, paths: Sequence[str]) -> dict[str, tuple[int, int]]:
        [(_, found)] = self._ask({"do": "room", "paths": list(paths)})
        return {path: (free, total) for path, (free, total) in zip(paths, json.loads(found), strict=True)}

    def filled(self, directories: Sequence[str]) -> set[str]:
        if not directories:
            return set()
        [(_, found)] = self._ask({"do": "filled", "directories": list(directories)})
        return set(json.loads(found))

    def scan(self, root: str, known: Iterable[KnownFiles]) -> list[Seen]:
        asked = {"do": "scan", "root": root, "known": scan.question(known), "chunk": CHUNK, "budget": SCAN_BYTES}
        return [scan.answer(found, pieces) for found, pieces in documents(self._ask(asked))]

    def find(self, searches: Sequence[OutputSearch]) -> list[Listing]:
        asked = {"do": "find", "searches": [dataclasses.asdict(search) for search in searches]}
        found: list[list[dict[str, Any]]] = [[] for _ in searches]
        for told, _ in documents(self._ask(asked)) if searches else ():
            found[told["search"]].append(told)
        return [listing(told) for told in found]

    @contextlib.contextmanager
    def borrow(self, sources: Sequence[SourceFile]) -> Iterator[dict[str, Path]]:
        with self._spool.files(sources, self._stream) as found:
            yield found

    def _stream(self, sources: Sequence[tuple[SourceFile, int]]) -> Iterator[tuple[int, bytes]]:
        """The bytes of several files from their offsets on, each piece with the number of its file."""
        asked = [{"path": source.path, "size": source.size, "offset": offset} for source, offset in sources]
        number = 0
        with self._answering({"do": "stream", "sources": asked}) as frames:
            for kind, payload in frames:
                if kind == server.DOCUMENT:
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
        try:
            login = self._logins.choose()
            with self._spoken(login, request, payload, patience, more) as spoken:
                yield spoken.frames()
        except Unreachable as error:
            self.trouble = str(error)
            raise

    @contextlib.contextmanager
    def _spoken(
        self, login: Login, request: Mapping[str, Any], payload: Iterable[bytes], patience: float, more: Iterable[bytes]
    ) -> Iterator[Conversation]:
        channel = self._lines.take(login.name) or Channel(login.command(self.command_line))
        asked = question(request, list(payload), first=channel.is_new)
        spoken = Conversation(channel, asked, patience, more, keep=self._lines.most > 0)
        try:
            with spoken:
                yield spoken
        except NoAnswer as failure:
            raise Unreachable(self._reason(login, failure)) from failure
        finally:
            if spoken.whole:
                self.trouble = ""
                self._logins.answered(login)
        if spoken.well and self._lines.most:
            self._lines.give(login.name, channel)

    def _reason(self, login: Login, failure: NoAnswer) -> str:
        if failure.code is None:
            told = f"{login.name}: {failure}"
            self._logins.hangs(login, told)
            return told
        if failure.code == ssh_errors.SSH_FAILED:
            return ssh_errors.of_connection(login.name, failure.said, login.by_hand)
        interpreter = ssh_errors.of_interpreter(login.name, self._python, failure.said, failure.code)
        if interpreter and not failure.begun:
            return interpreter
        return f"{login.name}: {failure}: {ssh_errors.last_line(failure.said)}".rstrip(": ")


def quoted(word: str) -> str:
    """For the login shell. Everything else is sent by standard input, where no shell interprets it."""
    return shlex.quote(word)


def documents(frames: Iterable[Frame]) -> Iterator[tuple[Any, list[bytes]]]:
    """Each document with the data that follow it."""
    document, data, any_yet = None, list[bytes](), False
    for kind, payload in frames:
        if kind == server.DATA:
            data.append(payload)
            continue
        if any_yet:
            yield document, data
        document, data, any_yet = json.loads(payload), [], True
    if any_yet:
        yield document, data


def _cached(cache: Cache) -> dict[str, Any]:
    return {"cache": cache.path, "agent": cache.agent, "lane": cache.lane, "at": list(cache.at)}


def _sizes(files: Mapping[str, bytes]) -> dict[str, Any]:
    return {"files": [[name, len(data)] for name, data in files.items()]}


def _proof(host: SshHost) -> Host:
    return host
