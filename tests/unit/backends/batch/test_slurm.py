"""Slurm's dialect: command lines, and what real daemons of 22.05 answered."""

from __future__ import annotations

import dataclasses

import pytest

from runyard import errors
from runyard.backends.batch.dialect import ClusterFacts, Native, Stage, SubmitReply, Unanswered
from runyard.backends.batch.slurm import Slurm
from runyard.model.nodes import NodeChoice
from runyard.model.resources import Resources
from tests.unit.backends.batch.texts import order, recorded, said

GB = 1 << 30
slurm = Slurm({})

HEAD = [
    "sbatch",
    "--parsable",
    "--job-name=ry-1-1-7",
    "--no-requeue",
    "--chdir=/scratch/my site/batches/ry-1-1-7",
]
MIDDLE = ["--open-mode=append", "--export=ALL"]
TAIL = ["/scratch/my site/batches/ry-1-1-7/job.sh", "0"]
ONE = ["--nodes=1", "--ntasks=1", "--cpus-per-task=1"]
PLAIN_OUT = "--output=/scratch/my site/batches/ry-1-1-7/ry-1-1-7.1.out"
ARRAY_OUT = "--output=/scratch/my site/batches/ry-1-1-7/ry-1-1-7.%a.out"


def asked(*tasks: int, **more: object) -> list[str]:
    """The words that differ from order to order."""
    command = slurm.submit_command(order(*tasks, **more))  # type: ignore[arg-type]
    return [word for word in command if word not in {*HEAD, *MIDDLE, *TAIL}]


def test_a_plain_job() -> None:
    assert slurm.submit_command(order(1)) == [*HEAD, PLAIN_OUT, *MIDDLE, *ONE, *TAIL]


def test_an_array_with_gaps() -> None:
    assert asked(1, 2, 3, 7, 9, 10) == [ARRAY_OUT, "--array=1-3,7,9-10", *ONE]


def test_a_limit_on_tasks_that_run_together() -> None:
    limited = dataclasses.replace(order(1, 2, 3), at_once=2)
    assert "--array=1-3%2" in slurm.submit_command(limited)


@pytest.mark.parametrize(
    ("resources", "words"),
    [
        (Resources(cpus=6), ["--cpus-per-task=6"]),
        (Resources(memory=16 * GB), ["--mem=16384M"]),
        (Resources(memory=GB + 1), ["--mem=1025M"]),
        (Resources(gpus=2), ["--gres=gpu:2"]),
        (Resources(gpus=1, gpu_type="a100"), ["--gres=gpu:a100:1"]),
        (Resources(time=3 * 3600), ["--time=181"]),
        (Resources(time=90), ["--time=3"]),
    ],
)
def test_resources(resources: Resources, words: list[str]) -> None:
    assert set(words) <= set(asked(1, resources=resources))


def test_options_pass_and_win_over_what_we_would_ask() -> None:
    words = asked(1, resources=Resources(gpus=1), gres="gpu:v100l:1", partition="gpu", exclusive="")
    assert {"--gres=gpu:v100l:1", "--partition=gpu", "--exclusive"} <= set(words)
    assert "--gres=gpu:1" not in words


def test_several_nodes_of_which_the_first_runs_the_script() -> None:
    words = asked(1, resources=Resources(nodes=3, cpus=2, memory=GB, gpus=1))
    assert words[1:] == ["--nodes=3", "--ntasks=3", "--cpus-per-task=2", "--mem=1024M", "--gres=gpu:1"]


@pytest.mark.parametrize("option", ["ntasks", "ntasks-per-node"])
def test_the_number_of_tasks_may_be_the_users_own(option: str) -> None:
    words = asked(1, resources=Resources(nodes=3), **{option: "6"})
    assert words[1:] == ["--nodes=3", "--cpus-per-task=1", f"--{option}=6"]


@pytest.mark.parametrize("name", ["nodes", "N", "--nodes"])
def test_nodes_are_a_resource(name: str) -> None:
    with pytest.raises(errors.InvalidInput, match="runyard's own"):
        slurm.check_option(slurm.option_name(name), "2")


def test_a_warning_goes_to_the_runner_alone() -> None:
    warned = dataclasses.replace(order(1), warning=90)
    assert "--signal=B:USR1@90" in slurm.submit_command(warned)
    assert "--signal=B:USR2@5" in slurm.submit_command(dataclasses.replace(warned, options={"signal": "B:USR2@5"}))


def test_a_trial_submits_nothing() -> None:
    failed = dataclasses.replace(order(1), avoid=("n1",))
    assert slurm.trial_command(failed) == ["sbatch", "--test-only", *slurm.submit_command(failed)[1:]]


def test_nodes_that_failed_are_avoided() -> None:
    failed = dataclasses.replace(order(1, exclude="n9"), avoid=("n1", "n2"))
    assert "--exclude=n9,n1,n2" in slurm.submit_command(failed)


