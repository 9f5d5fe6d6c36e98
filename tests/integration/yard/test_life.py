"""The life of a run in the store: accepted, claimed, settled, tried again."""

from __future__ import annotations

import pytest

from runyard import errors
from runyard.model.resources import Capacity
from runyard.model.spec import RunSpec
from runyard.model.states import AttemptState
from runyard.model.wire import AttemptKey, Report
from tests.integration.yard.conftest import NOTHING, STORES, Driver, ended, gone, ids, running

pytestmark = pytest.mark.parametrize("store_url", STORES, indirect=True)


def test_a_run_goes_through_its_states(driver: Driver) -> None:
    [run] = driver.submit()
    assert driver.state(run) == ("queued", None)
    [claim] = driver.sync().claims
    assert driver.state(run) == ("starting", None)
    driver.sync(running(claim), free=NOTHING)
    assert driver.state(run) == ("running", None)
    response = driver.sync(ended(claim), free=NOTHING)
    assert response.settled == [claim.key]
    assert driver.state(run) == ("succeeded", None)
    assert driver.kinds(run) == ["submitted", "claimed", "running", "succeeded"]


def test_ids_are_small_numbers_in_order(driver: Driver) -> None:
    assert driver.submit(3) == [1, 2, 3]
    assert driver.submit() == [4]


def test_a_refused_submit_leaves_no_trace_and_uses_no_id(driver: Driver) -> None:
    good, bad = RunSpec.parse({"command": "true"}), RunSpec.parse({"command": "true", "site": "nowhere"})
    with pytest.raises(errors.InvalidInput, match=r"runs\[1\]: site: there is no site 'nowhere'"):
        driver.yard.submit(driver.alice, [good, bad]).result()
    assert driver.yard.counts()["queued"] == 0
    assert driver.submit() == [1]


def test_what_no_site_can_give_is_refused_with_the_nearest(driver: Driver) -> None:
    with pytest.raises(errors.Unsatisfiable, match="no site can ever give 64 cpus") as caught:
        driver.submit(resources={"cpus": 64})
    assert "site 'local' can give is one node with 2 cpus" in caught.value.fix


def test_several_nodes_are_more_than_a_machine_can_give(driver: Driver) -> None:
    with pytest.raises(errors.Unsatisfiable, match="no site can ever give 2 nodes, 1 cpu on each") as caught:
        driver.submit(resources={"nodes": 2})
    assert "nodes: the most that site 'local' can give is one node" in caught.value.fix
    driver.hello(total=Capacity(elastic=True))
    [run] = driver.submit(resources={"nodes": 2, "cpus": 4})
    assert ids(driver.sync(room=5).claims) == [run]


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        ({"exit_code": 3}, ("failed", "error", 3, "exited with 3")),
        ({"exit_code": None, "signal": 11}, ("failed", "error", 139, "killed by SIGSEGV")),
        ({"ending": "timeout", "signal": 15, "wall_time": 60.0}, ("failed", "timeout", 143, "1m00s")),
        ({"ending": "oom", "signal": 9, "message": "used 5 GB of 4 GB"}, ("failed", "oom", 137, "used 5 GB of 4 GB")),
        (
            {"ending": "launch", "exit_code": None, "message": "no such program: x"},
            ("failed", "launch", None, "no such"),
        ),
        ({"ending": "stopped", "signal": 15, "stop_reason": "external"}, ("cancelled", "external", 143, "outside")),
    ],
)
def test_each_ending_is_told_apart(driver: Driver, record: dict[str, object], expected: tuple[object, ...]) -> None:
    [run] = driver.submit()
    [claim] = driver.sync().claims
    driver.sync(ended(claim, **record), free=NOTHING)  # type: ignore[arg-type]
    view = driver.yard.get_run(run)
    assert (view["state"], view["reason"], view["exit_code"]) == expected[:3]
    assert str(expected[3]) in view["detail"]


def test_an_ending_without_a_record_is_lost_and_follows_the_retry_rule(driver: Driver) -> None:
    [plain] = driver.submit()
    [stubborn] = driver.submit(retry={"max": 1})
    driver.sync(*[gone(claim) for claim in driver.sync().claims], free=NOTHING)
    assert driver.state(plain) == ("failed", "lost")
    assert driver.state(stubborn) == ("queued", None)
    [claim] = driver.sync().claims
    assert claim.key == AttemptKey(run=stubborn, attempt=2)
    driver.sync(gone(claim), free=NOTHING)
    assert driver.state(stubborn) == ("failed", "lost")
    assert [attempt["reason"] for attempt in driver.yard.get_run(stubborn)["attempts"]] == ["lost", "lost"]


def test_the_retry_rule_looks_at_the_reason(driver: Driver) -> None:
    [run] = driver.submit(retry={"max": 3, "on": ["error"]})
    [claim] = driver.sync().claims
    driver.sync(ended(claim, "timeout"), free=NOTHING)
    assert driver.state(run) == ("failed", "timeout")


def test_a_report_said_twice_changes_nothing(driver: Driver) -> None:
    [run] = driver.submit()
    [claim] = driver.sync().claims
    driver.sync(ended(claim, exit_code=1), free=NOTHING)
    response = driver.sync(ended(claim, exit_code=0), free=NOTHING)
    assert (response.settled, response.given_up) == ([claim.key], [])
    assert driver.state(run) == ("failed", "error")
    assert driver.kinds(run).count("failed") == 1


