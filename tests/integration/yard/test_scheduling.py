"""Which run a claim gets, with the real queries."""

from __future__ import annotations

from runyard.model.resources import Capacity
from tests.integration.yard.conftest import GB, NOTHING, Driver, ended, gpus


def test_priority_then_age(driver: Driver) -> None:
    old, urgent, young = driver.submit()[0], driver.submit(priority=5)[0], driver.submit()[0]
    assert driver.take(cpus=2) == [urgent, old]
    assert driver.take(cpus=2) == [young]


def test_fair_share_between_owners_then_projects(driver: Driver) -> None:
    flood = driver.submit(20, project="a")
    other = driver.submit(2, project="b")
    bobs = driver.submit(2, caller=driver.bob)
    driver.hello(total=Capacity(cpus=8, memory=8 * GB))
    taken = driver.take(cpus=8)
    assert set(bobs) <= set(taken), "bob asked last and gets as much as alice"
    assert set(other) <= set(taken), "alice's small project is not behind her big one"
    assert len(set(taken) & set(flood)) == 4
    assert bobs[0] in taken[:2]


def test_past_use_counts_when_nothing_runs(driver: Driver) -> None:
    driver.submit()
    [claim] = driver.sync().claims
    driver.clock.now += 1000
    driver.sync(ended(claim), free=NOTHING)
    alices, bobs = driver.submit()[0], driver.submit(caller=driver.bob)[0]
    assert driver.take(cpus=2) == [bobs, alices]


def test_a_batch_has_equal_resources_and_a_unique_name(driver: Driver) -> None:
    driver.hello(total=Capacity(cpus=8, memory=8 * GB))
    driver.submit(2)
    driver.submit(2, resources={"cpus": 2})
    claims = driver.sync().claims
    names = [claim.batch for claim in claims]
    assert names[0] == names[1] != names[2] == names[3]
    assert [claim.position for claim in claims] == [1, 2, 1, 2]


def test_a_batch_is_what_a_scheduler_can_be_asked_in_the_same_words(driver: Driver) -> None:
    driver.hello(total=Capacity(cpus=8, memory=8 * GB))
    driver.submit(2, options={"partition": "gpu"})
    driver.submit(2, options={"partition": "gpu"}, checkpoint=True)
    driver.submit(2, options={"partition": "cpu"}, checkpoint=True)
    names = [claim.batch for claim in driver.sync().claims]
    assert len(set(names[:2])) == len(set(names[2:4])) == len(set(names[4:])) == 1
    assert len(set(names)) == 3


def test_a_claim_never_exceeds_the_free_slots(driver: Driver) -> None:
    driver.submit(5, resources={"memory": "3G"})
    assert len(driver.take(cpus=2)) == 2
    assert driver.sync(free=Capacity(cpus=2, memory=1 * GB)).claims == []


def test_ahead_takes_more_than_is_free(driver: Driver) -> None:
    runs = driver.submit(6)
    assert driver.take(cpus=1, ahead=3) == runs[:4]
    assert driver.take(cpus=0, ahead=1) == runs[4:5]


def test_a_big_run_is_not_starved_by_small_ones(driver: Driver) -> None:
    [big] = driver.submit(resources={"cpus": 2})
    small = driver.submit(4)
    assert driver.take(cpus=1) == small[:1], "small ones pass at first"
    driver.clock.now += 31
    assert driver.take(cpus=1) == [], "then the free slot is kept"
    assert driver.take(cpus=2) == [big]


def test_slots_kept_for_a_gpu_run_do_not_stop_others(driver: Driver) -> None:
    driver.hello(total=Capacity(cpus=4, memory=8 * GB, gpus=gpus("H200")))
    driver.submit(resources={"gpus": 1})
    small = driver.submit(4)
    driver.clock.now += 31
    claims = driver.sync(free=Capacity(cpus=3, memory=8 * GB)).claims
    assert [claim.key.run for claim in claims] == small[:2], "one cpu stays for the run that waits for the GPU"


def test_gpus_are_chosen_by_type(driver: Driver) -> None:
    driver.hello(total=Capacity(cpus=4, memory=8 * GB, gpus=gpus("NVIDIA A100", "NVIDIA H200")))
    [wants] = driver.submit(resources={"gpus": 1, "gpu_type": "h200"})
    assert driver.sync(free=Capacity(cpus=4, memory=8 * GB, gpus=gpus("NVIDIA A100"))).claims == []
    assert driver.take(cpus=4) == [wants]


def test_a_run_goes_only_to_the_site_it_names(driver: Driver) -> None:
    driver.yard.sites.ensure("cluster", "local").result()
    driver.submit(site="cluster")
    [here] = driver.submit(site="local")
    assert driver.take(cpus=2) == [here]


def test_an_explicit_site_takes_only_what_names_it(driver: Driver) -> None:
    [anywhere] = driver.submit()
    driver.yard.sites.ensure("local", "local", explicit=True, note="this is a login node of a Slurm cluster").result()
    assert driver.take() == []
    [named] = driver.submit(site="local")
    assert driver.take() == [named]
    assert driver.state(anywhere) == ("queued", None)


def test_a_drained_site_starts_nothing(driver: Driver) -> None:
    [run] = driver.submit()
    driver.yard.sites.drain("local", True).result()
    assert driver.take() == []
    driver.yard.sites.drain("local", False).result()
    assert driver.take() == [run]


def test_an_elastic_site_takes_as_many_as_it_has_room_for(driver: Driver) -> None:
    driver.hello(total=Capacity(elastic=True))
    runs = driver.submit(5, resources={"cpus": 64, "gpus": 8, "memory": "4T"})
    claims = driver.sync(room=3).claims
    assert [claim.key.run for claim in claims] == runs[:3]
    assert len({claim.batch for claim in claims}) == 1
    assert driver.sync(room=0).claims == []
