"""The page about clusters, carried out: each of its commands, on real clusters, as a person on a login node would."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.acceptance.person import Person
from tests.acceptance.witness import until
from tests.labs.cluster import Cluster
from tests.labs.gridengine import GridEngineLab
from tests.labs.slurm import SlurmLab
from tests.labs.sshd import SshLab
from tests.labs.yard import Yard

pytestmark = pytest.mark.component("root")
PAGE = Path(__file__).resolve().parents[2] / "docs" / "howto" / "clusters.md"
DAEMON = ("Use a cluster", "What a run asks for", "Longer than the limit")
OUTSIDE, CRON, RELAY, AGENTS = (
    "From outside the cluster", "Without a daemon", "Results without the wait for cron", "Agents elsewhere",
)  # fmt: skip


def sections() -> dict[str, list[list[str]]]:
    """Heading → its blocks of commands."""
    found: dict[str, list[list[str]]] = {}
    for part in re.split(r"^(?=#+ )", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        blocks = re.findall(r"^```console\n(.*?)^```", part, re.MULTILINE | re.DOTALL)
        if blocks:
            heading = part.partition("\n")[0].lstrip("# ")
            found[heading] = [[line.removeprefix("$ ") for line in block.splitlines()] for block in blocks]
    return found


def test_every_command_of_the_page_is_carried_out_below() -> None:
    assert set(sections()) == {*DAEMON, OUTSIDE, CRON, RELAY, AGENTS}
    assert "```sh" not in PAGE.read_text(encoding="utf-8"), "a block that nobody carries out"


Meet = Callable[..., Person]


@pytest.fixture
def meet() -> Iterator[Meet]:
    met: list[Person] = []

    def build(*labs: Cluster) -> Person:
        met.append(Person(*labs))
        return met[-1]

    yield build
    for person in met:
        person.leave()


@pytest.fixture
def slurm(slurm_lab: Callable[..., SlurmLab]) -> SlurmLab:
    """As large as the page's requests, with the partition that it names."""
    lab = slurm_lab(gpus=1, memory_mb=32000)
    if "gpu" not in lab.ask("sinfo", "--noheader", "--format=%R"):
        lab.admin("scontrol", "create", "PartitionName=gpu", "Nodes=ALL", "State=UP")
    return lab


def test_with_a_yard_that_runs(meet: Meet, slurm: SlurmLab, gridengine_lab: Callable[..., GridEngineLab]) -> None:
    person = meet(slurm, gridengine_lab())
    page = sections()
    said = person.follow([command for heading in DAEMON for block in page[heading] for command in block])
    assert "#SBATCH" in said or "sbatch" in said, "--dry-run"
    assert [person.end(run) for run in (1, 2, 3)] == [
        "trained in memory\n", "trained in /disk/scratch/mlp/data\n", "trained in /disk/scratch/mlp/data\n",
    ]  # fmt: skip


def test_from_outside(meet: Meet, slurm: SlurmLab, ssh_lab: Callable[..., SshLab]) -> None:
    person = meet(slurm)
    logins = ssh_lab(env=slurm.env)
    person.env.pop("SLURM_CONF")
    written = "--ssh me@login1.example --ssh me@login2.example"
    person.follow(
        [command for block in sections()[OUTSIDE] for command in block],
        (written, f"--ssh login1 --ssh login2 --option ssh_config={logins.configuration}"),
    )
    assert person.end(1) == "trained in memory\n"


def test_without_a_daemon(meet: Meet, slurm: SlurmLab) -> None:
    person = meet(slurm)
    (person.place / "config.toml").write_text('network_home = "yes"\n')
    page = sections()
    person.follow(page["Use a cluster"][0][:1])
    program = shutil.which("sbatch")
    assert program is not None
    words = ("/opt/slurm/bin", os.path.dirname(program)), ("/etc/slurm/slurm.conf", slurm.env["SLURM_CONF"])
    (first,), (told,) = page[CRON]
    line = person.follow([first])
    person.follow([told], *words)
    person.follow(["runyard submit --site cedar -- python3 train.py"])

    def ended() -> bool:
        person.cron(line)
        shown = json.loads(person.cli("show", "1", "--json").stdout)
        assert shown["state"] != "failed", shown["detail"]
        return bool(shown["state"] == "succeeded")

    until(ended, timeout=300, what="the run")
    assert "reaches" in person.follow([command for block in page[RELAY] for command in block])
    person.follow(["runyard submit --site cedar -- python3 train.py"])
    person.cron(line)
    assert person.end(2) == "trained in memory\n"


def test_agents_elsewhere(meet: Meet, slurm: SlurmLab, make_yard: Callable[..., Yard], tmp_path: Path) -> None:
    yard, person = make_yard(cpus=1), meet(slurm)
    at_the_yard, at_the_login, by_cron = sections()[AGENTS]
    scratch = ("/scratch/$USER", str(person.home / "scratch"))
    tokens = [_at(yard, command.replace(*scratch)) for command in at_the_yard]
    secret = re.search(r"ry_\S+", tokens[-1])
    assert secret is not None, tokens
    runs = [yard.cli("submit", "-q", "--site", "cedar", "--", "echo", f"run {n}") for n in range(2)]
    agent, over = "runyard agent --site cedar", person.home / "over"
    until_over = f"{agent} & agent=$!; until [ -e {over} ]; do sleep 0.2; done; kill $agent; wait $agent"
    with ThreadPoolExecutor(1) as executor:
        ends = executor.submit(_touch_after, over, yard, [int(run.stdout) for run in runs])
        person.follow(at_the_login, ("https://yard.example", yard.url), (agent, until_over), input=secret[0] + "\n")
        assert ends.result() == ["succeeded"] * 2
    for n, run in enumerate(runs):
        assert yard.cli("logs", run.stdout.strip()).stdout == f"run {n}\n"
    more = yard.cli("submit", "-q", "--site", "cedar", "--", "echo", "by cron").stdout.strip()
    line = person.follow(by_cron)
    assert secret[0] not in line

    def ended() -> bool:
        person.cron(line)
        return yard.cli("wait", more, "--timeout", "1s").returncode == 0

    until(ended, timeout=300, what="the run")


def _touch_after(path: Path, yard: Yard, runs: list[int]) -> list[str]:
    """How they ended."""
    try:
        return [yard.client().run(run).wait(timeout=300).state for run in runs]
    finally:
        path.touch()


def _at(yard: Yard, command: str) -> str:
    done = yard.cli(*shlex.split(command)[1:])
    assert done.returncode == 0, done.stderr
    return done.stdout
