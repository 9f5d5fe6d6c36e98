"""What must be true of every run, whatever happened to it: the record of the runs against the word of the yard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.trial.plans import Plan
from tests.trial.record import Found

KILLED = {("failed", "lost"), ("failed", "node_lost")}
"""How an attempt ends whose runner was killed."""

Shown = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Submitted:
    """A run that the yard has accepted. `retries`: how many more attempts it may have."""

    id: int
    kind: str
    plan: Plan
    retries: int = 0
    parent: int | None = None


@dataclass(frozen=True, kw_only=True)
class Trial:
    """
    shown    runs as the yard shows them, by number
    found    what the runs recorded
    killed   (run, attempt) whose runner a fault has killed
    """

    shown: Mapping[int, Shown]
    found: Found
    killed: frozenset[tuple[int, int]] = frozenset()

    def violations(self, runs: list[Submitted]) -> list[str]:
        told = [f"run {run.id} ({run.kind}): {text}" for run in runs for text in self._of(run)]
        known = {run.id for run in runs}
        strangers = {one.run for one in self.found.executions} - known
        return told + [f"run {number} was executed and never accepted" for number in sorted(strangers)]

    def _of(self, run: Submitted) -> Iterator[str]:
        shown = self.shown.get(run.id)
        if shown is None:
            yield "lost: the yard does not know it"
            return
        yield from executed(self.found, run.id, shown)
        if run.parent is not None:
            yield from self._after_parent(run, shown)
            if self.shown[run.parent]["state"] != "succeeded":
                return
        yield from self._attempts(run, shown)

    def _after_parent(self, run: Submitted, shown: Shown) -> Iterator[str]:
        assert run.parent is not None
        if self.shown[run.parent]["state"] != "succeeded":
            if (shown["state"], shown["reason"]) != ("failed", "dependency") or self.found.of(run.id):
                yield f"run {run.parent} did not succeed, and it is {_words(shown)}"
            return
        ends = [one.ended_at for one in self.found.of(run.parent) if one.ended_at]
        if any(one.begun_at < max(ends, default=0) for one in self.found.of(run.id)):
            yield f"it began before run {run.parent} had ended"

    def _attempts(self, run: Submitted, shown: Shown) -> Iterator[str]:
        *earlier, last = shown["attempts"] or [None]
        if len(earlier) > run.retries:
            yield f"{len(earlier) + 1} attempts, with {run.retries} retries"
        for attempt in earlier:
            if not self._is_killed(run, attempt):
                yield f"attempt {attempt['number']} is {_end(attempt)}, and no fault hit it"
        if last is None:
            if not run.plan.cancel or (shown["state"], shown["reason"]) != run.plan.outcome:
                yield f"it is {_words(shown)} without an attempt"
        elif not self._is_killed(run, last):
            yield from self._as_planned(run, shown, last)
        else:
            yield from self._is_explained(run, shown, last)

    def _is_killed(self, run: Submitted, attempt: Mapping[str, Any]) -> bool:
        found = (attempt["outcome"], attempt["reason"])
        return (run.id, attempt["number"]) in self.killed and found in KILLED

    def _as_planned(self, run: Submitted, shown: Shown, last: Mapping[str, Any]) -> Iterator[str]:
        found = (last["outcome"], last["reason"])
        if found != run.plan.outcome or (shown["state"], shown["reason"]) != found:
            yield f"it is {_words(shown)}, attempt {last['number']} {_end(last)}; planned: {run.plan.outcome}"
        executions = self.found.of(run.id, last["number"])
        if not executions and run.plan.begins and not run.plan.cancel:
            yield f"attempt {last['number']} is {_end(last)}, and it was never executed"
        for one in executions:
            if one.code is not None and one.code != last["exit_code"]:
                yield f"it ended with {one.code}, and the yard says {last['exit_code']}"
            if one.code is None and last["outcome"] == "succeeded":
                yield "it succeeded, and it never came to its end"

    def _is_explained(self, run: Submitted, shown: Shown, last: Mapping[str, Any]) -> Iterator[str]:
        """A fault killed its last attempt."""
        if not last["detail"]:
            yield f"killed by a fault, and no detail says so: {_words(shown)}"
        is_cancelled = run.plan.cancel and shown["state"] == "cancelled"
        if len(shown["attempts"]) <= run.retries and not is_cancelled:
            yield f"killed by a fault, and not tried again: {_words(shown)}"


def executed(found: Found, run: int, shown: Shown) -> Iterator[str]:
    """Each attempt at most once, one after the other, and nothing but attempts."""
    if shown["state"] not in ("succeeded", "failed", "cancelled"):
        yield f"it does not end: {_words(shown)}"
    numbers = [attempt["number"] for attempt in shown["attempts"]]
    for number in sorted({one.attempt for one in found.of(run)} | set(numbers)):
        times = len(found.of(run, number))
        if times > 1:
            yield f"attempt {number} was executed {times} times"
        if times and number not in numbers:
            yield f"attempt {number} was executed, and the yard does not know it"
    for _, number in sorted(one for one in found.overlaps if one[0] == run):
        yield f"attempt {number} went on beside a later one"


def _words(shown: Shown) -> str:
    return f"{shown['state']} ({shown['reason']}; {shown['detail']!r})"


def _end(attempt: Mapping[str, Any]) -> str:
    return f"{attempt['outcome']} ({attempt['reason']}; {attempt['detail']!r}; exit code {attempt['exit_code']})"
