from __future__ import annotations

from runyard.broker.hints import Hints


def test_whoever_listens_to_a_kind_hears_of_all_of_it() -> None:
    hints, heard = Hints(), list[str]()
    for topic in ("run:", "run:1", "sites"):
        hints.listen(topic, lambda topic=topic: heard.append(topic))  # type: ignore[misc]
    hints.ring("run:2")
    assert heard == ["run:"]
    hints.ring("run:1")
    assert sorted(heard) == ["run:", "run:", "run:1"]
    hints.ring("sites")
    assert heard.count("sites") == 1
