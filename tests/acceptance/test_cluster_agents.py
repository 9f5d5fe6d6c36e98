"""A cluster that dials out: its login node serves it for a yard elsewhere, with an agent or with cron."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.acceptance.cron_yard import CronYard, scheduler_options
from tests.acceptance.witness import Witness, until
from tests.labs.accounts import NODE_PYTHON
from tests.labs.cluster import Cluster
from tests.labs.yard import Yard

pytestmark = pytest.mark.component("root")


class Cedar(CronYard):
    """The login node: the yard's address is in its configuration, its token in a file, and no more is known of it."""

    def __init__(self, lab: Cluster, kind: str, yard: Yard, *options: str) -> None:
        super().__init__(lab, kind, config=f'url = "{yard.url}"\nnetwork_home = "yes"\n')
        self.yard, self.site = yard, str(self.home / "site")
        words = ["--kind", kind, "--served-by", "agent", "--dir", self.site, "--python", NODE_PYTHON, *options]
        made = yard.cli("site", "add", "cedar", *words, *scheduler_options(lab), "--option", "poll_interval=1")
        assert made.returncode == 0, made.stderr
        token = yard.cli("token", "create", "cedar-agent", "--role", "agent", "--site", "cedar", "-q").stdout
        (self.home / "token").write_text(token)
        (self.home / "token").chmod(0o600)
        lab.user.own(self.home / "token")
        self.secret = token.strip()
        self._agents: list[subprocess.Popen[str]] = []

    def agent(self, says: str = "serves cedar") -> subprocess.Popen[str]:
        agent = self.start("agent", "--site", "cedar")
        self._agents.append(agent)
        assert agent.stderr is not None
        assert says in (line := agent.stderr.readline()), line + agent.stderr.read()
        return agent

    def check(self) -> subprocess.CompletedProcess[str]:
        return self.tick(line=self.crontab("--site", "cedar"))

    def submit(self, *command: str) -> int:
        answer = self.yard.cli("submit", "-q", "--site", "cedar", "--", *command)
        assert answer.returncode == 0, answer.stderr
        return int(answer.stdout)

    def show(self, run: int) -> dict[str, Any]:
        return dict(json.loads(self.yard.cli("show", str(run), "--json").stdout))

    def states(self) -> list[str]:
        listed = json.loads(self.yard.cli("ls", "--json", "--limit", "100").stdout)
        return [run["state"] for run in listed]

    def remove(self) -> None:
        for agent in self._agents:
            agent.kill()
            agent.communicate()
        super().remove()


@pytest.fixture
def cedar(request: pytest.FixtureRequest, make_yard: Callable[..., Yard]) -> Iterator[Callable[..., Cedar]]:
    made: list[Cedar] = []

    def build(*options: str) -> Cedar:
        lab = request.getfixturevalue("slurm_lab")()
        made.append(Cedar(lab, "slurm", make_yard(cpus=1), *options))
        return made[-1]

    yield build
    for login in made:
        login.remove()


def test_an_agent_serves_the_cluster(cedar: Callable[..., Cedar]) -> None:
    login = cedar()
    agent = login.agent()
    run = login.submit("sh", "-c", "echo on $(hostname); echo result > $OUTPUT_DIR/r.txt; exit 3")
    assert login.yard.cli("wait", str(run), timeout=240).returncode == 3
    shown = login.show(run)
    assert (shown["state"], shown["exit_code"], shown["site"]) == ("failed", 3, "cedar"), shown
    assert login.yard.cli("logs", str(run)).stdout.startswith("on ")
    assert login.yard.cli("fetch", str(run), "-o", str(login.home / "out")).returncode == 0
    assert (login.home / "out" / "r.txt").read_text() == "result\n"
    stopped = login.submit("sleep", "600")
    until(lambda: login.show(stopped)["state"] == "running", timeout=240, what="the run runs")
    assert login.show(stopped)["attempts"][0]["native_id"]
    assert login.yard.cli("cancel", str(stopped), timeout=240).returncode == 0
    assert (login.show(stopped)["state"], login.show(stopped)["reason"]) == ("cancelled", "user")
    agent.send_signal(signal.SIGTERM)
    assert "the agent has stopped" in agent.communicate(timeout=120)[1]


def test_an_agent_killed_in_mid_run_is_followed_by_the_next(cedar: Callable[..., Cedar]) -> None:
    login = cedar()
    witness = Witness(login.home)
    login.lab.user.own(witness.path)
    agent, go = login.agent(), login.home / "go"
    body = f"until [ -e {go} ]; do sleep 0.2; done; echo end"
    runs = [login.submit(*witness.command(f"echo {n}; {body}")) for n in range(3)]
    until(lambda: login.states() == ["running"] * 3, timeout=240, what="three runs run")
    agent.kill()
    agent.communicate()
    login.agent()
    go.touch()
    for n, run in enumerate(runs):
        assert login.yard.cli("wait", str(run), timeout=240).returncode == 0
        assert login.yard.cli("logs", str(run)).stdout == f"{n}\nend\n"
        assert login.show(run)["attempt"] == 1
    assert witness.count("start") == witness.count("end") == dict.fromkeys(runs, 1)


