"""Serves requests: read from standard input one after the other, answered in frames. Without its END an answer is
incomplete."""

import json
import os
import struct
import sys
import time
from typing import Any, BinaryIO, Dict, Iterable, Iterator, List, Tuple, TypeVar

from . import attempt_cleanup, building, cache, cache_cleanup, checkpoints, commands, files, outputs, packages, scanning

MARK = b"\0runyard answers\0"  # whatever a login shell says comes before it
HEAD = struct.Struct(">cI")  # of a frame: its kind, and how many bytes follow
PIECE = struct.Struct(">I")  # of a piece on its way here: how many bytes follow; none after the last
DOCUMENT, DATA, PROBLEM, BEAT, END = b"J", b"D", b"P", b".", b"Z"

BEAT_S = 1.0  # interval of heartbeats during long work

Json = Dict[str, Any]
T = TypeVar("T")


class FarServer:
    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._heard_at = time.monotonic()

    def serve(self) -> None:
        """Until the input ends."""
        size = self._incoming.readline()
        while size and self._serve(json.loads(self._take(int(size)).decode())):
            size = self._incoming.readline()

    def _serve(self, request: Json) -> bool:
        """False after a problem: there may be unread bytes of the request."""
        self._outgoing.write(MARK)
        problem = None
        try:
            getattr(self, "do_" + request["do"])(request)
        except OSError as error:
            name = os.fsencode(error.filename).decode("utf-8", "surrogateescape") if error.filename else None
            problem = [error.errno, error.strerror, name]
            self._tell(problem, PROBLEM)
        self._send(END, b"")
        self._outgoing.flush()
        return problem is None

    def do_run(self, request: Json) -> None:
        given = self._take(request["input"])
        code, stdout, stderr = commands.run([files.encode(word) for word in request["argv"]], given, request["timeout"])
        self._tell(code)
        self._send(DATA, stdout)
        self._send(DATA, stderr)

    def do_call(self, request: Json) -> None:
        self._tell(packages.call(files.encode(request["package"]), request["function"], request["arguments"]))

    def do_put(self, request: Json) -> None:
        root, directories = files.encode(request["root"]), map(files.encode, request["directories"])
        files.put(root, self._beating(self._files(request)), self._beating(directories))

    def do_install(self, request: Json) -> None:
        files.install(files.encode(request["target"]), dict(self._files(request)))

    def do_deliver(self, request: Json) -> None:
        target = _cache(request)
        for name in iter(lambda: self._take_piece(), b""):
            digest, offset = json.loads(name.decode())
            target.receive(digest, offset, iter(lambda: self._take_piece(), b""), self._beat)

    def do_build(self, request: Json) -> None:
        for found in building.build(_cache(request), request["at"], request["plans"], self._beat):
            self._tell(found)

    def do_tidy(self, request: Json) -> None:
        runs, at = files.encode(request["runs"]), request["at"]
        self._tell(cache_cleanup.tidy(_cache(request), runs, at, request["living"], request["limit"], self._beat))

    def do_leave(self, request: Json) -> None:
        attempt_cleanup.leave(_cache(request), files.encode(request["runs"]), request["leaving"], self._beat)
        self._tell(None)

    def do_saved(self, request: Json) -> None:
        self._tell(checkpoints.saved(_cache(request), files.encode(request["runs"])))

    def do_forget(self, request: Json) -> None:
        checkpoints.forget(files.encode(request["runs"]), request["expired"], self._beat)
        self._tell(None)

    def do_fetch(self, request: Json) -> None:
        for path in self._beating(request["paths"]):
            try:
                data = files.fetch(files.encode(path))
            except OSError as error:
                self._tell([error.errno, error.strerror])
            else:
                self._tell(None)
                self._send(DATA, data)

    def do_room(self, request: Json) -> None:
        self._tell([files.room(files.encode(path)) for path in request["paths"]])

    def do_filled(self, request: Json) -> None:
        asked = self._beating(request["directories"])
        self._tell([path for path in asked if files.has_entries(files.encode(path))])

    def do_scan(self, request: Json) -> None:
        root, known = files.encode(request["root"]), self._beating(request["known"])
        for found, pieces in scanning.scan(root, known, request["chunk"], request["budget"]):
            self._tell(found)
            for piece in pieces:
                self._send(DATA, piece)

    def do_find(self, request: Json) -> None:
        for number, search in enumerate(request["searches"]):
            for found in outputs.find(search, self._beat):
                self._tell(dict(found, search=number))

    def do_stream(self, request: Json) -> None:
        for number, source in enumerate(request["sources"]):
            self._tell(number)
            try:
                for chunk in outputs.stream(files.encode(source["path"]), source["offset"], source["size"]):
                    self._send(DATA, chunk)
            except OSError:  # the bytes that are missing then say enough
                continue

    def _files(self, request: Json) -> List[Tuple[bytes, bytes]]:
        return [(files.encode(name), self._take(size)) for name, size in request["files"]]

    def _take_piece(self) -> bytes:
        (size,) = PIECE.unpack(self._take(PIECE.size))
        return self._take(size)

    def _take(self, size: int) -> bytes:
        """Exactly so many bytes: an incomplete request is not executed."""
        data = self._incoming.read(size)
        if len(data) != size:
            sys.exit("the request is not whole")
        return data

    def _tell(self, document: Any, kind: bytes = DOCUMENT) -> None:
        self._send(kind, json.dumps(document).encode())

    def _send(self, kind: bytes, payload: bytes) -> None:
        self._outgoing.write(HEAD.pack(kind, len(payload)) + payload)

    def _beating(self, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            self._beat()
            yield item

    def _beat(self) -> None:
        now = time.monotonic()
        if now > self._heard_at + BEAT_S:
            self._send(BEAT, b"")
            self._outgoing.flush()
            self._heard_at = now


def _cache(request: Json) -> "cache.CacheFiles":
    return cache.CacheFiles(files.encode(request["cache"]), request["agent"], request["lane"])
