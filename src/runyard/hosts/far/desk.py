"""Serves one request: read from standard input, answered in frames. Without its END an answer is not whole."""

import json
import os
import struct
import sys
import time
from typing import Any, BinaryIO, Dict, Iterable, Iterator, List, Tuple, TypeVar

from . import commands, files, inputs, outputs, scanning

MARK = b"\0runyard answers\0"  # whatever a login shell says comes before it
HEAD = struct.Struct(">cI")  # of a frame: its kind, and how many bytes follow
PIECE = struct.Struct(">I")  # of a piece of a file on its way here: how many bytes follow; none after the last
DOCUMENT, DATA, PROBLEM, BEAT, END = b"J", b"D", b"P", b".", b"Z"

BEAT_S = 1.0  # long work says so often that it goes on

Json = Dict[str, Any]
T = TypeVar("T")


class Desk:
    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._heard_at = time.monotonic()

    def serve(self) -> None:
        request = json.loads(self._take(int(self._incoming.readline())).decode())
        self._outgoing.write(MARK)
        try:
            getattr(self, "do_" + request["do"])(request)
        except OSError as error:
            name = os.fsencode(error.filename).decode("utf-8", "surrogateescape") if error.filename else None
            self._tell([error.errno, error.strerror, name], PROBLEM)
        self._send(END, b"")
        self._outgoing.flush()

    def do_run(self, request: Json) -> None:
        given = self._take(request["input"])
        code, stdout, stderr = commands.run([files.encode(word) for word in request["argv"]], given, request["timeout"])
        self._tell(code)
        self._send(DATA, stdout)
        self._send(DATA, stderr)

    def do_put(self, request: Json) -> None:
        root, directories = files.encode(request["root"]), map(files.encode, request["directories"])
        files.put(root, self._beating(self._files(request)), self._beating(directories))

    def do_install(self, request: Json) -> None:
        files.install(files.encode(request["target"]), dict(self._files(request)))

    def do_deliver(self, request: Json) -> None:
        for parcel in request["parcels"]:
            targets = [files.encode(target) for target in parcel["targets"]]
            inputs.receive(targets, parcel["digest"], self._beating(self._pieces()))

    def do_fetch(self, request: Json) -> None:
        for path in self._beating(request["paths"]):
            try:
                data = files.fetch(files.encode(path))
            except OSError as error:
                self._tell([error.errno, error.strerror])
            else:
                self._tell(None)
                self._send(DATA, data)

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

    def _pieces(self) -> Iterator[bytes]:
        while True:
            (size,) = PIECE.unpack(self._take(PIECE.size))
            if not size:
                return
            yield self._take(size)

    def _take(self, size: int) -> bytes:
        """Exactly so much: a request that was cut off on its way is not carried out."""
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
