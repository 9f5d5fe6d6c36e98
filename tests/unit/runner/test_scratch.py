"""Scratch directories: where they are made, whose they are, and that nothing else is removed with them."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.runner import scratch, tree
from runyard.runner.spec import BadSpec, Spec


def spec(**more: Any) -> Spec:
    return Spec({"key": "42.1", "tag": "1f3c9a2b77", "argv": ["true"], "cwd": "/", "env": {}, **more})


def me() -> tree.Process:
    own = tree.look(os.getpid())
    assert own is not None
    return own


@pytest.fixture
def base(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    yield place
    subprocess.run(["chmod", "-R", "u+rwx", str(tmp_path)], check=False)


@pytest.fixture(autouse=True)
def nothing_to_spare() -> Iterator[None]:
    yield
    scratch.let_go()


def made(base: Path, **more: Any) -> tuple[Path, Spec]:
    wanted = spec(scratch=str(base), **more)
    return Path(os.fsdecode(scratch.prepare(wanted, me()))), wanted


def test_it_is_private_and_named_in_the_environment(base: Path) -> None:
    path, wanted = made(base)
    assert path == base / f"runyard-{os.getuid()}" / "42.1-4432597f"
    assert path.stat().st_mode & 0o777 == path.parent.stat().st_mode & 0o777 == 0o700
    assert wanted.env[b"RUNYARD_SCRATCH"] == wanted.env[b"TMPDIR"] == os.fsencode(path)
    assert scratch.remove(os.fsencode(path))
    assert list(path.parent.iterdir()) == []


def test_a_tmpdir_of_the_users_own_wins(base: Path) -> None:
    path, wanted = made(base, env={"TMPDIR": "/mine"}, keeps_tmpdir=True)
    assert (wanted.env[b"TMPDIR"], wanted.env[b"RUNYARD_SCRATCH"]) == (b"/mine", os.fsencode(path))


def test_further_names_where_nobody_has_set_them(base: Path) -> None:
    path, wanted = made(base, scratch_names=["SLURM_TMPDIR", "OTHER"], env={"OTHER": "/o"})
    assert (wanted.env[b"SLURM_TMPDIR"], wanted.env[b"OTHER"]) == (os.fsencode(path), b"/o")


def test_variables_in_the_sites_words(base: Path) -> None:
    wanted = spec(scratch="${DISK}/$SUB", env={"DISK": str(base), "SUB": "inner"})
    (base / "inner").mkdir()
    assert scratch.prepare(wanted, me()).startswith(os.fsencode(base / "inner"))
    with pytest.raises(BadSpec, match="names a variable that is not set"):
        scratch.prepare(spec(scratch="$NOWHERE/x"), me())


@pytest.mark.parametrize("value", ["", "relative"])
def test_variables_that_name_no_place(value: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "relative").mkdir()
    with pytest.raises(BadSpec, match=r"the scratch directory \$DISK is no absolute path here"):
        scratch.prepare(spec(scratch="$DISK", env={"DISK": value}), me())
    assert not list(tmp_path.rglob("runyard-*"))


def test_a_place_that_the_site_names_is_not_replaced_by_another(tmp_path: Path) -> None:
    with pytest.raises(BadSpec, match=r"no scratch directory can be made in .*missing: No such file"):
        scratch.prepare(spec(scratch=str(tmp_path / "missing")), me())


def test_without_a_word_of_the_site_it_is_where_temporary_files_go(base: Path, tmp_path: Path) -> None:
    wanted = spec(env={"TMPDIR": str(base)})
    assert scratch.prepare(wanted, me()).startswith(os.fsencode(base))
    job = tmp_path / "job"
    job.mkdir()
    env = {b"TMPDIR": b"/t", b"SLURM_TMPDIR": os.fsencode(job)}
    assert scratch.bases(env) == [os.fsencode(job), b"/t", b"/var/tmp", b"/tmp"]
    assert scratch.bases(env, keeps_tmpdir=True) == [os.fsencode(job), b"/var/tmp", b"/tmp"]


@pytest.mark.parametrize("kind", ["link", "file"])
def test_what_somebody_else_put_there_is_not_used(base: Path, tmp_path: Path, kind: str) -> None:
    target = base / f"runyard-{os.getuid()}"
    if kind == "link":
        (tmp_path / "elsewhere").mkdir()
        target.symlink_to(tmp_path / "elsewhere")
    else:
        target.touch()
    with pytest.raises(BadSpec, match="belongs to another user"):
        made(base)


def test_a_directory_that_others_could_enter_is_closed(base: Path) -> None:
    root = base / f"runyard-{os.getuid()}"
    root.mkdir(mode=0o755)
    made(base)
    assert root.stat().st_mode & 0o777 == 0o700


def test_removal_follows_no_links_and_minds_no_permissions(base: Path, tmp_path: Path) -> None:
    path, _ = made(base)
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("dear")
    (path / "away").symlink_to(kept)
    (path / "nowhere").symlink_to("/does/not/exist")
    (path / "file\n\udcff").touch()
    os.mkfifo(path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path / "s"))
    closed = path / "a" / "b"
    closed.mkdir(parents=True)
    (closed / "x").touch(mode=0o000)
    (closed / "again").symlink_to(kept)
    closed.chmod(0o000)
    closed.parent.chmod(0o500)
    path.chmod(0o500)
    assert scratch.remove(os.fsencode(path))
    assert list(path.parent.iterdir()) == []
    assert (kept / "file").read_text() == "dear"


@pytest.mark.parametrize("kind", ["file", "link"])
def test_what_a_run_put_in_its_place_is_removed(base: Path, tmp_path: Path, kind: str) -> None:
    path, _ = made(base)
    path.rmdir()
    if kind == "file":
        path.touch()
    else:
        path.symlink_to(tmp_path)
    assert scratch.remove(os.fsencode(path))
    assert not path.is_symlink() and not path.exists() and tmp_path.exists()


def test_no_tree_is_too_deep(base: Path) -> None:
    path, _ = made(base)
    here = os.getcwd()
    try:
        os.chdir(path)
        for number in range(3000):
            os.mkdir("d")
            os.chdir("d")
            if number % 500 == 0:
                Path("file").touch()
    finally:
        os.chdir(here)
    assert scratch.remove(os.fsencode(path))
    assert not path.exists()


@pytest.mark.component("root")
def test_another_file_system_is_left_alone(base: Path) -> None:
    path, _ = made(base)
    inner = path / "folder" / "mounted"
    inner.mkdir(parents=True)
    (path / "plain").touch()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(inner)], check=True)
    try:
        (inner / "theirs").touch()
        assert not scratch.remove(os.fsencode(path))
        assert not (path / "plain").exists()
        [mounted] = [found for found in path.rglob("mounted")]
        assert (mounted / "theirs").exists()
        assert scratch.owner_of(os.fsencode(path)) is not None, "somebody tries again later"
    finally:
        subprocess.run(["umount", *(str(found) for found in path.rglob("mounted"))], check=True)
    assert scratch.remove(os.fsencode(path))


def test_only_what_a_dead_runner_left_is_cleared(base: Path) -> None:
    path, _ = made(base)
    with subprocess.Popen(["sleep", "600"]) as other:
        living = scratch.Owner(*scratch.owner_of(os.fsencode(path)))._replace(  # type: ignore[misc]
            pid=other.pid,
            start_time=tree.look(other.pid).start_time,  # type: ignore[union-attr]
        )
        cases = {
            "living": living,
            "dead": living._replace(start_time=living.start_time - 1),
            "rebooted": living._replace(boot="another"),
            "elsewhere": living._replace(node="othernode", boot="another"),
            "container": living._replace(namespace="1", start_time=1),
        }
        for name, owner in cases.items():
            (path.parent / name).mkdir()
            (path.parent / name / "file").touch()
            (path.parent / f"{name}.owner").symlink_to(" ".join(map(str, owner)))
        (path.parent / "unmarked").mkdir()
        scratch.clear(os.fsencode(base))
        left = {found.name for found in path.parent.iterdir() if not found.is_symlink()}
        other.kill()
    assert left == {path.name, "living", "elsewhere", "container", "unmarked"}


def test_an_owner_that_nobody_can_read_is_not_dead(base: Path) -> None:
    path, _ = made(base)
    (path.parent / "x").mkdir()
    (path.parent / "x.owner").symlink_to("nonsense")
    scratch.clear(os.fsencode(base))
    assert (path.parent / "x").exists()


def test_there_may_be_nothing_to_clear(tmp_path: Path) -> None:
    scratch.clear(os.fsencode(tmp_path))


def test_a_process_that_takes_another_run_keeps_an_empty_directory(base: Path) -> None:
    first, _ = made(base)
    inode = first.stat().st_ino
    scratch.leave(os.fsencode(first))
    second, _ = made(base, key="43.1")
    assert (second.name[:5], second.stat().st_ino, first.exists()) == ("43.1-", inode, False)
    assert scratch.owner_of(os.fsencode(second)) == scratch.Owner.of(me())
    scratch.leave(os.fsencode(second))
    scratch.let_go()
    assert list(base.glob("*/*")) == []


@pytest.mark.parametrize("change", ["fill", "close", "remove", "elsewhere"])
def test_a_directory_that_is_not_as_it_was_is_not_used_again(base: Path, tmp_path: Path, change: str) -> None:
    first, _ = made(base)
    if change == "fill":
        (first / "x").touch()
    elif change == "close":
        first.chmod(0o500)
    scratch.leave(os.fsencode(first))
    if change == "remove":
        first.rmdir()
    other = tmp_path / "other"
    other.mkdir()
    second, _ = made(other if change == "elsewhere" else base, key="43.1")
    assert not first.exists() and list(second.iterdir()) == []
    assert second.stat().st_mode & 0o777 == 0o700
    assert scratch.remove(os.fsencode(second))
    assert [*base.glob("*/*"), *other.glob("*/*")] == []
