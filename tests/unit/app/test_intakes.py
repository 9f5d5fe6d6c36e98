"""Where requests come from: two tables of the configuration must not mean the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runyard import errors
from runyard.app import intakes
from runyard.app.intakes import RequestQueue
from runyard.broker.address import BrokerAddress
from runyard.model.intake import Intake
from runyard.settings import Settings


def source(table: str, broker: str = "amqps://ann:pw@mq/lab", queue: str = "jobs") -> RequestQueue:
    name = table.partition(".")[2]
    intake = Intake.parse_table(name, {"queue": queue})
    return RequestQueue(table=table, broker=BrokerAddress.parse(broker), intake=intake)


@pytest.mark.parametrize(
    "other",
    [
        {},
        {"broker": "amqps://bob:pw@mq/lab"},
        {"broker": "amqp://ann:pw@mq/lab"},  # the usual ports of one broker
        {"broker": "amqps://ann:pw@mq:5671/lab"},
    ],
)
def test_a_queue_is_taken_by_one(other: dict[str, Any]) -> None:
    with pytest.raises(errors.ConfigError, match=r"^\[intake.a\] and \[bridge.b\] would receive .* same queue jobs$"):
        intakes.refuse_shared([source("intake.a"), source("bridge.b", **other)])


@pytest.mark.parametrize(
    "other",
    [
        {"queue": "others"},
        {"broker": "amqps://ann:pw@other/lab"},
        {"broker": "amqps://ann:pw@mq/other"},
        {"broker": "amqp://ann:pw@mq:20001/lab"},
    ],
)
def test_other_queues_are_no_matter(other: dict[str, Any]) -> None:
    intakes.refuse_shared([source("intake.a"), source("bridge.b", **other)])


def test_a_name_is_taken_by_one() -> None:
    with pytest.raises(errors.ConfigError, match=r"^\[intake.rodan\] and \[bridge.rodan\] have the same name$"):
        intakes.refuse_shared([source("intake.rodan"), source("bridge.rodan", queue="others")])


def test_an_intake_without_a_broker(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match=r"^intake\.jobs: there is no broker to receive requests from"):
        intakes.of(Settings(home=tmp_path, intake={"jobs": Intake.parse_table("jobs", {})}))
