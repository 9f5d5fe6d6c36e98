"""A scheduler that hangs, lies or says nothing: everything becomes unknown, and nothing is done twice."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from runyard.backends.base import Job, Presence, Sighting, StopRequest
from runyard.backends.batch.lifecycle import BatchBackend
from runyard.testing.backend_contract import record_of
from tests.unit.backends.batch.fake_cluster import IMPATIENT, FakeCluster, batch_of


@pytest.fixture
def cluster(tmp_path: Path) -> FakeCluster:
    return FakeCluster(tmp_path)


def sight(backend: BatchBackend, job: Job) -> Sighting:
    return backend.poll([job])[job.key]


def line(job: Job, state: str, number: str = "12", name: str = "", why: str = "None") -> str:
    return f"{number}|{job.index}|{state}|N/A|n1|{why}|{name or job.batch}\n"


def accepted(cluster: FakeCluster, backend: BatchBackend, *jobs: Job) -> None:
    cluster.says("sbatch", "12\n")
    assert backend.submit(batch_of(*jobs)) == []


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ({"hangs": True}, "no answer within 3 seconds"),
        ({"err": "slurm_load_jobs error: Unable to contact slurm controller", "code": 1}, "Unable to contact"),
        ({"out": "Segmentation fault\n"}, "squeue said"),
        ({"out": "12|1|RUNN"}, "squeue said"),
        ({"code": 139}, "ended with 139"),
    ],
)
def test_a_queue_that_cannot_be_read_is_unknown(cluster: FakeCluster, answer: dict[str, object], told: str) -> None:
    job, backend = cluster.job(), cluster.backend(**IMPATIENT if "hangs" in answer else {})
    accepted(cluster, cluster.backend(), job)
    cluster.says("squeue", line(job, "RUNNING"))
    assert sight(backend, job).presence is Presence.ALIVE
    cluster.clock.advance(11)
    cluster.says("squeue", **answer)  # type: ignore[arg-type]
    seen = sight(backend, job)
    assert seen.presence is Presence.UNKNOWN
    assert told in seen.text


def test_a_scheduler_that_does_not_answer_is_asked_less_and_less_often(cluster: FakeCluster) -> None:
    job, backend = cluster.job(), cluster.backend()
    accepted(cluster, backend, job)
    cluster.says("squeue", err="down", code=1)
    asked = []
    for _ in range(300):
        backend.poll([job])
        asked.append(len(cluster.calls("squeue")))
        cluster.clock.advance(1)
    assert asked[-1] == 4 + 3, "at 0, 10, 30 and 70 seconds, then every minute"
    cluster.says("squeue", line(job, "RUNNING"))
    cluster.clock.advance(60)
    assert sight(backend, job).presence is Presence.ALIVE
    cluster.clock.advance(10)
    backend.poll([job])
    assert len(cluster.calls("squeue")) == asked[-1] + 2, "then as often as before"


def test_an_id_that_belongs_to_another_name_is_not_ours(cluster: FakeCluster) -> None:
    job, backend = cluster.job(), cluster.backend()
    accepted(cluster, backend, job)
    cluster.says("squeue", line(job, "RUNNING", name="somebody-else"))
    cluster.clock.advance(11)
    assert sight(backend, job).presence is Presence.UNKNOWN
    cluster.age(job, 60)
    cluster.clock.advance(11)
    assert sight(backend, job).presence is Presence.ABSENT


@pytest.mark.parametrize(
    "answer", [{"out": "Submitted, I think\n"}, {"hangs": True}, {"err": "Socket timed out on send/recv", "code": 1}]
)
def test_a_submit_of_unknown_fate_is_found_by_its_name(cluster: FakeCluster, answer: dict[str, object]) -> None:
    job, backend = cluster.job(), cluster.backend(**IMPATIENT if "hangs" in answer else {})
    cluster.says("sbatch", **answer)  # type: ignore[arg-type]
    assert backend.submit(batch_of(job)) == []
    assert sight(backend, job).presence is Presence.UNKNOWN
    cluster.clock.advance(11)
    cluster.says("squeue", line(job, "PENDING", why="Priority"))
    seen = sight(backend, job)
    assert (seen.presence, seen.native_id, seen.text) == (Presence.PENDING, "12_1", "pending in Slurm: Priority")
    backend.submit(batch_of(job))
    assert len(cluster.calls("sbatch")) == 1


def test_a_submit_of_unknown_fate_is_repeated_only_when_it_is_proven_absent(cluster: FakeCluster) -> None:
    job, backend = cluster.job(), cluster.backend(**IMPATIENT)
    cluster.says("sbatch", hangs=True)
    backend.submit(batch_of(job))
    cluster.says("sbatch", "12\n")
    cluster.age(job, -60)

    def submits_after_another() -> int:
        cluster.clock.advance(61)
        assert backend.submit(batch_of(job)) == []
        return len(cluster.calls("sbatch"))

    assert submits_after_another() == 1, "it may be on its way"
    cluster.age(job, 120)
    cluster.says("squeue", err="down", code=1)
    assert submits_after_another() == 1, "nobody could say"
    cluster.says("squeue")
    cluster.says("sacct", err="sacct: error: Problem talking to the database", code=1)
    assert submits_after_another() == 1, "the accounts could not say"
    cluster.says("sacct")
    Path(job.directory, "started").mkdir()
    assert submits_after_another() == 1, "it has begun"
    Path(job.directory, "started").rmdir()
    assert submits_after_another() == 2


def test_accounts_that_do_not_answer_leave_only_the_missing_unknown(cluster: FakeCluster) -> None:
    there, missing, backend = cluster.job(), cluster.job(), cluster.backend()
    accepted(cluster, backend, there, missing)
    cluster.says("squeue", line(there, "RUNNING"))
    cluster.says("sacct", err="sacct: error: Problem talking to the database: Connection refused", code=1)
    cluster.clock.advance(11)
    found = backend.poll([there, missing])
    assert [found[job.key].presence for job in (there, missing)] == [Presence.ALIVE, Presence.UNKNOWN]
    assert "database" in found[missing.key].text


def test_no_accounts_are_a_supported_case(cluster: FakeCluster) -> None:
    job, backend = cluster.job(), cluster.backend()
    accepted(cluster, backend, job)
    cluster.says("squeue")
    cluster.says("sacct", err="Slurm accounting storage is disabled", code=1)
    cluster.age(job, 60)
    cluster.clock.advance(11)
    assert sight(backend, job).presence is Presence.ABSENT
    cluster.clock.advance(11)
    sight(cluster.backend(accounting="no"), job)
    assert len(cluster.calls("sacct")) == 1


def test_a_refusal_is_final_and_in_the_schedulers_words(cluster: FakeCluster) -> None:
    cluster.says("sbatch", err="sbatch: error: Batch job submission failed: Invalid qos specification", code=1)
    [first, second] = cluster.backend().submit(batch_of(cluster.job(), cluster.job()))
    assert (first.final, first.ending, second.final) == (True, "rejected", True)
    assert first.text == "Slurm: Batch job submission failed: Invalid qos specification"


def test_a_full_queue_is_tried_with_less_and_waited_for(cluster: FakeCluster) -> None:
    jobs, backend = [cluster.job() for _ in range(8)], cluster.backend()
    cluster.says("sbatch", err="sbatch: error: AssocMaxSubmitJobLimit", code=1)
    assert backend.submit(batch_of(*jobs)) == []
    arrays = [call.split("--array=")[1].split()[0] for call in cluster.calls("sbatch")[:-1]]
    assert arrays == ["1-8", "1-4", "1-2"]
    assert "--array" not in cluster.calls("sbatch")[-1], "and then a single one"
    seen = sight(backend, jobs[0])
    assert seen.text == "not handed to Slurm yet: AssocMaxSubmitJobLimit"
    assert (seen.presence, backend.room()) == (Presence.PENDING, 0)
    backend.poll(jobs)
    assert len(cluster.calls("sbatch")) == 4, "not before the next look"
    cluster.clock.advance(11)
    cluster.says("sbatch", "12\n")
    backend.poll(jobs)
    assert len(cluster.calls("sbatch")) == 4 + 4, "one, two, four, and the one that is left"
    assert backend.room() > 0


def test_what_waits_for_room_can_be_stopped(cluster: FakeCluster) -> None:
    job, backend = cluster.job(), cluster.backend()
    cluster.says("sbatch", err="sbatch: error: AssocMaxSubmitJobLimit", code=1)
    backend.submit(batch_of(job))
    backend.cancel([StopRequest(job=job, reason="user", grace=5)])
    assert (record_of(job) or {})["stop_reason"] == "user"
    cluster.says("sbatch", "12\n")
    cluster.clock.advance(11)
    backend.poll([job])
    assert len(cluster.calls("sbatch")) == 1


def test_a_refusal_of_what_was_held_back_is_told_by_the_poll(cluster: FakeCluster) -> None:
    job, backend = cluster.job(), cluster.backend()
    cluster.says("sbatch", err="sbatch: error: AssocMaxSubmitJobLimit", code=1)
    backend.submit(batch_of(job))
    cluster.says("sbatch", err="sbatch: error: Invalid qos specification", code=1)
    cluster.clock.advance(11)
    seen = sight(backend, job)
    assert (seen.presence, seen.ending) == (Presence.GONE, "rejected")


def test_other_jobs_of_the_user_count(cluster: FakeCluster) -> None:
    job, backend = cluster.job(), cluster.backend(max_jobs="5")
    assert backend.room() == 5
    accepted(cluster, backend, job)
    assert backend.room() == 4
    others = "".join(f"{number}|N/A|RUNNING|N/A|n1|None|other\n" for number in range(20, 23))
    cluster.says("squeue", line(job, "RUNNING") + others)
    cluster.clock.advance(11)
    backend.poll([job])
    assert backend.room() == 1


def test_a_queue_that_was_full_is_looked_at_again_though_nobody_asks_about_a_job(cluster: FakeCluster) -> None:
    job, backend = cluster.job(), cluster.backend(max_jobs="1")
    accepted(cluster, backend, job)
    cluster.says("squeue", line(job, "RUNNING"))
    cluster.clock.advance(11)
    backend.poll([job])
    assert backend.room() == 0
    cluster.says("squeue")
    cluster.clock.advance(11)
    backend.poll([])
    assert backend.room() == 1
    asked = len(cluster.calls("squeue"))
    cluster.clock.advance(11)
    backend.poll([])
    assert len(cluster.calls("squeue")) == asked, "there is room: nobody needs to know more"


def test_an_unproven_submit_that_is_stopped_is_fenced_first(cluster: FakeCluster) -> None:
    job, backend = cluster.job(), cluster.backend(**IMPATIENT)
    cluster.says("sbatch", hangs=True)
    backend.submit(batch_of(job))
    cluster.says("squeue", err="down", code=1)
    backend.cancel([StopRequest(job=job, reason="user", grace=5)])
    assert Path(job.directory, "started").is_dir()
    assert (record_of(job) or {})["ending"] == "stopped"
    assert cluster.calls("scancel") == []
    cluster.says("squeue", line(job, "PENDING"))
    cluster.clock.advance(61)
    backend.poll([])
    assert cluster.calls("scancel") == ["scancel 12_[1]"]


def test_a_cancel_that_is_not_heard_is_repeated(cluster: FakeCluster) -> None:
    jobs, backend = [cluster.job() for _ in range(3)], cluster.backend()
    accepted(cluster, backend, *jobs)
    cluster.says("squeue", "".join(line(job, "PENDING") for job in jobs))
    cluster.says("scancel", err="scancel: error: Unable to contact slurm controller", code=8)
    stops = [StopRequest(job=job, reason="user", grace=5) for job in jobs]
    for _ in range(3):
        backend.cancel(stops)
        backend.poll([])
    assert cluster.calls("scancel") == ["scancel 12_[1-3]"], "one command for all, and not at once again"
    cluster.clock.advance(16)
    backend.poll([])
    cluster.says("squeue")
    cluster.clock.advance(16)
    backend.poll([])
    cluster.clock.advance(16)
    backend.poll([])
    assert len(cluster.calls("scancel")) == 2, "until it is not in the queue any more"


def test_a_runner_that_does_not_hear_is_ended_by_the_scheduler(cluster: FakeCluster) -> None:
    job, backend = cluster.job(), cluster.backend()
    accepted(cluster, backend, job)
    Path(job.directory, "started").mkdir()
    cluster.says("squeue", line(job, "RUNNING"))
    backend.cancel([StopRequest(job=job, reason="user", grace=5, waited=0)])
    backend.poll([])
    assert (Path(job.directory, "control.json").read_text(), cluster.calls("scancel")) == (
        '{"stop": {"reason": "user", "grace": 5}}',
        [],
    )
    backend.cancel([StopRequest(job=job, reason="user", grace=5, waited=36)])
    backend.poll([])
    assert cluster.calls("scancel") == ["scancel 12_[1]"]


def test_a_runner_that_does_not_hear_is_ended_though_each_tick_of_cron_begins_anew(cluster: FakeCluster) -> None:
    """None of them has waited: how long the wish has been there is all that they know."""
    job, backend = cluster.job(), cluster.backend()
    accepted(cluster, backend, job)
    Path(job.directory, "started").mkdir()
    cluster.says("squeue", line(job, "RUNNING"))
    wish, control = StopRequest(job=job, reason="user", grace=5), Path(job.directory, "control.json")
    for age, expected in ((0, []), (20, []), (36, ["scancel 12_[1]"])):
        if age:
            os.utime(control, (time.time() - age, time.time() - age))
        tick = cluster.backend()
        tick.cancel([wish])
        tick.poll([])
        assert cluster.calls("scancel") == expected


def test_a_job_that_never_begins_leaves_the_queue_though_who_stopped_it_was_gone_before(cluster: FakeCluster) -> None:
    """A command of a home without a daemon ends when it has written its wish; a tick of cron does the rest."""
    job, backend = cluster.job(), cluster.backend()
    accepted(cluster, backend, job)
    cluster.says("squeue", line(job, "PENDING"))
    wish = StopRequest(job=job, reason="user", grace=5)
    cluster.backend().cancel([wish])
    assert cluster.calls("scancel") == []
    tick = cluster.backend()
    tick.cancel([wish])
    tick.poll([])
    assert cluster.calls("scancel") == ["scancel 12_[1]"]


def test_an_idle_backend_asks_nobody(cluster: FakeCluster) -> None:
    backend = cluster.backend()
    backend.poll([])
    backend.room()
    backend.cancel([])
    assert not (cluster.programs / "calls").exists()


def test_a_directory_that_cannot_be_written_is_no_reason_to_give_up(cluster: FakeCluster) -> None:
    job = cluster.job()
    (cluster.site / "batches").write_text("in the way")
    [refusal] = cluster.backend().submit(batch_of(job))
    assert (refusal.final, "cannot be used" in refusal.text) == (False, True)
    [refusal] = cluster.backend(python="/no/python").submit(batch_of(job))
    assert "/no/python" in refusal.text
    assert cluster.calls("sbatch") == []


def test_while_the_scheduler_does_not_answer_nothing_is_handed_to_it(cluster: FakeCluster) -> None:
    first, second, backend = cluster.job(), cluster.job(), cluster.backend(**IMPATIENT)
    cluster.says("sbatch", hangs=True)
    backend.submit(batch_of(first))
    assert backend.submit(batch_of(second)) == []
    assert len(cluster.calls("sbatch")) == 1
    assert sight(backend, second).text == "not handed to Slurm yet: it does not answer"
    cluster.says("sbatch", "12\n")
    cluster.clock.advance(11)
    backend.poll([first, second])
    assert len(cluster.calls("sbatch")) == 2


def _begun(job: Job, seconds_ago: float) -> None:
    """As if its runner had been heard of so long ago."""
    started = Path(job.directory, "started")
    started.mkdir(parents=True)
    heard = time.time() - seconds_ago
    os.utime(started, (heard, heard))


def test_what_the_scheduler_gave_up_is_told_to_end_and_waited_for_while_it_beats(cluster: FakeCluster) -> None:
    """Slurm lets a process run on when it has lost the node's daemon."""
    job, backend = cluster.job(), cluster.backend()
    accepted(cluster, backend, job)
    _begun(job, seconds_ago=3)
    cluster.says("squeue", line(job, "NODE_FAIL", why="NodeDown"))
    seen = sight(backend, job)
    assert (seen.presence, seen.ending) == (Presence.UNKNOWN, "node_lost")
    assert '"reason": "lost"' in Path(job.directory, "control.json").read_text()
    started = Path(job.directory, "started")
    os.utime(started, (time.time() - 25,) * 2)
    cluster.clock.advance(11)
    seen = sight(backend, job)
    assert (seen.presence, seen.ending) == (Presence.GONE, "node_lost")


