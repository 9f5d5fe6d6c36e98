"""Leadership: what one server at a time does, seen by the loops that want to do it."""

from __future__ import annotations

import threading
import time

from runyard.yard.servers.leadership import Leadership, Term

LONG_S = 60.0


class Loop:
    """Does its duty in a thread of its own until its term is over."""

    def __init__(self, duties: Leadership, name: str) -> None:
        self.stop, self.began, self.over = threading.Event(), threading.Event(), threading.Event()
        self.term: Term | None = None
        self._duties, self._name = duties, name
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with self._duties.term(self._name, self.stop) as self.term:
            if self.term is not None:
                self.began.set()
                while not self.term.is_set():
                    self.term.wait(0.02)
        self.over.set()

    def end(self) -> None:
        self.stop.set()
        self._thread.join(LONG_S)
        assert not self._thread.is_alive()


def wanted(duties: Leadership, *names: str) -> None:
    deadline = time.monotonic() + LONG_S
    while duties.missing() != sorted(names):
        assert time.monotonic() < deadline, duties.missing()
        time.sleep(0.01)


def test_a_loop_waits_for_its_turn_and_gives_it_back() -> None:
    asked = threading.Event()
    duties = Leadership(asked.set)
    loop = Loop(duties, "clock")
    wanted(duties, "clock")
    assert asked.is_set() and not loop.began.is_set()
    duties.prove(time.monotonic() + LONG_S)
    duties.grant(["clock"])
    assert loop.began.wait(LONG_S)
    assert duties.missing() == [] and duties.given_back() == []
    loop.end()
    assert duties.given_back() == ["clock"]
    assert duties.missing() == []


def test_what_is_lost_ends_at_once_and_is_wanted_again() -> None:
    duties = Leadership()
    loop = Loop(duties, "clock")
    wanted(duties, "clock")
    duties.prove(time.monotonic() + LONG_S)
    duties.grant(["clock"])
    assert loop.began.wait(LONG_S)
    duties.lose_all()
    assert loop.over.wait(LONG_S)
    assert duties.given_back() == [], "what is lost is nobody's to give back"
    again = Loop(duties, "clock")
    wanted(duties, "clock")
    again.end()
    assert again.term is None


def test_a_term_without_proof_is_over_although_nobody_says_so() -> None:
    """Whoever would say so may be waiting for a database that does not answer."""
    duties = Leadership()
    loop = Loop(duties, "clock")
    wanted(duties, "clock")
    duties.prove(time.monotonic() + 0.2)
    duties.grant(["clock"])
    assert loop.over.wait(LONG_S)
    assert duties.given_back() == ["clock"]


def test_a_grant_that_nobody_wants_any_more_goes_back() -> None:
    duties = Leadership()
    loop = Loop(duties, "clock")
    wanted(duties, "clock")
    loop.end()
    duties.grant(["clock"])
    assert duties.given_back() == ["clock"]
