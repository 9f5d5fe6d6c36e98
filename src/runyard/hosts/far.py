# ruff: noqa: UP006, UP031, UP035, UP045
"""The far half of a host: what is done where the files are. Standard library only, python3 >= 3.6.

On this machine LocalHost calls these functions. Another machine needs nothing of runyard: SshHost sends this very text
there ahead of each request (see `main`), so that there is no copy to be missing, old or half removed by a clean-up.

Paths are bytes, because the text of an old Python in the C locale cannot name every file.
"""

import errno
import hashlib
import json
import os
import re
import signal
import stat
import struct
import subprocess
import sys
import tempfile
import time
from typing import Any, BinaryIO, Callable, Dict, Iterable, Iterator, List, Optional, Tuple

CHUNK = 1 << 20  # most bytes of one file that a scan brings, and of any file that are read at once
BEAT_S = 1.0  # long work says so often that it goes on

Json = Dict[str, Any]
Beat = Callable[[], None]


# --- commands -------------------------------------------------------------------------------------------------------


def run(argv: List[bytes], given: bytes, timeout: float) -> Tuple[Optional[int], bytes, bytes]:
    """Code, stdout and stderr. After `timeout` seconds the command and all in its session is killed: None."""
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    except OSError as error:
        return 127, b"", b"%s: %s" % (argv[0], str(error.strerror).encode())
    with process:
        try:
            stdout, stderr = process.communicate(given, timeout)
        except subprocess.TimeoutExpired:
            _kill_group(process)
            return None, b"", b"%s: no answer within %g seconds" % (argv[0], timeout)
    return process.returncode, stdout, stderr


def _kill_group(process: "subprocess.Popen[bytes]") -> None:
    """Its pipes are closed unread: something that left its session may hold them open for ever."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    for pipe in (process.stdin, process.stdout, process.stderr):
        try:
            if pipe is not None:
                pipe.close()
        except OSError:
            pass


# --- files ----------------------------------------------------------------------------------------------------------


def put(root: bytes, files: Iterable[Tuple[bytes, bytes]], directories: Iterable[bytes]) -> None:
    make_directory(root)
    for name in directories:
        make_directory(os.path.join(root, name))
    for name, data in files:
        write_file(os.path.join(root, name), data)


def make_directory(path: bytes) -> None:
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        return
    except FileNotFoundError:
        make_directory(os.path.dirname(path))
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            pass


def write_file(path: bytes, data: bytes, durable: bool = False) -> None:
    """Replace a file as a whole: a reader finds the old one or the new one, never a part. `durable`: on disk, too."""
    # Not by the process number alone: another login node writes to the same directories.
    draft = b"%s.%d.%s.tmp" % (path, os.getpid(), os.urandom(3).hex().encode())
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            if durable:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(draft, path)
    except BaseException:
        try:
            os.unlink(draft)
        except OSError:
            pass
        raise


def install(target: bytes, files: Dict[bytes, bytes]) -> None:
    """By a rename, so that nobody ever sees half of it. What is there already is only made whole."""
    if not os.path.isdir(target):
        make_directory(os.path.dirname(target))
        draft = tempfile.mkdtemp(prefix=b".install-", dir=os.path.dirname(target))
        put(draft, files.items(), ())
        try:
            os.rename(draft, target)
            return
        except OSError as error:
            _remove_tree(draft)
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
    for name, data in files.items():
        if _size(os.path.join(target, name)) != len(data):
            write_file(os.path.join(target, name), data)


def _remove_tree(directory: bytes) -> None:
    for name in os.listdir(directory):
        os.unlink(os.path.join(directory, name))
    os.rmdir(directory)


def fetch(path: bytes) -> bytes:
    with open(path, "rb") as file:
        return file.read()


def filled(directories: Iterable[bytes]) -> List[bytes]:
    """Those that hold anything."""
    return [directory for directory in directories if _has_entries(directory)]


def _has_entries(directory: bytes) -> bool:
    try:
        with os.scandir(directory) as entries:
            return next(entries, None) is not None
    except OSError:
        return False


# --- scanning -------------------------------------------------------------------------------------------------------


def scan(root: bytes, known: Iterable[List[Any]], budget: int) -> Iterator[Tuple[Json, List[bytes]]]:
    """What changed in attempts' directories. Known: [directory, {file: offset}, version of the status, started]."""
    for name, offsets, version, started in known:
        found, data = _look(os.path.join(root, encode(name)), offsets, version, started, budget)
        budget -= sum(map(len, data))
        if found["started"] != started or found["version"] != version or data:
            found["directory"] = name
            yield found, data


