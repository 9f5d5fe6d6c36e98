"""The servers of one yard. With an SQLite file there is one; on PostgreSQL there may be several at the same time.

Each of several has a session (`runyard.store.session`) with the others:

- It shows that this server is alive. A server that starts while another is alive must share the blob store with it: it
  puts a blob there and asks whether the other one can read it.
- By its locks, each periodic loop runs on one server at a time, and moves to another one when that server ends.
- Hints of one server reach the others through it. Changes of runs are read from the event table: the session only says
  when to read it, and every server also polls it every second.
"""

from __future__ import annotations

import contextlib
import logging
import os
import secrets
import threading
import time
from collections.abc import Callable
from typing import Protocol

from runyard import errors, machine
from runyard.blobs import BlobStore
from runyard.broker.hints import Hints
from runyard.store import Store, runs
from runyard.store.session import ServerSession
from runyard.yard.servers.leadership import Leadership

BEAT_S = 1.0
PROOF_S = 8.0  # a loop is ours for so long after the last word with PostgreSQL, which holds it for us longer than that
RETRY_S = 1.0  # after the session was lost
ASK_S = 0.5  # between two questions whether the others see our blob
BLIND_S = 5.0  # file systems may take a moment to show a new file
PATIENCE_S = 30.0  # for a server that does not answer at all

EVENTS = "events"  # the message that something happened to runs
RING, SEE, SEEN, UNSEEN = "ring", "see", "seen", "unseen"
WORK = frozenset({"submitted", "retried", "continued", "begun_again", "cancel"})  # events that sites want to hear of
MOST_EVENTS = 1000  # more at once are not sent one by one

Part = Callable[[threading.Event], None]

log = logging.getLogger(__name__)


class Fleet(Protocol):
    def parts(self) -> list[Part]:
        """The parts that must run in the background."""
        ...

    def by_one(self, name: str, part: Part) -> Part:
        """The part, wrapped so that one server at a time runs it."""
        ...

    def may(self, name: str) -> bool:
        """Whether this process may do it now, and until it ends. For a process without background parts."""
        ...

    def close(self) -> None: ...


class Single:
    """The only server there can be."""

    def parts(self) -> list[Part]:
        return []

    def by_one(self, name: str, part: Part) -> Part:
        return part

    def may(self, name: str) -> bool:
        return True

    def close(self) -> None:
        pass


def join(store: Store, hints: Hints, blob_store: BlobStore, *, passing: bool = False) -> Fleet:
    """Raises ConfigError if another server refuses us; see `Shared.join`."""
    if not store.is_shared:
        return Single()
    fleet = Shared(store, hints, blob_store, f"runyard {machine.node_name()[:40]}:{os.getpid()}")
    try:
        fleet.join(passing=passing)
    except BaseException:
        fleet.close()
        raise
    return fleet


