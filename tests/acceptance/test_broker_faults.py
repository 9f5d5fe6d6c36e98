"""Whatever dies between a yard, its broker and its agents: no run is lost, and none is executed twice.

Each fault strikes while runs and tickets are on their way; more are handed in while it lasts, and after it.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard import errors
from tests.acceptance import doomed
from tests.acceptance.pool import QUEUE, Pool, Tickets, Work
from tests.acceptance.witness import until
from tests.labs import waiting
from tests.labs.rabbitmq import RabbitLab
from tests.labs.yard import Yard

MakeYard = Callable[..., Yard]
BROKER_TIMEOUT_S = 20  # longer than a busy machine keeps an agent from its acknowledgement


@contextlib.contextmanager
def disturbed(work: Work) -> Iterator[None]:
    """What happens inside happens in mid-stream."""
    with work.under_way(60):
        pass
    yield
    work.give(10)
    work.until_done_once()


def assert_tickets_flow(tickets: Tickets, work: Work) -> None:
    """The yard gives some out, for more runs than agents take at once, and agents listen and acknowledge them."""
    tickets.until_taken_by(2)
    before = tickets.count("ack")

    def are_redeemed() -> bool:
        # The yard's own connection may come back later than the agents': until then runs start without tickets.
        work.give(24)
        work.until_done_once()
        return tickets.count_within("ack", before + 1)

    until(are_redeemed, what="a ticket redeemed", timeout=240)


def test_kill_9_of_the_broker_that_comes_back_empty(broker: RabbitLab, make_yard: MakeYard, tmp_path: Path) -> None:
    """The vhost `/`, because a broker that lost its disk has no other."""
    url = broker.url("/")
    yard, tickets = make_yard(cpus=1, broker=url), Tickets(broker, url)
    pool, work = Pool(yard), Work(yard, tmp_path)
    with pool.agent("one"), pool.agent("two"):
        tickets.until_taken_by(2)
        with disturbed(work):
            broker.kill("n1")
            work.give(10)
            broker.start_node("n1", empty=True)
        assert_tickets_flow(tickets, work)


@pytest.mark.long
def test_kill_9_of_the_quorum_leader(
    rabbitmq_lab: Callable[..., RabbitLab], make_yard: MakeYard, tmp_path: Path
) -> None:
    lab = rabbitmq_lab(nodes=3)
    vhost = lab.add_vhost()
    urls = {node: lab.url(vhost, node=node) for node in lab.nodes}
    yard, tickets = make_yard(cpus=1, broker=urls["n1"]), Tickets(lab, urls["n1"])
    pool, work = Pool(yard), Work(yard, tmp_path)
    with pool.agent("one", broker=urls["n2"]), pool.agent("two", broker=urls["n3"]):
        tickets.until_taken_by(2)
        lab.let_queues_settle()
        leader = lab.leader(vhost, QUEUE)
        with disturbed(work):
            lab.kill(leader)
            work.give(10)
            until(lambda: lab.leader(vhost, QUEUE) != leader, what="another leader")
            lab.start_node(leader)
        assert_tickets_flow(tickets, work)


@pytest.mark.parametrize(
    "step",
    [
        "runyard.agent.http:HttpLink.sync:claims",  # the ticket is not acknowledged
        "runyard.agent.bring.directory:Stager.freeze:after",  # it is
    ],
)
def test_kill_9_of_an_agent_after_the_claim_and_before_the_start(
    broker: RabbitLab, make_yard: MakeYard, tmp_path: Path, step: str
) -> None:
    url = broker.url(broker.add_vhost())
    yard, tickets = make_yard(cpus=1, broker=url), Tickets(broker, url)
    pool, work = Pool(yard), Work(yard, tmp_path)
    with pool.agent("one"):
        with work.under_way(60):
            pool.agent_that_dies("two", step)
        with pool.agent("two"):
            work.until_done_once()
            assert_tickets_flow(tickets, work)


def test_kill_9_of_the_yard_between_commit_and_publish(broker: RabbitLab, make_yard: MakeYard, tmp_path: Path) -> None:
    url = broker.url(broker.add_vhost())
    yard, tickets = make_yard(cpus=1, broker=url, port=waiting.free_ports(1)[0]), Tickets(broker, url)
    pool, work, note = Pool(yard), Work(yard, tmp_path), tmp_path / "died"
    yard.stop()
    yard.start("-c", Path(doomed.__file__).read_text(), "runyard.broker.tickets:Office._give:before", str(note))
    keys = [{"idempotency_key": f"key {number}"} for number in range(20)]
    with pool.agent("one"), pool.agent("two"):
        tickets.until_taken_by(2)
        with contextlib.suppress(errors.YardUnreachable):
            work.give_each(keys)
        until(note.exists, what="the yard killed")
        yard.kill9()
        yard.start()
        work.ids.clear()
        work.give_each(keys)
        assert work.ids == [run.id for run in yard.client().runs()][::-1], "a key was taken twice"
        work.until_done_once()
        assert_tickets_flow(tickets, work)


@pytest.mark.parametrize("fault", ["cut", "freeze"])
def test_a_network_cut_between_agent_and_broker(
    broker: RabbitLab, make_yard: MakeYard, tmp_path: Path, fault: str
) -> None:
    vhost = broker.add_vhost()
    url, relay = broker.url(vhost), broker.relay()
    yard, tickets = make_yard(cpus=1, broker=url), Tickets(broker, url)
    pool, work = Pool(yard), Work(yard, tmp_path)
    with pool.agent("one", broker=broker.url(vhost, port=relay.port)), pool.agent("two"):
        tickets.until_taken_by(2)
        with disturbed(work):
            getattr(relay, fault)()
            work.give(10)
            work.until_done_once()
            relay.mend()
        assert_tickets_flow(tickets, work)


@pytest.mark.long
def test_a_run_that_outlives_the_consumer_timeout(
    rabbitmq_lab: Callable[..., RabbitLab], make_yard: MakeYard, tmp_path: Path
) -> None:
    lab = rabbitmq_lab(consumer_timeout_s=BROKER_TIMEOUT_S)
    url = lab.url(lab.add_vhost())
    yard, tickets = make_yard(cpus=1, broker=url), Tickets(lab, url)
    go = tmp_path / "go"
    pool, work = Pool(yard), Work(yard, tmp_path, f"while [ ! -e {go} ]; do sleep 0.2; done")
    with pool.agent("one", cpus=2):
        tickets.until_taken_by(1)
        work.give(1)
        until(lambda: tickets.prefetches() == [1], what="the agent with one slot left")
        with tickets.redeemed():
            tickets.publish()
        redelivered = tickets.count("redeliver")
        time.sleep(2 * BROKER_TIMEOUT_S)
        with tickets.redeemed():
            tickets.publish()
        assert tickets.count("redeliver") == redelivered
        go.touch()
        work.until_done_once()
        with tickets.redeemed():
            tickets.publish()
    assert "not acknowledged in time" not in pool.log("one")
    assert "timed out" not in lab.log_ends()
