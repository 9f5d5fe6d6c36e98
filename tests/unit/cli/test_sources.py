"""Where requests come from: two tables of the configuration must not mean the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runyard import errors
from runyard.broker.address import Address
from runyard.cli import sources
from runyard.cli.sources import Source
from runyard.model.intake import Intake
from runyard.settings import Settings


def source(table: str, broker: str = "amqps://ann:pw@mq/lab", queue: str = "jobs") -> Source:
    name = table.partition(".")[2]
    return Source(table=table, broker=Address.parse(broker), intake=Intake.parse(name, {"queue": queue}))


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
    with pytest.raises(errors.ConfigError, match=r"^\[intake.a\] and \[bridge.b\] would take .* same queue jobs$"):
        sources.refuse_shared([source("intake.a"), source("bridge.b", **other)])


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
    sources.refuse_shared([source("intake.a"), source("bridge.b", **other)])


def test_a_name_is_taken_by_one() -> None:
    with pytest.raises(errors.ConfigError, match=r"^\[intake.rodan\] and \[bridge.rodan\] have the same name$"):
        sources.refuse_shared([source("intake.rodan"), source("bridge.rodan", queue="others")])


def test_an_intake_without_a_broker(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match=r"^intake\.jobs: there is no broker to take requests from"):
        sources.of(Settings(home=tmp_path, intake={"jobs": Intake.parse("jobs", {})}))
