"""What goes wrong with sweeps, metrics and checkpoints, at every door where it can come in: typed, in a file, in Python
and over HTTP. What is refused leaves nothing behind; what only shows later is told, and the runs end well.

| what is wrong | where it is played |
|---|---|
| empty space; one bad bound | here, at all four doors; more of them: tests/unit/model/sweep/test_space.py |
| other words that make no sense | tests/integration/cli/test_sweeps.py, tests/integration/server/test_sweeps.py |
| objective never reported, or NaN | here; while the search goes on: tests/integration/yard/test_sweeps.py |
| metric names with odd characters; a million of them | here |
| log() from 8 processes at once | here; while the yard is killed: test_metrics.py |
| checkpoint directory full | here, with a resume; one that the user chose: test_resume.py |
"""

from __future__ import annotations

import csv
import http.client
import io
import json
import math
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest

from runyard import errors
from runyard.client import Run
from runyard.model.metrics import LONGEST_NAME, MOST_NAMES
from tests.labs.disks import small_disk
from tests.labs.waiting import until
from tests.labs.yard import Yard

PATIENCE_S = 180
MB = 1 << 20


@pytest.fixture(scope="module")
def shared() -> Iterator[Yard]:
    """One yard for what it refuses; nothing of it may have been a surprise to the yard itself."""
    yard = Yard(cpus=2)
    try:
        yield yard.start()
        assert "Traceback" not in yard.log
    finally:
        yard.remove()


@pytest.fixture
def calm(yard: Yard) -> Iterator[Yard]:
    """A yard of its own, in whose log nothing of the kind is found afterwards."""
    yield yard
    assert "Traceback" not in yard.log


# --- doors ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    message: str
    fix: str


def by_http(yard: Yard, document: dict[str, Any], _: Path) -> Told:
    body = json.dumps(document)  # with NaN as Python writes it, which is not JSON
    status, answer = request(yard, "POST", "/sweeps", body)
    assert status == 400, answer
    return Told(answer["error"]["message"], answer["error"]["fix"])


def by_python(yard: Yard, document: dict[str, Any], _: Path) -> Told:
    with pytest.raises(errors.InvalidInput) as caught:
        yard.client().sweep(**document)
    return Told(caught.value.message, caught.value.fix)


def by_file(yard: Yard, document: dict[str, Any], place: Path) -> Told:
    file = place / "sweep.json"
    file.write_text(json.dumps(document))
    return typed(yard, "-f", str(file))


DOORS = (by_http, by_python, by_file)


def typed(yard: Yard, *words: str) -> Told:
    done = yard.cli("sweep", *words)
    assert (done.returncode, done.stdout) == (2, ""), done
    error, fix = done.stderr.splitlines()
    assert error.startswith("error: ") and fix.startswith("fix: ")
    return Told(error.removeprefix("error: "), fix.removeprefix("fix: "))


def request(yard: Yard, method: str, path: str, body: str | None = None) -> tuple[int, Any]:
    connection = http.client.HTTPConnection(urlsplit(yard.url).netloc, timeout=60)
    try:
        headers = {"Authorization": f"Bearer {yard.token}", "Content-Type": "application/json"}
        connection.request(method, f"/api/v1{path}", body, headers)
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def check_nothing_is_left(yard: Yard) -> None:
    assert yard.client().sweeps() == []
    assert yard.client().runs() == []


# --- spaces -----------------------------------------------------------------------------------------------------------

