"""Outputs arrive whole, verified, and only below the target directory."""

from __future__ import annotations

import fcntl
import hashlib
import os
import stat
import subprocess
from pathlib import Path

import pytest

from runyard import errors
from runyard.client import Client, Output, fetch
from tests.unit.client.server import Handler

DATA = {name: os.urandom(size) for name, size in (("small", 10), ("empty", 0), ("large", 700_000))}


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def output(path: str, name: str, mode: int = 0o644) -> Output:
    return Output(path=path, size=len(DATA[name]), digest=digest(DATA[name]), mode=mode)


@pytest.fixture
def server(serve):
    blobs = {digest(data): data for data in DATA.values()}
    return serve(lambda request: request.reply(200, raw=blobs[request.path.rsplit("/", 1)[1]]))


@pytest.fixture
def bring(server):
    client = Client(server.url, "token")

    def bring(directory: Path, *outputs: Output) -> list[Path]:
        done: list[int] = []
        paths = fetch.bring(client, outputs, directory, done.append)
        assert sum(done) == sum(item.size for item in outputs)
        return paths

    return bring


def test_files_arrive_with_their_modes(bring, tmp_path: Path) -> None:
    target = tmp_path / "new" / "place"
    paths = bring(target, output("a", "small"), output("deep/er/run.sh", "large", 0o4755), output("none", "empty"))
    assert paths == [target / "a", target / "deep/er/run.sh", target / "none"]
    assert [path.read_bytes() for path in paths] == [DATA["small"], DATA["large"], b""]
    assert stat.S_IMODE(paths[1].stat().st_mode) == 0o755  # never setuid
    assert sorted(path.name for path in target.rglob("*")) == ["a", "deep", "er", "none", "run.sh"]


def test_what_comes_into_a_checkout_is_no_part_of_its_code(bring, tmp_path: Path) -> None:
    git = ["git", "-C", str(tmp_path)]
    subprocess.run([*git, "init", "-q"], check=True)
    (tmp_path / "train.py").write_text("")
    (tmp_path / "mine").mkdir()
    bring(tmp_path / "results" / "run-4", output("a", "small"))
    bring(tmp_path / "results" / "run-4", output("b", "small"))
    bring(tmp_path / "results" / "run-5", output("a", "small"))
    bring(tmp_path / "mine", output("a", "small"))
    listed = subprocess.run([*git, "ls-files", "--others", "--exclude-standard"], capture_output=True, check=True)
    assert listed.stdout.split() == [b"mine/a", b"train.py"]
    assert not (tmp_path / ".gitignore").exists() and not (tmp_path / "mine" / ".gitignore").exists()


def test_outside_of_a_checkout_nothing_is_added(bring, tmp_path: Path) -> None:
    bring(tmp_path / "results", output("a", "small"))
    assert [path.name for path in (tmp_path / "results").iterdir()] == ["a"]


def test_what_is_there_is_not_brought_again(bring, server, tmp_path: Path) -> None:
    bring(tmp_path, output("a", "large"))
    bring(tmp_path, output("a", "large"))
    assert len(server.seen) == 1


def test_a_file_that_differs_is_replaced(bring, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    bring(tmp_path, output("a", "small"))
    assert (tmp_path / "a").read_bytes() == DATA["small"]


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "./a", "a/", "a\0b", ".."])
def test_unsafe_paths_are_refused(bring, server, tmp_path: Path, path: str) -> None:
    with pytest.raises(errors.InvalidInput, match="unsafe path"):
        bring(tmp_path / "target", output(path, "small"))
    assert not server.seen
    assert not list(tmp_path.rglob("*x*"))


def test_a_symlinked_directory_is_not_followed(bring, tmp_path: Path) -> None:
    outside, target = tmp_path / "outside", tmp_path / "target"
    outside.mkdir()
    target.mkdir()
    (target / "sub").symlink_to(outside)
    with pytest.raises(errors.Conflict, match="in the way"):
        bring(target, output("sub/a", "small"))
    assert not list(outside.iterdir())


def test_a_symlinked_file_is_replaced_not_written_through(bring, tmp_path: Path) -> None:
    victim, target = tmp_path / "victim", tmp_path / "target"
    victim.write_bytes(b"precious")
    target.mkdir()
    (target / "a").symlink_to(victim)
    bring(target, output("a", "small"))
    assert victim.read_bytes() == b"precious"
    assert not (target / "a").is_symlink()


