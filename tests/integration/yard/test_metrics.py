"""What runs report, in the store: each value once, whatever happens while it is read."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from sqlalchemy import Connection

from runyard import errors
from runyard.blobs import open_blobs
from runyard.model.metrics import FILE, LONGEST_LINE, MOST_NAMES, Point
from runyard.model.wire import AttemptKey, Claim
from runyard.store import metrics as rows
from runyard.yard.metrics import Metrics, file_reader
from tests.integration.yard.conftest import NOTHING, Driver, ended
from tests.labs.s3 import S3Lab


def line(step: float | None = None, at: float = 1.0, **values: float) -> bytes:
    return json.dumps({"t": at, "step": step, "m": values}).encode() + b"\n"


def steps(start: int, end: int, value: float = 0.0) -> bytes:
    return b"".join(line(step, loss=value + step) for step in range(start, end))


class Writer:
    """Relays what an attempt writes, as its agent does."""

    def __init__(self, driver: Driver, claim: Claim) -> None:
        self.driver, self.claim, self.offset = driver, claim, 0

    def write(self, *lines: bytes) -> None:
        data = b"".join(lines)
        driver = self.driver
        self.offset = driver.yard.append(
            driver.admin, "local", "a1", driver.incarnation, self.claim.key, FILE, self.offset, data
        )

    def end(self, exit_code: int = 0) -> None:
        self.driver.sync(ended(self.claim, exit_code=exit_code, sizes={FILE: self.offset}), free=NOTHING)


@pytest.fixture
def start(driver: Driver) -> Callable[..., Writer]:
    def make(**fields: Any) -> Writer:
        driver.submit(**fields)
        return next_attempt(driver)

    return make


def next_attempt(driver: Driver) -> Writer:
    (claim,) = driver.sync(room=1).claims
    return Writer(driver, claim)


def read_all(driver: Driver) -> None:
    while driver.yard.metrics.tick():
        pass


def summed_up(driver: Driver, run: int) -> dict[str, dict[str, Any]]:
    return {metric["name"]: metric for metric in driver.yard.metrics.view(run)["metrics"]}


def test_values_are_summed_up(driver: Driver, start: Callable[..., Writer]) -> None:
    writer = start()
    writer.write(line(1, loss=0.5, acc=0.1), line(2, loss=0.7), line(3, loss=0.2))
    assert driver.yard.metrics.tick() is False
    found = driver.yard.metrics.view(writer.claim.key.run)
    assert found == {
        "metrics": [
            {"name": "acc", "count": 1, "first": 0.1, "last": 0.1, "minimum": 0.1, "maximum": 0.1, "last_step": 1},
            {"name": "loss", "count": 3, "first": 0.5, "last": 0.2, "minimum": 0.2, "maximum": 0.7, "last_step": 3},
        ],
        "summary": {},
        "complete": True,
    }
    writer.write(line(4, loss=0.9))
    driver.yard.metrics.tick()
    assert summed_up(driver, writer.claim.key.run)["loss"]["count"] == 4


def test_numbers_that_are_none(driver: Driver, start: Callable[..., Writer]) -> None:
    writer = start()
    writer.write(line(1, a=math.nan, b=math.inf), line(2, a=math.nan, b=-math.inf, c=1.0), line(3, c=math.nan))
    read_all(driver)
    found = summed_up(driver, writer.claim.key.run)
    assert (found["a"]["first"], found["a"]["last"], found["a"]["minimum"], found["a"]["count"]) == (
        "nan",
        "nan",
        None,
        2,
    )
    assert (found["b"]["first"], found["b"]["minimum"], found["b"]["maximum"]) == ("inf", "-inf", "inf")
    assert (found["c"]["last"], found["c"]["minimum"], found["c"]["maximum"]) == ("nan", 1.0, 1.0)
    points = driver.yard.metrics.points(writer.claim.key.run, ["c"])
    assert points == {"c": [[2, 1.0, 1.0], [3, 1.0, "nan"]]}


def test_odd_names_and_garbage(driver: Driver, start: Callable[..., Writer]) -> None:
    writer = start()
    names = ["val/loss", "käse", "a,b", "日本", "🙂", "' OR 1=1; --", "%(x)s", "x" * 999]
    garbage = (b"garbage\n", b"\xff\xfe\x00\n", b'{"m": {"torn": 1\n', b"x" * (3 * LONGEST_LINE) + b"\n")
    for name in names:
        writer.write(*garbage, line(1, **{name: 1.0}))
    writer.write(line(2, **{"nul\x00": 1.0}))
    read_all(driver)
    assert set(summed_up(driver, writer.claim.key.run)) == {*names[:-1], "x" * 250, "nul\ufffd"}


def test_half_a_line_waits_for_its_rest(driver: Driver, start: Callable[..., Writer]) -> None:
    writer = start()
    whole = line(1, loss=1.0)
    writer.write(whole, whole[:10])
    read_all(driver)
    assert summed_up(driver, writer.claim.key.run)["loss"]["count"] == 1
    writer.write(whole[10:])
    read_all(driver)
    assert summed_up(driver, writer.claim.key.run)["loss"]["count"] == 2


def test_the_last_line_needs_no_end(driver: Driver, start: Callable[..., Writer]) -> None:
    writer = start()
    writer.write(line(1, loss=1.0), line(2, loss=2.0)[:-1])
    read_all(driver)
    writer.end()
    driver.yard.metrics.catch_up([writer.claim.key], 60)
    assert summed_up(driver, writer.claim.key.run)["loss"]["count"] == 2
    with driver.yard.store.read() as connection:
        assert rows.open_positions(connection) == []


def test_nobody_is_kept_waiting_for_very_much(
    driver: Driver, start: Callable[..., Writer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is read on while it is asked for."""
    monkeypatch.setattr(file_reader, "PIECE", 200)
    monkeypatch.setattr("runyard.yard.metrics.metrics.ANSWER_S", 0.0001)
    writer = start()
    writer.write(steps(0, 2000))
    writer.end()
    answers = [driver.yard.metrics.view(writer.claim.key.run)]
    while not answers[-1]["complete"]:
        answers.append(driver.yard.metrics.view(writer.claim.key.run))
    counts = [row["count"] for answer in answers for row in answer["metrics"]]
    assert (len(counts) > 1, counts == sorted(counts), counts[-1]) == (True, True, 2000)


