"""What every host must do, as tests. A plug-in's author subclasses `HostContract` and gives it a host:

    class TestMine(HostContract):
        @pytest.fixture
        def host(self):
            return MyHost(…)

        @pytest.fixture
        def place(self):
            return "/a/directory/there"

Only the host's own verbs are used to look at its files.
"""

from __future__ import annotations

import json
import secrets
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from runyard.hosts.base import CHUNK, SCAN_BYTES, Host, KnownFiles, Listing, OutputSearch, Seen, SourceFile
from runyard.testing.cache_contract import WEIRD, CacheContract
from runyard.testing.cache_store import digest
from runyard.testing.checkpoint_contract import CheckpointContract
from runyard.testing.leave_contract import LeaveContract

DEEP = "/".join(["d"] * 1200)  # deeper than Python calls itself
WORDS = ["", " ", "two  words", WEIRD, "-n", "*", "~", "#", "\t", "\udcff\udcfe", "a'b\"c", "x" * 5000]


def known(directory: str = "1/a1", *, log: int = 0, version: str = "", started: bool = False) -> KnownFiles:
    return KnownFiles(directory=directory, offsets={"log": log}, version=version, started=started)


def one(found: list[Seen]) -> Seen:
    [seen] = found
    return seen


def everything(directory: str, pattern: str = ".*", newer_than: tuple[str, ...] = ()) -> OutputSearch:
    return OutputSearch(directory=directory, pattern=pattern, newer_than=newer_than)


def names(found: Listing) -> list[str]:
    return [output.path for output in found.files]


