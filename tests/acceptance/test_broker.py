"""A yard and its agents with a message broker between them, all of them real processes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from runyard.agent.run.pace import MOST_AHEAD
from tests.acceptance.pool import Pool, Tickets, Work
from tests.acceptance.witness import until
from tests.labs.rabbitmq import RabbitLab
from tests.labs.yard import Yard

RUNS = 1000
SLOTS = 1  # of each agent


@pytest.mark.long
def test_two_agents_share_a_thousand_runs_by_priority(
    tickets: Tickets, broker_url: str, postgres_store: str, make_yard: Callable[..., Yard], tmp_path: Path
) -> None:
    """Each agent keeps the order to the number of its slots, and runs of higher priority wait elsewhere only where
    the other agent has them in its hands."""
    yard = make_yard(cpus=1, broker=broker_url, store=postgres_store)
    pool, work = Pool(yard), Work(yard, tmp_path, "echo $RUNYARD_RUN_ID >> ${OUTPUT_DIR%%/site/*}/order")
    with pool.agent("one", cpus=SLOTS), pool.agent("two", cpus=SLOTS):
        tickets.until_taken_by(2)
        assert yard.cli("site", "drain", "pool").returncode == 0
        work.give_each([{"priority": number * 7 % RUNS} for number in range(RUNS)])
        assert yard.cli("site", "resume", "pool").returncode == 0
        work.until_done_once()
    priority = {run_id: number * 7 % RUNS for number, run_id in enumerate(work.ids)}
    shares = [_priorities(pool.home(name) / "order", priority) for name in ("one", "two")]
    assert all(share == sorted(share, reverse=True) and len(share) > RUNS / 10 for share in shares)
    assert _most_overtaken([priority[run_id] for run_id in work.witness.count("start")]) <= MOST_AHEAD + SLOTS


def _priorities(path: Path, priority: dict[int, int]) -> list[int]:
    return [priority[int(line)] for line in path.read_text().splitlines()]


def _most_overtaken(starts: list[int]) -> int:
    """How many runs of higher priority were still to start, where it was worst."""
    return max(sum(later > one for later in starts[place:]) for place, one in enumerate(starts))


def test_a_full_agent_does_not_listen_and_holds_nothing(
    tickets: Tickets, broker_url: str, make_yard: Callable[..., Yard], tmp_path: Path
) -> None:
    yard = make_yard(cpus=1, broker=broker_url)
    with Pool(yard).agent("one"):
        tickets.until_taken_by(1)
        work = Work(yard, tmp_path, "sleep 600")
        work.give(2)
        tickets.until_taken_by(0)
        until(lambda: tickets.held() == 0, what="nothing held")
        yard.cli("cancel", *map(str, work.ids))
        tickets.until_taken_by(1)


def test_a_broker_that_is_down_does_not_keep_anybody(
    broker: RabbitLab, broker_url: str, tickets: Tickets, make_yard: Callable[..., Yard], tmp_path: Path
) -> None:
    broker.kill("n1")
    yard = make_yard(cpus=1, broker=broker_url)
    with Pool(yard).agent("one"):
        work = Work(yard, tmp_path)
        work.give(3)
        work.until_done_once()
        broker.start_node("n1")
        tickets.until_taken_by(1)
