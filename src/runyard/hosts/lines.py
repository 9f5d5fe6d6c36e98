"""Channels to the far side that are kept for the next request: that saves a login, an interpreter and a program."""

from __future__ import annotations

import threading

from runyard.hosts.conversation import Channel


class Lines:
    """From any thread. Each channel belongs to whoever took it until it is given back."""

    def __init__(self, most: int) -> None:
        """`most`: how many wait unused; 0: none is kept."""
        self.most = most
        self._idle: list[tuple[str, Channel]] = []
        self._lock = threading.Lock()

    def take(self, name: str) -> Channel | None:
        """One that leads there and is well; those that are not are closed on the way."""
        with self._lock:
            idle, self._idle = self._idle, []
            while idle:
                owner, channel = idle.pop()
                if not channel.is_idle():
                    channel.close()
                elif owner == name:
                    self._idle = [*idle, *self._idle]
                    return channel
                else:
                    self._idle.append((owner, channel))
        return None

    def give(self, name: str, channel: Channel) -> None:
        with self._lock:
            if len(self._idle) < self.most:
                self._idle.append((name, channel))
                return
        channel.close()

    def close(self) -> None:
        """None is kept any more, neither of those that are under way."""
        with self._lock:
            idle, self._idle, self.most = self._idle, [], 0
        for _, channel in idle:
            channel.close()