def test_a_summary(driver: Driver, start: Callable[..., Writer]) -> None:
    writer = start()
    writer.write(
        b'{"t": 1, "summary": {"acc": 0.5, "note": "first"}}\n',
        b'{"t": 2, "summary": {"acc": 0.9, "bad": NaN, "epochs": 3}}\n',
    )
    read_all(driver)
    found = driver.yard.metrics.view(writer.claim.key.run)
    assert found["summary"] == {"acc": 0.9, "note": "first", "bad": "nan", "epochs": 3}
    assert summed_up(driver, writer.claim.key.run)["acc"]["last"] == 0.9


def test_what_a_server_had_not_read_when_it_died_another_one_reads(
    driver: Driver, start: Callable[..., Writer]
) -> None:
    writer, other = start(), start()
    writer.write(steps(0, 10))
    read_all(driver)
    writer.write(steps(10, 20))
    other.write(steps(0, 5))
    other.end()
    again = Metrics(driver.yard.store, driver.yard.files)  # it knows of no hint
    while again.tick():
        pass
    assert summed_up(driver, writer.claim.key.run)["loss"]["count"] == 20
    assert summed_up(driver, other.claim.key.run)["loss"]["count"] == 5


def test_two_readers_count_nothing_twice(driver: Driver, start: Callable[..., Writer]) -> None:
    writer, seen, stop = start(), list[float | None](), threading.Event()
    readers = [Metrics(driver.yard.store, driver.yard.files) for _ in range(2)]
    for reader in readers:
        reader.observe(lambda *told: seen.extend(point.step for point in told[-1]))

    def read(reader: Metrics) -> None:
        while not stop.is_set():
            reader.catch_up([writer.claim.key], 60)

    threads = [threading.Thread(target=read, args=(reader,)) for reader in readers]
    for thread in threads:
        thread.start()
    for start_step in range(0, 2000, 100):
        writer.write(steps(start_step, start_step + 100))
    stop.set()
    for thread in threads:
        thread.join()
    readers[0].catch_up([writer.claim.key], 60)
    assert summed_up(driver, writer.claim.key.run)["loss"]["count"] == 2000
    assert seen == list(range(2000))


