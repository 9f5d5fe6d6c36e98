"""Nodes on which nothing is installed: one yard elsewhere drives three of them over ssh."""

from __future__ import annotations

import contextlib
import secrets
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runyard.client.run import Run
from tests.acceptance.witness import until
from tests.labs import commands
from tests.labs.accounts import NODE_PYTHON
from tests.labs.nodes import NodeLab
from tests.labs.yard import Yard

SITE = "boxes"
FINAL = ("succeeded", "failed", "cancelled")
COUNTED = "".join(f"{number}\n" for number in range(1, 10))


class NodeYard:
    """A yard, and the nodes of a lab as its only site of use."""

    def __init__(self, lab: NodeLab, yard: Yard, permit: int = 0, lost_after: int = 600, further: str = "") -> None:
        """`further`: more of its config.toml."""
        self.lab, self.yard = lab, yard
        self.go = lab.root / f"go-{secrets.token_hex(4)}"  # which the nodes see
        config = shutil.copy(lab.configuration, yard.home / "ssh_config")  # connections are shared by its name
        self.options = [f"ssh_config={config}", "cpus=2"]
        (yard.home / "config.toml").write_text(f"lease = 5\nlost_after = {lost_after}\npermit = {permit}\n{further}")
        yard.start()

    def add_site(self, *words: str) -> None:
        logins = [word for name in self.lab.names for word in ("--ssh", name)]
        options = [word for option in self.options for word in ("--option", option)]
        added = self.yard.cli(
            "site", "add", SITE, "--kind", "ssh", "--dir", self.lab.directory, "--python", NODE_PYTHON,
            *logins, *options, *words,
        )  # fmt: skip
        assert added.returncode == 0, added.stderr

    def nodes(self) -> dict[str, str]:
        """State by node, as far as they were ever there."""
        return {agent["name"]: agent["state"] for agent in self.yard.client().site(SITE)["agents"]}

    def until_up(self, *names: str) -> None:
        wanted = names or tuple(self.lab.names)
        until(lambda: all(self.nodes().get(name) == "alive" for name in wanted), what=f"{wanted} in use", timeout=240)

    @property
    def counting(self) -> str:
        """What counts to three, and on to nine once `go` is there: it is not over before somebody has looked."""
        rest = "for i in 4 5 6 7 8 9; do echo $i; sleep 0.4; done"
        return f"for i in 1 2 3; do echo $i; done; until [ -e {self.go} ]; do sleep 0.1; done; {rest}"

    def submit(self, script: str, **fields: Any) -> Run:
        return self.yard.client().submit(["bash", "-c", script], site=SITE, cwd="/tmp", **fields)

    def ended(self, run: Run, timeout: float = 240) -> dict[str, Any]:
        until(
            lambda: self.show(run)["state"] in ("succeeded", "failed", "cancelled"),
            timeout=timeout,
            what=f"{run.id} over",
        )
        return self.show(run)

    def show(self, run: Run) -> dict[str, Any]:
        return self.yard.client().run(run.id).data

    def log(self, run: Run) -> str:
        return self.yard.cli("logs", str(run.id)).stdout

    def running_on(self, node: str, script: str = "", **fields: Any) -> Run:
        """A run that has begun on this very node, and counts unless it is told to do something else."""
        run = self.submit(script or self.counting, node=[node], **fields)
        until(lambda: self.show(run)["state"] == "running" and self.log(run), what="its first lines", timeout=240)
        assert self.show(run)["node"] == node
        return run


@pytest.fixture
def bare(node_lab: Callable[..., NodeLab]) -> Iterator[NodeYard]:
    """Without the site."""
    yard = Yard(local_site="named")
    try:
        yield NodeYard(node_lab(), yard)
    finally:
        yard.remove()


@pytest.fixture
def impatient(node_lab: Callable[..., NodeLab]) -> Iterator[NodeYard]:
    """Which gives up on a node that is away for a minute."""
    yard = Yard(local_site="named")
    try:
        made = NodeYard(node_lab(), yard, lost_after=60)
        made.add_site()
        made.until_up()
        yield made
    finally:
        yard.remove()


@pytest.fixture
def boxes(bare: NodeYard) -> NodeYard:
    bare.add_site()
    bare.until_up()
    return bare


