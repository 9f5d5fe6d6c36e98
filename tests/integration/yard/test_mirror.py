"""Results in a shared directory: whole or not there, whatever happens to the yard or to the share."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.labs.supervise import remove
from tests.labs.waiting import until
from tests.labs.yard import Yard

PATIENCE_S = 90.0


@pytest.fixture
def share(tmp_path: Path) -> Path:
    made = tmp_path / "share"
    made.mkdir()
    return made


@pytest.fixture
def mirrored(make_yard: Callable[..., Yard], share: Path) -> Yard:
    yard = make_yard(cpus=2)
    configure(yard, share, failed=True)
    return yard.restart()


def configure(yard: Yard, share: Path, *, failed: bool, projects: tuple[str, ...] = ()) -> None:
    lines = ["[mirror]", f"dir = {json.dumps(str(share))}", f"failed = {json.dumps(failed)}"]
    (yard.home / "config.toml").write_text("\n".join([*lines, f"projects = {json.dumps(list(projects))}", ""]))


def submit(yard: Yard, script: str, **spec: Any) -> int:
    return yard.client().submit(["sh", "-c", script], project="p", **spec).id


def appears(path: Path) -> Path:
    until(path.exists, f"{path} appears", timeout_s=PATIENCE_S)
    return path


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def text(path: Path) -> str:
    """Of a file that may go at this very moment."""
    with contextlib.suppress(FileNotFoundError):
        return path.read_text()
    return ""


def trouble(yard: Yard) -> str:
    return str(yard.client().health()["mirror"]["trouble"] or "")


def test_a_run_that_succeeded_is_there_whole(mirrored: Yard, share: Path) -> None:
    script = "echo said; mkdir $OUTPUT_DIR/deep; echo 1 >$OUTPUT_DIR/deep/loss.csv; echo 2 >$OUTPUT_DIR/12:30.txt"
    run = submit(mirrored, script, params={"lr": 0.1, "width": 64}, name="base")
    place = appears(share / "p" / "runs" / "lr=0.1,width=64" / str(run))
    assert (place / "outputs/deep/loss.csv").read_text() == "1\n"
    assert (place / "log.txt").read_text() == "said\n"
    assert read(place / "params.json") == {"lr": 0.1, "width": 64}
    about = read(place / "run.json")
    assert (about["id"], about["state"], about["exit_code"]) == (run, "succeeded", 0)
    files = {output["path"]: output["file"] for output in about["outputs"]}
    assert (place / files["12:30.txt"]).read_text() == "2\n"
    assert ":" not in files["12:30.txt"]


def test_a_failed_run_has_a_folder_of_its_own_until_it_succeeds(mirrored: Yard, share: Path) -> None:
    script = 'echo try $RUNYARD_ATTEMPT; test "$RUNYARD_ATTEMPT" = 2'
    run = submit(mirrored, script)
    failed = appears(share / "p" / "failed" / "default" / str(run))
    assert read(failed / "run.json")["exit_code"] == 1
    assert not (share / "p" / "runs").exists()
    mirrored.client().run(run).retry()
    place = appears(share / "p" / "runs" / "default" / str(run))
    assert (place / "log.txt").read_text() == "try 1\n\n--- attempt 2 ---\ntry 2\n"
    until(lambda: not failed.exists(), "the failed one goes", timeout_s=PATIENCE_S)


def test_a_run_that_succeeds_again_takes_the_place_of_the_first(mirrored: Yard, share: Path) -> None:
    run = submit(mirrored, "echo $RUNYARD_ATTEMPT >$OUTPUT_DIR/attempt")
    place = appears(share / "p" / "runs" / "default" / str(run))
    mirrored.client().run(run).retry().wait(PATIENCE_S)
    attempt = place / "outputs/attempt"  # which is not there while one takes the place of the other
    until(lambda: attempt.exists() and text(attempt) == "2\n", "the second is there", timeout_s=PATIENCE_S)
    until(lambda: not list((share / "p" / ".incoming").iterdir()), "nothing is left behind", timeout_s=PATIENCE_S)


def test_a_log_is_followed_while_it_is_written(mirrored: Yard, share: Path, tmp_path: Path) -> None:
    go = tmp_path / "go"
    run = submit(mirrored, f"echo first; while ! test -e {go}; do sleep 0.05; done; echo last", name="live")
    log = share / "p" / "logs" / f"{run}.log"
    until(lambda: log.exists() and log.read_text() == "first\n", "the first line is there", timeout_s=PATIENCE_S)
    mirrored.kill9()
    mirrored.start()
    go.touch()
    until(lambda: log.read_text() == "first\nlast\n", "the rest is there, once", timeout_s=PATIENCE_S)


def test_a_share_that_is_away_is_waited_for_and_not_made(mirrored: Yard, share: Path) -> None:
    remove(share)
    run = submit(mirrored, "echo kept >$OUTPUT_DIR/x")
    until(lambda: "is not there" in trouble(mirrored), "the yard says so", timeout_s=PATIENCE_S)
    assert mirrored.client().run(run).wait(PATIENCE_S).state == "succeeded"
    assert "mirror" in mirrored.cli("doctor").stdout
    assert "not mirrored" in mirrored.cli("status").stdout
    assert not share.exists()
    share.mkdir()
    place = appears(share / "p" / "runs" / "default" / str(run))
    assert (place / "outputs/x").read_text() == "kept\n"
    until(lambda: not trouble(mirrored), "the trouble is over", timeout_s=PATIENCE_S)


def test_a_yard_that_is_killed_in_the_middle_leaves_nothing_half(mirrored: Yard, share: Path) -> None:
    """Many small files make publishing take a while; it is killed again and again meanwhile."""
    script = "for i in $(seq 400); do echo $i >$OUTPUT_DIR/$i; done"
    ids = [submit(mirrored, script, params={"n": number}) for number in range(3)]
    for run in ids:
        mirrored.client().run(run).wait(PATIENCE_S)
    for _ in range(4):
        until(lambda: list(share.glob("p/.incoming/*")) or whole(share, 3), "it is at work", timeout_s=PATIENCE_S)
        mirrored.kill9()
        assert all(len(list(place.glob("outputs/*"))) == 400 for place in share.glob("p/runs/*/*"))
        mirrored.start()
    until(lambda: whole(share, 3), "all are there", timeout_s=PATIENCE_S)
    assert sorted(read(path)["id"] for path in share.glob("p/runs/*/*/run.json")) == ids


def whole(share: Path, count: int) -> bool:
    return len(list(share.glob("p/runs/*/*/run.json"))) == count


def test_only_the_named_projects_are_mirrored_and_others_later(mirrored: Yard, share: Path) -> None:
    configure(mirrored, share, failed=False, projects=("other",))
    mirrored.restart()
    run = submit(mirrored, "true")
    other = mirrored.client().submit(["true"], project="other", wait=True)
    appears(share / "other" / "runs" / "default" / str(other.id))
    assert mirrored.client().run(run).wait(PATIENCE_S).state == "succeeded"
    assert not (share / "p").exists()
    configure(mirrored, share, failed=False)
    mirrored.restart()
    appears(share / "p" / "runs" / "default" / str(run))


def test_another_yard_on_the_same_share_takes_nobodys_place(
    mirrored: Yard, share: Path, make_yard: Callable[..., Yard]
) -> None:
    first = submit(mirrored, "echo first >$OUTPUT_DIR/x")
    place = appears(share / "p" / "runs" / "default" / str(first))
    second = make_yard(cpus=1)
    configure(second, share, failed=False)
    second.restart()
    assert submit(second, "echo second >$OUTPUT_DIR/x") == first
    until(lambda: whole(share, 2), "the second is there too", timeout_s=PATIENCE_S)
    assert (place / "outputs/x").read_text() == "first\n"


@pytest.fixture
def exfat(tmp_path: Path, component: Callable[[str], str]) -> Iterator[Path]:
    """A file system as file servers have them: no links, no mode bits, no colons, and capitals do not count."""
    component("exfat")
    image, mounted = tmp_path / "exfat.img", tmp_path / "exfat"
    mounted.mkdir()
    with image.open("wb") as file:
        file.truncate(64 << 20)
    subprocess.run(["mkfs.exfat", image], check=True, capture_output=True, timeout=60)
    device = subprocess.run(
        ["losetup", "-f", "--show", image], check=True, capture_output=True, text=True
    ).stdout.strip()
    try:
        subprocess.run(["mount.exfat-fuse", device, mounted], check=True, capture_output=True, timeout=60)
        yield mounted
    finally:
        with contextlib.suppress(subprocess.CalledProcessError):
            subprocess.run(["umount", "-l", mounted], check=True, capture_output=True, timeout=60)
        subprocess.run(["losetup", "-d", device], check=False, timeout=60)


def test_a_file_system_that_knows_little_will_do(make_yard: Callable[..., Yard], exfat: Path) -> None:
    share = exfat / "results"
    share.mkdir()
    with pytest.raises(OSError):
        os.symlink("x", share / "link")
    yard = make_yard(cpus=1)
    configure(yard, share, failed=True)
    yard.restart()
    names = ["12:30.csv", "Loss", "loss", "what?", "con"]
    script = f"cd $OUTPUT_DIR; for name in {' '.join(map(repr, names))}; do echo $name >$name; done; echo said"
    run = submit(yard, script, params={"optimizer": "Adam", "path": "a:b"}, name="odd")
    place = appears(share / "p" / "runs")
    until(lambda: list(place.glob("*/*/run.json")), "the run is there", timeout_s=PATIENCE_S)
    (found,) = place.glob(f"*/{run}")
    files = {output["path"]: output["file"] for output in read(found / "run.json")["outputs"]}
    assert {path: (found / file).read_text().strip() for path, file in files.items()} == {name: name for name in names}
    log = share / "p" / "logs" / f"{run}.log"
    until(lambda: log.exists() and log.read_text() == "said\n", "its log is there", timeout_s=PATIENCE_S)


def test_a_share_without_room_is_waited_for(make_yard: Callable[..., Yard], exfat: Path) -> None:
    filler = exfat / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(b"x" * (1 << 20)):
            pass
    yard = make_yard(cpus=1)
    configure(yard, exfat, failed=False)
    yard.restart()
    run = submit(yard, "head -c 8M /dev/zero >$OUTPUT_DIR/large")
    until(lambda: trouble(yard), "the yard says so", timeout_s=PATIENCE_S)
    filler.unlink()
    place = appears(exfat / "p" / "runs" / "default" / str(run))
    assert (place / "outputs/large").stat().st_size == 8 << 20
