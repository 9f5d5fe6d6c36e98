"""Tasks that one server at a time does: the loops that need a term for them, and when they get one."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence

LOOK_S = 0.5  # between two checks of a stop, while waiting


class Term(threading.Event):
    """The time for which a task is ours. It also ends if ownership was not confirmed for a while."""

    def __init__(self, proven_until: Callable[[], float]) -> None:
        super().__init__()
        self._proven_until = proven_until

    def is_set(self) -> bool:
        return super().is_set() or time.monotonic() >= self._proven_until()

    def wait(self, timeout: float | None = None) -> bool:
        super().wait(timeout)
        return self.is_set()


class Leadership:
    """Connects the loops of this server, which each request a term, with the session that knows the other servers."""

    def __init__(self, changed: Callable[[], None] = lambda: None) -> None:
        """`changed` is called when a task is to be requested or released."""
        self._changed = changed
        self._lock = threading.Condition()
        self._wanted: set[str] = set()
        self._left: list[str] = []
        self._terms: dict[str, Term] = {}
        self._proven_until = float("-inf")

    # --- for loops ----------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def term(self, name: str, stop: threading.Event) -> Iterator[Term | None]:
        """Waits until the task is ours. None: stopped before. It is released at the end of the context."""
        with self._lock:
            self._wanted.add(name)
        self._changed()
        try:
            yield self._wait_for(name, stop)
        finally:
            with self._lock:
                self._wanted.discard(name)
                if (term := self._terms.pop(name, None)) is not None:
                    term.set()
                    self._left.append(name)
            self._changed()

    def _wait_for(self, name: str, stop: threading.Event) -> Term | None:
        with self._lock:
            while not stop.is_set():
                if name in self._terms and not self._terms[name].is_set():
                    _end_with(self._terms[name], stop)
                    return self._terms[name]
                self._lock.wait(LOOK_S)
        return None

    # --- for the session ----------------------------------------------------------------------------------------

    def missing(self) -> list[str]:
        with self._lock:
            return sorted(self._wanted - set(self._terms))

    def given_back(self) -> list[str]:
        with self._lock:
            left, self._left = self._left, []
        return left

    def prove(self, until: float) -> None:
        """What is ours is ours until then (monotonic)."""
        self._proven_until = until

    def grant(self, names: Sequence[str]) -> None:
        with self._lock:
            for name in names:
                if name in self._wanted:
                    self._terms[name] = Term(lambda: self._proven_until)
                else:  # no loop wants it any more
                    self._left.append(name)
            self._lock.notify_all()

    def lose_all(self) -> None:
        with self._lock:
            self._proven_until = float("-inf")
            for term in self._terms.values():
                term.set()
            self._terms.clear()
            self._left.clear()


def _end_with(term: Term, stop: threading.Event) -> None:
    def watch() -> None:
        while not threading.Event.is_set(term):
            if stop.wait(LOOK_S):
                term.set()

    threading.Thread(target=watch, name="term", daemon=True).start()
