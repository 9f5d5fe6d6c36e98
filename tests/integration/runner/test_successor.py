"""What a runner goes on as when its record is written: the same process, another program."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.integration.runner.attempts import NewAttempt, signals, until

SCRIPT = """
grep '"state": *"ended"' "$1/status.json" > "$OUT/record"
echo $$ > "$OUT/pid"
# By the shell itself: while it starts another program it blocks all signals.
while read -r name mask; do [ "$name" != SigBlk: ] || echo "$name $mask" > "$OUT/blocked"; done < /proc/$$/status
kill -USR1 $$ && kill -USR2 $$
exit 7
"""


def test_the_runner_becomes_the_script(new_attempt: NewAttempt, tmp_path: Path) -> None:
    script = tmp_path / "relay.sh"
    script.write_text(SCRIPT)  # and no x bit: a scratch disk may be mounted without
    attempt = new_attempt(argv=["sh", "-c", "exit 3"])
    attempt.command.append(str(script))
    process = attempt.begin(env={**os.environ, "OUT": str(tmp_path)})
    assert process.wait(90) == 7
    assert (tmp_path / "record").read_text()
    assert int((tmp_path / "pid").read_text()) == process.pid
    assert signals((tmp_path / "blocked").read_text()) == set()


def test_where_there_is_none_the_runner_just_ends(new_attempt: NewAttempt, tmp_path: Path) -> None:
    attempt = new_attempt(argv=["true"])
    attempt.command.append(str(tmp_path / "relay.sh"))
    assert attempt.run()["exit_code"] == 0


def test_a_stop_reaches_the_run_and_not_the_script(new_attempt: NewAttempt, tmp_path: Path) -> None:
    script = tmp_path / "relay.sh"
    script.write_text('echo done > "$OUT/done"\n')
    attempt = new_attempt(argv=["sh", "-c", "echo up > up; sleep 60"])
    attempt.command.append(str(script))
    process = attempt.begin(env={**os.environ, "OUT": str(tmp_path)})
    attempt.wait_for("up")
    process.send_signal(signal.SIGTERM)
    assert process.wait(90) == 0
    assert attempt.record()["ending"] == "stopped"
    assert until(lambda: (tmp_path / "done").exists())