def test_a_directory_in_the_way(bring, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(errors.Conflict, match="in the way"):
        bring(tmp_path, output("a", "small"))


def test_a_file_in_the_way_of_all(bring, tmp_path: Path) -> None:
    (tmp_path / "target").touch()
    with pytest.raises(errors.Conflict, match="in the way"):
        bring(tmp_path / "target", output("a", "small"))


def test_damaged_bytes_are_not_kept(serve, tmp_path: Path) -> None:
    client = Client(serve(lambda request: request.reply(200, raw=b"other bytes")).url, "token")
    with pytest.raises(errors.RunyardError, match="arrived damaged"):
        fetch.bring(client, [output("a", "small")], tmp_path, lambda size: None)
    assert not list(tmp_path.iterdir())


class Cut:
    """A yard that breaks the connection after so many bytes, again and again, and knows of ranges or not."""

    def __init__(self, data: bytes, after: int, *, ranges: bool = True) -> None:
        self.data, self.after, self.ranges = data, after, ranges
        self.starts: list[int] = []

    def __call__(self, request: Handler) -> None:
        asked = request.headers.get("Range") if self.ranges else None
        start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked else 0
        self.starts.append(start)
        request.send_response(206 if asked else 200)
        request.send_header("Content-Length", str(len(self.data) - start))
        request.end_headers()
        request.wfile.write(self.data[start : start + self.after])
        request.close_connection = True


def parts(directory: Path) -> list[Path]:
    return list(directory.glob(".*.part"))


def test_a_cut_is_only_an_interruption(serve, tmp_path: Path) -> None:
    cut = Cut(DATA["large"], 300_000)
    done: list[int] = []
    fetch.bring(Client(serve(cut).url, "token"), [output("a", "large")], tmp_path, done.append)
    assert (tmp_path / "a").read_bytes() == DATA["large"]
    assert cut.starts[0] == 0 and len(cut.starts) > 2 and cut.starts == sorted(cut.starts)
    assert sum(done) == len(DATA["large"])
    assert not parts(tmp_path)


def part_with(directory: Path, data: bytes) -> Path:
    """As a process that was killed left it."""
    path = directory / f".a.{digest(DATA['large'])[7:23]}.part"
    path.write_bytes(data)
    return path


def test_another_process_goes_on_where_one_was_killed(serve, tmp_path: Path) -> None:
    part_with(tmp_path, DATA["large"][:500_000])
    cut = Cut(DATA["large"], 1 << 20)
    fetch.bring(Client(serve(cut).url, "token"), [output("a", "large")], tmp_path, lambda size: None)
    assert (tmp_path / "a").read_bytes() == DATA["large"]
    assert cut.starts == [500_000]
    assert not parts(tmp_path)


@pytest.mark.parametrize("before", [b"x" * 500_000, b"x" * 700_000, b"x" * 800_000])
def test_a_damaged_part_is_brought_anew(serve, tmp_path: Path, before: bytes) -> None:
    part_with(tmp_path, before)
    done: list[int] = []
    fetch.bring(Client(serve(Cut(DATA["large"], 1 << 20)).url, "token"), [output("a", "large")], tmp_path, done.append)
    assert (tmp_path / "a").read_bytes() == DATA["large"]
    assert sum(done) == len(DATA["large"])


def test_a_yard_that_sends_everything_again_is_understood(serve, tmp_path: Path) -> None:
    part_with(tmp_path, DATA["large"][:500_000])
    cut = Cut(DATA["large"], 1 << 20, ranges=False)
    fetch.bring(Client(serve(cut).url, "token"), [output("a", "large")], tmp_path, lambda size: None)
    assert (tmp_path / "a").read_bytes() == DATA["large"]


def test_a_part_that_is_a_link_is_not_written_through(bring, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    target = tmp_path / "target"
    target.mkdir()
    os.link(victim, target / f".a.{digest(DATA['large'])[7:23]}.part")
    bring(target, output("a", "large"))
    assert victim.read_bytes() == b"precious"
    assert (target / "a").read_bytes() == DATA["large"]


def test_two_at_once_do_not_spoil_each_other(bring, tmp_path: Path) -> None:
    with part_with(tmp_path, b"").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(errors.Conflict, match="another process"):
            bring(tmp_path, output("a", "large"))


def test_the_target_itself_may_be_a_symlink(bring, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    bring(tmp_path / "link", output("a", "small"))
    assert (tmp_path / "real" / "a").read_bytes() == DATA["small"]
