"""Runs that are tried again after a loss, on machines without a scheduler: never two of them at once."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runyard.client.run import Run
from tests.acceptance.pool import SITE as POOL
from tests.acceptance.pool import Pool
from tests.acceptance.test_ssh_nodes import NodeYard
from tests.acceptance.witness import until
from tests.labs import waiting
from tests.labs.nodes import NodeLab
from tests.labs.rabbitmq import relay
from tests.labs.yard import Yard

PERMIT_S = 30
FIELDS = {"retry": {"max": 1}, "stop": {"signal": "TERM", "grace": 2}}


class Diary:
    """Every attempt writes its number and the time there, five times a second; the first would do so for ever."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "diary"
        self._path.touch()
        self._path.chmod(0o666)
        for place in (directory, directory.parent):
            place.chmod(0o777)
        write = f'$(date +%s.%N)" >> {self._path}'
        self.script = (
            f"echo begun; most=20; [ $RUNYARD_ATTEMPT = 1 ] && most=100000; for i in $(seq $most); do "
            f'echo "$RUNYARD_ATTEMPT {write}; sleep 0.2; done; echo "end-of-$RUNYARD_ATTEMPT {write}'
        )

    def times(self, word: str) -> list[float]:
        lines = [line.split() for line in self._path.read_text().splitlines()]
        return [float(line[1]) for line in lines if line[0] == word]

    def check(self) -> None:
        """The second began after the first was over, and only it came to its end."""
        assert max(self.times("1")) < min(self.times("2"))
        assert not self.times("end-of-1")
        assert len(self.times("end-of-2")) == 1


@pytest.fixture
def diary() -> Iterator[Diary]:
    with tempfile.TemporaryDirectory(prefix="ry-diary-", dir="/var/tmp") as directory:
        place = Path(directory) / "shared"
        place.mkdir()
        yield Diary(place)


@pytest.fixture
def boxes(node_lab: Callable[..., NodeLab]) -> Iterator[NodeYard]:
    yard = Yard(local_site="named")
    try:
        found = NodeYard(node_lab(), yard, permit=PERMIT_S)
        found.add_site()
        found.until_up()
        yield found
    finally:
        yard.remove()


def test_a_run_on_a_node_that_is_cut_off_runs_elsewhere_once_it_must_have_ended(boxes: NodeYard, diary: Diary) -> None:
    run = boxes.submit(diary.script, exclude=["pitts"], **FIELDS)
    until(lambda: diary.times("1"), what="its first words", timeout=120)
    until(lambda: boxes.show(run)["node"], what="its node")
    node = boxes.show(run)["node"]
    boxes.lab.unplug(node)
    until(lambda: "will be tried again at" in (boxes.show(run)["detail"] or ""), what="a prospect", timeout=120)
    shown = boxes.ended(run, timeout=300)
    assert (shown["state"], shown["attempt"]) == ("succeeded", 2), shown
    assert {shown["node"], node} == {"hoff", "norman"}
    boxes.lab.plug(node)
    boxes.until_up(node)
    assert not [command for command in boxes.lab.commands(node) if "end-of-" in command]
    diary.check()
    assert boxes.show(run)["attempt"] == 2


@pytest.mark.long
def test_a_run_on_a_node_that_answers_outlives_its_permit_many_times(boxes: NodeYard, diary: Diary) -> None:
    run = boxes.submit(diary.script, **FIELDS)
    until(lambda: diary.times("1") and diary.times("1")[-1] - diary.times("1")[0] > 3 * PERMIT_S, timeout=300)
    shown = boxes.show(run)
    assert (shown["state"], shown["attempt"]) == ("running", 1)
    boxes.yard.client().cancel([run.id])
    assert boxes.ended(run)["state"] == "cancelled"


def test_an_agent_that_is_cut_off_from_its_yard_loses_its_run_to_another(yard: Yard, diary: Diary) -> None:
    yard.stop()
    (yard.home / "config.toml").write_text(f"lease = 5\npermit = {PERMIT_S}\n")
    yard.start()
    pool, direct = Pool(yard), yard.url
    with _cable(urlsplit(direct).port or 0) as (url, cable), contextlib.ExitStack() as agents:
        pool.lead_to(url)
        agents.enter_context(pool.agent("hoff", "--node", "hoff"))
        run = yard.client().submit(["bash", "-c", diary.script], site=POOL, cwd="/tmp", **FIELDS)
        until(lambda: diary.times("1"), what="its first words", timeout=120)
        pool.lead_to(direct)
        agents.enter_context(pool.agent("norman", "--node", "norman"))
        cable.send_signal(signal.SIGSTOP)
        until(lambda: "will be tried again at" in (_show(yard, run)["detail"] or ""), what="a prospect", timeout=120)
        until(lambda: _show(yard, run)["state"] == "succeeded", what="its end", timeout=300)
        assert (_show(yard, run)["attempt"], _show(yard, run)["node"]) == (2, "norman")
        cable.send_signal(signal.SIGCONT)
        until(lambda: len(_alive(yard)) == 2, what="hoff again", timeout=120)
        after = yard.client().submit(["true"], site=POOL, cwd="/tmp", node=["hoff"])
        until(lambda: _show(yard, after)["state"] == "succeeded", what="a run on hoff", timeout=120)
    diary.check()


def _show(yard: Yard, run: Run) -> dict[str, object]:
    return yard.client().run(run.id).data


def _alive(yard: Yard) -> list[str]:
    return [agent["name"] for agent in yard.client().site(POOL)["agents"] if agent["state"] == "alive"]


@contextlib.contextmanager
def _cable(target: int) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A way to the yard; stopped, it is one on which nothing comes through, and nobody notices."""
    port = waiting.free_ports(1)[0]
    process = subprocess.Popen([sys.executable, "-I", "-S", relay.__file__, str(port), str(target)])
    try:
        waiting.until(lambda: waiting.accepts("127.0.0.1", port), "the cable")
        yield f"http://127.0.0.1:{port}", process
    finally:
        process.kill()
        process.wait()
