"""Files that grow while somebody reads them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from runyard import errors
from runyard.client import Client, Output, fetch
from tests.unit.client.server import Handler, Server
from tests.unit.client.test_fetch import digest


class Yard:
    """Serves one file, which grows; it keeps where it was asked to begin."""

    def __init__(self) -> None:
        self.data = b""
        self.starts: list[int] = []

    def __call__(self, request: Handler) -> None:
        asked = request.headers.get("Range")
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        self.starts.append(start)
        request.reply(206 if asked else 200, raw=self.data[start:])

    @property
    def output(self) -> Output:
        return Output(path="logs/events", size=len(self.data), digest=digest(self.data))


@pytest.fixture
def yard() -> Yard:
    return Yard()


@pytest.fixture
def client(serve, yard: Yard) -> Client:
    server: Server = serve(yard)
    return Client(server.url, "token")


def test_only_what_is_new_is_brought_into_the_same_file(client: Client, yard: Yard, tmp_path: Path) -> None:
    yard.data = os.urandom(5000)
    path = fetch.extend(client, yard.output, tmp_path)
    with path.open("rb") as reader:
        assert reader.read() == yard.data
        before, yard.data = yard.data, yard.data + os.urandom(300)
        fetch.extend(client, yard.output, tmp_path)
        assert reader.read() == yard.data[len(before) :]
    assert yard.starts == [0, 5000]
    assert [item.name for item in tmp_path.rglob("*")] == ["logs", "events"]


def test_a_file_that_was_written_anew_comes_as_a_whole(client: Client, yard: Yard, tmp_path: Path) -> None:
    yard.data = os.urandom(5000)
    fetch.extend(client, yard.output, tmp_path)
    for size in (6000, 100, 0):
        yard.data = os.urandom(size)
        assert fetch.extend(client, yard.output, tmp_path).read_bytes() == yard.data


def test_damaged_bytes_are_told(client: Client, yard: Yard, tmp_path: Path) -> None:
    yard.data = os.urandom(100)
    promised, yard.data = yard.output, os.urandom(100)
    with pytest.raises(errors.RunyardError, match="logs/events arrived damaged"):
        fetch.extend(client, promised, tmp_path)


def test_nothing_is_written_elsewhere(client: Client, yard: Yard, tmp_path: Path) -> None:
    (tmp_path / "inside").mkdir()
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "inside" / "logs").symlink_to(tmp_path)
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "logs").mkdir()
    (tmp_path / "link" / "logs" / "events").symlink_to(tmp_path / "victim")
    for place in ("inside", "link"):
        with pytest.raises(errors.Conflict, match="symbolic link"):
            fetch.extend(client, yard.output, tmp_path / place)
    assert (tmp_path / "victim").read_text() == "mine"
