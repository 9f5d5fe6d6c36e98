"""The table of cases: what queue, accounts and directory say, and what the job then is."""

from __future__ import annotations

import time

import pytest

from runyard.backends.base import Presence
from runyard.backends.batch.dialect import Native, Stage
from runyard.backends.batch.evidence import SILENT_S, Court, Evidence, needs_trace
from runyard.backends.batch.files import Trace
from runyard.backends.batch.gridengine import GridEngine
from runyard.backends.batch.options import BatchSettings
from runyard.backends.batch.slurm import Slurm

SLURM = Court(dialect=Slurm({}), submit_window=45)
GRIDENGINE = Court(dialect=GridEngine({}), submit_window=45)


def native(stage: Stage, word: str = "WORD", **more: object) -> Native:
    return Native(name="b", task=1, id="12_1", stage=stage, word=word, **more)  # type: ignore[arg-type]


WAITS, RUNS, STUCK = native(Stage.WAITING), native(Stage.RUNNING), native(Stage.STUCK, "Eqw", why="Eqw")
AGAIN = native(Stage.WAITING, "PENDING", why="BeginTime", again=True)
NODE_FAIL = native(Stage.OVER, "NODE_FAIL", ending="node_lost", node="n3")
FAILED = native(Stage.OVER, "FAILED", why="NonZeroExitCode", node="n3")
CANCELLED = native(Stage.OVER, "CANCELLED by 0", ending="external", numbers="after 12s")
SILENT_NODE = native(Stage.RUNNING, "r", node="ge2", node_is_silent=True)

NEW = Trace(entered=3)
OLD = Trace(entered=3600)
HEARD = Trace(entered=3600, started=True, quiet=4)
SILENT = Trace(entered=3600, started=True, quiet=75)
RECORDED = Trace(entered=3600, started=True, quiet=75, recorded=True)
SPOKE_LATELY = Trace(entered=3600, spoke=2, words="python3: not found")
SPOKE = Trace(entered=3600, spoke=90, words="python3: not found")
ACCEPTED = Trace(entered=3600, accepted="12")


@pytest.mark.parametrize(
    ("evidence", "presence", "ending"),
    [
        (Evidence(natives=[WAITS]), Presence.PENDING, None),
        (Evidence(natives=[RUNS]), Presence.ALIVE, None),
        (Evidence(natives=[RUNS], trace=SILENT), Presence.ALIVE, None),
        (Evidence(natives=[STUCK]), Presence.GONE, "launch"),
        (Evidence(natives=[native(Stage.UNCLEAR)]), Presence.UNKNOWN, None),
        (Evidence(natives=[SILENT_NODE], trace=HEARD), Presence.ALIVE, None),
        (Evidence(natives=[SILENT_NODE], trace=SILENT), Presence.GONE, "node_lost"),
        (Evidence(natives=[FAILED], trace=SILENT), Presence.GONE, None),
        (Evidence(natives=[FAILED], trace=OLD), Presence.GONE, "launch"),
        (Evidence(natives=[CANCELLED], trace=SILENT), Presence.GONE, "external"),
        (Evidence(natives=[CANCELLED], trace=OLD), Presence.GONE, "external"),
        (Evidence(account=CANCELLED, trace=OLD), Presence.GONE, "external"),
        (Evidence(account=CANCELLED, trace=HEARD), Presence.GONE, "external"),
        (Evidence(account=FAILED, trace=HEARD), Presence.UNKNOWN, None),
        (Evidence(account=FAILED, trace=RECORDED), Presence.GONE, None),
        (Evidence(natives=[NODE_FAIL], trace=HEARD), Presence.UNKNOWN, "node_lost"),
        (Evidence(natives=[NODE_FAIL], trace=SILENT), Presence.GONE, "node_lost"),
        (Evidence(natives=[AGAIN], trace=OLD), Presence.PENDING, None),
        (Evidence(natives=[AGAIN], trace=HEARD), Presence.UNKNOWN, "preempted"),
        (Evidence(natives=[AGAIN], trace=RECORDED), Presence.GONE, "preempted"),
        (Evidence(natives=[FAILED, RUNS], trace=OLD), Presence.ALIVE, None),
        (Evidence(natives=[WAITS, FAILED], account=CANCELLED, trace=OLD), Presence.PENDING, None),
        (Evidence(trace=RECORDED), Presence.GONE, None),
        (Evidence(trace=HEARD), Presence.UNKNOWN, None),
        (Evidence(trace=SILENT), Presence.GONE, None),
        (Evidence(trace=Trace()), Presence.ABSENT, None),
        (Evidence(trace=NEW), Presence.UNKNOWN, None),
        (Evidence(trace=OLD), Presence.ABSENT, None),
        (Evidence(trace=SPOKE_LATELY), Presence.UNKNOWN, None),
        (Evidence(trace=SPOKE), Presence.GONE, "launch"),
        (Evidence(trace=ACCEPTED), Presence.ABSENT, None),
        (Evidence(trace=ACCEPTED, array_is_known=True), Presence.GONE, "external"),
    ],
)
def test_the_table(evidence: Evidence, presence: Presence, ending: str | None) -> None:
    seen = SLURM.judge(evidence)
    assert (seen.presence, seen.ending) == (presence, ending)


