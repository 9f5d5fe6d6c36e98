"""Grid Engine's dialect: command lines, and what a real cell of 8.1.9 answered."""

from __future__ import annotations

import dataclasses

import pytest

from runyard import errors
from runyard.backends.batch import gridengine_accounts
from runyard.backends.batch.dialect import ClusterFacts, Native, Stage, SubmitReply, Unanswered
from runyard.backends.batch.gridengine import GridEngine
from runyard.model.nodes import NodeChoice
from runyard.model.resources import Resources
from tests.unit.backends.batch.texts import order, recorded, said

GB = 1 << 30
gridengine = GridEngine({})
FACTS = ClusterFacts(per_slot=frozenset({"gpu", "memory", "h_vmem"}))

HEAD = ["qsub", "-terse", "-N", "ry-1-1-7", "-S", "/bin/sh", "-r", "n", "-j", "y", "-o"]
PLACE = ["-wd", "/scratch/my site/batches/ry-1-1-7"]
TAIL = ["/scratch/my site/batches/ry-1-1-7/job.sh", "0"]
PLAIN_OUT = "/scratch/my site/batches/ry-1-1-7/ry-1-1-7.1.out"
ARRAY_OUT = "/scratch/my site/batches/ry-1-1-7/ry-1-1-7.$TASK_ID.out"


def requests(dialect: GridEngine = gridengine, **more: object) -> str:
    """What stands after -l."""
    command = dialect.submit_command(order(1, **more))  # type: ignore[arg-type]
    return command[command.index("-l") + 1]


def test_a_plain_job() -> None:
    assert gridengine.submit_command(order(1)) == [*HEAD, PLAIN_OUT, *PLACE, *TAIL]


def test_an_array() -> None:
    assert gridengine.submit_command(order(3, 4, 5)) == [*HEAD, ARRAY_OUT, *PLACE, "-t", "3-5", *TAIL]
    limited = dataclasses.replace(order(1, 2, 3), at_once=2)
    assert gridengine.submit_command(limited)[14:18] == ["-t", "1-3", "-tc", "2"]


@pytest.mark.parametrize(
    ("resources", "asked"),
    [
        (Resources(time=3600), "h_rt=3660"),
        (Resources(memory=16 * GB), "mem_free=16384M"),
        (Resources(gpus=2), "gpu=2"),
        (Resources(time=60, memory=GB, gpus=1), "h_rt=120,mem_free=1024M,gpu=1"),
    ],
)
def test_resources(resources: Resources, asked: str) -> None:
    assert requests(resources=resources, facts=FACTS) == asked


def test_several_cpus_are_slots_of_a_parallel_environment() -> None:
    command = gridengine.submit_command(order(1, resources=Resources(cpus=4)))
    assert command[command.index("-pe") : command.index("-pe") + 3] == ["-pe", "smp", "4"]
    other = GridEngine({"parallel_environment": "threads"}).submit_command(order(1, resources=Resources(cpus=4)))
    assert "threads" in other


@pytest.mark.parametrize("cpus", [1, 4])
def test_a_run_may_name_a_parallel_environment_of_its_own(cpus: int) -> None:
    chosen = gridengine.option_name("parallel_environment")
    command = gridengine.submit_command(order(1, resources=Resources(cpus=cpus), **{chosen: "mpi"}))
    assert command.count("-pe") == 1
    assert command[command.index("-pe") + 1 :][:2] == ["mpi", str(cpus)]
    with pytest.raises(errors.InvalidInput, match="mpi is for one node"):
        gridengine.submit_command(order(1, resources=Resources(nodes=2), pe="mpi"))
    with pytest.raises(errors.InvalidInput, match="option pe: 'mpi 4' is not the name of one"):
        gridengine.check_option("pe", "mpi 4")