class HostContract(CacheContract, CheckpointContract, LeaveContract):
    @pytest.fixture
    def host(self) -> Host:
        raise NotImplementedError("a contract is for a host: override this fixture")

    @pytest.fixture
    def place(self) -> str:
        raise NotImplementedError("name a directory of the host that may be written to")

    @pytest.fixture
    def root(self, place: str) -> str:
        """Not there yet."""
        return f"{place}/{WEIRD}/{secrets.token_hex(4)}"

    # --- commands -----------------------------------------------------------------------------------------------

    def test_a_command_is_run_with_its_input(self, host: Host) -> None:
        result = host.run(["sh", "-c", "cat; echo oops >&2; exit 3"], timeout=90, input=b"given\0\xff")
        assert (result.code, result.stdout, result.stderr, result.ok) == (3, b"given\0\xff", b"oops\n", False)

    @pytest.mark.parametrize("code", [0, 1, 127, 255])
    def test_every_code_is_told(self, host: Host, code: int) -> None:
        assert host.run(["sh", "-c", f"exit {code}"], timeout=90).code == code

    def test_words_arrive_unchanged(self, host: Host) -> None:
        result = host.run(["printf", "%s\\0", *WORDS], timeout=90)
        assert result.stdout == b"".join(word.encode(errors="surrogateescape") + b"\0" for word in WORDS)

    def test_many_words_arrive(self, host: Host) -> None:
        """More than the kernel takes as a single word, which is what a shell's command line is."""
        assert host.run(["sh", "-c", "echo $#", "sh", *["1234567.1234"] * 20_000], timeout=90).stdout == b"20000\n"

    def test_a_missing_program_is_an_answer(self, host: Host) -> None:
        result = host.run(["no-such-program"], timeout=90)
        assert result.code == 127
        assert b"no-such-program" in result.stderr

    def test_a_command_that_does_not_answer_is_killed_with_what_it_started(self, host: Host, root: str) -> None:
        host.put(root, {})
        # The sleep keeps the pipe open after the shell is gone.
        command = ["sh", "-c", 'sleep 600 & echo $! > "$0/pid"; wait', root]
        for timeout in (1, 5, 25, 125):  # on a busy machine a command may be killed before it has begun
            result = host.run(command, timeout=timeout)
            assert result.code is None
            assert b"no answer" in result.stderr
            pid = host.fetch_many([f"{root}/pid"]).get(f"{root}/pid", b"").decode().strip()
            if pid:
                break
        assert pid
        deadline = time.monotonic() + 90
        while host.run(["grep", "-q", "[1-9]", f"/proc/{pid}/cmdline"], timeout=90).ok:
            assert time.monotonic() < deadline

    def test_calls_may_come_from_any_thread(self, host: Host) -> None:
        with ThreadPoolExecutor(6) as pool:
            results = pool.map(lambda number: host.run(["echo", str(number)], timeout=90), range(12))
        assert [result.stdout.decode() for result in results] == [f"{number}\n" for number in range(12)]

    # --- files --------------------------------------------------------------------------------------------------

    def test_put_builds_private_directories_and_replaces_files(self, host: Host, root: str) -> None:
        host.put(root, {f"a/{WEIRD}": b"1", "a/\udcff": b"2"}, ["a", "b/c"])
        host.put(root, {f"a/{WEIRD}": b"new\0"})
        assert host.fetch(f"{root}/a/{WEIRD}") == b"new\0"
        assert host.fetch(f"{root}/a/\udcff") == b"2"
        modes = host.run(["stat", "-c", "%a", root, f"{root}/a", f"{root}/b/c", f"{root}/a/{WEIRD}"], timeout=90)
        assert modes.stdout.split() == [b"700", b"700", b"700", b"600"]
        assert len(host.run(["ls", "-b", f"{root}/a"], timeout=90).stdout.splitlines()) == 2

    def test_put_that_fails_leaves_what_was_there(self, host: Host, root: str) -> None:
        host.put(root, {}, ["x"])
        with pytest.raises(OSError):
            host.put(root, {"x": b"a file cannot replace a directory"})
        assert host.run(["ls", root], timeout=90).stdout == b"x\n"

    def test_a_place_that_cannot_be_written_is_an_error_that_names_it(self, host: Host) -> None:
        with pytest.raises(FileNotFoundError) as caught:
            host.put("/proc/nothing/here", {"x": b""})
        assert "/proc" in str(caught.value)

    def test_fetch_of_nothing_raises(self, host: Host, root: str) -> None:
        with pytest.raises(FileNotFoundError):
            host.fetch(f"{root}/none")

    def test_many_files_are_fetched_at_once(self, host: Host, root: str) -> None:
        host.put(root, {"a": b"1", "b": b"", "c": b"3"})
        paths = [f"{root}/{name}" for name in ("a", "none", "b", "c")]
        assert host.fetch_many(paths) == {f"{root}/a": b"1", f"{root}/b": b"", f"{root}/c": b"3"}
        assert host.fetch_many([]) == {}

    def test_filled_directories(self, host: Host, root: str) -> None:
        host.put(root, {"full/x": b""}, ["full", "empty"])
        asked = [f"{root}/full", f"{root}/empty", f"{root}/none"]
        assert host.filled(asked) == {f"{root}/full"}
        assert host.filled([]) == set()

    def test_how_much_room_there_is(self, host: Host, root: str) -> None:
        """Also where the directory is not made yet."""
        host.put(root, {}, [])
        found = host.room([root, f"{root}/later/on"])
        assert list(found) == [root, f"{root}/later/on"]
        for free, total in found.values():
            assert 0 <= free <= total and total > 0

    def test_what_is_installed_appears_whole(self, host: Host, root: str) -> None:
        wanted = {"__main__.py": b"print(1)", "other.py": b"", "inner/deep/more.py": b"2"}
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda _: host.install(f"{root}/program", wanted), range(4)))
        assert host.run(["ls", "-A", root], timeout=90).stdout == b"program\n"
        assert host.fetch_many([f"{root}/program/{name}" for name in wanted]) == {
            f"{root}/program/{name}": data for name, data in wanted.items()
        }

    def test_what_lost_a_file_is_made_whole(self, host: Host, root: str) -> None:
        wanted = {"a": b"1", "b": b"22", "inner/c": b"333"}
        host.install(f"{root}/program", wanted)
        host.run(["rm", "-r", f"{root}/program/b", f"{root}/program/inner"], timeout=90)
        host.install(f"{root}/program", wanted)
        assert [host.fetch(f"{root}/program/{name}") for name in wanted] == list(wanted.values())

    # --- scans --------------------------------------------------------------------------------------------------

    def test_a_function_that_was_installed_is_called(self, host: Host, root: str) -> None:
        program = b"def add(numbers, more):\n    return {'sum': sum(numbers) + more}\n"
        place = f"{root}/sums-{secrets.token_hex(4)}"
        host.install(place, {"__init__.py": b"", "sums.py": program})
        assert host.call(place, "sums.add", {"numbers": [1, 2], "more": 3}) == {"sum": 6}
        with pytest.raises(FileNotFoundError):
            host.call(f"{root}/nothing", "sums.add", {"numbers": [], "more": 0})

    def test_what_does_not_exist_is_no_news(self, host: Host, root: str) -> None:
        assert host.scan(root, [known()]) == []

    def test_new_bytes_come_from_the_known_offset(self, host: Host, root: str) -> None:
        host.put(root, {"1/a1/log": b"0123456789\xff"}, ["1/a1/started"])
        asked = KnownFiles(directory="1/a1", offsets={"log": 4, "stderr": 0}, started=True)
        seen = one(host.scan(root, [asked]))
        assert (seen.data, seen.sizes) == ({"log": b"456789\xff"}, {"log": 11})

    def test_a_status_is_read_when_it_changed(self, host: Host, root: str) -> None:
        host.put(root, {"1/a1/status.json": b'{"state": "running", "beat": 1}'}, ["1/a1/started"])
        first = one(host.scan(root, [known()]))
        assert (first.started, first.status) == (True, {"state": "running", "beat": 1})
        again = known(version=first.version, started=True)
        assert host.scan(root, [again]) == []
        host.put(root, {"1/a1/status.json": b'{"state": "ended", "beat": 2}'})
        assert one(host.scan(root, [again])).status == {"state": "ended", "beat": 2}

    @pytest.mark.parametrize("half", [b"", b'{"state": "run', b"[1, 2]", b"\0\0", b"\xff"])
    def test_half_a_status_is_unknown_and_read_again(self, host: Host, root: str, half: bytes) -> None:
        host.put(root, {"1/a1/status.json": half}, ["1/a1"])
        assert host.scan(root, [known(started=True)]) == []
        host.put(root, {"1/a1/status.json": b'{"state": "ended"}'})
        assert one(host.scan(root, [known(started=True)])).status == {"state": "ended"}

    def test_started_alone_is_news(self, host: Host, root: str) -> None:
        host.put(root, {}, ["1/a1/started"])
        assert one(host.scan(root, [known()])).started
        assert host.scan(root, [known(started=True)]) == []

    def test_a_scan_brings_only_so_much(self, host: Host, root: str) -> None:
        count = SCAN_BYTES // CHUNK + 2
        host.put(root, {}, [f"{number}/a1" for number in range(count)])
        fill = 'for n in "$0"/*; do head -c "$1" /dev/zero > "$n/a1/log"; done'
        assert host.run(["sh", "-c", fill, root, str(CHUNK + 5)], timeout=60).ok
        found = host.scan(root, [known(f"{number}/a1", started=True) for number in range(count)])
        assert {len(seen.data["log"]) for seen in found} == {CHUNK}
        assert sum(len(seen.data["log"]) for seen in found) == SCAN_BYTES

    def test_a_thousand_attempts_are_scanned_at_once(self, host: Host, root: str) -> None:
        places = [f"{number}/a1" for number in range(1000)]
        files = {f"{place}/log": f"log of {place}".encode() for place in places}
        status = {f"{place}/status.json": json.dumps({"state": "running", "place": place}).encode() for place in places}
        host.put(root, {**files, **status}, [f"{place}/started" for place in places])
        found = {seen.directory: seen for seen in host.scan(root, map(known, places))}
        assert {place: seen.data["log"].decode() for place, seen in found.items()} == {p: f"log of {p}" for p in places}
        assert [(found[place].status or {})["place"] for place in places] == places

    # --- outputs ------------------------------------------------------------------------------------------------

    def test_outputs_come_with_size_digest_and_mode(self, host: Host, root: str) -> None:
        host.put(root, {f"model/{WEIRD}": b"abc", "empty": b""}, ["model"])
        host.run(["chmod", "640", f"{root}/model/{WEIRD}"], timeout=90)
        [found] = host.find([everything(root)])
        assert [(output.path, output.size, output.digest, output.mode) for output in found.files] == [
            ("empty", 0, digest(b""), 0o600),
            (f"model/{WEIRD}", 3, digest(b"abc"), 0o640),
        ]
        assert found.notes == []

    def test_many_searches_are_one(self, host: Host, root: str) -> None:
        host.put(root, {"a/1": b"", "b/2": b"", "b/3.txt": b""}, ["a", "b"])
        asked = [everything(f"{root}/a"), everything(f"{root}/none"), everything(f"{root}/b", r".*\.txt")]
        assert [names(found) for found in host.find(asked)] == [["1"], [], ["3.txt"]]
        assert host.find([]) == []

    def test_only_regular_files_below_are_outputs(self, host: Host, root: str) -> None:
        host.put(root, {"elsewhere/secret": b"", "out/real": b""}, ["elsewhere", "out"])
        script = 'cd "$0/out"; ln -s ../elsewhere/secret link; ln -s ../elsewhere directory; ln -s . loop; mkfifo pipe'
        assert host.run(["sh", "-c", script, root], timeout=90).ok
        [found] = host.find([everything(f"{root}/out")])
        assert (names(found), found.notes) == (["real"], [])

    def test_names_that_are_not_text_are_told(self, host: Host, root: str) -> None:
        host.put(root, {"\udcff": b"", "ünïcode €": b""})
        [found] = host.find([everything(root)])
        assert names(found) == ["ünïcode €"]
        assert found.notes == ["1 outputs left out: their names are not UTF-8"]

    def test_no_folder_is_too_deep_to_look_into(self, host: Host, root: str) -> None:
        host.put(root, {})
        assert host.run(["sh", "-ec", f'mkdir -p "$0/{DEEP}"; touch "$0/{DEEP}/model"', root], timeout=60).ok
        [found] = host.find([everything(root)])
        host.run(["rm", "-r", root], timeout=60)  # other programs are not made for that
        assert names(found) == [f"{DEEP}/model"]
        assert found.notes == []

    def test_a_folder_that_cannot_be_read_is_told(self, host: Host, root: str) -> None:
        host.put(root, {}, ["out"])
        script = (
            f'cd "$0/out"; mkdir -p {DEEP} ../more/{DEEP}/end; mv ../more {DEEP}/; touch seen'  # no path is so long
        )
        assert host.run(["sh", "-ec", script, root], timeout=60).ok
        [found] = host.find([everything(f"{root}/out")])
        host.run(["rm", "-r", root], timeout=60)
        assert names(found) == ["seen"]
        [note] = found.notes
        assert note.startswith("outputs left out: d/")
        assert note.endswith(": file name too long")

    def test_what_was_there_before_stays(self, host: Host, root: str) -> None:
        host.put(root, {"out/old": b"", "mark": b"", "out/new": b""}, ["out"])
        for name, when in (("out/old", "00:01"), ("mark", "00:02"), ("out/new", "00:02")):
            host.run(["touch", "-d", f"2020-01-01 {when}", f"{root}/{name}"], timeout=90)
        [found] = host.find([everything(f"{root}/out", newer_than=(f"{root}/none", f"{root}/mark"))])
        assert names(found) == ["new"]

    def test_more_files_than_anybody_wants_are_told(self, host: Host, root: str) -> None:
        host.put(root, {f"f{number}": b"" for number in range(5)})
        [found] = host.find([OutputSearch(directory=root, pattern=".*", most=2)])
        assert names(found) == ["f0", "f1"]
        assert found.notes == ["3 outputs left out: at most 2 files come back"]

    def test_outputs_are_borrowed_by_digest(self, host: Host, root: str) -> None:
        large = secrets.token_bytes(3 * CHUNK + 1)
        host.put(root, {"large": large, f"small {WEIRD}": b"x", "empty": b"", "same": b"x"})
        [found] = host.find([everything(root)])
        sources = [SourceFile(path=f"{root}/{o.path}", size=o.size, digest=o.digest) for o in found.files]
        with host.borrow(sources) as brought:
            assert {key: path.read_bytes() for key, path in brought.items()} == {
                digest(data): data for data in (large, b"x", b"")
            }
        assert host.fetch(f"{root}/large") == large