class Shared:
    """One of several. `join` first; the methods of `Fleet` may then be called from any thread."""

    def __init__(self, store: Store, hints: Hints, blob_store: BlobStore, label: str) -> None:
        self._store, self._hints, self._blobs, self._location = store, hints, blob_store.blobs, blob_store.location
        self._session: ServerSession = store.session(label)
        self._outgoing: set[str] = set()
        self._lock = threading.Lock()
        self._wake_out, self._wake_in = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._leadership = Leadership(self._wake)
        self._beat_at = float("-inf")
        self._seen_event = 0
        self._doubts: dict[str, bool | None] = {}  # what others say of blobs that we ask about; None: nothing yet

    # --- Fleet --------------------------------------------------------------------------------------------------

    def parts(self) -> list[Part]:
        return [self._run]

    def by_one(self, name: str, part: Part) -> Part:
        def in_turn(stop: threading.Event) -> None:
            while not stop.is_set():
                with self._leadership.term(name, stop) as term:
                    if term is not None:
                        log.info("this server does: %s", name, extra={"action": "duty_begins"})
                        part(term)
                stop.wait(RETRY_S)

        in_turn.__name__ = getattr(part, "__name__", name)
        return in_turn

    def may(self, name: str) -> bool:
        return bool(self._session.take([name]))

    def close(self) -> None:
        self._hints.relay(None)
        self._leadership.lose_all()
        self._session.close()
        with self._lock:
            for descriptor in {self._wake_in, self._wake_out} - {-1}:
                os.close(descriptor)
            self._wake_in = self._wake_out = -1

    # --- joining ------------------------------------------------------------------------------------------------

    def join(self, *, passing: bool = False) -> None:
        """Raises ConfigError when another server lives that does not share our blob store. `passing`: this process
        has no background parts, so it cannot answer others and they need not see it."""
        self._session.open()
        if not passing:
            self._session.enter()
        with self._store.read() as connection:
            self._seen_event = runs.newest_event(connection)
        if others := self._session.others():
            self._check_blobs(others)
        if not passing:
            self._hints.relay(self._relay)

    def _check_blobs(self, others: list[str]) -> None:
        digest = self._blobs.add([b"runyard: do you see this? " + secrets.token_hex(16).encode()])
        asked_at, self._doubts = time.monotonic(), {digest: None}
        while self._doubts[digest] is not True:
            waited = time.monotonic() - asked_at
            if waited > (PATIENCE_S if self._doubts[digest] is None else BLIND_S):
                raise self._refusal(others, is_silent=self._doubts[digest] is None)
            self._session.tell([f"{SEE} {digest}"])
            self._session.wait(ASK_S, self._wake_out)
            self._hear()
            if not self._session.others():  # gone meanwhile
                return
        self._doubts = {}

    def _refusal(self, others: list[str], *, is_silent: bool) -> errors.ConfigError:
        who = ", ".join(sorted(set(others)))
        what = "does not say whether it sees" if is_silent else "does not see"
        return errors.ConfigError(
            f"another server of this yard is running ({who}), and it {what} the blobs in {self._location}",
            "set `blobs` of all servers to the same directory, which all of them can reach, or to an s3:// address",
        )

    # --- the session's thread -----------------------------------------------------------------------------------

    def _run(self, stop: threading.Event) -> None:
        threading.Thread(target=self._wake_after, args=(stop,), name="fleet-stop", daemon=True).start()
        while not stop.is_set():
            try:
                self._pass()
            except errors.YardUnreachable as error:
                log.warning("%s", error, extra={"action": "session_lost"})
                self._leadership.lose_all()
                self._come_back(stop)
        self._leadership.lose_all()

    def _pass(self) -> None:
        self._speak()
        self._session.wait(self._beat_at + BEAT_S - time.monotonic(), self._wake_out)
        self._drain()
        began = time.monotonic()
        self._hear()
        self._leadership.prove(began + PROOF_S)
        self._trade()
        if time.monotonic() >= self._beat_at + BEAT_S:
            self._beat_at = time.monotonic()
            self._look_at_events()

    def _come_back(self, stop: threading.Event) -> None:
        """Other servers may have started that do not share our files: then this server ends."""
        told = ""
        while not stop.is_set():
            try:
                self.join()
            except errors.ConfigError as error:
                log.error("this server ends: %s", error, extra={"action": "refused"})
                stop.set()
            except (errors.RunyardError, OSError) as error:  # PostgreSQL is away still, or the disk of the blobs
                if str(error) != told:
                    log.warning("this server cannot join the others: %s", error, extra={"action": "not_joined"})
                told = str(error)
                self._session.close()  # one that does not listen must not keep others waiting for its answer
                stop.wait(RETRY_S)
            else:
                self._hints.ring_all_here("")  # whatever was said meanwhile
                return

    def _speak(self) -> None:
        with self._lock:
            messages, self._outgoing = self._outgoing, set()
        if messages:
            self._session.tell(messages)

    def _hear(self) -> None:
        heard = list(dict.fromkeys(self._session.hear()))
        for message in heard:
            word, _, rest = message.partition(" ")
            if word == RING:
                self._ring(rest)
            elif word == SEE:
                self._session.tell([f"{SEEN if self._sees(rest) else UNSEEN} {rest}"])
            elif word in (SEEN, UNSEEN) and rest in self._doubts:
                self._doubts[rest] = self._doubts[rest] or word == SEEN
        if EVENTS in heard:
            self._look_at_events()

    def _sees(self, digest: str) -> bool:
        try:
            return self._blobs.has(digest)
        except errors.RunyardError as error:
            log.warning("another server starts, and whether it shares our blobs could not be checked: %s", error)
            return False

    def _ring(self, topic: str) -> None:
        if topic.endswith(":"):
            self._hints.ring_all_here(topic)
        else:
            self._hints.ring_here(topic)

    def _trade(self) -> None:
        """Release tasks that no loop here wants any more, and request those that a loop waits for."""
        if left := self._leadership.given_back():
            self._session.leave(left)
        if missing := self._leadership.missing():
            self._leadership.grant(self._session.take(missing))

    def _look_at_events(self) -> None:
        """Writes are serialized, so events appear in the order of their numbers and none is skipped."""
        with self._store.read() as connection:
            found = runs.events_since(connection, self._seen_event, MOST_EVENTS)
        if not found:
            return
        self._seen_event = found[-1].id
        if len(found) == MOST_EVENTS:
            self._catch_up()
            return
        for run_id in dict.fromkeys(row.run_id for row in found):
            self._hints.ring_here(f"run:{run_id}")
            self._hints.ring_here(f"log:{run_id}")
        if WORK & {row.kind for row in found}:
            self._hints.ring_all_here("site:")

    def _catch_up(self) -> None:
        with self._store.read() as connection:
            self._seen_event = runs.newest_event(connection)
        self._hints.ring_all_here("")

    # --- from any thread ----------------------------------------------------------------------------------------

    def _relay(self, topic: str) -> None:
        """New bytes of logs are polled by their followers; changes of runs and work for sites have events."""
        if topic.startswith("log:"):
            return
        message = EVENTS if topic.startswith("run:") or topic == "site:" else f"{RING} {topic}"
        with self._lock:
            is_new = message not in self._outgoing
            self._outgoing.add(message)
        if is_new:
            self._wake()

    def _wake(self) -> None:
        with self._lock, contextlib.suppress(BlockingIOError):  # it is awake already
            if self._wake_in >= 0:
                os.write(self._wake_in, b"x")

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._wake_out, 4096)

    def _wake_after(self, stop: threading.Event) -> None:
        stop.wait()
        self._wake()
