"""Runs that come after the end of others, and arrays of which only so many run together."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import func, select

from runyard import errors
from runyard.model.spec import RunSpec
from runyard.store.tables import children, parents
from runyard.yard.views import RunFilter
from tests.integration.yard.conftest import NOTHING, Driver, ended


def submit_array(driver: Driver, count: int, limit: int | None = None, **fields: Any) -> list[int]:
    array = {"first": 1, "last": count, "count": count, **({"limit": limit} if limit else {})}
    specs = [
        RunSpec.parse({"command": ["true"], "array": {"index": offset + 1, "offset": offset, **array}, **fields})
        for offset in range(count)
    ]
    return [item.id for item in driver.yard.submit(driver.alice, specs).result()]


@pytest.mark.parametrize("code", [0, 3])
def test_a_run_may_come_after_any_end(driver: Driver, code: int) -> None:
    [parent] = driver.submit()
    [child] = driver.submit(after_any=[parent])
    assert driver.yard.get_run(child)["detail"] == f"waits for run {parent}"
    [claim] = driver.sync().claims
    assert driver.take() == []
    driver.sync(ended(claim, exit_code=code), free=NOTHING)
    assert driver.take() == [child]


def test_a_cancelled_run_has_ended_too(driver: Driver) -> None:
    [parent] = driver.submit()
    [child] = driver.submit(after_any=[parent])
    driver.yard.cancel(driver.alice, [parent]).result()
    assert driver.take() == [child]


def test_both_kinds_together(driver: Driver) -> None:
    good, bad = driver.submit(2)
    [child] = driver.submit(after=[good], after_any=[bad, good])
    first, second = driver.sync().claims
    driver.sync(ended(second, exit_code=1), free=NOTHING)
    assert driver.state(child) == ("queued", None)
    driver.sync(ended(first), free=NOTHING)
    assert driver.take() == [child]


def test_a_run_is_told_of_each_end_once(driver: Driver) -> None:
    """The end of the first ends the second, and the third waits for both."""
    [first] = driver.submit()
    [second] = driver.submit(after=[first])
    [third] = driver.submit(after_any=[first, second])
    [fourth] = driver.submit(after=[first, second])
    [claim] = driver.sync().claims
    driver.sync(ended(claim, exit_code=1), free=NOTHING)
    assert driver.state(second) == driver.state(fourth) == ("failed", "dependency")
    assert driver.kinds(fourth).count("failed") == 1
    assert driver.take() == [third]


def test_after_runs_that_have_ended_already(driver: Driver) -> None:
    [parent] = driver.submit()
    driver.yard.cancel(driver.alice, [parent]).result()
    [child] = driver.submit(after_any=[parent])
    assert driver.take() == [child]
    with pytest.raises(errors.InvalidInput, match="there is no run 999"):
        driver.submit(after_any=[999])


def test_a_retry_does_not_ask_how_those_ended(driver: Driver) -> None:
    [parent] = driver.submit()
    [child] = driver.submit(after_any=[parent])
    driver.yard.cancel(driver.alice, [parent, child]).result()
    outcome = driver.yard.retry(driver.alice, [child]).result()
    assert not isinstance(outcome[child], errors.RunyardError)
    assert driver.take() == [child]


def test_tasks_have_consecutive_ids_and_tell_their_place(driver: Driver) -> None:
    driver.submit()
    ids = submit_array(driver, 3)
    assert ids == [ids[0], ids[0] + 1, ids[0] + 2]
    shown = [driver.yard.get_run(number)["array"] for number in ids]
    assert [array["offset"] for array in shown] == [0, 1, 2]
    assert driver.yard.list_runs(RunFilter(limit=1))[0]["array"] == shown[2]


def test_only_so_many_tasks_run_together(driver: Driver) -> None:
    ids = submit_array(driver, 5, limit=2)
    running = {claim.key.run: claim for claim in driver.sync().claims}
    assert sorted(running) == ids[:2]
    assert driver.take() == [], "two slots are free, and the limit is reached"
    driver.sync(ended(running[ids[1]], exit_code=1), free=NOTHING)
    [third] = driver.sync().claims
    assert third.key.run == ids[3], "the one that many places behind"
    driver.yard.cancel(driver.alice, [ids[2]]).result()
    assert driver.take() == [], "a task that was waiting has not held a place"
    driver.sync(ended(running[ids[0]]), free=NOTHING)
    assert driver.take() == [ids[4]]


def test_tasks_that_never_had_their_turn_leave_it_to_the_next(driver: Driver) -> None:
    """However many of them are cancelled, and in whatever order."""
    ids = submit_array(driver, 7, limit=2)
    first, second = driver.sync().claims
    driver.yard.cancel(driver.alice, [ids[4]]).result()
    driver.yard.cancel(driver.alice, [ids[2], ids[3]]).result()
    assert driver.take() == []
    driver.sync(ended(second), free=NOTHING)
    assert driver.take() == [ids[5]]
    driver.sync(ended(first, exit_code=1), free=NOTHING)
    assert driver.take() == [ids[6]]


def test_a_limited_array_waits_for_others_first(driver: Driver) -> None:
    [parent] = driver.submit()
    ids = submit_array(driver, 3, limit=1, after=[parent])
    [claim] = driver.sync().claims
    assert driver.take() == []
    driver.yard.cancel(driver.alice, [ids[0]]).result()
    assert driver.take() == []
    driver.sync(ended(claim), free=NOTHING)
    assert driver.take() == [ids[1]]


def test_a_place_in_an_array_that_is_not_there_holds_nothing_up(driver: Driver) -> None:
    """Whoever hands in a task alone gets no claim on the run that happens to have the number before it."""
    array = {"index": 5, "first": 1, "last": 9, "offset": 4, "count": 9, "limit": 2}
    ids = driver.submit(array=array)
    assert driver.take() == ids


@pytest.mark.parametrize("kind", ["after", "after_any"])
def test_an_array_after_an_array_costs_as_much_as_both(driver: Driver, kind: str) -> None:
    """And not as much as one times the other."""
    first = submit_array(driver, 60)
    second = submit_array(driver, 40, **{kind: first})
    with driver.yard.store.read() as connection:
        rows = [connection.execute(select(func.count()).select_from(table)).scalar() for table in (parents, children)]
    assert rows == [60, 40]
    assert driver.yard.get_run(second[-1])["after"] == first
    assert driver.yard.get_run(second[-1])["detail"] == f"waits for run {first[0]} and 59 more"
    while claims := driver.sync().claims:
        assert {claim.key.run for claim in claims} & set(second) == set()
        driver.sync(*(ended(claim) for claim in claims), free=NOTHING)
        if {driver.state(number)[0] for number in first} == {"succeeded"}:
            break
    assert set(driver.take()) <= set(second)
    assert driver.yard.get_run(second[-1])["detail"] is None


def test_an_array_after_one_that_fails_fails_once(driver: Driver) -> None:
    first, other = submit_array(driver, 3), driver.submit()
    second = submit_array(driver, 25, after=[*first, *other])
    driver.yard.cancel(driver.alice, [first[1]]).result()
    assert {driver.state(number) for number in second} == {("failed", "dependency")}
    driver.yard.cancel(driver.alice, [first[0]]).result()
    assert driver.kinds(second[0]).count("failed") == 1
    refused = driver.yard.retry(driver.alice, [second[0]]).result()[second[0]]
    assert isinstance(refused, errors.Conflict)


def test_a_run_is_told_what_is_left_before_it(driver: Driver) -> None:
    first, second, third = driver.submit(3)
    [child] = driver.submit(after=[first, second, third])
    claims = driver.sync().claims
    driver.sync(ended(claims[0]), free=NOTHING)
    assert driver.yard.get_run(child)["detail"] == f"waits for run {second} and 1 more"