def test_thirty_runs_are_spread_and_everything_comes_back(boxes: NodeYard) -> None:
    script = 'echo run $RUNYARD_RUN_ID on $(uname -n); echo $RUNYARD_RUN_ID > "$OUTPUT_DIR/number"; sleep 0.5'
    spec = {"command": ["bash", "-c", script], "site": SITE, "cwd": "/tmp"}
    runs = boxes.yard.client().submit_many([spec] * 30)
    shown = [boxes.ended(run) for run in runs]
    assert {found["state"] for found in shown} == {"succeeded"}, shown
    assert {found["node"] for found in shown} == set(boxes.lab.names)
    for found in shown[:5]:
        assert boxes.yard.cli("logs", str(found["id"])).stdout == f"run {found['id']} on {found['node']}\n"
        place = boxes.yard.home / f"out-{found['id']}"
        assert boxes.yard.cli("fetch", str(found["id"]), "-o", str(place)).returncode == 0
        assert (place / "number").read_text() == f"{found['id']}\n"


def test_a_cancelled_run_leaves_nothing_on_its_node(boxes: NodeYard) -> None:
    run = boxes.running_on("hoff", "trap '' TERM; echo begun; setsid sleep 6543 & sleep 6542")
    boxes.yard.client().cancel([run.id])
    shown = boxes.ended(run)
    assert (shown["state"], shown["reason"]) == ("cancelled", "user")
    assert not [command for command in boxes.lab.commands("hoff") if "sleep 654" in command]


def test_runs_survive_the_end_of_the_yard(boxes: NodeYard) -> None:
    runs = [boxes.submit(boxes.counting) for _ in range(6)]
    until(lambda: all(boxes.log(run) for run in runs), what="first lines", timeout=240)
    boxes.yard.kill9()
    boxes.go.touch()
    boxes.yard.start()
    for run in runs:
        shown = boxes.ended(run)
        assert (shown["state"], shown["attempt"]) == ("succeeded", 1), shown
        assert boxes.log(run) == COUNTED


def test_runs_survive_the_end_of_an_agent(bare: NodeYard) -> None:
    """One that serves the site for a yard elsewhere."""
    bare.add_site("--served-by", "agent")
    with _agent(bare) as agent:
        bare.until_up()
        run = bare.running_on("norman")
        agent.send_signal(signal.SIGKILL)
        agent.wait(120)
    bare.go.touch()
    with _agent(bare):
        shown = bare.ended(run)
    assert (shown["state"], shown["attempt"], bare.log(run)) == ("succeeded", 1, COUNTED)


@contextlib.contextmanager
def _agent(boxes: NodeYard) -> Iterator[commands.Started]:
    yard = boxes.yard
    home = yard.home / "agent"
    home.mkdir(exist_ok=True)
    env = {**yard.env, "RUNYARD_HOME": str(home), "RUNYARD_URL": yard.url, "RUNYARD_TOKEN": yard.token}
    with (home / "agent.log").open("ab") as log:
        process = commands.start(["agent", "--site", SITE], env=env, cwd=home, log=log)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(120)


def test_a_node_that_does_not_answer_is_taken_out_and_comes_back(boxes: NodeYard) -> None:
    run = boxes.running_on("hoff")
    boxes.lab.kill_sshd("hoff")
    boxes.lab.drop_connections("hoff")
    until(lambda: boxes.nodes()["hoff"] == "unreachable", what="hoff taken out", timeout=120)
    assert boxes.show(run)["state"] == "running"
    # The first thing that is known of it may be that a connection was cut.
    until(lambda: "hoff refuses connections" in boxes.yard.cli("site", "show", SITE).stderr, what="why it is out")
    until(lambda: "unreachable: hoff" in (boxes.show(run)["detail"] or ""), what="its detail")
    others = [boxes.submit("uname -n") for _ in range(3)]
    assert {boxes.ended(other)["node"] for other in others} <= {"norman", "pitts"}
    boxes.go.touch()
    boxes.lab.start_sshd("hoff")
    shown = boxes.ended(run)
    assert (shown["state"], shown["attempt"], boxes.log(run)) == ("succeeded", 1, COUNTED)
    assert "unreachable" not in (shown["detail"] or "")
    boxes.until_up("hoff")
    assert boxes.ended(boxes.submit("true", node=["hoff"]))["state"] == "succeeded"


def test_what_a_dead_node_was_given_runs_elsewhere(boxes: NodeYard) -> None:
    boxes.lab.power_off("hoff")
    runs = [boxes.submit("uname -n; sleep 1") for _ in range(6)]
    shown = [boxes.ended(run) for run in runs]
    assert {found["state"] for found in shown} == {"succeeded"}, shown
    assert {found["node"] for found in shown} <= {"norman", "pitts"}