NOTHING = {"command": ["true"]}
EMPTY = {
    "no space": ({}, "nothing to sweep over"),
    "null": ({"space": None}, "nothing to sweep over"),
    "empty": ({"space": {}}, "empty|nothing to sweep over"),
    "no values": ({"space": {"lr": []}}, "space.lr: there is no value"),
    "no choices": ({"space": {"lr": {"choices": []}}}, "space.lr.choices: there is no value"),
    "empty group": ({"space": {"lr": [1], "model": {}}}, "space.model: there is no value"),
    "only a condition": ({"space": {"lr": [1], "model": {"when": {"lr": 1}}}}, "space.model: there is no value"),
    "a list": ({"space": [1, 2]}, "space: must be a mapping"),
    "no configuration": ({"configurations": []}, "nothing to sweep over|configurations: must be a list"),
}
GOOD = {"width": [8, 16], "depth": {"from": 1, "to": 3}}
BOUNDS = {
    "the wrong way round": ({"from": 8, "to": 2}, "space.lr: from 8 to 2 is no range"),
    "nothing between": ({"from": 2, "to": 2}, "space.lr: from 2 to 2 is no range"),
    "a text": ({"from": "small", "to": 2}, "space.lr.from: 'small' is not a number"),
    "true": ({"from": True, "to": 2}, "space.lr.from: True is not a number"),
    "one bound": ({"from": 1}, "space.lr.to: there is no bound"),
    "NaN": ({"from": math.nan, "to": 1}, "space.lr.from: nan is not a number|NaN is not a JSON number"),
    "infinity": ({"from": 0, "to": math.inf}, "space.lr.to: inf is not a number|Infinity is not a JSON number"),
    "too large": ({"from": 0, "to": 10**400}, "space.lr.to: the number is too large"),
    "no logarithm": ({"from": 0, "to": 1, "log": True}, "space.lr: 0 has no logarithm"),
    "no step": ({"from": 0, "to": 1, "step": 0}, "space.lr.step: 0 is not between"),
    "a long step": ({"from": 0, "to": 1, "step": 2}, "space.lr.step: 2 is not between"),
    "a tiny step": ({"from": 0.0, "to": 1e300, "step": 1e-300}, "space.lr.step: 1e-300 is too small"),
    "without an end": ({"from": 1, "to": 10**300}, "combinations are too many"),
    "as a text": ("8..2", "space.lr: from 8 to 2 is no range"),
    "half a text": ("2..", "space.lr: '' is not a number"),
}


@pytest.mark.parametrize("what", EMPTY)
@pytest.mark.parametrize("door", DOORS)
def test_an_empty_space(shared: Yard, door: Callable[..., Told], what: str, tmp_path: Path) -> None:
    varied, said = EMPTY[what]
    check_refused(shared, door(shared, {**NOTHING, **varied}, tmp_path), said)


@pytest.mark.parametrize("what", BOUNDS)
@pytest.mark.parametrize("door", DOORS)
def test_a_space_with_one_bad_bound(shared: Yard, door: Callable[..., Told], what: str, tmp_path: Path) -> None:
    bound, said = BOUNDS[what]
    check_refused(shared, door(shared, {**NOTHING, "space": {**GOOD, "lr": bound}}, tmp_path), said)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--reps 2", "nothing to sweep over"),
        ("--param width=8,16 --param lr=", "no value to choose"),
        ("--param width=8,16 --param lr", "'lr' is not a parameter"),
        ("--param =1,2", "'=1,2' is not a parameter"),
        ("--param width=8,16 --param lr=8..2", "from 8 to 2"),
        ("--param lr=1..x", "'x' is not a number"),
        ("--param lr=..5", "'' is not a number"),
        ("--param lr=log:0..1", "no logarithm"),
        ("--param lr=1..9/0", "0 is not between"),
        ("--param lr=1..1e999", "is not a number"),
        ("--param lr=1,1", "1 is there twice"),
        ("--param lr=1 --param lr=2", "'lr' is there twice"),
        ("--param lr=1 --param lr.decay=2", "lr.decay is inside of it"),
    ],
)
def test_spaces_as_they_are_typed(shared: Yard, words: str, said: str) -> None:
    check_refused(shared, typed(shared, *words.split(), "--", "true"), said)


def check_refused(yard: Yard, told: Told, said: str) -> None:
    assert any(text in told.message for text in said.split("|")), told
    assert told.fix and "\n" not in told.message + told.fix
    check_nothing_is_left(yard)


