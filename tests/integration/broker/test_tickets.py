"""Tickets through a real broker: from a yard to agents, one each, never held while something runs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from runyard import errors
from runyard.agent.tickets import TicketLink
from runyard.broker import tickets
from runyard.broker.amqp import Connection, Consumer, Delivery, Message, Publisher, Queue, queues
from runyard.broker.tickets import Office, Taker
from runyard.model.resources import Capacity, Resources
from runyard.model.states import AttemptState
from runyard.model.wire import AttemptKey, Claim, SyncRequest, SyncResponse
from tests.labs.rabbitmq import RabbitLab
from tests.labs.waiting import until

Connect = Callable[..., Connection]
NAME = "runyard.tickets.gpus"


@pytest.fixture
def url(lab: RabbitLab, vhost: str) -> str:
    return lab.url(vhost)


class Agent:
    """Counts its wake-ups, and holds what it is given until the test says otherwise."""

    def __init__(self, connection: Connection, free: int = 1) -> None:
        self.taker = Taker(connection, "gpus")
        self.woken = 0
        self.taker.on_news(self._wake)
        self.taker.offer(free)
        until(lambda: not free or self.taker.is_listening, "the agent listening")

    def _wake(self) -> None:
        self.woken += 1

    def redeem(self) -> int:
        taken = self.taker.take()
        self.taker.redeemed(taken)
        return len(taken)


def waiting(connection: Connection) -> int:
    return queues.declare(connection, Queue(name=NAME, passive=True)).result(90).messages


def test_an_office_wakes_an_agent(url: str, connect: Connect) -> None:
    office, agent = Office(connect(url), lambda: {"gpus": 1}), Agent(connect(url))
    office.tick()
    until(lambda: agent.woken, "the agent woken")
    assert agent.redeem() == 1
    until(lambda: waiting(connect(url)) == 0, "the ticket gone")


def test_the_first_ticket_makes_the_queue(lab: RabbitLab, vhost: str, url: str, connect: Connect) -> None:
    connection = connect(url)
    Office(connection, lambda: {"gpus": 3}).tick()
    until(lambda: waiting(connection) == 3, "three tickets")
    made = lab.queue(vhost, NAME)
    assert (made["type"], made["durable"]) == ("quorum", True)


def test_a_queue_that_may_not_be_made_is_told_once(
    lab: RabbitLab, vhost: str, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    user, password = lab.add_user(vhost, configure="^other$")
    office = Office(connect(lab.url(vhost, user=user, password=password)), lambda: {"gpus": 1})
    for _ in range(2):
        office.tick()
    assert caplog.text.count(f"no tickets for site gpus: user '{user}' has no permission for the queue {NAME}") == 1


def test_every_agent_gets_its_own(url: str, connect: Connect) -> None:
    office = Office(connect(url), lambda: {"gpus": 2})
    agents = [Agent(connect(url)) for _ in range(2)]
    office.tick()
    until(lambda: all(agent.woken for agent in agents), "both agents woken")


def test_a_full_agent_takes_none_and_gives_back_what_it_has(url: str, connect: Connect) -> None:
    connection = connect(url)
    full, idle = Agent(connection, free=2), Agent(connect(url), free=0)
    Office(connect(url), lambda: {"gpus": 2}).tick()
    until(lambda: full.woken == 2, "two tickets")
    full.taker.offer(0)
    until(lambda: not full.taker.is_listening and waiting(connection) == 2, "the tickets back")
    idle.taker.offer(2)
    until(lambda: idle.woken == 2, "the other agent woken")
    assert (full.woken, full.redeem(), idle.redeem()) == (2, 0, 2)


def test_tickets_do_not_pile_up(url: str, connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tickets, "MOST_WAITING", 5)
    connection = connect(url)
    office = Office(connection, lambda: {"gpus": 4})
    for _ in range(3):
        office.tick()
    until(lambda: waiting(connection) == 5, "only the newest left")


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Message(body=b"{}"), "its type is None, not 'runyard.ticket'"),
        (Message(body=b"train!", type=tickets.TYPE), "its body is not JSON"),
        (tickets.ticket("elsewhere"), "it is no ticket for the site 'gpus'"),
    ],
)
def test_a_foreign_message_is_set_aside_with_the_reason(
    url: str, connect: Connect, message: Message, reason: str
) -> None:
    connection = connect(url)
    agent, dead = Agent(connect(url)), list[Delivery]()
    Publisher(connection).publish(message, NAME)
    Publisher(connection).publish(tickets.ticket("gpus"), NAME)
    until(lambda: agent.woken == 1, "the real one behind it")
    Consumer(connection, Queue.for_work(f"{NAME}.dead"), dead.append)
    until(lambda: dead, "the foreign one in its own queue")
    assert reason in dead[0].message.headers["x-runyard-reason"]
    assert dead[0].message.body == message.body


def test_an_office_works_until_it_is_stopped_and_outlives_the_broker(
    lab: RabbitLab, url: str, connect: Connect, office_thread: Callable[[Office], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tickets.Office, "again_s", 0.3)
    connection, agent = connect(url), Agent(connect(url))
    office_thread(Office(connection, lambda: {"gpus": 1}))
    until(lambda: agent.woken, "a ticket")
    agent.redeem()
    lab.let_queues_settle()
    lab.kill("n1")
    lab.start_node("n1")
    woken = agent.woken
    until(lambda: agent.woken > woken and agent.redeem(), "a ticket after the restart", timeout_s=90)


def test_an_empty_disk_costs_nothing_but_time(
    lab: RabbitLab, connect: Connect, office_thread: Callable[[Office], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The vhost `/`, because a broker that lost its disk has no other."""
    monkeypatch.setattr(tickets.Office, "again_s", 0.3)
    url = lab.url("/")
    agent = Agent(connect(url))
    office_thread(Office(connect(url), lambda: {"gpus": 1}))
    until(agent.redeem, "a ticket")
    lab.kill("n1")
    lab.start_node("n1", empty=True)
    woken = agent.woken
    until(lambda: agent.woken > woken, "a ticket from the new queue", timeout_s=90)