def test_a_scheduler_that_never_forgets_has_forgotten_only_what_was_deleted() -> None:
    seen = GRIDENGINE.judge(Evidence(trace=ACCEPTED))
    assert (seen.presence, seen.ending) == (Presence.GONE, "external")
    assert seen.text == "it was deleted from Grid Engine's queue before it began"


def test_why_it_waits_and_until_when() -> None:
    today = time.strftime("%Y-%m-%d")
    waits = native(Stage.WAITING, "PENDING", why="Priority", expected=f"{today}T14:05:00")
    assert SLURM.judge(Evidence(natives=[waits])).text == "pending in Slurm: Priority, expected 14:05"
    later = native(Stage.WAITING, "PENDING", why="Priority", expected="2126-01-02T14:05:00")
    assert SLURM.judge(Evidence(natives=[later])).text.endswith("expected 2126-01-02 14:05")
    assert SLURM.judge(Evidence(natives=[native(Stage.WAITING, "PENDING")])).text == "pending in Slurm"


def test_the_schedulers_numbers_are_told() -> None:
    seen = SLURM.judge(Evidence(account=CANCELLED, trace=SILENT))
    assert seen.text == "Slurm: CANCELLED by 0, after 12s"
    failed = SLURM.judge(Evidence(natives=[FAILED], trace=SILENT))
    assert failed.text == "Slurm: FAILED (NonZeroExitCode) on n3; its runner was last heard 1m15s ago"


def test_accounts_know_more_about_an_end_than_the_queue() -> None:
    queue = native(Stage.OVER, "CANCELLED", ending="external")
    assert "after 12s" in SLURM.judge(Evidence(natives=[queue], account=CANCELLED, trace=SILENT)).text


def test_a_launch_that_failed_tells_what_the_job_said() -> None:
    trace = Trace(entered=60, spoke=1, words="python3: not found")
    assert SLURM.judge(Evidence(natives=[FAILED], trace=trace)).text.endswith("it said: python3: not found")


def test_where_there_are_no_accounts_the_output_is_a_witness() -> None:
    words = "slurmstepd: error: *** JOB 8 ON n1 CANCELLED AT 2026-11-15T06:20:23 DUE TO TIME LIMIT ***"
    trace = Trace(entered=3600, started=True, quiet=75, words=words)
    assert SLURM.judge(Evidence(trace=trace)).ending == "timeout"


@pytest.mark.parametrize("word", ["SUSPENDED", "COMPLETING", "CONFIGURING"])
def test_what_is_unusual_about_a_running_job(word: str) -> None:
    assert SLURM.judge(Evidence(natives=[native(Stage.RUNNING, word)])).text == f"{word.lower()} in Slurm"
    assert SLURM.judge(Evidence(natives=[RUNS])).text == ""


def test_the_directory_is_asked_only_where_it_has_a_say() -> None:
    assert [needs_trace(natives) for natives in ([], [FAILED], [SILENT_NODE], [AGAIN])] == [True] * 4
    assert [needs_trace(natives) for natives in ([RUNS], [WAITS], [FAILED, WAITS])] == [False] * 3


def test_the_end_of_a_runner_of_which_only_silence_is_known_is_told_within_a_minute() -> None:
    assert SILENT_S + BatchSettings().poll_interval <= 60, "after its last beat, by the look at the queue after that"
