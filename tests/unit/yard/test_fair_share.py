"""Properties of the choice itself, over many generated queues."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runyard.model.resources import Capacity, Gpu, Resources
from runyard.yard.placement.fair_share import Head, Usage, choose

TOTAL = Capacity(cpus=8, memory=64)


def _head(index: int, drawn: tuple[str, int, int, int, bool]) -> Head:
    lane, priority, cpus, memory, waited = drawn
    resources = Resources(cpus=cpus, memory=memory or None)
    return Head(
        id=index, lane=lane, priority=priority, resources=resources, queued_at=0.0 if waited else 99.0, attempt=0
    )


_DRAWN = st.tuples(
    st.sampled_from(["a/x", "a/y", "b/x"]), st.integers(0, 2), st.integers(1, 10), st.integers(0, 80), st.booleans()
)
HEADS = st.lists(_DRAWN, max_size=30).map(lambda drawn: [_head(index, item) for index, item in enumerate(drawn)])
FREE = st.builds(Capacity, cpus=st.integers(0, 8), memory=st.integers(0, 64))


@given(HEADS, FREE)
def test_what_is_chosen_fits_together(heads: list[Head], free: Capacity) -> None:
    chosen = choose(heads, Usage(now={}), free, TOTAL, ahead=0, now=100.0)
    assert sum(head.resources.cpus for head in chosen) <= free.cpus
    assert sum(head.resources.memory or 0 for head in chosen) <= free.memory
    assert len({head.id for head in chosen}) == len(chosen)


@given(HEADS, FREE)
def test_a_lane_never_overtakes_itself_with_an_equal_run(heads: list[Head], free: Capacity) -> None:
    chosen = {head.id for head in choose(heads, Usage(now={}), free, TOTAL, ahead=0, now=100.0)}
    for early in heads:
        for late in heads:
            same = (early.lane, early.resources, early.priority) == (late.lane, late.resources, late.priority)
            if same and early.id < late.id and late.id in chosen and early.queued_at == late.queued_at:
                assert early.id in chosen


@given(HEADS, FREE)
def test_a_free_machine_is_never_left_idle(heads: list[Head], free: Capacity) -> None:
    """With nothing running, some run that fits the machine is always taken."""
    fitting = [head for head in heads if not TOTAL.shortages(head.resources)]
    chosen = choose(heads, Usage(now={}), TOTAL, TOTAL, ahead=0, now=100.0)
    assert bool(chosen) == bool(fitting)


@given(HEADS, st.integers(0, 5))
def test_ahead_adds_at_most_that_many(heads: list[Head], ahead: int) -> None:
    none = Capacity(cpus=0, memory=0)
    chosen = choose(heads, Usage(now={}), none, TOTAL, ahead=ahead, now=100.0)
    fitting = [head for head in heads if not TOTAL.shortages(head.resources)]
    assert len(chosen) == min(ahead, len(fitting))


@given(HEADS, st.integers(0, 5))
def test_who_waits_for_a_gpu_is_in_nobodys_way(heads: list[Head], ahead: int) -> None:
    """Others are handed out as if it were not there, however many are taken beyond the free slots."""
    machine = Capacity(cpus=8, memory=64, gpus=(Gpu(uuid="GPU-one"),))
    waiting = Head(
        id=-1, lane="a/x", priority=9, resources=Resources(cpus=1, memory=None, gpus=1), queued_at=99.0, attempt=0
    )
    without = choose(heads, Usage(now={}), TOTAL, machine, ahead=ahead, now=100.0)
    assert choose([waiting, *heads], Usage(now={}), TOTAL, machine, ahead=ahead, now=100.0) == without
