"""What is left of a run at its site after its end: nothing that the yard has, everything that it has not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.labs.waiting import until
from tests.labs.yard import Yard

PATIENCE_S = 90.0
SCRIPT = "echo said; echo result >$OUTPUT_DIR/result; echo 1 >$CHECKPOINT_DIR/step"


def home(yard: Yard, run: int) -> Path:
    return yard.runs / str(run) / "a1"


def goes(yard: Yard, run: int) -> None:
    until(lambda: not home(yard, run).exists(), f"the directory of run {run} goes", timeout_s=PATIENCE_S)


def test_what_the_yard_has_goes(yard: Yard, tmp_path: Path) -> None:
    run = yard.client().submit(["sh", "-c", SCRIPT]).wait(PATIENCE_S)
    goes(yard, run.id)
    assert run.logs() == "said\n"
    run.fetch(tmp_path)
    assert (tmp_path / "result").read_text() == "result\n"
    assert (yard.runs / str(run.id) / "checkpoints/step").read_text() == "1\n"
    assert run.retry().wait(PATIENCE_S).state == "succeeded"


def test_what_the_yard_has_not_stays(yard: Yard, tmp_path: Path) -> None:
    elsewhere = tmp_path / "mine"
    beside = yard.client().submit(["sh", "-c", "echo precious >beside; touch $OUTPUT_DIR/x"], code=False, cwd=None)
    named = yard.client().submit(["sh", "-c", SCRIPT], env={"OUTPUT_DIR": str(elsewhere)})
    beside.wait(PATIENCE_S)
    named.wait(PATIENCE_S)
    goes(yard, named.id)
    assert (elsewhere / "result").read_text() == "result\n"
    kept = Path(beside.data["spec"].get("cwd") or home(yard, beside.id) / "work")
    assert (kept / "beside").read_text() == "precious\n"


def test_people_and_sites_say_what_stays(make_yard: Callable[..., Yard]) -> None:
    yard = make_yard(cpus=1)
    edited = yard.cli("site", "edit", "local", "--option", "keep=failed:1d")
    assert edited.returncode == 0, edited.stderr
    submitted = yard.cli("submit", "--keep", "all", "--no-code", "-q", "--", "sh", "-c", SCRIPT)
    assert submitted.returncode == 0, submitted.stderr
    kept = yard.client().run(int(submitted.stdout)).wait(PATIENCE_S)
    failed = yard.client().submit(["sh", "-c", "exit 3"]).wait(PATIENCE_S)
    usual = yard.client().submit(["sh", "-c", SCRIPT]).wait(PATIENCE_S)
    goes(yard, usual.id)
    assert (home(yard, kept.id) / "outputs/result").exists()
    assert (home(yard, failed.id) / "status.json").exists()