def test_a_run_on_a_node_that_was_restarted_is_lost_and_tried_again_when_asked(boxes: NodeYard) -> None:
    lost = boxes.running_on("hoff", "echo begun; sleep 600")
    tried = boxes.running_on("hoff", "echo $RUNYARD_ATTEMPT; [ $RUNYARD_ATTEMPT = 2 ] || sleep 600", retry={"max": 1})
    boxes.lab.reboot("hoff")
    shown = boxes.ended(lost)
    assert (shown["state"], shown["reason"], shown["detail"]) == ("failed", "lost", "hoff was restarted while it ran")
    shown = boxes.ended(tried)
    assert (shown["state"], shown["attempt"]) == ("succeeded", 2), shown


@pytest.mark.long
def test_a_node_that_stays_away_loses_its_runs_after_the_deadline_and_not_before(impatient: NodeYard) -> None:
    boxes = impatient
    run = boxes.running_on("pitts", "echo begun; exec sleep 6541", retry={"max": 3})
    boxes.lab.unplug("pitts")
    until(lambda: boxes.nodes()["pitts"] == "unreachable", what="pitts taken out", timeout=120)
    assert boxes.show(run)["state"] == "running"
    shown = boxes.ended(run)
    assert (shown["state"], shown["reason"], shown["attempt"]) == ("failed", "lost", 1), (
        "nothing proves that it is gone"
    )
    assert "sleep 6541" in boxes.lab.commands("pitts")
    boxes.lab.plug("pitts")
    until(lambda: "sleep 6541" not in boxes.lab.commands("pitts"), what="the end of what was given up", timeout=180)
    boxes.until_up("pitts")


def test_cron_serves_nodes_too(bare: NodeYard) -> None:
    bare.add_site("--served-by", "agent")
    run = bare.submit("echo hello")
    home = bare.yard.home / "cron"
    home.mkdir()
    env = {**bare.yard.env, "RUNYARD_HOME": str(home), "RUNYARD_URL": bare.yard.url, "RUNYARD_TOKEN": bare.yard.token}
    bare.lab.power_off("norman")

    def tick() -> bool:
        command = bare.yard.command("check", "--site", SITE)
        done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr
        return bool(bare.show(run)["state"] == "succeeded")

    until(tick, what="the run over", timeout=300)
    assert bare.log(run) == "hello\n"


def test_site_test_says_for_each_node_what_does_not_work(bare: NodeYard) -> None:
    bare.lab.kill_sshd("pitts")
    bare.add_site("--option", "norman.python=/no/such/python", "--option", "hoff.cpus=1")
    done = bare.yard.cli("site", "test", SITE, timeout=180)
    told = " ".join(done.stdout.split())
    assert done.returncode == 1
    assert "ok hoff a probe ran" in told
    assert "fail norman norman has no interpreter '/no/such/python'" in told
    assert "fail pitts pitts refuses connections" in told
    bare.until_up("hoff")
    wanted = {"hoff": "alive", "norman": "unreachable", "pitts": "unreachable"}
    until(lambda: _node_states(bare) == wanted, what="the same of the yard itself")


def _node_states(boxes: NodeYard) -> dict[str, str]:
    return {node["name"]: node["state"] for node in boxes.yard.client().site(SITE)["nodes"]}


def test_a_directory_that_cannot_be_used_is_told(bare: NodeYard) -> None:
    bare.lab.directory, kept = "/proc/nothing", bare.lab.directory
    try:
        bare.add_site()
    finally:
        bare.lab.directory = kept
    done = bare.yard.cli("site", "test", SITE, "--no-probe", timeout=120)
    assert done.returncode == 1
    assert "/proc/nothing on hoff cannot be used" in " ".join(done.stdout.split())
    until(lambda: "/proc/nothing on hoff cannot be used" in bare.yard.log, what="the yard says it too")


def test_a_node_that_has_runs_is_not_removed(boxes: NodeYard) -> None:
    run = boxes.running_on("hoff", "echo begun; sleep 600")
    others = ["--ssh", "norman", "--ssh", "pitts"]
    refused = boxes.yard.cli("site", "edit", SITE, *others)
    assert refused.returncode != 0
    assert "node 'hoff' of site 'boxes' has runs" in " ".join(refused.stderr.split())
    boxes.yard.client().cancel([run.id])
    boxes.ended(run)
    assert boxes.yard.cli("site", "edit", SITE, *others).returncode == 0
    until(lambda: set(boxes.nodes()) == {"norman", "pitts"}, what="two nodes")
    assert boxes.ended(boxes.submit("uname -n"))["node"] in ("norman", "pitts")
