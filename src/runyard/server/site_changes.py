"""Whether there is news for a site since an agent's last request.

An agent asks, syncs, asks again. A hint between two requests must not be lost, so each site has a number that rises
with every hint, and the agent sends the last one it saw.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable

from runyard.broker.hints import Hints


class SiteChanges:
    def __init__(self, hints: Hints) -> None:
        self._hints = hints
        self._lock = threading.Lock()
        # Numbers start at random, so that one from before a restart of the yard is never mistaken for a current one.
        self._first = secrets.randbelow(1 << 40) + 1
        self._numbers: dict[str, int] = {}
        self._unlisten: list[Callable[[], None]] = []

    def number(self, site: str) -> int:
        """The number of the newest hint; listening starts with the first request for a site."""
        with self._lock:
            if site not in self._numbers:
                self._numbers[site] = self._first
                self._unlisten.append(self._hints.listen(f"site:{site}", lambda: self._count(site)))
            return self._numbers[site]

    def _count(self, site: str) -> None:
        with self._lock:
            self._numbers[site] += 1

    def close(self) -> None:
        for end in self._unlisten:
            end()
