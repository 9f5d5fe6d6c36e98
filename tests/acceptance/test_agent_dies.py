"""The agent of a cluster is ended by SIGKILL at each step of its work, again and again: every run ends, once."""

from __future__ import annotations

import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

import runyard
from tests.acceptance import doomed
from tests.acceptance.cluster_yard import SITE, ClusterYard
from tests.acceptance.witness import Witness, until

RUNS = 200
AT_ONCE = 12  # in the queue: enough is left to be claimed and handed over at the last step
STEPS = [
    # claim
    "runyard.agent.http:HttpLink.hello:after",
    "runyard.agent.http:HttpLink.sync:claims",
    "runyard.agent.bring.directory:Stager.prepare:after",
    "runyard.agent.bring.directory:Stager.freeze:after",
    # submit
    "runyard.backends.batch.files:Files.enter:after",
    "runyard.backends.batch.scheduler:Scheduler.submit:before",
    "runyard.backends.batch.scheduler:Scheduler.submit:during",
    "runyard.backends.batch.scheduler:Scheduler.submit:after",
    "runyard.backends.batch.files:Files.accept:after",
    # poll
    "runyard.backends.batch.scheduler:Scheduler.queue:during",
    "runyard.backends.batch.scheduler:Scheduler.queue:after",
    "runyard.backends.batch.files:Files.look:after",
    "runyard.backends.batch.scheduler:Scheduler.accounts:after",
    # relay
    "runyard.agent.http:HttpLink.append:before",
    "runyard.agent.http:HttpLink.append:after",
    "runyard.agent.http:HttpLink.missing_blobs:after",
    "runyard.agent.http:HttpLink.put_blob:after",
    "runyard.agent.http:HttpLink.sync:settled",
]
ROUNDS = 2
BODY = "echo one; sleep 0.5; echo two; echo $RUNYARD_RUN_ID > $OUTPUT_DIR/number"


class Agents:
    """Agents of the yard's site, one after the other; the next one begins when the one before it is dead."""

    def __init__(self, yard: ClusterYard) -> None:
        self._yard = yard
        self._python = yard.lab.user.runyard()[0][0]
        self._note = yard.home / "died"
        self._program = Path(doomed.__file__).read_text()
        self.log = yard.home / "agent.log"

    def until_killed_at(self, step: str) -> None:
        self._note.unlink(missing_ok=True)
        with self._running("-c", self._program, step, str(self._note)) as agent:
            agent.wait(240)
        assert self._note.exists(), f"it ended before it came to {step}:\n{self.log.read_text()}"

    @contextlib.contextmanager
    def one_that_lives(self) -> Iterator[None]:
        with self._running("-m", "runyard"):
            yield

    @contextlib.contextmanager
    def _running(self, *program: str) -> Iterator[subprocess.Popen[bytes]]:
        yard = self._yard
        with self.log.open("ab") as log:
            agent = subprocess.Popen(
                [self._python, *program, "agent", "--site", SITE], env=yard.env, cwd=yard.home,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, **yard.lab.user.popen_options(),
            )  # fmt: skip
        try:
            yield agent
        finally:
            agent.kill()
            agent.wait()


@pytest.fixture(params=["slurm", "gridengine"])
def yard(request: pytest.FixtureRequest) -> Iterator[ClusterYard]:
    lab = request.getfixturevalue(f"{request.param}_lab")()
    limits = ["--option", f"max_jobs={AT_ONCE}", "--option", "command_timeout=10"]
    made = ClusterYard(lab, request.param, "--served-by", "agent", *limits)
    made.start()
    made.add_site()
    yield made
    made.stop()


@pytest.mark.long
def test_kill_9_of_the_agent_at_each_step(yard: ClusterYard) -> None:
    witness, agents = Witness(yard.home), Agents(yard)
    yard.lab.user.own(witness.path)
    with runyard.Client(home=yard.home, start=False) as client:
        spec = {"command": witness.command(BODY), "site": SITE}
        ids = [run.id for run in client.submit_many([spec] * RUNS)]
        for _ in range(ROUNDS):
            for step in STEPS:
                agents.until_killed_at(step)
        with agents.one_that_lives():
            until(lambda: client.runs(state=["queued", "starting", "running"]) == [], timeout=400, what="all ends")
        for run in map(client.run, ids):
            assert (run.state, run.attempt) == ("succeeded", 1), run.data
            assert run.logs() == "one\ntwo\n"
            assert [output.size for output in run.outputs()] == [len(f"{run.id}\n")]
    assert witness.count("start") == witness.count("end") == dict.fromkeys(ids, 1)
