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


def test_other_servers_are_told_of_what_is_rung_here_and_of_nothing_else() -> None:
    hints, heard, told = Hints(), list[str](), list[str]()
    hints.listen("site:a", lambda: heard.append("site:a"))
    hints.relay(told.append)
    hints.ring("site:a")
    hints.ring_all("site:")
    assert (heard, told) == (["site:a"] * 2, ["site:a", "site:"])
    hints.ring_here("site:a")
    hints.ring_all_here("site:")
    assert (len(heard), len(told)) == (4, 2)
    hints.relay(None)
    hints.ring("site:a")
    assert (len(heard), len(told)) == (5, 2)


def test_some_are_rung_and_other_servers_told_to_look() -> None:
    hints, heard, told = Hints(), list[str](), list[str]()
    for topic in ("site:a", "site:b", "site:c"):
        hints.listen(topic, lambda topic=topic: heard.append(topic))  # type: ignore[misc]
    hints.relay(told.append)
    hints.ring_some(["site:a", "site:c"], "site:")
    assert (heard, told) == (["site:a", "site:c"], ["site:"])
    hints.ring_some([], "site:")
    assert (heard, told) == (["site:a", "site:c"], ["site:"])
