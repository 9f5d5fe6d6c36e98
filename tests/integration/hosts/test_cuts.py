"""Connections that are cut in the middle: what was asked is asked again, and nothing is lost or doubled."""

from __future__ import annotations

import contextlib
import itertools
import random
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from runyard.hosts.base import KnownFiles, OutputSearch, SourceFile, Unreachable
from runyard.hosts.ssh import SshHost
from tests.labs.sshd import SshLab

MB = 1 << 20


@contextlib.contextmanager
def meanwhile(work: Callable[[], object]) -> Iterator[None]:
    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        thread.join(180)
        assert not thread.is_alive()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 90
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


def hold_after_some(host: SshHost, go_on: threading.Event) -> None:
    """Of what comes next, the host takes no more than the beginning until it may go on: a busy machine must not be
    through before it is cut."""
    stream = host._stream

    def held(sources: Sequence[tuple[SourceFile, int]]) -> Iterator[tuple[int, bytes]]:
        taken = 0
        for number, piece in stream(sources):
            if taken > 2 * MB:
                assert go_on.wait(90)
            yield number, piece
            taken += len(piece)

    host._stream = held  # type: ignore[method-assign]


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


@pytest.fixture
def large(far_directory: str) -> Path:
    """A file that takes a moment to be brought."""
    path = Path(far_directory, "large")
    block = secrets.token_bytes(MB)
    with path.open("wb") as file:
        for number in range(150):
            file.write(block[number:])
    path.chmod(0o644)
    return path


def source(host: SshHost, path: Path) -> SourceFile:
    [[found]] = [listing.files for listing in host.find([OutputSearch(directory=str(path.parent), pattern=path.name)])]
    return SourceFile(path=str(path), size=found.size, digest=found.digest)


def test_a_command_whose_connection_is_cut_is_unknown(lab: SshLab, host: SshHost, far_directory: str) -> None:
    begun = Path(far_directory, "begun")

    def cut() -> None:
        wait_for(begun.exists)
        lab.drop_connections("login1")

    with meanwhile(cut):
        result = host.run(["sh", "-c", 'touch "$0"; exec sleep 120', str(begun)], timeout=90)
    assert (result.code, result.stderr) == (None, b"the connection to login1 was cut")
    assert host.run(["true"], timeout=90).ok


def test_files_that_are_cut_on_their_way_are_whole_or_absent(lab: SshLab, host: SshHost, far_directory: str) -> None:
    files = {f"f{number:03}": secrets.token_bytes(MB // 2) for number in range(200)}
    host.run(["true"], timeout=90)

    def cut() -> None:
        time.sleep(0.1)
        lab.drop_connections("login1")

    with meanwhile(cut), contextlib.suppress(Unreachable):
        host.put(far_directory, files)
    arrived = {path.name: path.read_bytes() for path in Path(far_directory).iterdir() if path.suffix != ".tmp"}
    assert arrived.items() <= files.items()
    host.put(far_directory, files)
    assert {path.name: path.read_bytes() for path in Path(far_directory).glob("f???")} == files


def test_a_relay_with_cuts_brings_every_byte_once(lab: SshLab, host: SshHost, far_directory: str) -> None:
    log, enough, scanned = Path(far_directory, "log"), threading.Event(), threading.Event()
    log.touch(mode=0o644)

    def write() -> None:
        with log.open("ab", buffering=0) as file:
            for number in itertools.count():
                file.write(b"line %d of a log that grows\n" % number * 20)
                if enough.wait(0.002):
                    return

    def cut() -> None:
        while not enough.is_set():
            if scanned.wait(0.1):  # there is a connection, and the next scan is under way
                time.sleep(random.uniform(0, 0.06))
                for name in lab.names:
                    lab.drop_connections(name)
                scanned.clear()

    relayed, cuts = b"", 0
    with meanwhile(write), meanwhile(cut):
        while not enough.is_set() or len(relayed) < size(log):
            try:
                found = host.scan(
                    far_directory, [KnownFiles(directory=".", offsets={"log": len(relayed)}, started=True)]
                )
            except Unreachable:
                cuts += 1
                time.sleep(0.05)
            else:
                relayed += b"".join(seen.data["log"] for seen in found)
                scanned.set()
            if cuts == 4:
                enough.set()
    assert relayed == log.read_bytes()


def test_a_transfer_that_is_cut_goes_on_where_it_ended(
    lab: SshLab, host: SshHost, large: Path, spool: Path, caplog: pytest.LogCaptureFixture
) -> None:
    wanted, is_cut = source(host, large), threading.Event()
    part = spool / f"{wanted.digest.removeprefix('sha256:')}.part"
    hold_after_some(host, is_cut)

    def cut() -> None:
        wait_for(lambda: size(part) > MB)
        lab.drop_connections("login1")
        is_cut.set()

    with caplog.at_level("INFO"), meanwhile(cut), host.borrow([wanted]) as brought:
        found = brought[wanted.digest].read_bytes()
    assert found == large.read_bytes()
    [record] = caplog.records
    assert record.message.startswith("the connection to login1 was cut; going on after ")
    assert MB < int(record.message.split()[-2]) < wanted.size
    assert list(spool.iterdir()) == []


def test_a_transfer_goes_on_after_a_restart(
    lab: SshLab, make_host: Callable[..., SshHost], large: Path, spool: Path
) -> None:
    host = make_host("login1")
    wanted, is_cut = source(host, large), threading.Event()
    part = spool / f"{wanted.digest.removeprefix('sha256:')}.part"
    hold_after_some(host, is_cut)

    def cut() -> None:
        wait_for(lambda: size(part) > MB)
        lab.freeze("login1")  # so that it cannot be reached again before it is down
        lab.drop_connections("login1")
        lab.kill_sshd("login1")
        is_cut.set()

    with meanwhile(cut), pytest.raises(Unreachable), host.borrow([wanted]):
        pass
    before = size(part)
    assert MB < before < wanted.size
    inode = part.stat().st_ino
    lab.start_sshd("login1")
    with make_host("login1").borrow([wanted]) as brought:
        assert brought[wanted.digest].stat().st_ino == inode
        assert brought[wanted.digest].stat().st_size == wanted.size


def test_a_part_that_was_damaged_is_brought_anew(host: SshHost, far_directory: str, spool: Path) -> None:
    host.put(far_directory, {"output": b"0123456789"})
    wanted = source(host, Path(far_directory, "output"))
    spool.mkdir()
    (spool / f"{wanted.digest.removeprefix('sha256:')}.part").write_bytes(b"\0\0\0\0")
    with host.borrow([wanted]) as brought:
        assert brought[wanted.digest].read_bytes() == b"0123456789"


def test_what_changed_or_is_gone_is_left_out(host: SshHost, far_directory: str) -> None:
    host.put(far_directory, {"changed": b"before", "gone": b"gone", "same": b"same"})
    found = [source(host, Path(far_directory, name)) for name in ("changed", "gone", "same")]
    host.put(far_directory, {"changed": b"after!"})
    host.run(["rm", f"{far_directory}/gone"], timeout=90)
    with host.borrow(found) as brought:
        assert {path.read_bytes() for path in brought.values()} == {b"same"}
