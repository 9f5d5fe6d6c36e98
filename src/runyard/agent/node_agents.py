"""Nodes of one site that are served from here: one agent per node, independent of each other.

A node's agent is created when the node answers, because its resources are known only then. Until then nothing is
reported to the yard, and runs on the node count as unreachable.
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

LOOK_S = 1.0  # between two checks whether an agent is left
LEAVE_S = 3.0  # for all agents to end

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
        """Its agent, created if necessary; None if that fails. An error is logged once."""
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
        """For its own thread, which also closes the agent: it may be the last to end."""
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
    """Serves a site through the agents of its nodes."""

    def __init__(self, link: Link, makes: Mapping[str, Make]) -> None:
        self._link = link
        self._threads: list[threading.Thread] = []
        self._posts = [Post(node, make) for node, make in makes.items()]
        self.name = ", ".join(makes)

    @property
    def stale(self) -> bool:
        """Other processes serve all of its nodes."""
        return all(post.stale for post in self._posts)

    def run_forever(self, stop: threading.Event) -> None:
        """Until it is stopped, or other processes serve all of its nodes. It does not wait for a node that hangs."""
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
        """A node that does not answer is tried again with the next tick."""
        manned = [post.agent for post in self._posts if post.agent is not None and not post.agent.stale]
        return min((agent.next_due(following=following) for agent in manned), default=float("inf"))

    def close(self) -> None:
        for post in self._posts if not self._threads else ():
            post.close()
        self._link.close()
