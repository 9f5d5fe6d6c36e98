from __future__ import annotations

import threading

from runyard.broker.hints import Hints
from runyard.server.site_changes import SiteChanges


def test_numbers_rise_with_the_hints_of_their_site() -> None:
    hints = Hints()
    news = SiteChanges(hints)
    first = news.number("a")
    other = news.number("b")
    hints.ring("site:a")
    hints.ring("site:a")
    assert (news.number("a"), news.number("b")) == (first + 2, other)


def test_rings_from_many_threads_are_all_counted() -> None:
    hints = Hints()
    news = SiteChanges(hints)
    first = news.number("a")

    def ring_often() -> None:
        for _ in range(500):
            hints.ring("site:a")

    threads = [threading.Thread(target=ring_often) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert news.number("a") == first + 2000


def test_another_start_has_other_numbers() -> None:
    assert SiteChanges(Hints()).number("a") != SiteChanges(Hints()).number("a")


def test_closing_stops_listening() -> None:
    hints = Hints()
    news = SiteChanges(hints)
    first = news.number("a")
    news.close()
    hints.ring("site:a")
    assert news.number("a") == first