FOUR = ClusterFacts(nodes=("n1", "n2.lab", "n3", "n4"))


@pytest.mark.parametrize(
    ("choice", "resources", "words"),
    [
        (NodeChoice(node=("n2",)), Resources(), ["--nodelist=n2"]),
        (NodeChoice(node=("n1", "n2")), Resources(nodes=2), ["--nodelist=n1,n2"]),
        (NodeChoice(node=("n1", "n2")), Resources(), ["--exclude=n3,n4"]),
        (NodeChoice(exclude=("n1", "n4")), Resources(), ["--exclude=n1,n4"]),
        (NodeChoice(labels=("fast", "rack=a")), Resources(), ["--constraint=fast&rack=a"]),
        (NodeChoice(node=("n1",), exclude=("n4",)), Resources(), ["--nodelist=n1", "--exclude=n4"]),
    ],
)
def test_the_choice_of_nodes(choice: NodeChoice, resources: Resources, words: list[str]) -> None:
    command = slurm.submit_command(dataclasses.replace(order(resources=resources, facts=FOUR), choice=choice))
    assert [word for word in command if word.startswith(("--nodelist", "--exclude", "--constraint"))] == words


def test_the_choice_of_nodes_adds_to_what_the_options_say() -> None:
    chosen = NodeChoice(exclude=("n1",), labels=("fast",))
    given = dataclasses.replace(order(exclude="n9", constraint="a|b"), choice=chosen, avoid=("n1", "n2"))
    assert {"--exclude=n9,n1,n2", "--constraint=(a|b)&fast"} <= set(slurm.submit_command(given))


def test_any_of_several_nodes_needs_to_know_the_others() -> None:
    with pytest.raises(errors.InvalidInput, match="1 of 2 named nodes only where it tells which others"):
        slurm.submit_command(dataclasses.replace(order(), choice=NodeChoice(node=("n1", "n2"))))


@pytest.mark.parametrize(("seconds", "minutes"), [(3600, 60), (3540, 60), (3500, 60), (3000, 51), (7200, 120)])
def test_the_margin_never_exceeds_the_partitions_limit(seconds: int, minutes: int) -> None:
    """What is longer than the partition allows is for Slurm itself to say."""
    facts = ClusterFacts(longest={"": 3600})
    assert f"--time={minutes}" in asked(1, resources=Resources(time=seconds), facts=facts)


def test_gpus_by_memory_cannot_be_asked_for() -> None:
    with pytest.raises(errors.InvalidInput, match="by their memory"):
        asked(1, resources=Resources(gpus=1, gpu_memory=40 * GB))
    assert asked(1, resources=Resources(gpus=1, gpu_memory=40 * GB), gres="gpu:a100:1")


@pytest.mark.parametrize("name", ["job-name", "J", "--array", "output", "time", "t", "mem", "cpus_per_task", "wrap"])
def test_what_runyard_gives_itself_is_refused(name: str) -> None:
    with pytest.raises(errors.InvalidInput, match="runyard's own"):
        slurm.check_option(slurm.option_name(name), "x")


def test_all_the_memory_of_a_node_has_no_other_word() -> None:
    slurm.check_option("mem", "0")
    assert "--mem=0" in asked(1, mem="0")


REFUSALS = [
    "sbatch: error: invalid partition specified: nope\n"
    "sbatch: error: Batch job submission failed: Invalid partition name specified\n",
    "sbatch: error: Batch job submission failed: Invalid account or account/partition combination specified\n",
    "sbatch: error: Memory specification can not be satisfied\n"
    "sbatch: error: Batch job submission failed: Requested node configuration is not available\n",
    "sbatch: error: Invalid --time specification\n",
    "sbatch: unrecognized option '--nosuch=1'\nTry \"sbatch --help\" for more information\n",
    "sbatch: error: AssocMaxWallDurationPerJobLimit\n"
    "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size"
    " and/or time limits)\n",
]
LIMITS = [
    "sbatch: error: AssocMaxSubmitJobLimit\n"
    "sbatch: error: Batch job submission failed: Job violates accounting/QOS policy (job submit limit, user's size"
    " and/or time limits)\n",
    "sbatch: error: QOSMaxSubmitJobPerUserLimit\n",
]
UNSURE = [
    said(stderr="sbatch: error: Batch job submission failed: Socket timed out on send/recv operation\n", code=1),
    said(stderr="sbatch: error: Batch job submission failed: Unable to contact slurm controller\n", code=1),
    said(stderr="sbatch: error: Batch job submission failed: Protocol authentication error\n", code=1),
    said(stderr="sbatch: no answer within 30 seconds", code=None),
    said(stderr="timeout: failed to run command 'sbatch': No such file or directory", code=127),
    said("Submitted nothing at all\n"),
    said(""),
    said(code=1),
]


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals_are_final_and_in_slurms_words(text: str) -> None:
    answer = slurm.parse_submit(said(stderr=text, code=1))
    assert answer.reply is SubmitReply.REFUSED
    assert answer.text
    assert "sbatch: error:" not in answer.text


