"""Endings that only Grid Engine has, and those that need hosts which fail."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import pytest

from tests.acceptance import endings, endings_on_gridengine
from tests.acceptance.cluster_yard import ClusterYard
from tests.acceptance.endings_on_gridengine import GRID_ENGINE
from tests.acceptance.witness import until
from tests.labs.gridengine import GridEngineLab

GetYard = Callable[..., ClusterYard]

FRAGILE = {"a host without power", "a host without its daemon"}
TOLD_APART = {"rescheduled", "forgotten", "in error (Eqw)"}  # with more that is to be seen


@pytest.fixture
def yard(cluster_yard: GetYard) -> ClusterYard:
    return cluster_yard("gridengine")


def lab_of(yard: ClusterYard) -> GridEngineLab:
    assert isinstance(yard.lab, GridEngineLab)
    return yard.lab


@pytest.mark.parametrize("name", sorted(GRID_ENGINE.keys() - FRAGILE - TOLD_APART))
def test_an_ending(yard: ClusterYard, name: str) -> None:
    endings.check(yard, GRID_ENGINE[name](yard))


@pytest.mark.parametrize("name", sorted(FRAGILE))
def test_an_ending_where_hosts_fail(cluster_yard: GetYard, name: str) -> None:
    """They are missed soon here; elsewhere after five minutes."""
    yard = cluster_yard("gridengine", max_unheard_s=30)
    endings.check(yard, GRID_ENGINE[name](yard))


def test_a_job_that_is_rescheduled_is_not_begun_twice(yard: ClusterYard) -> None:
    """By an operator, against what runyard asked for."""
    shown = endings.check(yard, endings_on_gridengine.rescheduled(yard))
    assert (shown["state"], shown["attempt"]) == ("succeeded", 2), shown
    assert yard.log(shown["id"]) == "attempt 1\n\n--- attempt 2 ---\nattempt 2\n"


def test_a_job_that_vanished(yard: ClusterYard) -> None:
    """An operator had the qmaster forget it, whatever becomes of its processes."""
    witness = yard.home / "witness"
    writes = endings.shell(f"while sleep 0.5; do echo x >> {witness}; done")
    endings.check(yard, dataclasses.replace(endings_on_gridengine.forgotten(yard), spec=writes))
    size = witness.stat().st_size
    time.sleep(2)
    assert witness.stat().st_size == size, "nothing of it runs"


def test_a_job_in_error_is_told_with_the_reason_and_leaves_the_queue(yard: ClusterYard) -> None:
    shown = endings.check(yard, endings_on_gridengine.in_error(yard))
    native = shown["attempts"][0]["native_id"]
    until(lambda: not lab_of(yard).state(native), what="an empty queue")
