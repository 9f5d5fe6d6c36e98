"""Tickets: "this site may have work", through the queue `runyard.tickets.<site>`, from any yard server to any agent.

A ticket is a hint. Which runs an agent gets for it is decided in the store; an agent also polls without one, and the
yard sends more for as long as runs wait. So tickets may be lost, duplicated and late.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping

from runyard import errors
from runyard.broker.amqp import Connection, Consumer, DeadLetters, Delivery, Message, Publisher, Queue, queues
from runyard.loop import Loop

TYPE = "runyard.ticket"
MOST_WAITING = 1000  # per site; more hints say nothing new
ANSWER_S = 10.0
MOST_HELD = 16  # by one agent: its slots may be many more

log = logging.getLogger(__name__)


def queue_of(site: str) -> Queue:
    return Queue.for_work(f"runyard.tickets.{site}", most=MOST_WAITING)


def ticket(site: str) -> Message:
    return Message(body=json.dumps({"site": site}).encode(), type=TYPE)


def objection(message: Message, site: str) -> str:
    """Why this is no ticket for the site; empty when it is one."""
    if message.type != TYPE:
        return f"it is no ticket of runyard: its type is {message.type!r}, not {TYPE!r}"
    try:
        given = json.loads(message.body)
    except ValueError:
        return "it is no ticket of runyard: its body is not JSON"
    if not isinstance(given, Mapping) or given.get("site") != site:
        return f"it is no ticket for the site {site!r}"
    return ""


class Office(Loop):
    """The yard's side: sends tickets when runs are submitted, and while some wait."""

    again_s = 5.0  # hints get lost: they are given again while runs wait
    gather_s = 0.01  # runs that are submitted together share their tickets
    apart_s = 0.05  # many single submits are not slowed down by them

    def __init__(self, connection: Connection, demand: Callable[[], Mapping[str, int]]) -> None:
        """`demand` returns how many agents of each site could use a ticket now."""
        self._connection, self._demand = connection, demand
        self._publisher = Publisher(connection)
        self._trouble: dict[str, str] = {}
        super().__init__("tickets")

    def tick(self) -> bool:
        """Send tickets for waiting runs. Those that the broker does not accept are sent again later."""
        for site, count in self._demand().items():
            try:
                self._give(site, count)
                self._trouble.pop(site, None)
            except errors.BrokerRefused as error:
                self._tell(site, error)
            except (errors.BrokerUnreachable, TimeoutError) as error:
                log.debug("no tickets for site %s: %s", site, error)
        return False

    def _tell(self, site: str, error: errors.BrokerRefused) -> None:
        """Log once what must be corrected: the runs start all the same, a little later."""
        if self._trouble.get(site) != error.message:
            log.warning("no tickets for site %s: %s (%s)", site, error.message, error.fix)
        self._trouble[site] = error.message

    def _give(self, site: str, count: int) -> None:
        try:
            self._publish(site, count)
        except errors.Unroutable:
            queues.declare(self._connection, queue_of(site)).result(ANSWER_S)
            self._publish(site, count)

    def _publish(self, site: str, count: int) -> None:
        name = queue_of(site).name
        for future in self._publisher.send_all([(ticket(site), name) for _ in range(count)]):
            future.result(ANSWER_S)


class Taker:
    """An agent's side: takes as many tickets as it has free slots, and none when it is full."""

    def __init__(self, connection: Connection, site: str) -> None:
        self._connection, self._site = connection, site
        self._news: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._held: list[Delivery] = []
        self._offered = 0
        self._dead_letters = DeadLetters(connection, Publisher(connection))
        self._consumer = Consumer(connection, queue_of(site), self._receive, prefetch=0)

    @property
    def is_listening(self) -> bool:
        """The broker knows that we take tickets."""
        return self._consumer.is_consuming

    def on_news(self, callback: Callable[[], None]) -> None:
        """Called from the connection's thread with every ticket."""
        self._news = callback

    def offer(self, free: int) -> None:
        """So many slots are free. With none, the tickets are returned: another agent may use them."""
        wanted = max(0, min(free, MOST_HELD))
        known, self._offered = self._offered, wanted
        if wanted != known:
            self._consumer.set_prefetch(wanted)
        if wanted == 0:  # what comes from now on is not kept
            self.give_back(self.take())

    def take(self) -> list[Delivery]:
        """The tickets received so far, for a claim that is about to be made. It ends with `redeemed` or `give_back`,
        before any run of the claim has started."""
        with self._lock:
            held, self._held = self._held, []
        return held

    def redeemed(self, tickets: Iterable[Delivery]) -> None:
        """The claim is committed, or found nothing."""
        for one in tickets:
            one.ack()

    def give_back(self, tickets: Iterable[Delivery]) -> None:
        """The result of the claim is unknown."""
        for one in tickets:
            one.reject(requeue=True)

    def close(self) -> None:
        """Held tickets are returned when the connection closes."""
        self._connection.close()

    def _receive(self, delivery: Delivery) -> None:
        if reason := objection(delivery.message, self._site):
            self._dead_letters.move(delivery, reason)
            return
        with self._lock:
            is_of_use = self._offered > 0
            if is_of_use:
                self._held.append(delivery)
        if is_of_use:
            self._news()
        else:
            self.give_back([delivery])  # sent before the broker heard that we are full