def test_a_bad_space_is_found_before_anything_is_sent(shared: Yard, tmp_path: Path) -> None:
    (tmp_path / "large.bin").write_bytes(bytes(MB))
    before = stored(shared)
    for words in (["--param", "lr=8..2"], ["--param", "lr="]):
        done = shared.cli("sweep", *words, "--code", ".", "--", "true", cwd=tmp_path)
        assert done.returncode == 2, done
    with pytest.raises(errors.InvalidInput):
        shared.client().sweep(["true"], space={"lr": {"from": 1, "to": math.nan}}, data=str(tmp_path))
    assert stored(shared) == before


def stored(yard: Yard) -> int:
    return sum(1 for path in (yard.home / "blobs").rglob("*") if path.is_file())


# --- objectives -------------------------------------------------------------------------------------------------------

REPORT = """\
import sys
from runyard import job
value = sys.argv[1]
for step in range(1, 4):
    if value != "nothing":
        job.log(step=step, loss=float(value) if step == 3 else 9.0 - step, other=step)
"""


@pytest.mark.parametrize("method", ["grid", "tpe"])
def test_objectives_that_are_no_numbers_or_never_reported(calm: Yard, method: str, tmp_path: Path) -> None:
    """The runs have done what they were told; none of these is ever the best, and the sweep says which has none."""
    (tmp_path / "report.py").write_text(REPORT)
    values = ["nothing", "nan", "inf", "0.5"]
    how = {"method": method, "trials": 12, "parallel": 2} if method == "tpe" else {}
    sweep = calm.client().sweep(
        [sys.executable, "report.py", "{value}"], space={"value": values}, minimize="loss", cwd=str(tmp_path), **how
    )
    view = sweep.wait(timeout=PATIENCE_S).data
    assert view["state"] == "succeeded", view
    trials = {trial.params["value"]: trial for trial in sweep.trials()}
    for silent in ("nothing", "nan"):
        assert (trials[silent].state, trials[silent].value, trials[silent].n) == ("succeeded", None, 0)
    told = {decision["trial"]: decision["body"] for decision in sweep.decisions() if decision["kind"] == "tell"}
    assert told[trials["nothing"].number]["state"] == "failed"
    assert told[trials["nothing"].number]["why"] == f"loss of run {trials['nothing'].runs[0]['id']} is not reported"
    assert told[trials["nan"].number]["why"] == f"loss of run {trials['nan'].runs[0]['id']} is not a number"
    best = sweep.best()
    assert best is not None and (best.params["value"], best.value) == ("0.5", 0.5)
    check_it_is_told(calm, sweep.label)


def check_it_is_told(yard: Yard, label: str) -> None:
    shown = yard.cli("sweep", "show", label)
    assert "has no result: loss of run" in " ".join(shown.stdout.split())
    table = [line.split()[1] for line in yard.cli("sweep", "table", label).stdout.splitlines()[1:]]
    assert list(dict.fromkeys(table))[:2] == ["0.5", "inf"], "the best first, what is endless after it"
    assert yard.cli("sweep", "replay", label).returncode == 0