def _look(path: bytes, offsets: Dict[str, int], version: str, started: bool, budget: int) -> Tuple[Json, List[bytes]]:
    # The status first: the lengths it names are final, so bytes read afterwards can only be complete.
    version, status = _read_status(path + b"/status.json", version)
    started = started or status is not None or os.path.isdir(path + b"/started")
    sizes = {}  # type: Dict[str, int]
    data = {}  # type: Dict[str, bytes]
    for name, offset in offsets.items():
        size, piece = _read_from(path + b"/" + encode(name), offset, min(CHUNK, budget))
        if size is not None:
            sizes[name] = size
        if piece:
            data[name] = piece
            budget -= len(piece)
    found = {"started": started, "version": version, "status": status, "sizes": sizes, "data": list(data)}
    return found, list(data.values())


def _read_status(path: bytes, version: str) -> Tuple[str, Optional[Json]]:
    """The status and its version; a file that is missing or half there is no news and leaves the version as it was."""
    try:
        found = os.stat(path)
        newest = "%d.%d.%d" % (found.st_ino, found.st_mtime_ns, found.st_size)
        if newest == version:
            return version, None
        status = json.loads(fetch(path).decode())
    except (OSError, ValueError):
        return version, None
    return (newest, status) if isinstance(status, dict) else (version, None)


def _read_from(path: bytes, offset: int, most: int) -> Tuple[Optional[int], bytes]:
    """Size, and what lies beyond the offset."""
    size = _size(path)
    if size is None or size <= offset or most <= 0:
        return size, b""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return size, b""
    try:
        return size, os.pread(descriptor, min(most, size - offset), offset)
    except OSError:
        return size, b""
    finally:
        os.close(descriptor)


def _size(path: bytes) -> Optional[int]:
    try:
        return os.stat(path).st_size
    except OSError:
        return None


# --- outputs --------------------------------------------------------------------------------------------------------


def find(search: Json, beat: Beat) -> Iterator[Json]:
    """Describes every regular file that the pattern names, or says in a `note` why something is left out."""
    root, since = encode(search["directory"]), _since(search["newer_than"])
    wanted = re.compile(search["pattern"], re.DOTALL)
    unreadable = taken = beyond = 0
    for path in _walk(root, b"", beat):
        text = path.decode("utf-8", "surrogateescape")
        if not wanted.fullmatch(text) or (since is not None and _changed(root + b"/" + path) < since):
            continue
        if text.encode("utf-8", "replace") != path:
            unreadable += 1
        elif taken == search["most"]:
            beyond += 1
        else:
            for found in _describe(root, text, beat):
                taken += "path" in found
                yield found
    if unreadable:
        yield {"note": "%d outputs left out: their names are not UTF-8" % unreadable}
    if beyond:
        yield {"note": "%d outputs left out: at most %d files come back" % (beyond, taken)}


def _since(marks: List[str]) -> Optional[int]:
    """When the first of these files that exists was changed: by the very clock that outputs are compared with."""
    if not marks:
        return None
    changed = (_changed(encode(mark)) for mark in marks)
    return next((when for when in changed if when >= 0), 0)


def _changed(path: bytes) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return -1


def _walk(root: bytes, below: bytes, beat: Beat) -> Iterator[bytes]:
    """Regular files in a fixed order. Symbolic links are neither followed nor taken: they may lead out."""
    try:
        with os.scandir(os.path.join(root, below)) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return
    for entry in found:
        beat()
        path = below + b"/" + entry.name if below else entry.name
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(root, path, beat)
        elif entry.is_file(follow_symlinks=False):
            yield path


