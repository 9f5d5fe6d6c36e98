"""`runyard tensorboard` with the real TensorBoard: points of a run show up while it runs."""

from __future__ import annotations

import functools
import json
import signal
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard.client.run import Run
from tests.acceptance.test_ssh_nodes import SITE, NodeYard
from tests.acceptance.witness import alive, until
from tests.labs import waiting
from tests.labs.yard import Yard

# Writes as many points as the file `go` has lines, and ends when that says so.
TRAIN = """\
import os, pathlib, sys, time
from tensorboardX import SummaryWriter
go = pathlib.Path(sys.argv[1])
writer, step = SummaryWriter(os.path.join(os.environ["OUTPUT_DIR"], "logs")), 0
while True:
    lines = go.read_text().split()
    while step < len(lines) and lines[step] != "end":
        writer.add_scalar("train/loss", 1 / (step + 1), step)
        step += 1
    writer.flush()
    if "end" in lines:
        break
    time.sleep(0.1)
writer.close()
"""


class Training:
    """A run that writes a point whenever it is told to. `tell` adds to the file that it reads."""

    def __init__(self, tell: Callable[[str], None], begin: Callable[[], Run]) -> None:
        self._tell = tell
        self.points(2)
        self.run = begin()

    def points(self, count: int) -> None:
        self._tell("point\n" * count)

    def end(self) -> None:
        self._tell("end\n")
        self.run.wait(180)


@pytest.fixture
def training(yard: Yard, tmp_path: Path) -> Iterator[Callable[[str], Training]]:
    started: list[Training] = []

    def start(name: str) -> Training:
        go = Path(tempfile.mkdtemp(dir=tmp_path), "go")
        command = [sys.executable, "-c", TRAIN, str(go)]
        begin = functools.partial(yard.client().submit, command, name=name, code=False)
        started.append(Training(functools.partial(_append, go), begin))
        return started[-1]

    yield start
    for one in started:
        one.end()


def _append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def train_on(nodes: NodeYard, node: str, name: str) -> Training:
    (python, *_), env = nodes.lab.user.runyard()
    go = f"{nodes.lab.user.home}/go"  # which every node has for itself

    def tell(text: str) -> None:
        done = nodes.lab.run(node, "sh", "-c", 'printf %s "$1" >>"$2"', "sh", text, go)
        assert done.returncode == 0, done.stderr

    def begin() -> Run:
        return nodes.yard.client().submit(
            [python, "-c", TRAIN, go], name=name, site=SITE, node=[node], cwd="/tmp", code=False,
            env={"PYTHONPATH": env["PYTHONPATH"]},
        )  # fmt: skip

    return Training(tell, begin)


class Board:
    """`runyard tensorboard` as a process, and what its TensorBoard answers."""

    def __init__(self, yard: Yard, *words: str) -> None:
        (self._port,) = waiting.free_ports(1)
        command = yard.command("tensorboard", *words, "--port", str(self._port), "--every", "1s", "--json")
        self.process = subprocess.Popen(command, env=yard.env, stdout=subprocess.PIPE, text=True)

    def get(self, path: str) -> Any:
        try:
            with urllib.request.urlopen(f"http://localhost:{self._port}/data/{path}", timeout=30) as answer:
                return json.load(answer)
        except OSError:
            return None

    def tags(self) -> Any:
        return self.get("plugin/scalars/tags") or {}

    def steps(self, run: str) -> list[int]:
        points = self.get(f"plugin/scalars/scalars?tag=train%2Floss&run={run}")
        return [step for _, step, _ in points or []]

    def children(self) -> list[int]:
        found = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(word) for word in found.split()]

    def end(self, number: int = signal.SIGINT) -> tuple[int, str]:
        self.process.send_signal(number)
        said, _ = self.process.communicate(timeout=180)
        return self.process.returncode, said


