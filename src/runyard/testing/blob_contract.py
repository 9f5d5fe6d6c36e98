"""What every blob store must do, as tests. Subclass `BlobContract` and give it the same store twice:

    class TestMine(BlobContract):
        @pytest.fixture
        def servers(self):
            return open_mine(…), open_mine(…)

The two stand for two servers: what one has stored exists for the other.
"""

from __future__ import annotations

import hashlib
import itertools
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runyard import errors
from runyard.blobs import Blobs, BlobStore
from runyard.model.wire import AttemptKey

Servers = tuple[BlobStore, BlobStore]

_LARGE = 40 << 20  # more than any implementation sends in one piece
_RUNS = itertools.count(1)
_SHARED = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors, HealthCheck.too_slow]


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def some_bytes(size: int, seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(size)


def whole(blobs: Blobs, name: str) -> bytes:
    return b"".join(blobs.chunks(name))


def fresh_key() -> AttemptKey:
    """Of an attempt that no other test has written anything of."""
    return AttemptKey(run=next(_RUNS), attempt=1)


class BlobContract:
    examples = 50  # of each property

    @pytest.fixture
    def servers(self) -> Servers:
        raise NotImplementedError("a contract is for a store: override this fixture")

    # --- blobs --------------------------------------------------------------------------------------------------

    @pytest.mark.parametrize("size", [0, 1, 3 << 20, _LARGE])
    def test_what_one_server_stores_the_other_has(self, servers: Servers, size: int) -> None:
        data = some_bytes(size)
        servers[0].blobs.put(digest(data), [data[: size // 2], data[size // 2 :]])
        blobs = servers[1].blobs
        assert blobs.has(digest(data)) and blobs.size(digest(data)) == size
        assert whole(blobs, digest(data)) == data

    def test_parts_of_a_blob(self, servers: Servers) -> None:
        data = some_bytes(3 << 20)
        name = servers[0].blobs.add([data])
        blobs = servers[1].blobs
        for start, end in ((0, 10), (5, 5), (1 << 20, (2 << 20) + 7), (len(data) - 3, len(data))):
            assert b"".join(blobs.chunks(name, start, end)) == data[start:end]
            assert blobs.read(name, start, end - start) == data[start:end]
        assert b"".join(blobs.chunks(name, 100)) == data[100:]
        assert blobs.read(name, len(data) - 3, 100) == data[-3:]
        assert blobs.read(name, len(data), 100) == b""

    def test_a_reader_who_stops_in_the_middle(self, servers: Servers) -> None:
        blobs, data = servers[0].blobs, some_bytes(5 << 20)
        name = blobs.add([data])
        for _ in range(3):
            chunks = blobs.chunks(name)
            assert data.startswith(next(iter(chunks)))
            del chunks
        assert whole(blobs, name) == data

    def test_a_wrong_digest_leaves_no_trace(self, servers: Servers) -> None:
        blobs = servers[0].blobs
        with pytest.raises(errors.InvalidInput, match=f"have the digest {digest(b'other')}, not"):
            blobs.put(digest(b"data"), [b"other"])
        assert blobs.missing([digest(b"data"), digest(b"other")]) == {digest(b"data"), digest(b"other")}

    def test_a_blob_that_is_not_there(self, servers: Servers) -> None:
        blobs, name = servers[0].blobs, digest(b"never stored")
        assert not blobs.has(name)
        for ask in (blobs.size, lambda name: blobs.read(name, 0, 1), lambda name: whole(blobs, name)):
            with pytest.raises(errors.NotFound, match=name):
                ask(name)

    @pytest.mark.parametrize("name", ["", "incoming", "../etc/passwd", "sha256:../" + "a" * 61, "sha256:" + "A" * 64])
    def test_what_is_no_digest_becomes_no_path(self, servers: Servers, name: str) -> None:
        blobs = servers[0].blobs
        for ask in (blobs.has, blobs.size, blobs.writer, lambda name: blobs.commit_partial(name, 1)):
            with pytest.raises(errors.InvalidInput, match="is not a digest"):
                ask(name)
        with pytest.raises(errors.InvalidInput, match="is not a digest"):
            blobs.append_partial(name, 1, 0, b"x")

    def test_many_at_once(self, servers: Servers) -> None:
        contents = {digest(data): data for data in (b"%d" % number for number in range(40))}
        absent = digest(b"absent")
        servers[0].blobs.put_many(contents)
        assert servers[1].blobs.missing([*contents, absent, absent]) == {absent}
        assert servers[1].blobs.read_many(contents) == contents
        assert servers[1].blobs.sizes(contents) == {name: len(data) for name, data in contents.items()}
        for ask in (servers[1].blobs.sizes, servers[1].blobs.read_many):
            assert ask([]) == {}
            with pytest.raises(errors.NotFound, match=absent):
                ask([*contents, absent])
        servers[0].blobs.put_many(contents)
        servers[0].blobs.put_many({})

    def test_many_of_which_one_is_wrong(self, servers: Servers) -> None:
        contents = {digest(b"right"): b"right", digest(b"promised"): b"wrong"}
        with pytest.raises(errors.InvalidInput, match="have the digest"):
            servers[0].blobs.put_many(contents)
        assert servers[0].blobs.missing(contents) == set(contents)

    @pytest.mark.parametrize("link", [True, False])
    def test_a_local_file_is_taken(self, servers: Servers, tmp_path: Path, link: bool) -> None:
        path = tmp_path / "output"
        path.write_bytes(b"result")
        for _ in range(2):
            servers[0].blobs.adopt(digest(b"result"), path, link=link)
        assert whole(servers[1].blobs, digest(b"result")) == b"result"
        assert path.read_bytes() == b"result"

    def test_a_local_file_that_changes_meanwhile(self, servers: Servers, tmp_path: Path) -> None:
        path = tmp_path / "output"
        path.write_bytes(b"newer")
        with pytest.raises(errors.InvalidInput, match="have the digest"):
            servers[0].blobs.adopt(digest(b"result"), path, link=False)
        assert not servers[1].blobs.has(digest(b"result"))

    def test_a_writer_that_is_discarded(self, servers: Servers) -> None:
        writer = servers[0].blobs.writer(digest(b"data"))
        writer.write(b"data")
        writer.discard()
        assert not servers[1].blobs.has(digest(b"data"))

    def test_a_sender_who_fails_leaves_no_trace(self, servers: Servers) -> None:
        def chunks() -> Sequence[bytes]:
            raise ConnectionError("gone")

        with pytest.raises(ConnectionError):
            servers[0].blobs.put(digest(b"data"), (chunk for _ in range(1) for chunk in chunks()))
        assert not servers[0].blobs.has(digest(b"data"))

    def test_what_one_server_removes_nobody_has_any_more(self, servers: Servers) -> None:
        contents = {digest(data): data for data in (b"one", b"other", b"third")}
        servers[0].blobs.put_many(contents)
        gone = [digest(b"one"), digest(b"other")]
        for _ in range(2):  # what is not there is removed, too
            servers[1].blobs.remove(gone)
            assert servers[0].blobs.missing(contents) == set(gone)
            assert not servers[0].blobs.has(gone[0])
        with pytest.raises(errors.NotFound, match=gone[0]):
            servers[0].blobs.read(gone[0], 0, 10)
        servers[0].blobs.remove([])
        assert servers[1].blobs.read_many([digest(b"third")]) == {digest(b"third"): b"third"}

    def test_what_was_removed_can_be_stored_again(self, servers: Servers, tmp_path: Path) -> None:
        blobs, name, data = servers[0].blobs, digest(b"again"), b"again"
        path = tmp_path / "again"
        path.write_bytes(data)

        def upload() -> None:
            blobs.append_partial(name, len(data), 0, data)
            blobs.commit_partial(name, len(data))

        for store in (
            lambda: blobs.put(name, [data]), lambda: blobs.put_many({name: data}), lambda: blobs.add([data]), upload,
            lambda: blobs.adopt(name, path, link=False), lambda: blobs.adopt(name, path, link=True),
        ):  # fmt: skip
            store()
            assert whole(servers[1].blobs, name) == data
            servers[1].blobs.remove([name])
            assert not blobs.has(name)
        assert path.read_bytes() == data

    def test_what_is_no_digest_is_not_removed(self, servers: Servers) -> None:
        with pytest.raises(errors.InvalidInput, match="is not a digest"):
            servers[0].blobs.remove(["sha256:../" + "a" * 61])

    # --- uploads in several requests ----------------------------------------------------------------------------

    @pytest.mark.parametrize("size", [10, _LARGE])
    def test_an_upload_in_pieces_through_any_server(self, servers: Servers, size: int) -> None:
        data = some_bytes(size)
        name, held, turn = digest(data), 0, itertools.cycle(servers)
        while held < size:
            blobs = next(turn).blobs
            assert blobs.append_partial(name, size, 0, b"") == held
            held = blobs.append_partial(name, size, held, data[held : held + size // 4 + 1])
        assert not servers[0].blobs.has(name)
        servers[0].blobs.commit_partial(name, size)
        assert whole(servers[1].blobs, name) == data
        assert servers[1].blobs.append_partial(name, size, 0, b"") == size
        servers[1].blobs.commit_partial(name, size)

    def test_pieces_of_an_upload_may_be_repeated_and_have_no_gaps(self, servers: Servers) -> None:
        blobs, data = servers[0].blobs, b"0123456789"
        name = digest(data)
        assert blobs.append_partial(name, 10, 5, data[5:]) == 0
        assert blobs.append_partial(name, 10, 0, data[:4]) == 4
        assert blobs.append_partial(name, 10, 0, data[:4]) == 4
        assert blobs.append_partial(name, 10, 2, data[2:]) == 10
        blobs.commit_partial(name, 10)
        assert whole(blobs, name) == data

    def test_an_upload_with_another_digest_is_dropped(self, servers: Servers) -> None:
        name = digest(b"promised")
        servers[0].blobs.append_partial(name, 8, 0, b"damaged!")
        with pytest.raises(errors.InvalidInput, match="have the digest"):
            servers[1].blobs.commit_partial(name, 8)
        assert servers[0].blobs.append_partial(name, 8, 0, b"") == 0
        assert servers[0].blobs.append_partial(name, 8, 0, b"promised") == 8
        servers[1].blobs.commit_partial(name, 8)
        assert servers[0].blobs.has(name)

    @pytest.mark.parametrize("size", [0, 4, 9])
    def test_who_says_another_size_disturbs_nobody(self, servers: Servers, size: int) -> None:
        blobs, name = servers[0].blobs, digest(b"promised")
        blobs.append_partial(name, 8, 0, b"prom")
        assert servers[1].blobs.append_partial(name, size, 0, b"") == 0
        with pytest.raises(errors.InvalidInput):
            servers[1].blobs.commit_partial(name, size)
        assert blobs.append_partial(name, 8, 4, b"ised") == 8
        blobs.commit_partial(name, 8)
        assert whole(blobs, name) == b"promised"

    def test_more_than_was_announced_is_refused(self, servers: Servers) -> None:
        blobs, name = servers[0].blobs, digest(b"promised")
        with pytest.raises(errors.InvalidInput, match="has 8 bytes"):
            blobs.append_partial(name, 8, 0, b"promised and more")
        assert blobs.append_partial(name, 8, 0, b"") == 0

    def test_an_upload_that_was_not_begun(self, servers: Servers) -> None:
        with pytest.raises(errors.InvalidInput, match="is not complete: 0 of 4 bytes"):
            servers[0].blobs.commit_partial(digest(b"data"), 4)
        servers[0].blobs.commit_partial(digest(b""), 0)
        assert servers[0].blobs.has(digest(b""))

    def test_two_who_upload_the_same_at_once(self, servers: Servers) -> None:
        data = some_bytes(1 << 20)
        name = digest(data)

        def upload(store: BlobStore) -> None:
            held = 0
            while held < len(data):
                held = store.blobs.append_partial(name, len(data), held, data[held : held + 100_000])
            store.blobs.commit_partial(name, len(data))

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(upload, servers))
        assert whole(servers[0].blobs, name) == data

    # --- files that grow ----------------------------------------------------------------------------------------

    def test_bytes_by_offset(self, servers: Servers) -> None:
        one, other = (store.files for store in servers)
        key = fresh_key()
        assert one.size(key, "log") == 0 and one.read(key, "log", 0, 100) == b""
        assert one.append(key, "log", 0, b"hello ") == 6
        assert other.append(key, "log", 6, b"world") == 11
        assert one.append(key, "log", 0, b"hello ") == 11
        assert one.append(key, "log", 4, b"o world\n") == 12
        assert other.append(key, "log", 20, b"a gap") == 12
        assert other.append(key, "log", 0, b"") == 12
        assert one.size(key, "log") == other.size(key, "log") == 12
        assert other.read(key, "log", 0, 100) == b"hello world\n"
        for offset, found in ((0, b"hell"), (3, b"lo w"), (10, b"d\n"), (12, b""), (50, b"")):
            assert other.read(key, "log", offset, 4) == found

    def test_files_and_attempts_are_apart(self, servers: Servers) -> None:
        files, key = servers[0].files, fresh_key()
        others = [AttemptKey(run=key.run, attempt=11), AttemptKey(run=key.run * 10 + 5000, attempt=1)]
        files.append(key, "log", 0, b"log")
        files.append(key, "usage.jsonl", 0, b"usage\n")
        assert [files.size(other, "log") for other in others] == [0, 0]
        assert files.read(key, "usage.jsonl", 0, 100) == b"usage\n"
        assert files.size(key, "stdout") == 0
        wanted = [(key, "log"), (key, "stdout"), (others[0], "log"), (key, "usage.jsonl")]
        assert files.sizes(wanted) == dict(zip(wanted, (3, 0, 0, 6), strict=True))
        assert files.sizes([]) == {}

    @pytest.mark.parametrize("file", ["", "spec.json", "../../log", "log/x"])
    def test_other_files_are_refused(self, servers: Servers, file: str) -> None:
        files, key = servers[0].files, fresh_key()
        with pytest.raises(errors.InvalidInput, match="is not a file that is relayed"):
            files.append(key, file, 0, b"x")
        with pytest.raises(errors.InvalidInput, match="is not a file that is relayed"):
            files.size(key, file)

    def test_very_many_small_pieces(self, servers: Servers) -> None:
        key, data = fresh_key(), some_bytes(2000)
        for offset, store in zip(range(0, 2000, 20), itertools.cycle(servers), strict=False):
            assert store.files.append(key, "log", offset, data[offset : offset + 20]) == offset + 20
        assert servers[0].files.read(key, "log", 0, 5000) == data
        assert servers[1].files.read(key, "log", 777, 500) == data[777:1277]

    def test_two_servers_bring_the_same_file_at_once(self, servers: Servers) -> None:
        """In other pieces, while a third one reads. An acknowledged size never shrinks."""
        key, data = fresh_key(), some_bytes(30_000)

        def bring(store: BlobStore, seed: int) -> None:
            held, pieces = 0, random.Random(seed)
            while held < len(data):
                begin = max(0, held - pieces.randrange(50))
                now = store.files.append(key, "log", begin, data[begin : held + pieces.randrange(1, 800)])
                assert now >= held
                held = now

        def read() -> None:
            seen = b""
            while len(seen) < len(data):
                seen += servers[0].files.read(key, "log", len(seen), 10_000)
                assert data.startswith(seen)

        with ThreadPoolExecutor(3) as pool:
            work = [pool.submit(bring, store, seed) for seed, store in enumerate(servers)] + [pool.submit(read)]
            for each in work:
                each.result(120)
        assert servers[0].files.read(key, "log", 0, len(data) + 1) == data

    def test_any_order_of_pieces(self, servers: Servers) -> None:
        data = some_bytes(4000)
        pieces = st.tuples(st.sampled_from([0, 1]), st.integers(0, 4000), st.integers(0, 1500))

        @settings(max_examples=self.examples, suppress_health_check=_SHARED)
        @given(st.lists(pieces, max_size=30), st.integers(0, 4000), st.integers(0, 4000))
        def check(sent: list[tuple[int, int, int]], offset: int, limit: int) -> None:
            key, held = fresh_key(), 0
            for server, start, size in sent:
                piece = data[start : start + size]
                held = max(held, start + len(piece)) if start <= held else held
                assert servers[server].files.append(key, "log", start, piece) == held
            assert {store.files.size(key, "log") for store in servers} == {held}
            assert servers[0].files.read(key, "log", offset, limit) == data[:held][offset : offset + limit]

        check()

    # --- at the start -------------------------------------------------------------------------------------------

    def test_it_can_be_tried_out_by_several_at_once(self, servers: Servers) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda store: store.check(), servers * 4))