def test_whoever_asks_about_an_ending_is_told_whose_report_it_was(driver: Driver) -> None:
    driver.submit(2)
    reported, returned = driver.sync().claims
    driver.sync(ended(reported), gone(returned), free=NOTHING)
    asked = [Report(key=claim.key, state=AttemptState.ENDED) for claim in (reported, returned)]
    response = driver.sync(*asked, free=NOTHING)
    assert (response.settled, response.given_up) == ([reported.key, returned.key], [returned.key])


def test_a_late_running_report_does_not_move_a_run_backwards(driver: Driver) -> None:
    [run] = driver.submit()
    [claim] = driver.sync().claims
    driver.sync(ended(claim), free=NOTHING)
    response = driver.sync(running(claim), free=NOTHING)
    assert [(stop.key, stop.reason) for stop in response.stops] == [(claim.key, "superseded")]
    assert driver.state(run) == ("succeeded", None)


def test_an_old_incarnation_may_say_nothing_more(driver: Driver) -> None:
    driver.submit()
    old = driver.incarnation
    [claim] = driver.sync().claims
    [adopted] = driver.hello()
    assert adopted.key == claim.key
    assert adopted.argv == ["true"]
    driver.incarnation, new = old, driver.incarnation
    with pytest.raises(errors.Stale):
        driver.sync(ended(claim), free=NOTHING)
    with pytest.raises(errors.Stale):
        driver.yard.append(driver.admin, "local", "a1", old, claim.key, "log", 0, b"x")
    driver.incarnation = new
    assert driver.sync(ended(claim), free=NOTHING).settled == [claim.key]


def test_agents_never_adopt_each_others_attempts(driver: Driver) -> None:
    driver.submit()
    driver.sync()
    assert driver.hello(agent="a2") == []


def test_a_log_that_did_not_arrive_is_told(driver: Driver) -> None:
    [run] = driver.submit()
    [claim] = driver.sync().claims
    driver.yard.append(driver.admin, "local", "a1", driver.incarnation, claim.key, "log", 0, b"half")
    driver.sync(ended(claim, sizes={"log": 8}), free=NOTHING)
    assert driver.yard.get_run(run)["detail"] == "log incomplete: 4 of 8 bytes"


def test_retry_by_hand_starts_another_attempt_with_one_continuous_log(driver: Driver) -> None:
    [run] = driver.submit()
    for text in (b"first\n", b"second\n"):
        [claim] = driver.sync().claims
        driver.yard.append(driver.admin, "local", "a1", driver.incarnation, claim.key, "log", 0, text)
        driver.sync(ended(claim, exit_code=1, sizes={"log": len(text)}), free=NOTHING)
        if text == b"first\n":
            driver.yard.retry(driver.alice, [run]).result()
            assert driver.state(run) == ("queued", None)
    whole = b"first\n\n--- attempt 2 ---\nsecond\n"
    assert driver.yard.log_size(run) == len(whole)
    assert driver.yard.read_log(run, 0, 1000) == whole
    assert all(driver.yard.read_log(run, start, 5) == whole[start : start + 5] for start in range(len(whole)))
    assert driver.yard.read_log(run, 0, 1000, attempt=2) == b"second\n"
    with pytest.raises(errors.NotFound, match="no attempt 3"):
        driver.yard.read_log(run, 0, 10, attempt=3)


def test_relayed_bytes_are_kept_once(driver: Driver) -> None:
    [run] = driver.submit()
    [claim] = driver.sync().claims

    def append(offset: int, data: bytes) -> int:
        return driver.yard.append(driver.admin, "local", "a1", driver.incarnation, claim.key, "log", offset, data)

    assert append(0, b"hello ") == 6
    assert append(0, b"hello ") == 6
    assert append(3, b"lo world") == 11
    assert append(50, b"too far") == 11
    assert driver.yard.read_log(run, 0, 100) == b"hello world"


def test_an_attempts_files_have_known_names(driver: Driver) -> None:
    driver.submit()
    [claim] = driver.sync().claims
    with pytest.raises(errors.InvalidInput, match="is not a file that is relayed"):
        driver.yard.append(driver.admin, "local", "a1", driver.incarnation, claim.key, "../../token", 0, b"x")


def test_a_run_longer_than_its_limit_goes_on_from_what_it_saved(driver: Driver) -> None:
    [run] = driver.submit(checkpoint={"max_attempts": 3}, retry={"max": 1})
    for _ in range(2):
        [claim] = driver.sync().claims
        driver.sync(ended(claim, "timeout", checkpoint_changed=True), free=NOTHING)
        assert driver.state(run) == ("queued", None)
    [claim] = driver.sync().claims
    assert claim.key.attempt == 3
    driver.sync(ended(claim, "timeout", checkpoint_changed=True), free=NOTHING)
    assert driver.state(run) == ("failed", "timeout"), "the third was the last that was allowed"
    assert driver.kinds(run).count("continued") == 2


def test_an_attempt_that_saved_nothing_is_not_continued(driver: Driver) -> None:
    [run] = driver.submit(checkpoint=True)
    [claim] = driver.sync().claims
    driver.sync(ended(claim, "timeout", checkpoint_changed=False), free=NOTHING)
    assert driver.state(run) == ("failed", "timeout")


def test_a_run_that_did_not_ask_for_it_is_not_continued(driver: Driver) -> None:
    [run] = driver.submit()
    [claim] = driver.sync().claims
    driver.sync(ended(claim, "timeout", checkpoint_changed=True), free=NOTHING)
    assert driver.state(run) == ("failed", "timeout")