@pytest.mark.parametrize(("resource", "asked"), [("memory", "memory=4096M"), ("mem_free", "mem_free=16384M")])
def test_what_is_counted_per_slot_is_asked_for_per_slot(resource: str, asked: str) -> None:
    dialect = GridEngine({"memory_resource": resource})
    assert requests(dialect, resources=Resources(cpus=4, memory=16 * GB), facts=FACTS) == asked


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({"memory_resource": "h_vmem"}, "mem_free=1024M,gpu=1"),
        ({"memory_resource": "memory"}, "memory=1024M,gpu=1"),
        ({"memory_resource": "h_vmem", "gpu_memory_resource": "h_vmem"}, "h_vmem=1024M,gpu=1"),
    ],
)
def test_virtual_memory_of_a_gpu_run_is_limited_only_when_the_site_says_so(
    settings: dict[str, str], asked: str
) -> None:
    dialect = GridEngine(settings)
    assert requests(dialect, resources=Resources(gpus=1, memory=GB), facts=FACTS) == asked
    assert requests(dialect, resources=Resources(memory=GB)).startswith(settings["memory_resource"])


def test_gpus_that_are_counted_per_slot() -> None:
    assert requests(resources=Resources(cpus=2, gpus=4), facts=FACTS) == "gpu=2"
    with pytest.raises(errors.InvalidInput, match="per slot"):
        requests(resources=Resources(cpus=4, gpus=1), facts=FACTS)
    assert requests(resources=Resources(cpus=4, gpus=1), facts=ClusterFacts()) == "gpu=1"


def test_a_type_of_gpu_needs_a_rule() -> None:
    wanted = Resources(gpus=1, gpu_type="a100")
    with pytest.raises(errors.InvalidInput, match="no common word"):
        requests(resources=wanted)
    assert requests(resources=wanted, l="gpu_a100=1") == "gpu_a100=1"


def test_nodes_that_failed_are_avoided() -> None:
    command = gridengine.submit_command(dataclasses.replace(order(1), avoid=("ge1", "ge2")))
    assert command[command.index("-l") + 1] == "hostname=!ge1&!ge2"


@pytest.mark.parametrize(
    ("choice", "request_"),
    [
        (NodeChoice(node=("ge1",)), "hostname=ge1"),
        (NodeChoice(node=("ge1", "ge2")), "hostname=(ge1|ge2)"),
        (NodeChoice(node=("ge1", "ge2"), exclude=("ge9",)), "hostname=(ge1|ge2)&!ge9"),
        (NodeChoice(exclude=("ge9",), labels=("fast", "rack=a")), "hostname=!ge9,fast=true,rack=a"),
        (NodeChoice(labels=("fast",)), "fast=true"),
    ],
)
def test_the_choice_of_nodes(choice: NodeChoice, request_: str) -> None:
    command = gridengine.submit_command(dataclasses.replace(order(1), choice=choice))
    assert command[command.index("-l") + 1] == request_


def test_a_trial_asks_who_would_be_left() -> None:
    """Without what is measured: a host that is busy now is left all the same."""
    wanted = order(1, resources=Resources(gpus=1, memory=GB, time=60), q="gpu.q", l="arch=lx")
    command = gridengine.trial_command(dataclasses.replace(wanted, avoid=("ge1",)))
    assert command == ["qselect", "-l", "hostname=!ge1,gpu=1", "-q", "gpu.q", "-l", "arch=lx"]


def test_a_warning_before_the_limit_and_before_qdel() -> None:
    warned = dataclasses.replace(order(1, resources=Resources(time=600)), warning=90)
    command = gridengine.submit_command(warned)
    assert command[command.index("-l") + 1] == "h_rt=660,s_rt=570"
    assert command.count("-notify") == 1
    assert gridengine.submit_command(dataclasses.replace(warned, options={"notify": ""})).count("-notify") == 1
    without_limit = gridengine.submit_command(dataclasses.replace(warned, resources=Resources()))
    assert ("-notify" in without_limit, "-l" in without_limit) == (True, False)


def spread(rule: str, **resources: int) -> list[str]:
    dialect = GridEngine({"nodes_environment": "spread"})
    config = [said(), said(), said(f"pe_name            spread\nallocation_rule    {rule}\n")]
    facts = dataclasses.replace(dialect.parse_facts(config), per_slot=frozenset({"gpu"}))
    return dialect.submit_command(order(1, resources=Resources(**resources), facts=facts))