@pytest.fixture
def office_thread() -> Iterator[Callable[[Office], None]]:
    """Runs an office as a yard does."""
    stop, threads = threading.Event(), []

    def start(office: Office) -> None:
        threads.append(threading.Thread(target=office, args=(stop,)))
        threads[-1].start()

    yield start
    stop.set()
    for thread in threads:
        thread.join(90)
        assert not thread.is_alive()


# --- the agent's link -------------------------------------------------------------------------------------------


class YardBehind:
    """What stands for the yard: its sync takes as long as the test likes, and fails when told."""

    def __init__(self, claims: int = 0, error: Exception | None = None) -> None:
        self.claims, self.error = claims, error
        self.during: Callable[[], None] = lambda: None

    def sync(self, request: SyncRequest) -> SyncResponse:
        self.during()
        if self.error:
            raise self.error
        return SyncResponse(claims=[claim(number) for number in range(1, self.claims + 1)])

    def hello(self, hello: object) -> tuple[int, list[Claim]]:
        if self.error:
            raise self.error
        return 1, []

    def __getattr__(self, name: str) -> Any:
        return lambda *args: None


def claim(number: int) -> Claim:
    key = AttemptKey(run=number, attempt=1)
    return Claim(
        key=key, batch="b", position=1, spec={}, argv=["true"], resources=Resources(), state=AttemptState.CLAIMED
    )


def request(cpus: int) -> SyncRequest:
    return SyncRequest(site="gpus", agent="a", incarnation=1, free=Capacity(cpus=cpus, memory=1 << 30))


@pytest.fixture
def waiting_ticket(url: str, connect: Connect) -> Callable[[], None]:
    connection = connect(url)
    return Office(connection, lambda: {"gpus": 1}).tick


def test_a_ticket_is_redeemed_by_the_sync_that_follows(
    url: str, connect: Connect, waiting_ticket: Callable[[], None]
) -> None:
    agent, behind = Agent(connect(url)), YardBehind(claims=1)
    link = TicketLink(behind, agent.taker)  # type: ignore[arg-type]
    link.on_news("gpus", agent._wake)
    waiting_ticket()
    until(lambda: agent.woken, "the agent woken")
    link.sync(request(cpus=1))
    observer = connect(url)
    until(lambda: not agent.taker.is_listening, "a full agent that does not listen")
    assert (agent.taker.take(), waiting(observer)) == ([], 0)


@pytest.mark.parametrize("call", [lambda link: link.sync(request(cpus=1)), lambda link: link.hello(None)])
def test_an_agent_without_its_yard_leaves_the_tickets_to_others(
    url: str, connect: Connect, waiting_ticket: Callable[[], None], call: Callable[[TicketLink], object]
) -> None:
    """It would hold them until the yard answers, and the broker ends the channel of whoever holds one too long."""
    agent, other, behind = Agent(connect(url)), Agent(connect(url), free=0), YardBehind(error=errors.YardUnreachable())
    link = TicketLink(behind, agent.taker)  # type: ignore[arg-type]
    waiting_ticket()
    until(lambda: agent.woken == 1, "the agent woken")
    with pytest.raises(errors.YardUnreachable):
        call(link)
    until(lambda: not agent.taker.is_listening, "an agent that does not listen")
    other.taker.offer(1)
    until(lambda: other.woken, "the other agent woken")
    assert (agent.taker.take(), other.taker.take()[0].redelivered) == ([], True)
    behind.error = None
    link.sync(request(cpus=1))
    until(lambda: agent.taker.is_listening, "the agent listening again")


def test_a_ticket_that_comes_during_a_sync_is_for_the_next(
    url: str, connect: Connect, waiting_ticket: Callable[[], None]
) -> None:
    agent, behind = Agent(connect(url), free=2), YardBehind()

    def during() -> None:
        waiting_ticket()
        until(lambda: agent.woken, "a ticket in the middle")

    behind.during = during
    TicketLink(behind, agent.taker).sync(request(cpus=2))  # type: ignore[arg-type]
    assert json.loads(agent.taker.take()[0].message.body) == {"site": "gpus"}
