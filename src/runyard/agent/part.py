"""The contract of an agent's parts. `agent.Agent` has the list of them, in the order of a tick."""

from __future__ import annotations

from typing import ClassVar

from runyard.model.wire import Claim, SyncResponse

NEVER = float("inf")


class Part:
    """One concern of the agent. All methods are called in the agent's own thread, and by default do nothing.

    A part takes small steps: blocking work goes to `errands`, and its result is available in a later step. It may be
    killed between any two lines. It writes only to its own slice of an attempt: see `slices.OWNERS`.
    """

    needs_yard: ClassVar[bool] = False  # not called until the yard has listed the attempts of this agent

    def advance(self) -> None:
        """One step of a tick."""

    def next_due(self) -> float:
        """When there is something to do, by the agent's clock, as far as is known."""
        return NEVER

    def heard(self, answer: SyncResponse) -> None:
        """The yard's answer to a sync. Attempts that it settled are still in the book."""

    def owned(self, claims: list[Claim]) -> None:
        """After a hello: exactly these attempts belong to this agent."""

    def close(self) -> None:
        """Release resources. Running attempts continue."""