def test_several_nodes_by_an_environment_that_takes_so_many_slots_of_each() -> None:
    command = spread("4", nodes=3, cpus=4, gpus=4)
    assert command[command.index("-pe") :][:5] == ["-pe", "spread", "12", "-l", "gpu=1"]
    assert GridEngine({"nodes_environment": "spread"}).fact_commands("me")[2] == ["qconf", "-sp", "spread"]


@pytest.mark.parametrize(
    ("rule", "cpus", "sentence"),
    [("2", 4, "takes 2 slots of each node"), ("$round_robin", 4, "does not say how many slots")],
)
def test_an_environment_that_would_give_another_number_of_nodes(rule: str, cpus: int, sentence: str) -> None:
    with pytest.raises(errors.InvalidInput, match=sentence):
        spread(rule, nodes=2, cpus=cpus)


def test_several_nodes_without_such_an_environment_are_refused_with_the_setting() -> None:
    with pytest.raises(errors.InvalidInput, match="only parallel environments") as caught:
        gridengine.submit_command(order(1, resources=Resources(nodes=2)))
    assert "nodes_environment=NAME" in caught.value.fix


def test_gpus_of_several_nodes_must_be_counted_per_slot() -> None:
    dialect = GridEngine({"nodes_environment": "spread"})
    with pytest.raises(errors.InvalidInput, match="once for a job"):
        dialect.submit_command(order(1, resources=Resources(nodes=2, gpus=1)))


def test_a_job_on_several_nodes_is_one_job() -> None:
    job = "<job_list><JB_job_number>4</JB_job_number><JB_name>ry-1</JB_name><state>r</state></job_list>"
    queues = "".join(f"<Queue-List><name>cpu@{node}</name>{job}</Queue-List>" for node in ("ge2", "ge1"))
    [native] = gridengine.parse_queue(said(f"<job_info><queue_info>{queues}</queue_info></job_info>"))
    assert (native.id, native.node) == ("4", "ge1,ge2")


def test_options_pass() -> None:
    command = gridengine.submit_command(order(1, q="cpu", P="vision", R=""))
    assert command[14:-2] == ["-q", "cpu", "-P", "vision", "-R"]


@pytest.mark.parametrize(
    ("name", "value"),
    [("N", "x"), ("-t", "1-3"), ("o", "f"), ("cwd", ""), ("v", "A=1"), ("l", "h_rt=60"), ("resource", "gpu=1,h_rt=5")],
)
def test_what_runyard_gives_itself_is_refused(name: str, value: str) -> None:
    with pytest.raises(errors.InvalidInput, match="runyard's own"):
        gridengine.check_option(gridengine.option_name(name), value)


REFUSALS = [
    'Unable to run job: Job was rejected because job requests unknown queue "nope"\nExiting.\n',
    'Unable to run job: unknown resource "nosuch"\nExiting.\n',
    'Unable to run job: denied: "1abc" is not a valid object name (cannot start with a digit)\nExiting.\n',
    'Unable to run job: attribute "h_rt" is not a time value\nExiting.\n',
    'qsub: invalid option argument "-nosuch"\n',
    'Unable to run job: job rejected: the requested parallel environment "nope" does not exist\nExiting.\n',
    "Unable to run job: job rejected: you tried to submit a job with more than 10 tasks\nExiting.\n",
]
UNSURE = [
    said(
        stderr="error: commlib error: got select error (Connection refused)\n"
        'Unable to run job: unable to send message to qmaster using port 1 on host "login": got send error\nExiting.\n',
        code=1,
    ),
    said(stderr='Unable to initialize environment because of error: SGE_ROOT directory "/nope" doesn\'t exist', code=1),
    said(code=None),
    said(stderr="timeout: failed to run command 'qsub'", code=127),
    said("Your job 42 has been submitted\n"),
    said(""),
]


