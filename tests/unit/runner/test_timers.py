from __future__ import annotations

from runyard.runner.timers import Timers


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_actions_run_when_due_in_order() -> None:
    clock, ran = Clock(), []
    timers = Timers(clock)
    timers.set("late", 3, lambda: ran.append("late"))
    timers.set("soon", 1, lambda: ran.append("soon"))
    timers.set("middle", 2, lambda: ran.append("middle"))
    assert timers.timeout() == 1
    timers.run_due()
    assert ran == []
    clock.now += 2
    assert timers.timeout() == 0
    timers.run_due()
    assert ran == ["soon", "middle"]
    assert timers.timeout() == 1


def test_a_name_has_one_action() -> None:
    clock, ran = Clock(), []
    timers = Timers(clock)
    timers.set("other", 600, lambda: None)
    timers.set("name", 1, lambda: ran.append("first"))
    timers.set("name", 5, lambda: ran.append("second"))
    clock.now += 1
    timers.run_due()
    assert ran == []
    clock.now += 4
    timers.run_due()
    assert ran == ["second"]
    timers.set("name", 1, lambda: ran.append("third"))
    timers.cancel("name")
    clock.now += 10
    timers.run_due()
    assert ran == ["second"]


def test_the_sooner_one_counts() -> None:
    clock, ran = Clock(), []
    timers = Timers(clock)
    for delay in (10, 3, 7):
        timers.set_sooner("kill", delay, lambda delay=delay: ran.append(delay))  # type: ignore[misc]
    assert timers.timeout() == 3
    clock.now += 3
    timers.run_due()
    assert ran == [3]


def test_an_action_may_move_cancel_and_repeat() -> None:
    clock, ran = Clock(), []
    timers = Timers(clock)

    def first() -> None:
        ran.append("first")
        timers.cancel("cancelled")
        timers.set("moved", 5, lambda: ran.append("moved"))
        timers.set("first", 1, first)

    timers.set("first", 0, first)
    timers.set("cancelled", 1, lambda: ran.append("cancelled"))
    timers.set("moved", 1, lambda: ran.append("never"))
    clock.now += 1
    timers.run_due()
    assert ran == ["first"]
    clock.now += 1
    timers.run_due()
    assert ran == ["first", "first"]
