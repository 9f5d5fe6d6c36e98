"""A lab of three boxes without a scheduler, from a dirty checkout to results on the file server, and one box dies."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pytest

from runyard.client.run import Run
from tests.acceptance.test_ssh_nodes import SITE, NodeYard
from tests.acceptance.witness import until
from tests.labs.nodes import NodeLab
from tests.labs.yard import Yard

pytestmark = pytest.mark.component("git")

PROJECT, PERMIT_S, BEATS = "words", 30, 20
RATES, WIDTHS, REPETITIONS = (0.1, 0.2, 0.3, 0.4), (16, 32, 64), 2
TRAIN = f"""
import os, sys, time
from lib import optimizer
rate, width = sys.argv[1:]
with open("corpora/words.txt") as file:
    words = file.read()
for beat in range({BEATS}):
    while beat == {BEATS // 2} and os.path.exists(os.environ["HOLD"]):
        time.sleep(0.1)
    with open(os.environ["DIARY"], "a") as diary:
        diary.write("%s %s %r\\n" % (os.environ["RUNYARD_RUN_ID"], os.environ["RUNYARD_ATTEMPT"], time.time()))
    time.sleep(0.3)
with open(os.path.join(os.environ["OUTPUT_DIR"], "score.txt"), "w") as file:
    file.write(" ".join([rate, width, optimizer.NAME, words]))
print("trained", rate, width)
"""


class Lab:
    """What the people there have: a checkout, a file server, and boxes; and a diary of who worked when."""

    def __init__(self, place: Path, boxes: NodeYard) -> None:
        self.boxes, self.project, self.share = boxes, place / "project", place / "share"
        self._diary, self.hold = place / "diary", place / "hold"  # no run gets further than half while that is there
        self._diary.touch()
        self._diary.chmod(0o666)
        self._make_checkout()

    def _make_checkout(self) -> None:
        files = {
            "train.py": "raise SystemExit('old')\n",
            "lib/optimizer.py": "NAME = 'sgd'\n",
            ".gitignore": "*.ckpt\n/corpora\n",
        }
        for name, text in {**files, "lib/__init__.py": "", "corpora/words.txt": "the words"}.items():
            path = self.project / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        identity = ["-c", "user.name=Ada", "-c", "user.email=ada@lab.example"]
        for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "first"]):
            subprocess.run(["git", *words], cwd=self.project, check=True)
        (self.project / "train.py").write_text(TRAIN)  # not committed
        (self.project / "lib/optimizer.py").write_text("NAME = 'adam'\n")

    def submit(self) -> list[Run]:
        """Every configuration twice, by the command, from a file in the checkout."""
        common = {
            "command": ["python3", "train.py", "{rate}", "{width}"], "site": SITE, "code": ".", "data": ["corpora"],
            "project": PROJECT, "retry": {"max": 2}, "stop": {"signal": "TERM", "grace": 2},
            "env": {"DIARY": str(self._diary), "HOLD": str(self.hold)},
        }  # fmt: skip
        grid = [{"rate": rate, "width": width} for rate, width in product(RATES, WIDTHS)]
        runs = [{**common, "params": params} for params in grid for _ in range(REPETITIONS)]
        (self.project / "sweep.json").write_text(json.dumps({"runs": runs}))
        done = self.boxes.yard.cli("submit", "--quiet", "--file", "sweep.json", cwd=self.project, timeout=180)
        assert done.returncode == 0, done.stderr
        return [self.boxes.yard.client().run(int(number)) for number in done.stdout.split()]

    def edit(self) -> None:
        (self.project / "train.py").write_text("raise SystemExit('edited')\n")
        (self.project / "lib/optimizer.py").unlink()
        (self.project / "corpora/words.txt").write_text("other words")

    def worked(self) -> dict[int, dict[int, list[float]]]:
        """Times by run and attempt."""
        found: dict[int, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
        for line in self._diary.read_text().splitlines():
            run, attempt, time = line.split()
            found[int(run)][int(attempt)].append(float(time))
        return found

    def scores(self) -> dict[Path, str]:
        """On the share."""
        found = (self.share / PROJECT / "runs").glob("*/*/outputs/score.txt")
        return {path.relative_to(self.share / PROJECT / "runs"): path.read_text() for path in found}


@pytest.fixture
def lab(node_lab: Callable[..., NodeLab]) -> Iterator[Lab]:
    yard = Yard(local_site="named")
    with tempfile.TemporaryDirectory(prefix="ry-lab-", dir="/var/tmp") as directory:
        place = Path(directory)
        os.chmod(place, 0o755)
        (place / "share").mkdir()
        mirror = f'[mirror]\ndir = "{place}/share"\n'
        try:
            boxes = NodeYard(node_lab(), yard, permit=PERMIT_S, further=mirror)
            boxes.add_site()
            boxes.until_up()
            yield Lab(place, boxes)
        finally:
            yard.remove()


@pytest.mark.long
def test_a_sweep_survives_the_end_of_a_box(lab: Lab) -> None:
    runs = lab.submit()
    assert len(runs) == len(RATES) * len(WIDTHS) * REPETITIONS == 24
    lab.edit()
    dead = _a_box_at_work(lab)
    lab.boxes.lab.power_off(dead)
    lab.hold.unlink()

    shown = [lab.boxes.ended(run, timeout=400) for run in runs]
    assert {found["state"] for found in shown} == {"succeeded"}, _bad(shown)
    again = [found for found in shown if found["attempt"] > 1]
    assert again, "the box was at work when it died"
    assert {found["node"] for found in again}.isdisjoint({dead})
    assert {found["node"] for found in shown} >= set(lab.boxes.lab.names) - {dead}
    _check_never_twice_at_once(lab, shown)
    _check_results(lab, shown)


def _a_box_at_work(lab: Lab) -> str:
    """One with a run that has begun, when others are over and others wait. Nobody is near its end: who has worked all
    its beats and could not tell before its box died would work them again."""
    client, found = lab.boxes.yard.client(), list[str]()
    until(lambda: len(client.runs(state="succeeded")) >= 3, what="some runs over", timeout=300)
    lab.hold.touch()

    def look() -> bool:
        alive = {run.id: run for run in client.runs(limit=100) if not run.final}
        begun = {run: len(attempts[1]) for run, attempts in lab.worked().items() if run in alive}
        found[:] = [alive[run].node for run in begun if alive[run].state == "running" and alive[run].node]
        return bool(found) and max(begun.values()) <= BEATS // 2

    until(look, what="a box at work", timeout=300)
    return found[0]


def _check_never_twice_at_once(lab: Lab, shown: list[dict[str, Any]]) -> None:
    """By what the runs themselves wrote: an attempt begins after the one before was over; only the last is whole."""
    worked = lab.worked()
    for found in shown:
        attempts = [times for _, times in sorted(worked[found["id"]].items())]
        assert all(max(earlier) < min(later) for earlier, later in pairwise(attempts)), attempts
        assert len(attempts[-1]) == BEATS
        assert all(len(times) < BEATS for times in attempts[:-1])


def _check_results(lab: Lab, shown: list[dict[str, Any]]) -> None:
    """As they were meant at the submit, in a folder for each configuration and run."""
    until(lambda: len(lab.scores()) == len(shown), what="all results on the share", timeout=240)
    scores = lab.scores()
    assert Counter(path.parts[0] for path in scores) == {
        f"rate={rate},width={width}": REPETITIONS for rate, width in product(RATES, WIDTHS)
    }
    for found in shown:
        rate, width = found["spec"]["params"]["rate"], found["spec"]["params"]["width"]
        place = Path(f"rate={rate},width={width}") / str(found["id"])
        assert scores[place / "outputs/score.txt"] == f"{rate} {width} adam the words"
        assert found["spec"]["code"]["git"]["dirty"] is True


def _bad(shown: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [found for found in shown if found["state"] != "succeeded"]