@pytest.mark.parametrize("text", LIMITS)
def test_a_full_queue_is_no_refusal(text: str) -> None:
    assert slurm.parse_submit(said(stderr=text, code=1)).reply is SubmitReply.LIMITED


@pytest.mark.parametrize("result", UNSURE)
def test_what_says_nothing_is_neither_yes_nor_no(result: object) -> None:
    assert slurm.parse_submit(result).reply is SubmitReply.UNSURE  # type: ignore[arg-type]


@pytest.mark.parametrize(("text", "number"), [("42\n", "42"), ("42;cedar\n", "42")])
def test_acceptance(text: str, number: str) -> None:
    answer = slurm.parse_submit(said(text))
    assert (answer.reply, answer.id) == (SubmitReply.ACCEPTED, number)


def queue() -> dict[tuple[str, int], Native]:
    return {(native.name, native.task): native for native in slurm.parse_queue(recorded("slurm-queue.txt"))}


def test_the_queue() -> None:
    found = {key: (native.stage, native.id, native.node) for key, native in queue().items()}
    assert found["ry-array", 1] == (Stage.RUNNING, "6_1", "n2")
    assert found["ry-array", 3] == (Stage.WAITING, "6_3", "")
    assert found["ry-held", 1] == (Stage.WAITING, "13", "")
    assert found["ry-ok", 1] == (Stage.OVER, "3", "n1")
    assert found["ry|with bar", 1][0] is Stage.WAITING
    assert len(found) == 14


def test_why_and_until_when_a_job_waits() -> None:
    found = queue()
    assert (found["ry-array", 3].why, found["ry-array", 3].expected) == ("JobArrayTaskLimit", "")
    begins = found["ry|with bar", 1]
    assert (begins.why, begins.expected[10:]) == ("BeginTime", "T07:19:56")
    assert found["ry-array", 1].why == ""


def test_endings_in_the_queue() -> None:
    assert {name: native.ending for (name, _), native in queue().items() if native.stage is Stage.OVER} == {
        "ry-ok": None,
        "ry-exit": None,
        "ry-killed": None,
        "ry-launch": None,
        "ry-cancelled": "external",
        "ry-timeout": "timeout",
        "ry-preempted": "preempted",
        "ry-node": "node_lost",
    }


def test_tasks_that_were_cancelled_while_they_waited() -> None:
    natives = slurm.parse_queue(recorded("slurm-queue-oom.txt"))
    assert [native.task for native in natives if native.name == "ry-waited"] == [2, 3, 4, 5, 6, 7, 8, 9, 1]
    assert {native.ending for native in natives if native.name == "ry-waited"} == {"external"}
    assert [native.ending for native in natives if native.name == "ry-oom"] == ["oom"]


@pytest.mark.parametrize("line", ["garbage", "x|1|RUNNING|N/A|n1|None|name", "12|1|RUNNING|N/A|n1|None|"])
def test_a_line_that_is_none_spoils_the_answer(line: str) -> None:
    with pytest.raises(Unanswered, match="squeue said"):
        slurm.parse_queue(said(f"3|N/A|RUNNING|N/A|n1|None|fine\n{line}\n"))


@pytest.mark.parametrize("code", [None, 1, 127])
def test_a_queue_that_does_not_answer_is_not_empty(code: int | None) -> None:
    with pytest.raises(Unanswered):
        slurm.parse_queue(said("", "slurm_load_jobs error: Unable to contact slurm controller", code))


def test_a_state_of_a_later_slurm_is_unclear() -> None:
    [native] = slurm.parse_queue(said("3|N/A|EXPEDITING|N/A|n1|None|x\n"))
    assert native.stage is Stage.UNCLEAR


def test_a_launch_that_failed_and_is_held_is_stuck() -> None:
    [native] = slurm.parse_queue(said("3|N/A|PENDING|N/A||launch failed requeued held|x\n"))
    assert native.stage is Stage.STUCK


def test_accounts() -> None:
    found = {native.name: native for native in slurm.parse_accounting(recorded("slurm-accounts.txt")) or ()}
    assert {name: (native.ending, native.numbers) for name, native in found.items()} == {
        "ry-ok": (None, "after 0.0s"),
        "ry-exit": (None, "exit code 3:0, after 0.0s"),
        "ry-killed": (None, "exit code 0:9, after 0.0s"),
        "ry-launch": (None, "exit code 0:53, after 0.0s"),
        "ry-cancelled": ("external", "after 0.0s"),
        "ry-timeout": ("timeout", "after 27s of 1m00s"),
        "ry-preempted": ("preempted", "after 2.0s"),
        "ry-node": ("node_lost", "after 58s"),
    }
    assert found["ry-cancelled"].word == "CANCELLED by 1001"
    assert "ry-array" not in found, "what runs is not over"


