"""A full disk must not swallow the end of a run. A small file system in a mount namespace of its own is filled."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runyard import runner

pytestmark = pytest.mark.component("root")

# Everything of the small file system is gone with the namespace, so what it leaves is copied out.
STAGE = """
set -e
mount -t tmpfs -o size=256k none "$1/small"
mkdir -p "$1/small/a1/work"
cp "$1/spec.json" "$1/small/a1/"
{act}
cp -r "$1/small/a1" "$1/result"
"""
RUN = '"$2" -I -S "$3" run "$1/small/a1"'


def play(tmp_path: Path, job: str, act: str, **spec: Any) -> dict[str, Any]:
    (tmp_path / "small").mkdir()
    document = {"key": "1.1", "tag": str(tmp_path), "argv": ["/bin/sh", "-c", job], "env": {"PATH": "/usr/bin:/bin"}}
    document.update(cwd=str(tmp_path / "small/a1/work"), **spec)
    (tmp_path / "spec.json").write_text(json.dumps(document))
    script = STAGE.format(act=act)
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(tmp_path), sys.executable, runner.HERE]
    subprocess.run(command, check=True, timeout=180)
    return dict(json.loads((tmp_path / "result/status.json").read_text()))


def test_the_end_is_recorded_on_a_full_disk(tmp_path: Path) -> None:
    """The status that was there gives the block for the last one."""
    record = play(tmp_path, "sleep 0.5; yes > filler; echo lost; sleep 0.5; exit 3", RUN, sample=0.1, beat=0.1)
    assert (record["ending"], record["exit_code"], record["tree_gone"]) == ("exit", 3, True)
    assert record["disk_full"] is True


def test_the_end_of_a_run_that_had_no_status_yet_is_recorded_on_a_full_disk(tmp_path: Path) -> None:
    """Over before the first beat: what told who the runner was gives the block."""
    record = play(tmp_path, "yes > filler; exit 3", RUN)
    assert (record["ending"], record["exit_code"], record["tree_gone"]) == ("exit", 3, True)
    assert record["disk_full"] is True
    assert "pid" in record


def test_a_disk_that_was_full_from_the_start_is_told(tmp_path: Path) -> None:
    act = f"""
yes > "$1/small/filler" 2>/dev/null || true
{RUN}
"""
    record = play(tmp_path, "true", act)
    assert record["ending"] == "disk"
    assert "No space left" in record["message"]
    assert record["disk_full"] is True


def test_the_end_is_recorded_when_there_is_room_again(tmp_path: Path) -> None:
    """There is no file to write over."""
    act = f"""
{RUN} & runner=$!
while [ ! -e "$1/small/a1/full" ]; do sleep 0.05; done
sleep 1
test ! -e "$1/small/a1/status.json"
kill -0 $runner
rm "$1/small/a1/work/filler"
wait $runner
"""
    first_beat = "while [ ! -e ../status.json ]; do sleep 0.05; done"
    job = f"{first_beat}; rm ../spec.json ../started/runner.json ../status.json; yes > filler; mkdir ../full; exit 3"
    record = play(tmp_path, job, act, beat=600)
    assert (record["ending"], record["exit_code"]) == ("exit", 3)
    assert record["disk_full"] is True


def test_the_merged_log_is_completed_when_there_is_room_again(tmp_path: Path) -> None:
    act = f"""
{RUN} & runner=$!
while [ ! -e "$1/small/a1/work/full" ]; do sleep 0.05; done
sleep 0.5
rm "$1/small/a1/work/filler"
touch "$1/small/a1/work/go"
wait $runner
"""
    job = "echo begin; sleep 0.5; head -c 50000 /dev/zero | tr '\\0' x; yes > filler; mkdir full; " + (
        "while [ ! -e go ]; do sleep 0.05; done; echo end"
    )
    record = play(tmp_path, job, act, split_output=True)
    log = (tmp_path / "result/log").read_bytes()
    assert record["exit_code"] == 0
    assert log.startswith(b"begin\n" + b"x" * 50000)
    assert log.endswith(b"end\n")
    assert record["sizes"]["log"] == len(log)


def test_metrics_are_written_when_there_is_room_again(tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    job = """yes > filler; cat /dev/zero > rest
printf 'step,loss\\n1,0.5\\n' > "$OUTPUT_DIR/metrics.csv"; echo loss=0.25; sleep 2.5; rm filler rest; echo loss=0.125"""
    env = {"PATH": "/usr/bin:/bin", "OUTPUT_DIR": str(tmp_path / "outputs")}
    play(tmp_path, job, RUN, env=env, metrics={"stdout": [r"loss=(?P<printed>\S+)"]})
    lines = [json.loads(line)["m"] for line in (tmp_path / "result/metrics.jsonl").read_text().splitlines()]
    assert {"loss": 0.5} in lines
    assert {"printed": 0.125} in lines