@pytest.mark.parametrize("text", REFUSALS)
def test_refusals_are_final_and_in_grid_engines_words(text: str) -> None:
    answer = gridengine.parse_submit(said(stderr=text, code=1))
    assert answer.reply is SubmitReply.REFUSED
    assert answer.text
    assert "Exiting" not in answer.text


def test_a_full_queue_is_no_refusal() -> None:
    text = "Unable to run job: job rejected: only 5 jobs are allowed per user (current job count: 5)\nExiting.\n"
    assert gridengine.parse_submit(said(stderr=text, code=25)).reply is SubmitReply.LIMITED


@pytest.mark.parametrize("result", UNSURE)
def test_what_says_nothing_is_neither_yes_nor_no(result: object) -> None:
    assert gridengine.parse_submit(result).reply is SubmitReply.UNSURE  # type: ignore[arg-type]


@pytest.mark.parametrize("text", ["12\n", "12.1-6:1\n"])
def test_acceptance(text: str) -> None:
    answer = gridengine.parse_submit(said(text))
    assert (answer.reply, answer.id) == (SubmitReply.ACCEPTED, "12")


def queue() -> dict[tuple[str, int], Native]:
    natives = gridengine.parse_queue(recorded("gridengine-queue.xml"))
    return {(native.name, native.task): native for native in natives}


def test_the_queue() -> None:
    found = {key: (native.stage, native.id, native.node) for key, native in queue().items()}
    assert found == {
        ("ry-array", 1): (Stage.RUNNING, "8.1", "ge1"),
        ("ry-array", 2): (Stage.RUNNING, "8.2", "ge1"),
        **{("ry-array", task): (Stage.WAITING, f"8.{task}", "") for task in (3, 4, 6, 7, 8, 9)},
        ("ry-node", 1): (Stage.RUNNING, "12", "ge2"),
        ("ry-baddir", 1): (Stage.STUCK, "5", ""),
        ("ry-badout", 1): (Stage.STUCK, "6.1", ""),
        ("ry-badout", 2): (Stage.STUCK, "6.2", ""),
        ("ry-held", 1): (Stage.WAITING, "9", ""),
        ("ry-gpu", 1): (Stage.WAITING, "10", ""),
    }


def test_a_host_that_the_qmaster_has_lost_sight_of() -> None:
    assert {name for (name, _), native in queue().items() if native.node_is_silent} == {"ry-node"}


def test_an_empty_queue() -> None:
    assert gridengine.parse_queue(recorded("gridengine-queue-empty.xml")) == []


@pytest.mark.parametrize(
    "result", [said("<job_info>"), said("nonsense"), said(""), said(code=None), said(stderr="error", code=1)]
)
def test_a_queue_that_does_not_answer_is_not_empty(result: object) -> None:
    with pytest.raises(Unanswered):
        gridengine.parse_queue(result)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("word", "stage"),
    [
        ("qw", Stage.WAITING), ("hqw", Stage.WAITING), ("Rq", Stage.WAITING), ("hRwq", Stage.WAITING),
        ("r", Stage.RUNNING), ("t", Stage.RUNNING), ("Rr", Stage.RUNNING), ("dr", Stage.RUNNING), ("s", Stage.RUNNING),
        ("S", Stage.RUNNING), ("dRr", Stage.RUNNING), ("hr", Stage.RUNNING), ("tS", Stage.RUNNING),
        ("Eqw", Stage.STUCK), ("EhRqw", Stage.STUCK), ("?", Stage.UNCLEAR),
    ],
)  # fmt: skip
def test_states_are_read_letter_by_letter(word: str, stage: Stage) -> None:
    text = f"<job_info><job_info><job_list><JB_job_number>1</JB_job_number><JB_name>x</JB_name><state>{word}</state>"
    [native] = gridengine.parse_queue(said(text + "</job_list></job_info></job_info>"))
    assert native.stage is stage


