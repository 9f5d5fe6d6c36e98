"""Huge output, strange bytes, a full disk: told in one sentence, and nothing else suffers."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.acceptance.witness import until
from tests.labs.disks import small_disk
from tests.labs.yard import Yard

MB = 1 << 20


def test_bytes_that_are_no_text(yard: Yard) -> None:
    run = yard.client().submit(command=["/bin/sh", "-c", "printf 'a\\377\\376\\000b\\n'"])
    run.wait(timeout=180)
    answer = subprocess.run(yard.command("logs", str(run.id)), env=yard.env, capture_output=True)
    assert answer.stdout == b"a\xff\xfe\x00b\n"
    assert yard.cli("logs", str(run.id), "--json").returncode == 0


def test_a_line_of_100_mb(yard: Yard) -> None:
    script = "import sys; [sys.stdout.write('x' * (1 << 20)) for _ in range(100)]; print()"
    run = yard.client().submit(command=[sys.executable, "-c", script]).wait(timeout=240)
    assert run.state == "succeeded"
    assert _logged(yard, run.id) == 100 * MB + 1


@pytest.mark.long
def test_a_gigabyte_of_output(yard: Yard) -> None:
    run = yard.client().submit(command=["/bin/sh", "-c", "yes 0123456789abcde | head -c 1073741824"])
    busy = _peak_memory(yard, lambda: run.refresh().state in ("queued", "starting", "running"))
    assert run.state == "succeeded"
    assert _logged(yard, run.id) == 1 << 30
    assert busy < 300 * MB, "the yard does not keep what it relays"
    tail = yard.cli("logs", str(run.id), "--tail", "2")
    assert tail.stdout == "0123456789abcde\n" * 2


def _logged(yard: Yard, run_id: int) -> int:
    with subprocess.Popen(yard.command("logs", str(run_id)), env=yard.env, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        return sum(len(chunk) for chunk in iter(lambda: process.stdout.read(MB), b""))  # type: ignore[union-attr]


def _peak_memory(yard: Yard, while_true: Callable[[], bool]) -> int:
    peak = 0
    while while_true():
        status = Path(f"/proc/{yard.pid}/status").read_text()
        peak = max(peak, int(status.split("VmRSS:")[1].split()[0]) * 1024)
        time.sleep(0.1)
    return peak


@pytest.mark.component("root")
def test_a_full_disk_stops_new_runs_with_a_sentence_and_loses_nothing(
    make_yard: Callable[..., Yard], tmp_path: Path
) -> None:
    """A home on a small disk of its own."""
    with small_disk(tmp_path / "small", "size=24m") as small:
        _fill_and_free(make_yard(below=small, cpus=1), small)


def _fill_and_free(yard: Yard, small: Path) -> None:
    kept = yard.client().submit(command=["echo", "before"], cwd="/").wait(timeout=180)  # with no code to bring
    filler = small / "filler"
    with filler.open("wb") as file:
        while True:
            try:
                file.write(os.urandom(64 << 10))
                file.flush()
            except OSError:
                break
    refused = None
    for _ in range(200):
        answer = yard.cli("submit", "--quiet", "--env", "X=" + "x" * 50_000, "--", "true")
        if answer.returncode:
            refused = answer
            break
    assert refused is not None, "a full disk was never noticed"
    assert "full" in refused.stderr
    assert "Traceback" not in refused.stderr
    filler.unlink()
    until(lambda: yard.cli("submit", "--quiet", "--", "true").returncode == 0, what="room again")
    last = yard.client().submit(command=["echo", "after"], cwd="/").wait(timeout=240)
    assert last.logs() == "after\n"
    assert yard.client().run(kept.id).logs() == "before\n"
    until(lambda: not yard.client().runs(state="queued"), what="everything that was accepted has ended")
