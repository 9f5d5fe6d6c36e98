"""What cannot be part of a snapshot is refused with one sentence that names it."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from runyard import errors
from runyard.client.snapshot import Camera, reading
from runyard.client.snapshot.limits import fullest
from runyard.client.snapshot.stat_cache import StatCache
from tests.unit.client.snapshot.conftest import as_nobody, code, data, paths, write

Take = Callable[[Path, Camera], object]


def refused(take: Take, folder: Path, camera: Camera) -> str:
    with pytest.raises(errors.InvalidInput) as caught:
        take(folder, camera)
    assert caught.value.fix
    assert "\n" not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("take", [code, data])
def test_a_named_pipe(project: Path, camera: Camera, take: Take) -> None:
    os.mkfifo(project / "pipe")
    assert "pipe is a named pipe" in refused(take, project, camera)


def test_a_tracked_file_that_became_a_named_pipe(checkout: Path, camera: Camera) -> None:
    (checkout / "train.py").unlink()
    os.mkfifo(checkout / "train.py")
    assert "train.py is a named pipe" in refused(code, checkout, camera)


def test_a_socket(project: Path, camera: Camera, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind("s")
        assert "s is a socket" in refused(code, project, camera)


@pytest.mark.parametrize("name", ["two\nlines", "bell\x07", "tab\t"])
def test_a_name_with_a_control_character(checkout: Path, camera: Camera, name: str) -> None:
    write(checkout, {name: ""})
    assert repr(name) in refused(code, checkout, camera)


def test_a_path_that_is_too_long(project: Path, camera: Camera) -> None:
    deep = "/".join(["folder" * 20] * 10)
    write(project, {f"{deep}/a.txt": "x"})
    assert f"'{deep[:80]}'… is longer than 1024 bytes" in refused(code, project, camera)


def test_a_name_that_is_no_unicode(project: Path, camera: Camera) -> None:
    with open(os.fsencode(project) + b"/\xff\xfe", "wb"):
        pass
    assert "is not a name in UTF-8" in refused(code, project, camera)


@pytest.mark.parametrize("target", ["/etc/passwd", "../outside", "lib/../../outside", "lib/.."])
def test_a_link_that_leads_outside(checkout: Path, camera: Camera, target: str) -> None:
    (checkout / "link").symlink_to(target)
    assert "the link 'link' leads outside" in refused(code, checkout, camera)


def test_a_path_outside_of_the_project(checkout: Path, camera: Camera) -> None:
    for path in ("..", "../other", "/etc", "lib/../.."):
        with pytest.raises(errors.InvalidInput, match="outside of the project"):
            code(checkout, camera, path)


def test_a_path_through_a_link_that_leads_outside(checkout: Path, camera: Camera, tmp_path: Path) -> None:
    write(tmp_path / "other", {"secret": "s"})
    (checkout / "way").symlink_to(tmp_path / "other")
    with pytest.raises(errors.InvalidInput, match="outside of the project"):
        code(checkout, camera, "way/secret")


def test_a_path_that_is_not_there(checkout: Path, camera: Camera) -> None:
    with pytest.raises(errors.InvalidInput, match=r"there is no nowhere\.py"):
        code(checkout, camera, "nowhere.py")
    with pytest.raises(errors.InvalidInput, match="there is no folder"):
        data(checkout / "nowhere", camera)
    with pytest.raises(errors.InvalidInput, match="is no folder"):
        data(checkout / "train.py", camera)


def test_too_many_bytes_name_the_biggest_files(checkout: Path, camera: Camera) -> None:
    write(checkout, {"big.bin": "x" * (1 << 20), "models/mid.bin": "x" * 5000, "small.bin": "x" * 3000, "tiny": "x"})
    said = refused(code, checkout, camera)
    assert "more than 1.0 MB; the biggest: big.bin (1.0 MB), models/mid.bin (4.9 KB), small.bin (2.9 KB)" in said


def test_too_many_files_name_the_folder_and_the_way_out(project: Path, camera: Camera) -> None:
    write(project, {f"sets/train/{number % 40}/{number}.png": "" for number in range(120)} | {"train.py": ""})
    with pytest.raises(
        errors.InvalidInput, match=r"the code has 121 files, more than 100: 120 of them are in sets/train"
    ) as e:
        code(project, camera)
    assert "sets/train" in e.value.fix
    assert ".runyardignore" in e.value.fix
    assert "--data" in e.value.fix


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["a", "b"], ("", 2)),
        (["a/1", "a/2", "b"], ("a", 2)),
        (["a/x/1", "a/x/2", "a/x/3", "a/y/1", "b"], ("a/x", 3)),
        (["a/1", "b/1", "c/1", "c/2"], ("c", 2)),
    ],
)
def test_the_fullest_folder(names: list[str], found: tuple[str, int]) -> None:
    assert fullest(names) == found


@pytest.mark.parametrize("name", ["secret.py", "closed/secret.py"])
def test_an_unreadable_file_or_folder(public: Path, name: str) -> None:
    write(public, {name: "s"})
    closed = name.partition("/")[0]
    (public / closed).chmod(0)
    with as_nobody(), pytest.raises(errors.InvalidInput, match=f"{closed} cannot be read: permission denied"):
        code(public, Camera())
    (public / closed).chmod(0o700)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Callable[[Path, int], list[int]]:
    """`written(path, 3)`: somebody writes to the file during the first three times that it is read. Gives the sizes."""

    def arrange(path: Path, times: int) -> list[int]:
        real = reading._digest
        sizes: list[int] = []

        def read(file: Any, size: int) -> Any:
            found = real(file, size)
            if len(sizes) < times:
                path.write_text(path.read_text() + "more\n")
            sizes.append(path.stat().st_size)
            return found

        monkeypatch.setattr(reading, "_digest", read)
        return sizes

    return arrange


def test_a_file_that_changes_all_the_time(project: Path, camera: Camera, written: Callable[..., list[int]]) -> None:
    write(project, {"log.txt": "x"})
    written(project / "log.txt", 1000)
    assert "log.txt changed while it was read" in refused(code, project, camera)


def test_a_file_that_changes_once_is_read_again(
    project: Path, camera: Camera, written: Callable[..., list[int]]
) -> None:
    write(project, {"a.py": "old"})
    sizes = written(project / "a.py", 1)
    assert code(project, camera).tree.files[0].size == 8
    assert sizes == [8, 8]


def test_many_large_files_are_as_good_as_one(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read by several threads, and the first trouble of one ends all."""
    monkeypatch.setattr(reading, "WORTH", 1)
    monkeypatch.setattr(reading, "SMALL", 50_000)
    texts = {f"{number}.bin": f"{number} " * 10_000 for number in range(20)}
    write(project, texts)
    found = reading.look(project, list(texts), "the code")
    done: list[int] = []
    read = {file.path: file.digest for file in reading.digests(found, StatCache(None, project), done.append)}
    assert read == {name: f"sha256:{hashlib.sha256(text.encode()).hexdigest()}" for name, text in texts.items()}
    assert sorted(done) == sorted(map(len, texts.values()))
    (project / "7.bin").unlink()
    with pytest.raises(errors.InvalidInput, match=r"7\.bin changed while it was read"):
        reading.digests(found, StatCache(None, project), lambda size: None)


def test_a_file_that_goes_away_before_it_is_read(project: Path) -> None:
    write(project, {"a.py": "x"})
    found = reading.look(project, ["a.py"], "the code")
    (project / "a.py").unlink()
    with pytest.raises(errors.InvalidInput, match=r"a\.py changed while it was read"):
        list(reading.digests(found, StatCache(None, project), lambda size: None))


def test_data_is_everything_whatever_git_ignores(checkout: Path, camera: Camera) -> None:
    write(checkout, {"runs/a.ckpt": "1", "runs/.hidden": "2", "runs/sub/b": "3"})
    taken = data(checkout / "runs", camera)
    assert paths(taken) == [".hidden", "a.ckpt", "sub/b"]
    assert taken.git is None
