from __future__ import annotations

import threading
from typing import Any

from runyard.agent.errands import InlineErrands, NoErrands, ThreadedErrands


def test_results_and_errors_come_back_in_the_collecting_thread() -> None:
    woken = threading.Event()
    errands = ThreadedErrands(woken.set)
    heard: list[Any] = []

    def done(result: Any, error: Exception | None) -> None:
        heard.append((result, type(error), threading.current_thread()))

    errands.send("a", lambda: 42, done)
    errands.send("a", lambda: 1 / 0, done)
    while len(heard) < 2:
        assert woken.wait(90)
        woken.clear()
        errands.collect()
    here = threading.current_thread()
    assert heard == [(42, type(None), here), (None, ZeroDivisionError, here)]
    errands.close()


def test_a_lane_that_waits_does_not_hold_up_another() -> None:
    woken, gate = threading.Event(), threading.Event()
    errands = ThreadedErrands(woken.set)
    heard: list[Any] = []
    errands.send("slow", lambda: gate.wait(90), lambda result, _: heard.append("slow"))
    errands.send("fast", lambda: None, lambda result, _: heard.append("fast"))
    assert woken.wait(90)
    errands.collect()
    assert heard == ["fast"]
    gate.set()
    while len(heard) < 2:
        errands.collect()
    errands.close()


def test_inline_errands_are_done_when_they_are_sent() -> None:
    errands = InlineErrands()
    heard: list[Any] = []
    errands.send("a", lambda: 42, lambda result, _: heard.append(result))
    assert heard == []
    errands.collect()
    assert heard == [42]


def test_without_errands_the_result_is_told_at_once() -> None:
    heard: list[object] = []
    NoErrands().send("a", lambda: 42, lambda result, error: heard.append((result, error)))
    assert heard == [(42, None)]


def test_what_has_not_begun_is_dropped_at_the_end() -> None:
    errands, begun, gate = ThreadedErrands(lambda: None), threading.Event(), threading.Event()
    done: list[str] = []

    def first() -> None:
        begun.set()
        gate.wait(90)
        done.append("first")

    errands.send("a", first, lambda result, _: None)
    errands.send("a", lambda: done.append("second"), lambda result, _: None)
    begun.wait(90)
    [lane] = [thread for thread in threading.enumerate() if thread.name == "agent-a"]
    errands.close()
    gate.set()
    lane.join(90)
    assert done == ["first"]