def test_accounts_of_memory() -> None:
    found = {native.name: native for native in slurm.parse_accounting(recorded("slurm-accounts-oom.txt")) or ()}
    assert (found["ry-oom"].ending, found["ry-oom"].numbers) == (
        "oom",
        "exit code 0:125, after 0.0s, with 50M of memory",
    )


def test_accounts_of_tasks_that_are_told_together() -> None:
    row = "12_[3-5,9%2]|CANCELLED by 0|0:0|2026-11-15T06:21:07|0|1|100M|None assigned|ry-x\n"
    found = slurm.parse_accounting(said(row)) or []
    assert [(native.task, native.id, native.node) for native in found] == [
        (3, "12_3", ""),
        (4, "12_4", ""),
        (5, "12_5", ""),
        (9, "12_9", ""),
    ]


def test_an_end_that_is_not_known_yet_is_none() -> None:
    """After an outage of the database the state comes ten seconds before the exit code and the time."""
    assert slurm.parse_accounting(said("12|FAILED|0:0|Unknown|0|1|100M|n1|ry-x\n")) == []


def test_no_accounts_are_kept() -> None:
    assert slurm.parse_accounting(said(stderr="Slurm accounting storage is disabled\n", code=1)) is None


@pytest.mark.parametrize(
    "result",
    [
        said(stderr="sacct: error: Problem talking to the database: Connection refused\n", code=1),
        said(code=None),
        said("half a li"),
    ],
)
def test_accounts_that_do_not_answer(result: object) -> None:
    with pytest.raises(Unanswered):
        slurm.parse_accounting(result)  # type: ignore[arg-type]


def native(native_id: str) -> Native:
    return Native(name="x", task=1, id=native_id, stage=Stage.RUNNING, word="RUNNING")


def test_cancelling_takes_one_word_per_array() -> None:
    ids = ["7", "12_3", "12_1", "12_2", "13_9", "12_8"]
    assert slurm.cancel_command(map(native, ids)) == ["scancel", "7", "12_[1-3,8]", "13_[9]"]


def test_cancelling_what_is_gone_is_heard() -> None:
    assert slurm.parse_cancel(said(stderr="scancel: error: Kill job error on job id 9: Invalid job id", code=1))
    assert not slurm.parse_cancel(said(stderr="scancel: error: Unable to contact slurm controller", code=8))
    assert not slurm.parse_cancel(said(code=None))


def test_an_explanation() -> None:
    [(job, text)] = slurm.parse_explain(recorded("slurm-explain.txt")).items()
    assert job == "6_2"
    assert "is RUNNING, on n2, Partition=main Account=lab" in text
    assert slurm.parse_explain(said(code=1)) == {}


def test_facts() -> None:
    facts = slurm.parse_facts([recorded(f"slurm-facts-{number}.txt") for number in range(4)])
    assert (facts.array_size, facts.task_limit, facts.longest) == (1000, None, {})
    assert facts.nodes == ("n1", "n2")


def test_facts_with_limits() -> None:
    config, partitions = said("MaxArraySize            = 51\n"), said("short*|1-00:00:00\nlong|infinite\nbig|2:00:00\n")
    facts = slurm.parse_facts([config, partitions, said("lab1||10\n"), said("n1\nn2\nn1\n")])
    assert (facts.array_size, facts.task_limit) == (50, 10)
    assert facts.longest == {"": 86400, "short": 86400, "big": 7200}


def test_of_several_accounts_the_limit_is_not_known() -> None:
    facts = slurm.parse_facts([said(), said(), said("lab1||10\nlab2||20\n"), said()])
    assert facts.task_limit is None


def test_arrays_that_are_switched_off() -> None:
    assert slurm.parse_facts([said("MaxArraySize = 0\n"), said(), said(), said()]).array_size == 1


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("slurmstepd-n1: error: Detected 1 oom-kill event(s) in StepId=3.batch.", "oom"),
        ("slurmstepd: error: *** JOB 8 ON n1 CANCELLED AT 2026-11-15T06:20:23 DUE TO TIME LIMIT ***", "timeout"),
        ("slurmstepd: error: *** JOB 1 ON n3 CANCELLED AT 2026-11-15T06:19:56 DUE TO PREEMPTION ***", "preempted"),
        ("slurmstepd: error: *** JOB 7 ON n1 CANCELLED AT 2026-11-15T06:19:56 ***", "external"),
        ("all is well", None),
    ],
)
def test_what_slurm_writes_into_the_output(text: str, ending: str | None) -> None:
    assert slurm.ending_of_words(text) == ending
