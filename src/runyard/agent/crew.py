"""Nodes of one site that are driven from here: an agent for each, and none of them waits for another.

A node's agent is made when the node answers: what it has is known only then. Until it does, the yard hears nothing of
it, and what runs there counts as unreachable.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping

from runyard import errors
from runyard.agent.agent import Agent
from runyard.agent.link import Link
from runyard.hosts.base import Unreachable

FIRST_PAUSE_S, LONGEST_PAUSE_S = 5.0, 60.0  # between two tries to reach a node, doubling

LOOK_S = 1.0  # between two looks whether anybody is left
LEAVE_S = 3.0  # for all to end together

log = logging.getLogger(__name__)

Make = Callable[[], Agent]


class Post:
    """One node, and its agent once there is one."""

    def __init__(self, node: str, make: Make) -> None:
        self.node, self._make = node, make
        self.agent: Agent | None = None
        self._told, self._pause = "", FIRST_PAUSE_S

    @property
    def stale(self) -> bool:
        return self.agent is not None and self.agent.stale

    def man(self) -> Agent | None:
        """Its agent, made if need be; None when that cannot be. What is wrong is told once."""
        if self.agent is not None:
            return self.agent
        try:
            self.agent = self._make()
        except (Unreachable, errors.RunyardError) as error:
            if str(error) != self._told:
                log.warning("node %s cannot be used: %s", self.node, error)
            self._told = str(error)
            return None
        self._told = ""
        log.info("node %s is in use", self.node)
        return self.agent

    def run_forever(self, stop: threading.Event) -> None:
        """For a thread of its own, which also lets go of the agent: it may be the last to end."""
        try:
            while not stop.is_set():
                if self.man() is not None:
                    break
                stop.wait(self._pause)
                self._pause = min(self._pause * 2, LONGEST_PAUSE_S)
            if self.agent is not None:
                self.agent.run_forever(stop)
        finally:
            self.close()

    def close(self) -> None:
        if self.agent is not None:
            self.agent.close()


class Crew:
    """Serves a site as one agent does."""

    def __init__(self, link: Link, makes: Mapping[str, Make]) -> None:
        self._link = link
        self._threads: list[threading.Thread] = []
        self._posts = [Post(node, make) for node, make in makes.items()]
        self.name = ", ".join(makes)

    @property
    def stale(self) -> bool:
        """Somebody else serves all of them."""
        return all(post.stale for post in self._posts)

    def run_forever(self, stop: threading.Event) -> None:
        """Until it is stopped, or somebody else serves all of them. A node that hangs is not waited for."""
        self._threads = [
            threading.Thread(target=post.run_forever, args=(stop,), name=f"node-{post.node}", daemon=True)
            for post in self._posts
        ]
        for thread in self._threads:
            thread.start()
        while not stop.is_set() and any(thread.is_alive() for thread in self._threads):
            stop.wait(LOOK_S)
        deadline = time.monotonic() + LEAVE_S
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    def tick(self) -> None:
        for post in self._posts:
            agent = post.man()
            if agent is not None and not agent.stale:
                agent.tick()

    def next_due(self, *, following: bool = True) -> float:
        """A node that does not answer is tried again with the next tick, not waited for."""
        manned = [post.agent for post in self._posts if post.agent is not None and not post.agent.stale]
        return min((agent.next_due(following=following) for agent in manned), default=float("inf"))

    def close(self) -> None:
        for post in self._posts if not self._threads else ():
            post.close()
        self._link.close()