def test_what_is_back_in_the_queue_after_it_began_leaves_it(cluster: FakeCluster) -> None:
    job, backend = cluster.job(), cluster.backend()
    accepted(cluster, backend, job)
    cluster.says("squeue", line(job, "PENDING", why="BeginTime"))
    assert sight(backend, job).presence is Presence.PENDING, "a user may ask for a later begin"
    _begun(job, seconds_ago=30)
    cluster.clock.advance(11)
    seen = sight(backend, job)
    assert (seen.presence, seen.ending) == (Presence.GONE, "preempted")
    assert cluster.calls("scancel")


def test_programs_that_are_missing(cluster: FakeCluster) -> None:
    job, backend = cluster.job(), cluster.backend(bin=str(cluster.site))
    assert backend.submit(batch_of(job)) == []
    seen = sight(backend, job)
    assert seen.presence is Presence.PENDING, "nothing is in doubt: it waits until somebody mends it"
    assert "there is no program sbatch" in seen.text
    assert "bin=DIRECTORY" in seen.text


def test_variables_that_would_hide_jobs_are_hidden_themselves(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SQUEUE_PARTITION", "other")
    program = cluster.programs / "squeue"
    program.write_text(f'#!/bin/sh\necho "partition=$SQUEUE_PARTITION conf=$SLURM_CONF" > {cluster.site}/seen\n')
    job, backend = cluster.job(), cluster.backend(client_env="SLURM_CONF=/etc/mine")
    accepted(cluster, backend, job)
    backend.poll([job])
    assert (cluster.site / "seen").read_text() == "partition= conf=/etc/mine\n"


@pytest.mark.parametrize(
    "error", ['error: fopen("/opt/sge/default/common/act_qmaster") failed', "sbatch: fatal: no configuration source"]
)
def test_the_site_test_does_not_take_an_error_for_a_version(cluster: FakeCluster, error: str) -> None:
    cluster.says("sbatch", err=f"{error}\nmore\n", code=1)
    [check] = cluster.backend().site_test()
    assert (check.name, check.ok) == ("commands", False)
    assert error in check.text
    assert "configured" in check.fix
    cluster.says("sbatch", "slurm 22.05.8\n")
    found = cluster.backend().site_test()[0]
    assert (found.ok, found.text) == (True, "slurm 22.05.8")