@pytest.fixture
def board() -> Iterator[Callable[..., Board]]:
    started: list[Board] = []

    def start(yard: Yard, *words: str) -> Board:
        started.append(Board(yard, *words))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            one.end(signal.SIGTERM)


def test_new_points_show_up_while_the_run_runs(training, board, yard: Yard) -> None:
    trained = training("first try/ü")
    until(lambda: trained.run.current_outputs()[0], what="an event file")
    folder = f"{trained.run.id}-first-try-ü"
    opened = board(yard, str(trained.run.id))
    name = f"{folder}/logs"
    until(
        lambda: {run: list(tags) for run, tags in opened.tags().items()} == {name: ["train/loss"]},
        timeout=120,
        what="its tag",
    )
    query = urllib.parse.quote(name, safe="")
    until(lambda: opened.steps(query) == [0, 1], what="the first points")
    trained.points(3)
    until(lambda: opened.steps(query) == [0, 1, 2, 3, 4], timeout=120, what="the new points")
    trained.points(1)
    trained.end()
    until(lambda: len(opened.steps(query)) == 6, timeout=120, what="the last point")
    (child,) = opened.children()
    code, said = opened.end()
    told = json.loads(said)
    assert (code, told["runs"]) == (0, [trained.run.id])
    assert told["logdir"].startswith(str(yard.home))
    until(lambda: not alive(child), what="the end of TensorBoard")


def test_points_of_a_run_on_another_machine_show_up_while_it_runs(nodes: NodeYard, board) -> None:
    trained = train_on(nodes, "hoff", "far")
    opened = board(nodes.yard, str(trained.run.id))
    query = f"{trained.run.id}-far%2Flogs"
    until(lambda: opened.steps(query) == [0, 1], timeout=180, what="the first points")
    trained.points(3)
    until(lambda: opened.steps(query) == [0, 1, 2, 3, 4], timeout=180, what="the new points")
    shown = nodes.show(trained.run)
    assert (shown["state"], shown["node"]) == ("running", "hoff"), shown
    trained.points(1)
    trained.end()
    until(lambda: len(opened.steps(query)) == 6, timeout=180, what="the last point")
    assert trained.run.state == "succeeded", trained.run.data


def test_runs_that_match_later_join_and_a_signal_ends_all(training, board, yard: Yard) -> None:
    training("one")
    opened = board(yard, "--state", "active")
    until(lambda: len(opened.tags()) == 1, timeout=120, what="the first run")
    training("two")
    until(lambda: len(opened.tags()) == 2, timeout=120, what="the second run")
    (child,) = opened.children()
    assert opened.end(signal.SIGTERM)[0] == 0
    until(lambda: not alive(child), what="the end of TensorBoard")


def test_a_yard_that_is_away_is_waited_for(training, board, yard: Yard) -> None:
    trained = training("steady")
    opened = board(yard, str(trained.run.id))
    query = f"{trained.run.id}-steady%2Flogs"
    until(lambda: opened.steps(query) == [0, 1], timeout=120, what="the first points")
    yard.kill9()
    trained.points(1)
    yard.start()
    until(lambda: opened.steps(query) == [0, 1, 2], timeout=120, what="the point of meanwhile")


def test_the_folder_alone(training, yard: Yard) -> None:
    one, two = training("one"), training("two")
    for each in (one, two):
        each.end()
    ids = (str(one.run.id), str(two.run.id))
    folder = Path(yard.cli("tensorboard", *ids, "--logdir-only").stdout.strip())
    assert sorted(path.name for path in folder.iterdir() if path.is_dir()) == [f"{ids[0]}-one", f"{ids[1]}-two"]
    told = json.loads(yard.cli("tensorboard", "last", "--logdir-only", "--json").stdout)
    assert (told["runs"], told["files"], told["url"]) == ([two.run.id], 1, None)
    (file,) = Path(told["logdir"]).rglob("*tfevents*")
    (output,) = two.run.outputs()
    assert file.stat().st_size == output.size