def test_an_objective_that_nobody_reports(calm: Yard, tmp_path: Path) -> None:
    """Such as one that is spelled otherwise."""
    words = ["--param", "x=1,2", "--minimize", "los", "--wait", "--", sys.executable, "report.py", "{x}"]
    (tmp_path / "report.py").write_text(REPORT)
    done = calm.cli("sweep", *words, cwd=tmp_path, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "has no result: los of run" in done.stdout
    for command in (["best", "S1"], ["sweep", "best", "S1"], ["best", "1-2", "--metric", "los"]):
        told = calm.cli(*command)
        assert told.returncode == 1, told
        error, fix = told.stderr.splitlines()
        assert "reported los" in error and fix.startswith("fix: runyard")
    assert calm.client().find_sweep("S1").best() is None
    assert request(calm, "GET", "/sweeps/1")[1]["best"] is None
    assert calm.cli("sweep", "best", "S1", "--metric", "loss").returncode == 0, "the right name finds it"


@pytest.mark.parametrize(
    ("objective", "said"),
    [
        ({"minimize": ""}, "must be a text"),
        ({"minimize": 7}, "must be a text"),
        ({"maximize": "x" * (LONGEST_NAME + 1)}, f"longer than {LONGEST_NAME}"),
        ({"minimize": "a", "maximize": "b"}, "there is minimize already"),
        ({"objective": "loss"}, "whether to minimize or maximize the metric"),
        ({"objective": {"goal": "minimize"}}, "objective: no metric"),
        ({"stop": "asha"}, "none is named"),
        ({"method": "tpe", "trials": 3}, "needs an objective"),
    ],
)
@pytest.mark.parametrize("door", DOORS)
def test_an_objective_that_is_none(
    shared: Yard, door: Callable[..., Told], objective: dict[str, Any], said: str, tmp_path: Path
) -> None:
    check_refused(shared, door(shared, {**NOTHING, "space": {"lr": [1]}, **objective}, tmp_path), said)


# --- metrics ----------------------------------------------------------------------------------------------------------

KEPT = {  # as it is reported: as it is kept
    "val/loss/top-5": "val/loss/top-5",
    "größe µ 損失 😀": "größe µ 損失 😀",
    "two\nlines": "two\ufffdlines",
    "\x1b[31mred\x00": "\ufffd[31mred\ufffd",
    'comma, "quote" & more?': 'comma, "quote" & more?',
    "../../etc/passwd": "../../etc/passwd",
    "x" * 5000: "x" * LONGEST_NAME,
    "": "\ufffd",
    "*": "*",
    "\ud800": "\ufffd",
}
ODD = f"""\
from runyard import job
for step in (1, 2):
    job.log(step=step, **{{name: float(step) for name in {list(KEPT)!r}}})
job.summary(**{{"two\\nlines": 0.5}})
"""


def test_metric_names_with_odd_characters(calm: Yard, tmp_path: Path) -> None:
    run = calm.client().submit([sys.executable, "-c", ODD]).wait(timeout=PATIENCE_S)
    assert run.state == "succeeded", run.logs()
    names = list(dict.fromkeys(KEPT.values()))
    until(lambda: {row["name"] for row in run.reported()} >= set(names), "all names", timeout_s=PATIENCE_S)
    assert {row["name"] for row in run.reported()} == set(names)
    assert run.summary() == {"two\ufffdlines": 0.5}
    check_points(calm, run, names)
    check_page(calm, run, len(names))
    read = list(csv.DictReader(io.StringIO(calm.cli("metrics", str(run.id), "--csv").stdout)))
    assert {name: read[1][name] for name in names} == dict.fromkeys(names, "2.0")
    for name in KEPT:
        if not set("\x00\ud800") & set(name) and name:
            drawn = calm.cli("plot", str(run.id), "--metric", name, "-o", str(tmp_path / "curve.svg"))
            assert drawn.returncode == 0, drawn.stderr


def check_points(yard: Yard, run: Run, names: list[str]) -> None:
    status, answer = request(yard, "GET", f"/runs/{run.id}/metrics/points?{urlencode({'name': names}, doseq=True)}")
    assert status == 200, answer
    assert set(answer["points"]) == set(names)
    assert answer["points"]["val/loss/top-5"][0][0] == 1
    assert [point[2] for point in run.points("größe µ 損失 😀")["größe µ 損失 😀"]] == [1.0, 2.0]


def check_page(yard: Yard, run: Run, rows: int) -> None:
    """A line for each, and nothing that a terminal would obey."""
    for words in (["metrics", str(run.id)], ["show", str(run.id)]):
        shown = yard.cli(*words)
        assert shown.returncode == 0, shown.stderr
        assert "\x1b" not in shown.stdout
        assert len(shown.stdout.splitlines()) == rows + 1 or words[0] == "show"


def test_an_objective_with_odd_characters(calm: Yard, tmp_path: Path) -> None:
    name = "größe/two\nlines"
    (tmp_path / "odd.py").write_text(
        f"import sys\nfrom runyard import job\njob.log(**{{{name!r}: float(sys.argv[1])}})"
    )
    words = ["--param", "x=2,1", "--minimize", name, "--wait", "--json", "--", sys.executable, "odd.py", "{x}"]
    done = calm.cli("sweep", *words, cwd=tmp_path, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    view = json.loads(done.stdout)
    assert (view["best"]["params"], view["best"]["value"]) == ({"x": 1}, 1.0)
    shown = calm.cli("sweep", "table", "S1").stdout
    assert shown.splitlines()[0].split() == ["TRIAL", "x", "größe/two\ufffdlines", "N", "STATE", "RUNS"]


MILLION = """\
from runyard import job
job.log(step=0, known=1.0)
for part in range(1000):
    job.log(step=part, **{"n%d" % number: 1.0 for number in range(1000 * part, 1000 * part + 1000)})
job.log(step=1000, known=2.0)
"""


@pytest.mark.long
def test_a_million_names(calm: Yard) -> None:
    """As many are kept as are worth something to somebody; that the others are not is said once, and costs little."""
    first = calm.client().submit([sys.executable, "-c", "from runyard import job; job.log(step=1, loss=1.0)"])
    first.wait(timeout=PATIENCE_S)
    run = calm.client().submit([sys.executable, "-c", MILLION])
    before = peak_memory(calm)
    assert run.wait(timeout=PATIENCE_S).state == "succeeded", run.logs()
    until(lambda: reported(run, "known") == 2, "all of it is read", timeout_s=PATIENCE_S)
    assert peak_memory(calm) - before < 200 * MB
    rows = run.reported()
    assert len(rows) == MOST_NAMES
    assert {row["name"] for row in rows} == {"known", *(f"n{number}" for number in range(MOST_NAMES - 1))}
    told = [event["message"] for event in run.events() if "metrics" in event["message"]]
    assert told == [f"more than {MOST_NAMES} names of metrics: the others are not kept"]
    shown = calm.cli("metrics", str(run.id), timeout=PATIENCE_S)
    assert (shown.returncode, len(shown.stdout.splitlines())) == (0, MOST_NAMES + 1)
    exported = calm.cli("metrics", str(run.id), "--csv", timeout=PATIENCE_S)
    assert exported.returncode == 0, exported.stderr
    assert len(next(csv.reader(io.StringIO(exported.stdout)))) == len(("run", "step", "time")) + MOST_NAMES
    assert len(run.metrics().columns) == len(("step", "time")) + MOST_NAMES
    assert [row["name"] for row in first.reported()] == ["loss"]
    after = calm.client().submit([sys.executable, "-c", "from runyard import job; job.log(step=1, loss=1.0)"])
    assert after.wait(timeout=PATIENCE_S).state == "succeeded"
    until(lambda: reported(after, "loss") == 1, "the next run is read", timeout_s=PATIENCE_S)


def reported(run: Run, name: str) -> int:
    return sum(row["count"] for row in run.reported() if row["name"] == name)


def peak_memory(yard: Yard) -> int:
    status = Path(f"/proc/{yard.pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


TOGETHER = """\
import os, subprocess, sys
from runyard import job
STEPS, PROCESSES = 2000, 8
def report(who):
    for step in range(STEPS):
        job.log(step=step, **{"process/%d" % who: step, "ballast/%d/%s" % (who, "x" * 200): -step})
if len(sys.argv) > 1:
    report(int(sys.argv[1]))
    sys.exit()
job.log(step=0, parent=1.0)
children = []
for who in range(PROCESSES):
    if who % 2:  # a program of its own, with a descriptor of its own
        children.append(subprocess.Popen([sys.executable, sys.argv[0], str(who)]).wait)
        continue
    number = os.fork()
    if not number:  # one that has inherited the descriptor
        report(who)
        os._exit(0)
    children.append(lambda number=number: os.waitpid(number, 0)[1])
sys.exit(any([wait() for wait in children]))
"""
STEPS, PROCESSES = 2000, 8


def test_eight_processes_that_report_at_once(calm: Yard, tmp_path: Path) -> None:
    (tmp_path / "together.py").write_text(TOGETHER)
    run = calm.client().submit([sys.executable, "together.py"], cwd=str(tmp_path), keep="all:1d")
    assert run.wait(timeout=PATIENCE_S).state == "succeeded", run.logs()
    names = [f"process/{who}" for who in range(PROCESSES)]
    until(lambda: all(reported(run, name) >= STEPS for name in names), "all is read", timeout_s=PATIENCE_S)
    for name in names:
        points = run.points(name, most=2 * STEPS)[name]
        assert [(step, value) for step, _, value in points] == [(step, float(step)) for step in range(STEPS)]
    assert len(run.reported()) == 2 * PROCESSES + 1
    lines = (calm.runs / str(run.id) / "a1" / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    assert len(lines) == PROCESSES * STEPS + 1
    assert all(line.endswith(b"}\n") and json.loads(line)["m"] for line in lines), "whole lines"


# --- checkpoints ------------------------------------------------------------------------------------------------------

SAVES = """\
import os
from runyard import job
STATE = {"step": 0}
def save(directory):
    part = directory / "state.tmp"
    with part.open("wb") as file:
        file.write(b"%d\\n" % STATE["step"] + bytes(int(os.environ["BYTES"]) if STATE["step"] == 2 else 1000))
        file.flush()
        os.fsync(file.fileno())
    part.replace(directory / "state")
with job.checkpointing(save) as ckpt:
    if ckpt.resume_from:
        STATE["step"] = int((ckpt.resume_from / "state").read_bytes().partition(b"\\n")[0])
    print("from", STATE["step"], flush=True)
    while STATE["step"] < 3:
        STATE["step"] += 1
        job.log(step=STATE["step"], loss=1.0 / STATE["step"])
        ckpt.save()
print("done", flush=True)
"""


@pytest.mark.component("root")
def test_a_full_checkpoint_directory(calm: Yard, tmp_path: Path) -> None:
    """The run ends by itself, and the directory is named; what it had saved before is whole, and it goes on from it."""
    (tmp_path / "saves.py").write_text(SAVES)
    (calm.runs / "1").mkdir(parents=True)
    with small_disk(calm.runs / "1" / "checkpoints", "size=2m") as small:
        sweep = calm.client().sweep(
            [sys.executable, "saves.py"], space={"x": [1]}, minimize="loss", env={"BYTES": str(4 * MB)},
            cwd=str(tmp_path), name="full",
        )  # fmt: skip
        (run,) = sweep.wait(timeout=PATIENCE_S).runs()
        assert (sweep.state, run.state, run.reason) == ("failed", "failed", "disk"), run.data
        assert run.detail == f"exited with 1; no space is left in {small}"
        assert "No space left on device" in run.logs(), "in the words of the program"
        kept = run.checkpoint(tmp_path / "kept")
        assert (kept / "state").read_bytes().startswith(b"1\n")
        make_room(small)
        again = calm.cli("retry", "--resume", str(run.id))
        assert again.returncode == 0, again.stderr
        assert run.wait(timeout=PATIENCE_S).state == "succeeded", (run.data, run.logs())
        assert run.logs(attempt=2) == "from 1\ndone\n"
        best = sweep.wait(timeout=PATIENCE_S).best()
        assert (sweep.state, best and best.value) == ("succeeded", pytest.approx(1 / 3))


def make_room(place: Path) -> None:
    subprocess.run(["mount", "-o", "remount,size=16m", str(place)], check=True)