def test_cron_serves_the_cluster(cedar: Callable[..., Cedar]) -> None:
    login = cedar()
    line = login.crontab("--site", "cedar")
    assert login.secret not in line
    witness = Witness(login.home)
    login.lab.user.own(witness.path)
    runs = [login.submit(*witness.command("echo done")) for _ in range(6)]

    def all_ended() -> bool:
        answer = login.tick(line=line)
        assert (answer.returncode, answer.stderr) == (0, "")
        return login.states() == ["succeeded"] * 6

    until(all_ended, timeout=240, what="six runs")
    assert witness.count("start") == witness.count("end") == dict.fromkeys(runs, 1)
    assert login.yard.cli("logs", str(runs[2])).stdout == "done\n"
    stopped = login.submit("sleep", "600")
    until(lambda: bool(login.check()) and login.states()[0] == "running", timeout=240, what="the run runs")
    assert login.yard.cli("cancel", "--no-wait", str(stopped)).returncode == 0
    until(lambda: bool(login.check()) and login.states()[0] == "cancelled", timeout=240, what="the cancel")
    until(lambda: not login.processes(), what="nothing of it stays")


def test_an_idle_tick_asks_no_scheduler(cedar: Callable[..., Cedar]) -> None:
    login = cedar()
    login.lab.hang_controller()  # type: ignore[attr-defined]  # any command would fail after its time-out, and be told
    answer = login.check()
    assert (answer.returncode, answer.stderr) == (0, "")


def test_overlapping_ticks_and_agents_exclude_each_other(cedar: Callable[..., Cedar]) -> None:
    login = cedar()
    first = login.agent()
    second = login.agent(says="standing by")
    answer = login.check()
    assert (answer.returncode, f"served by process {first.pid} on" in answer.stderr) == (0, True), answer.stderr
    go = login.home / "go"
    run = login.submit("sh", "-c", f"until [ -e {go} ]; do sleep 0.2; done; echo done")
    until(lambda: login.show(run)["state"] == "running", timeout=240, what="the run runs")
    first.kill()
    first.communicate()
    assert second.stderr is not None
    assert "serves cedar" in second.stderr.readline()
    go.touch()
    assert login.yard.cli("wait", str(run), timeout=240).returncode == 0
    second.terminate()
    second.communicate(timeout=120)
    witness = Witness(login.home)
    login.lab.user.own(witness.path)
    more = login.submit(*witness.command("echo done"))
    line = login.crontab("--site", "cedar").removeprefix("* * * * * ")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "cwd": login.home}

    def together() -> bool:
        options = {**quiet, **login.lab.user.popen_options()}
        ticks = [subprocess.Popen(["env", "-i", "/bin/sh", "-c", line], **options) for _ in range(3)]  # type: ignore[call-overload]
        assert [(tick.communicate(timeout=240), tick.returncode)[1] for tick in ticks] == [0, 0, 0]
        return bool(login.show(more)["state"] == "succeeded")

    until(together, timeout=240, what="the run")
    assert witness.count("start") == {more: 1}


def test_with_relay_node_the_end_is_told_over_http(cedar: Callable[..., Cedar]) -> None:
    """One tick hands them over; after that nothing but the jobs themselves is there to tell the yard."""
    login = cedar("--option", "relay=node")
    runs = [login.submit("sh", "-c", "sleep 2; echo done") for _ in range(5)]
    assert login.check().returncode == 0
    until(lambda: login.states() == ["succeeded"] * 5, timeout=240, what="five runs without a tick")
    until(lambda: not login.processes(), what="the last job leaves")
    assert {login.yard.cli("logs", str(run)).stdout for run in runs} == {"done\n"}
    script = (login.home / "site" / "relay.sh").read_text()
    assert login.secret not in script
    said = {path.read_text() for path in (login.home / "site" / "batches").glob("*/*.out")}
    assert said == {""}
    tested = login.cli("site", "test", "cedar")
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "reaches http://" in tested.stdout


def test_what_cannot_be_served_so_is_refused_in_words(cedar: Callable[..., Cedar]) -> None:
    login = cedar()
    assert "--site NAME" in login.cli("check").stderr
    (login.home / "token").chmod(0o644)
    assert "others may read the token" in login.cli("check", "--site", "cedar").stderr
    assert "others may read the token" in login.cli("check", "--site", "cedar", "--crontab").stderr
    (login.home / "config.toml").write_text("")
    passing = {"RUNYARD_URL": login.yard.url, "RUNYARD_TOKEN": login.secret}
    assert login.cli("check", "--site", "cedar", **passing).returncode == 0
    refused = login.cli("check", "--site", "cedar", "--crontab", **passing)
    assert (refused.returncode, login.secret in refused.stdout + refused.stderr) == (2, False)
    assert "config.toml" in refused.stderr
    assert login.yard.cli("site", "edit", "cedar", "--served-by", "yard").returncode == 0
    assert "served by the yard itself" in login.cli("agent", "--site", "cedar", **passing).stderr