def test_an_observer_is_told_in_the_same_transaction(driver: Driver, start: Callable[..., Writer]) -> None:
    writer, told = start(), list[tuple[int, int, list[Point]]]()

    def observe(connection: Connection, now: float, run: int, attempt: int, points: Sequence[Point]) -> None:
        told.append((run, attempt, list(points)))
        rows.put_summary(connection, run, {"points": len(points)})
        if len(told) == 1:
            raise errors.Conflict("the first time it fails")

    driver.yard.metrics.observe(observe)
    writer.write(line(1, loss=0.5))
    with pytest.raises(errors.Conflict):
        driver.yard.metrics.tick()
    assert driver.yard.metrics.view(writer.claim.key.run) == {"metrics": [], "summary": {}, "complete": True}
    driver.yard.metrics.catch_up([writer.claim.key], 60)
    key = writer.claim.key
    assert told == [(key.run, 1, [Point(1, 1.0, "loss", 0.5)])] * 2
    assert driver.yard.metrics.view(key.run)["summary"] == {"points": 1}


def test_steps_that_a_later_attempt_repeats_count_once(driver: Driver, start: Callable[..., Writer]) -> None:
    first = start(retry={"max": 2, "on": ["error"]})
    first.write(steps(0, 100))
    read_all(driver)
    first.end(exit_code=1)
    second = next_attempt(driver)
    assert second.claim.key == AttemptKey(run=first.claim.key.run, attempt=2)
    second.write(steps(60, 90, value=1000.0))
    read_all(driver)
    second.write(steps(90, 130, value=1000.0), line(None, loss=7.0))
    read_all(driver)
    found = summed_up(driver, first.claim.key.run)["loss"]
    assert (found["count"], found["last"], found["last_step"], found["maximum"]) == (131, 7.0, None, 1129.0)
    points = driver.yard.metrics.points(first.claim.key.run, ["loss"])["loss"]
    assert [point[0] for point in points] == [*range(130), None]
    assert [point[2] for point in points][58:62] == [58.0, 59.0, 1060.0, 1061.0]
    newer = driver.yard.metrics.points(first.claim.key.run, ["loss"], after_step=127)["loss"]
    assert [point[0] for point in newer] == [128, 129]


def test_more_names_than_a_run_may_have(driver: Driver, start: Callable[..., Writer]) -> None:
    writer = start()
    for part in range(3):
        count = MOST_NAMES // 2 + 10
        writer.write(*(line(1, **{f"name-{part}-{number}": 1.0}) for number in range(count)))
        read_all(driver)
    writer.write(line(2, **{"name-0-0": 5.0, "another": 1.0}))
    read_all(driver)
    found = summed_up(driver, writer.claim.key.run)
    assert len(found) == MOST_NAMES
    assert found["name-0-0"]["count"] == 2
    told = [event for event in driver.yard.events(writer.claim.key.run, 0, 100) if event["kind"] == "note"]
    assert [event["message"] for event in told] == ["more than 10000 names of metrics: the others are not kept"]


def test_many_points_are_few_in_an_answer(driver: Driver, start: Callable[..., Writer]) -> None:
    writer = start()
    writer.write(steps(0, 5000), line(5000, loss=-1.0), steps(5001, 9000))
    read_all(driver)
    points = driver.yard.metrics.points(writer.claim.key.run, [], most=50)["loss"]
    assert len(points) == 50
    assert [5000, 1.0, -1.0] in points


def test_a_run_that_is_not_there(driver: Driver) -> None:
    with pytest.raises(errors.NotFound):
        driver.yard.metrics.view(999)
    with pytest.raises(errors.NotFound):
        driver.yard.metrics.points(999, ["loss"])


def test_many_runs_at_once_all_get_their_turn(driver: Driver, start: Callable[..., Writer]) -> None:
    writers = [start() for _ in range(20)]
    lines = steps(0, 6000)
    for writer in writers:
        writer.write(lines)
    passes = 1
    while driver.yard.metrics.tick():
        passes += 1
    counts = [summed_up(driver, writer.claim.key.run)["loss"]["count"] for writer in writers]
    assert counts == [6000] * 20
    assert passes > 1  # nobody is kept waiting for all of it


def test_files_in_s3(driver: Driver, start: Callable[..., Writer], s3_lab: Callable[..., S3Lab]) -> None:
    lab = s3_lab()
    store = open_blobs(lab.location(lab.bucket()), driver.yard.settings.home, lab.access)
    writer = start()
    key, reader = writer.claim.key, Metrics(driver.yard.store, store.files)
    reader.expect(key)
    offset = 0
    for start_step in range(0, 300, 10):
        offset = store.files.append(key, FILE, offset, steps(start_step, start_step + 10))
        reader.arrived(key)
        while reader.tick():
            pass
    assert summed_up(driver, key.run)["loss"]["count"] == 300
    assert len(reader.series(key.run)["loss"]) == 300
    store.close()
