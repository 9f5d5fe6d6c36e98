"""What values are called."""

from __future__ import annotations

import pytest

from runyard.runner.metrics import folder
from runyard.runner.metrics.naming import Naming


@pytest.mark.parametrize(
    ("path", "kind", "prefix"),
    [
        ("events.out.tfevents.1", folder.EVENTS, ""),
        ("2017-02-10_12-30-00/train-summaries/events.out.tfevents.1", folder.EVENTS, "train/"),
        ("20170210-123000/valid_summaries/events.out.tfevents.1", folder.EVENTS, "valid/"),
        ("runs/Nov15_12-30-00_node/events.out.tfevents.1", folder.EVENTS, ""),
        ("logs/fit/validation/events.out.tfevents.1", folder.EVENTS, "fit/validation/"),
        ("lightning_logs/version_3/events.out.tfevents.1", folder.EVENTS, ""),
        ("lightning_logs/version_0/metrics.csv", folder.TABLE, ""),
        ("train.csv", folder.TABLE, "train/"),
        ("fold1/history.csv", folder.TABLE, "fold1/"),
        ("train_metrics.jsonl", folder.LINES, "train/"),
        ("2017-02-10_12-30-00/run.npz", folder.ARRAYS, ""),
        ("final.npz", folder.ARRAYS, "final/"),
    ],
)
def test_only_what_tells_something_is_in_a_name(path: str, kind: str, prefix: str) -> None:
    assert Naming().prefix(path.encode(), kind) == prefix


def test_two_trainings_are_two_curves() -> None:
    naming = Naming()
    first, second = b"version_0/events.out.tfevents.1", b"version_1/events.out.tfevents.1"
    assert naming.prefix(first, folder.EVENTS) == ""
    assert naming.prefix(second, folder.EVENTS) == "version_1/"
    assert naming.prefix(b"version_0/events.out.tfevents.2", folder.EVENTS) == ""
    assert naming.prefix(b"version_0/metrics.csv", folder.TABLE) == ""