def test_accounts() -> None:
    found = {native.name: native for native in gridengine.parse_accounting(recorded("gridengine-accounts.txt")) or ()}
    assert {name: native.ending for name, native in found.items()} == {
        "ry-ok": None,
        "ry-exit": None,
        "ry-timeout": "timeout",
        "ry-vmem": "oom",
        "ry-deleted": "external",
        "ry-killed": "external",
        "ry-baddir": "launch",
        "ry-badout": "launch",
    }
    assert found["ry-exit"].numbers == "exit status 3, after 0.0s"
    assert found["ry-badout"].id == "6.2"
    assert found["ry-timeout"].word.startswith("failed 37: qmaster enforced")


@pytest.mark.parametrize(("failed", "ending"), sorted(gridengine_accounts.FAILURES.items()))
def test_every_failure_has_its_ending(failed: int, ending: str) -> None:
    text = f"{'=' * 62}\njobname x\njobnumber 1\ntaskid undefined\nfailed {failed} : so\nexit_status 0\n"
    [native] = gridengine.parse_accounting(said(text)) or []
    assert native.ending == ending


@pytest.mark.parametrize(
    ("result", "meaning"),
    [
        (said(stderr="error: job name nosuch not found\n", code=1), []),
        (said(stderr="error: job id 99 not found\n", code=1), []),
        (
            said(
                "no jobs running since startup\n", "/sge/default/common/accounting: No such file or directory\n", code=1
            ),
            None,
        ),
    ],
)
def test_accounts_without_the_job_and_no_accounts(result: object, meaning: object) -> None:
    assert gridengine.parse_accounting(result) == meaning  # type: ignore[arg-type]


@pytest.mark.parametrize("result", [said(code=None), said(stderr="commlib error", code=1), said(code=1)])
def test_accounts_that_do_not_answer(result: object) -> None:
    with pytest.raises(Unanswered):
        gridengine.parse_accounting(result)  # type: ignore[arg-type]


def test_one_question_for_all_accounts() -> None:
    command = gridengine.accounting_command("me", ["ry-1-1-70", "ry-1-1-7", "ry-1-1-71.o1000"])
    assert command == ["qacct", "-o", "me", "-j", "ry-1-1-7*"]
    assert gridengine.accounting_command("me", ["ry-1-1-7"])[-1] == "ry-1-1-7"


def native(native_id: str) -> Native:
    return Native(name="x", task=1, id=native_id, stage=Stage.RUNNING, word="r")


def test_cancelling_takes_one_word_per_run_of_tasks() -> None:
    ids = ["7", "12.3", "12.1", "12.2", "13.9", "12.8"]
    assert gridengine.cancel_command(map(native, ids)) == ["qdel", "7", "12.1-3", "12.8", "13.9"]


def test_cancelling_what_is_gone_is_heard() -> None:
    assert gridengine.parse_cancel(said('denied: job "999" does not exist\n', code=1))
    assert not gridengine.parse_cancel(said(stderr="error: commlib error: got select error", code=1))
    assert not gridengine.parse_cancel(said(code=None))


def test_explanations() -> None:
    found = gridengine.parse_explain(recorded("gridengine-explain.txt"))
    assert found["5"] == "can't chdir to /no/such/directory: No such file or directory"
    assert found["6.2"] == 'can\'t open output file "/no/such/x": No such file or directory'
    assert "offers only hc:gpu=1" in found["10"]
    assert "hold state" in found["9"]


def test_facts_and_what_follows() -> None:
    facts = gridengine.parse_facts([recorded(f"gridengine-facts-{number}.txt") for number in range(2)])
    assert (facts.array_size, facts.job_limit) == (75000, None)
    assert {"gpu", "memory", "slots"} <= facts.per_slot
    assert facts.memory_resources == ("memory",)
    assert "memory_resource=memory" in gridengine.propose(facts)
    assert GridEngine({"memory_resource": "memory"}).propose(facts) == ""


def test_limits() -> None:
    facts = gridengine.parse_facts([said("max_aj_tasks  5\nmax_u_jobs   2\n"), said(code=1)])
    assert (facts.array_size, facts.job_limit) == (5, 2)
