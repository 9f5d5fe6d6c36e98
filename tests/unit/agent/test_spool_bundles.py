"""What is in a drop box may be made by somebody who means harm."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runyard import errors
from runyard.agent.spool import looking, reading
from runyard.agent.spool.looking import Changed, Most
from runyard.agent.spool.reading import Request
from runyard.model.tree import Tree, TreeFile, TreeLink

MOST = Most(bytes=10_000, files=80)


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    place = tmp_path / "one.run"
    (place / "code" / "src").mkdir(parents=True)
    (place / "data" / "corpora").mkdir(parents=True)
    (place / "code" / "src" / "train.py").write_text("print(1)")
    (place / "data" / "corpora" / "a.txt").write_text("words")
    write(place, command=["python", "src/train.py"])
    return place


def write(place: Path, **run: Any) -> None:
    (place / "run.json").write_text(json.dumps(run))


def take(place: Path, most: Most = MOST) -> Request:
    folder = os.open(place, looking.DIRECTORY)
    try:
        return reading.read(folder, looking.look(folder, most))
    finally:
        os.close(folder)


def digest(text: str) -> str:
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def test_folders_become_trees(bundle: Path) -> None:
    (bundle / "code" / "src" / "train.py").chmod(0o755)
    (bundle / "links.json").write_text(json.dumps({"code": [["latest", "src/train.py"]]}))
    request = take(bundle)
    code = Tree.build([TreeFile("src/train.py", digest("print(1)"), 8, True)], [TreeLink("latest", "src/train.py")])
    data = Tree.build([TreeFile("a.txt", digest("words"), 5, False)])
    assert request.run["code"] == {"tree": code.digest, "files": 1, "size": 8, "git": None}
    assert request.run["data"] == [{"tree": data.digest, "to": "corpora"}]
    assert request.files == {digest("print(1)"): "code/src/train.py", digest("words"): "data/corpora/a.txt"}
    assert request.texts == {code.digest: code.encode(), data.digest: data.encode()}


def test_a_run_alone_is_enough(tmp_path: Path) -> None:
    write(tmp_path, command="true")
    assert take(tmp_path) == Request(run={"command": "true"})


def test_files_that_the_run_names_come_with_it(bundle: Path) -> None:
    write(bundle, command="true", inputs=[{"digest": digest("x"), "to": "x.txt"}])
    with pytest.raises(errors.InvalidInput, match="there is no files/"):
        take(bundle)
    (bundle / "files").mkdir()
    loose = bundle / "files" / digest("x").removeprefix("sha256:")
    loose.write_text("y")
    with pytest.raises(errors.InvalidInput, match="does not have the digest in its name"):
        take(bundle)
    loose.write_text("x")
    assert take(bundle).files[digest("x")] == f"files/{loose.name}"


def fifo(place: Path) -> None:
    os.mkfifo(place / "code" / "pipe")


def unix_socket(place: Path) -> None:
    before = os.getcwd()
    os.chdir(place / "code")
    try:
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind("socket")
    finally:
        os.chdir(before)


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "link to a file": (lambda place: (place / "code" / "x").symlink_to("/etc/passwd"), "code/x is a symbolic link"),
    "link to a folder": (lambda place: (place / "data" / "x").symlink_to("/etc"), "data/x is a symbolic link"),
    "link inside": (lambda place: (place / "code" / "x").symlink_to("src"), "code/x is a symbolic link"),
    "fifo": (fifo, "code/pipe is a named pipe"),
    "socket": (unix_socket, "code/socket is a socket"),
    "hard link": (lambda place: os.link(place / "run.json", place / "code" / "x"), "hard link"),
    "line break": (lambda place: (place / "code" / "a\nb").touch(), "line break"),
    "no text": (lambda place: (place / "code" / os.fsdecode(b"\xff")).touch(), "not a name in UTF-8"),
    "stray": (lambda place: (place / "notes.txt").touch(), "notes.txt does not belong in a bundle"),
    "too big": (lambda place: (place / "code" / "x").write_bytes(bytes(10_001)), "more than 9.8 KB"),
    "too many": (lambda place: [(place / "code" / str(n)).touch() for n in range(80)], "more than 80 files"),
    "too deep": (lambda place: (place / "code" / "/".join("d" * 60)).mkdir(parents=True), "nested directories"),
    "no run": (lambda place: (place / "run.json").unlink(), "it has no run.json"),
    "no JSON": (lambda place: (place / "run.json").write_text("{"), "run.json: the body is not JSON"),
    "no command": (lambda place: write(place), "no command"),
    "unknown field": (lambda place: write(place, command="true", owner="root"), "owner"),
    "key": (lambda place: write(place, command="true", idempotency_key="k"), "idempotency_key cannot be set"),
    "origin": (lambda place: write(place, command="true", origin={"host": "h"}), "origin cannot be set"),
    "cwd": (lambda place: write(place, command="true", cwd="/etc"), "cwd cannot be set"),
    "stdout": (lambda place: write(place, command="true", stdout="/etc/x"), "stdout cannot be set"),
    "path": (lambda place: write(place, command="true", data=[{"path": "/etc", "to": "x"}]), "a path of the site"),
    "up": (lambda place: write(place, command="true", data=[{"to": "../code"}, {"to": "corpora"}]), "plain relative"),
    "absolute": (lambda place: write(place, command="true", data=[{"to": "/a"}, {"to": "corpora"}]), "plain relative"),
    "not named": (lambda place: write(place, command="true", data=[]), "in no directory that run.json names"),
    "other code": (lambda place: write(place, command="true", code={"tree": digest("x")}), "the digest in run.json"),
    "absolute link": (
        lambda place: (place / "links.json").write_text('{"code": [["x", "/etc/passwd"]]}'), "outside of its directory"
    ),
    "link out": (lambda place: (place / "links.json").write_text('{"code": [["x", "../../y"]]}'), "outside"),
    "link nowhere": (lambda place: (place / "links.json").write_text('{"data/no": []}'), "not a directory of this"),
    "odd links": (lambda place: (place / "links.json").write_text('{"code": 7}'), "must be a list"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(bundle: Path, name: str) -> None:
    make, sentence = REFUSED[name]
    make(bundle)
    with pytest.raises(errors.InvalidInput, match=sentence):
        take(bundle)


@pytest.mark.component("root")
def test_files_of_somebody_else_and_devices(bundle: Path) -> None:
    os.chown(bundle / "code" / "src" / "train.py", 12345, 12345)
    with pytest.raises(errors.InvalidInput, match=r"train\.py and the bundle have different owners"):
        take(bundle)
    os.chown(bundle / "code" / "src" / "train.py", 0, 0)
    os.mknod(bundle / "code" / "zero", 0o600 | 0o020000, os.makedev(1, 5))
    with pytest.raises(errors.InvalidInput, match="code/zero is a device"):
        take(bundle)


def test_what_changes_between_two_looks(bundle: Path) -> None:
    """A file is swapped for a link, or written to, after it was looked at: neither is read."""
    path = bundle / "code" / "src" / "train.py"
    folder = os.open(bundle, looking.DIRECTORY)
    seen = looking.look(folder, MOST)
    path.write_text("print(2)")
    with pytest.raises(Changed):
        reading.read(folder, seen)
    assert looking.look(folder, MOST).fingerprint() != seen.fingerprint()
    path.unlink()
    path.symlink_to("/etc/passwd")
    with pytest.raises(Changed):
        looking.read_digest(folder, "code/src/train.py", seen.files["code/src/train.py"])
    (bundle / "code" / "src").rename(bundle / "code" / "other")
    (bundle / "code" / "src").symlink_to("/etc")
    with pytest.raises(Changed):
        looking.read_digest(folder, "code/src/train.py", seen.files["code/src/train.py"])
    os.close(folder)