def _describe(root: bytes, path: str, beat: Beat) -> Iterator[Json]:
    total, size = hashlib.sha256(), 0
    try:
        with open_regular(os.path.join(root, encode(path))) as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            for chunk in iter(lambda: file.read(CHUNK), b""):
                total.update(chunk)
                size += len(chunk)
                beat()
    except OSError as error:
        yield {"note": "output left out: %s: %s" % (path, (error.strerror or str(error)).lower())}
        return
    yield {"path": path, "size": size, "digest": "sha256:" + total.hexdigest(), "mode": mode}


def open_regular(path: bytes) -> BinaryIO:
    """Not blocking, because a pipe may have taken the file's place meanwhile."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return open(descriptor, "rb", buffering=0)  # type: ignore[return-value]  # a BinaryIO in all that we use
    os.close(descriptor)
    raise OSError(errno.EINVAL, "not a regular file", path)


def stream(path: bytes, offset: int, size: int) -> Iterator[bytes]:
    """The bytes from the offset on, up to that size."""
    with open_regular(path) as file:
        file.seek(offset)
        while offset < size:
            chunk = file.read(min(CHUNK, size - offset))
            if not chunk:
                return
            offset += len(chunk)
            yield chunk


# --- requests -------------------------------------------------------------------------------------------------------

MARK = b"\0runyard answers\0"  # whatever a login shell says comes before it
HEAD = struct.Struct(">cI")  # of a frame: its kind, and how many bytes follow
DOCUMENT, DATA, PROBLEM, BEAT, END = b"J", b"D", b"P", b".", b"Z"


def encode(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


class Desk:
    """Reads a request from standard input and writes the frames of its answer. Without END an answer is not whole."""

    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._spoke_at = time.monotonic()

    def serve(self) -> None:
        request = json.loads(self._take(int(self._incoming.readline())).decode())
        self._outgoing.write(MARK)
        try:
            getattr(self, "_" + request["do"])(request)
        except OSError as error:
            name = os.fsdecode(error.filename) if error.filename else None
            self._tell([error.errno, error.strerror, name], PROBLEM)
        self._send(END, b"")
        self._outgoing.flush()

    def _run(self, request: Json) -> None:
        given = self._take(request["input"])
        code, stdout, stderr = run([encode(word) for word in request["argv"]], given, request["timeout"])
        self._tell(code)
        self._send(DATA, stdout)
        self._send(DATA, stderr)

    def _put(self, request: Json) -> None:
        put(encode(request["root"]), self._files(request), map(encode, request["directories"]))

    def _install(self, request: Json) -> None:
        install(encode(request["target"]), dict(self._files(request)))

    def _fetch(self, request: Json) -> None:
        for path in request["paths"]:
            try:
                data = fetch(encode(path))
            except OSError as error:
                self._tell([error.errno, error.strerror])
            else:
                self._tell(None)
                self._send(DATA, data)

    def _filled(self, request: Json) -> None:
        self._tell([path for path in request["directories"] if _has_entries(encode(path))])

    def _scan(self, request: Json) -> None:
        for found, pieces in scan(encode(request["root"]), request["known"], request["budget"]):
            self._tell(found)
            for piece in pieces:
                self._send(DATA, piece)

    def _find(self, request: Json) -> None:
        for number, search in enumerate(request["searches"]):
            for found in find(search, self._beat):
                self._tell(dict(found, search=number))

    def _stream(self, request: Json) -> None:
        for number, source in enumerate(request["sources"]):
            self._tell(number)
            try:
                for chunk in stream(encode(source["path"]), source["offset"], source["size"]):
                    self._send(DATA, chunk)
            except OSError:  # what came is less than it should be, and that says it
                pass

    def _files(self, request: Json) -> Iterator[Tuple[bytes, bytes]]:
        for name, size in request["files"]:
            yield encode(name), self._take(size)

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
        self._spoke_at = time.monotonic()

    def _beat(self) -> None:
        if time.monotonic() > self._spoke_at + BEAT_S:
            self._send(BEAT, b"")
            self._outgoing.flush()


def main() -> None:
    """The caller has sent the length of this text, this text, and the request: see conversation.py."""
    Desk(sys.stdin.buffer, sys.stdout.buffer).serve()


if __name__ == "__main__":
    main()
