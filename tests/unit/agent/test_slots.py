"""Slots: nothing is given twice, nothing is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runyard.agent.run.slots import Slots
from runyard.model.resources import Capacity, Gpu, Resources
from runyard.model.wire import AttemptKey

SMALL, BIG = Gpu(uuid="small", type="T4", memory=16), Gpu(uuid="big", type="A100", memory=80)


def key(run: int) -> AttemptKey:
    return AttemptKey(run=run, attempt=1)


def slots(cpus: int = 4, memory: int = 100, gpus: tuple[Gpu, ...] = (BIG, SMALL)) -> Slots:
    return Slots(Capacity(cpus=cpus, memory=memory, gpus=gpus))


def test_what_is_taken_is_not_free_until_it_is_released() -> None:
    held = slots()
    assert held.take(key(1), Resources(cpus=3, memory=60)) is not None
    assert held.take(key(2), Resources(cpus=2)) is None
    assert held.take(key(3), Resources(cpus=1, memory=50)) is None
    held.release(key(1))
    assert held.free == held.total


def test_releasing_twice_gives_nothing_away() -> None:
    held = slots()
    held.take(key(1), Resources())
    held.release(key(1))
    held.release(key(1))
    assert held.free == held.total


def test_the_smallest_gpu_that_suits_is_taken() -> None:
    held = slots()
    first, second = held.take(key(1), Resources(gpus=1)), held.take(key(2), Resources(gpus=1))
    assert first is not None and second is not None
    assert (first.gpus, second.gpus) == (("small",), ("big",))
    assert held.take(key(3), Resources(gpus=1)) is None


def test_a_gpu_that_was_chosen_before_is_preferred() -> None:
    grant = slots().take(key(1), Resources(gpus=1), prefer=["big", "elsewhere"])
    assert grant is not None
    assert grant.gpus == ("big",)


def test_a_preferred_gpu_must_suit() -> None:
    grant = slots().take(key(1), Resources(gpus=1, gpu_type="a100"), prefer=["small"])
    assert grant is not None
    assert grant.gpus == ("big",)


def test_an_adopted_attempt_keeps_its_gpus_even_beyond_the_total() -> None:
    held = slots(cpus=1)
    held.occupy(key(1), Resources(cpus=4, gpus=1), ["small"])
    assert held.to_announce([]) == Capacity(cpus=0, memory=100, gpus=(BIG,))
    held.release(key(1))
    assert held.free == held.total


def test_what_waits_is_not_announced() -> None:
    assert slots().to_announce([Resources(cpus=3, memory=10)]) == Capacity(cpus=1, memory=90, gpus=(BIG, SMALL))


def test_nothing_is_announced_behind_one_that_does_not_fit() -> None:
    held = slots()
    held.take(key(1), Resources(cpus=2))
    assert held.to_announce([Resources(cpus=3)]).cpus == 0


def test_what_travels_keeps_nothing_from_others_up_to_a_site_full() -> None:
    travelling = [Resources(cpus=3, memory=10), Resources(cpus=1, memory=10)]
    assert slots().to_announce([], travelling) == slots().total
    assert slots().to_announce([], [*travelling, Resources(cpus=3, memory=10)]).cpus == 1


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 3), st.booleans()), max_size=30))
def test_free_is_always_the_total_less_what_is_held(steps: list[tuple[int, int, bool]]) -> None:
    held = slots(cpus=8)
    taken: dict[int, tuple[int, tuple[str, ...]]] = {}
    for number, (cpus, gpus, releases) in enumerate(steps):
        grant = held.take(key(number), Resources(cpus=cpus, gpus=gpus))
        if grant is not None:
            taken[number] = (cpus, grant.gpus)
        if releases and taken:
            oldest = min(taken)
            del taken[oldest]
            held.release(key(oldest))
        in_use = [uuid for _, uuids in taken.values() for uuid in uuids]
        assert held.free.cpus == 8 - sum(count for count, _ in taken.values()) >= 0
        assert len(in_use) == len(set(in_use))
        assert {gpu.uuid for gpu in held.free.gpus} == {"small", "big"} - set(in_use)
