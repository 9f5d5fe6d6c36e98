"""Submit batches: gradually within limits, and without blindly repeating a submit with an unknown result."""

from __future__ import annotations

import logging
import shlex
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from runyard import errors
from runyard.backends.base import Batch, Job, Presence, Refusal, Sighting
from runyard.backends.batch import naming, options, script
from runyard.backends.batch.dialect import ClusterFacts, Order, SubmitAnswer, SubmitReply, Unanswered
from runyard.backends.batch.files import Files
from runyard.backends.batch.naming import ArrayPiece
from runyard.backends.batch.options import BatchSettings
from runyard.backends.batch.scheduler import Scheduler
from runyard.backends.batch.watch import QueueWatch
from runyard.model.wire import AttemptKey

FACTS_FOR_S = 3600.0
NO_FACTS_FOR_S = 60.0
NO_LIMIT = 1 << 30

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class DryRun:
    """What a submit would do."""

    script: str
    commands: tuple[str, ...]


class BatchSender:
    def __init__(
        self, scheduler: Scheduler, files: Files, watch: QueueWatch, settings: BatchSettings, clock: Callable[[], float]
    ) -> None:
        self._scheduler, self._files, self._watch = scheduler, files, watch
        self._settings, self._clock = settings, clock
        self._facts = ClusterFacts()
        self._ask_facts_at = float("-inf")
        self._held: dict[AttemptKey, tuple[Batch, Job]] = {}  # what waits for room, in order
        self._held_because = ""
        self._fed_at = float("-inf")
        self._bite = NO_LIMIT  # most tasks to ask for at once: halved when the scheduler says it is too much

    def submit(self, batch: Batch) -> list[Refusal]:
        refused = self._objections(batch)
        if refused:
            return refused
        try:
            return self._send(self._without(batch, self._enter(batch)))
        except (OSError, Unanswered) as error:
            return [Refusal(key=job.key, text=f"the site's directory cannot be used: {error}") for job in batch.jobs]

    def feed(self) -> None:
        """Submit jobs that were held back, as far as limits allow now."""
        early = self._clock() < self._fed_at + self._settings.poll_interval
        if not self._held or early or not self._has_room():
            return
        self._fed_at = self._clock()
        held, self._held = self._held, {}
        for batch in _regrouped(held.values()):
            try:
                self._enter(batch, again=True)
                self._note_refused(batch, self._objections(batch) or self._send(batch))
            except (OSError, Unanswered) as error:
                self._hold(batch, batch.jobs, str(error))

    def held(self, key: AttemptKey) -> Sighting | None:
        if key not in self._held:
            return None
        told = f"not handed to {self._scheduler.dialect.title} yet: {self._held_because}"
        return Sighting(presence=Presence.PENDING, text=told)

    def drop(self, keys: Iterable[AttemptKey]) -> None:
        """Do not submit these any more."""
        for key in keys:
            self._held.pop(key, None)

    def room(self) -> int:
        """How many more jobs may be submitted now, as far as known without a query."""
        return self._free_tasks() if self._has_room() and not self._held else 0

    def dry_run(self, batch: Batch) -> DryRun:
        """Raises InvalidInput."""
        orders = [self._order(batch, piece) for piece in self._pieces(batch)]
        commands = tuple(shlex.join(self._scheduler.dialect.submit_command(order)) for order in orders)
        return DryRun(script=self._script(batch.name), commands=commands)

    # --- one batch ----------------------------------------------------------------------------------------------

    def _objections(self, batch: Batch) -> list[Refusal]:
        """Raise for requests that this scheduler does not support, before a submit."""
        try:
            self._scheduler.dialect.submit_command(self._order(batch, ArrayPiece(offset=0, tasks=(1,))))
        except errors.InvalidInput as error:
            return _refusals(batch.jobs, "; ".join(filter(None, (error.message, error.fix))))
        return []

    def _enter(self, batch: Batch, *, again: bool = False) -> list[Job]:
        """Write the manifest. Returns the jobs that were entered before: the scheduler may have them."""
        self._files.install_runner()
        names = {naming.native_name(batch.name, piece.offset) for piece in self._pieces(batch)}
        traces = self._files.enter(batch, self._script(batch.name), names, again=again)
        return [job for job, trace in zip(batch.jobs, traces, strict=True) if trace is not None]

    def _without(self, batch: Batch, entered: Sequence[Job]) -> Batch:
        """The batch without jobs that the scheduler may have. Only jobs that are proven absent are submitted again."""
        if not entered:
            return batch
        seen = self._watch.look(entered)
        kept = {job.key for job in entered if seen[job.key].presence is not Presence.ABSENT}
        rest = replace(batch, jobs=tuple(job for job in batch.jobs if job.key not in kept))
        if rest.jobs:
            self._enter(rest, again=True)
        return rest

    def _send(self, batch: Batch) -> list[Refusal]:
        """Piece by piece; the first one beyond a limit waits, and all after it."""
        batch = self._able(batch)
        jobs = {job.index: job for job in batch.jobs}
        todo = self._pieces(batch)
        refused: list[Refusal] = []
        while todo:
            first, rest = todo[0].split(max(1, min(self._free_tasks(), self._bite)))
            answer = self._ask_for(batch, first)
            if answer.reply is SubmitReply.LIMITED and len(first.tasks) > 1 and self._has_room():
                self._bite = len(first.tasks) // 2
                continue
            if answer.reply is SubmitReply.LIMITED:
                self._hold(batch, [jobs[index] for piece in todo for index in piece.indexes], answer.text)
                break
            refused += self._conclude(batch, [jobs[index] for index in first.indexes], answer)
            todo = [rest, *todo[1:]] if rest else todo[1:]
        return refused

    def _able(self, batch: Batch) -> Batch:
        """Nodes are avoided only if others remain: a cluster may have only these, and a bad node is better than a
        refusal or an endless wait."""
        if not batch.avoid or not batch.jobs or self._watch.in_trouble:
            return batch
        if self._scheduler.would_take(self._order(batch, ArrayPiece(offset=0, tasks=(1,)))):
            return batch
        log.warning("batch %s may use %s after all: nothing else is left", batch.name, ", ".join(batch.avoid))
        return replace(batch, avoid=())

    def _ask_for(self, batch: Batch, piece: ArrayPiece) -> SubmitAnswer:
        if self._watch.in_trouble:
            return SubmitAnswer(reply=SubmitReply.LIMITED, text="it does not answer")
        if not self._has_room():
            return SubmitAnswer(reply=SubmitReply.LIMITED, text=f"{self._watch.busy_tasks} jobs are there already")
        answer = self._scheduler.submit(self._order(batch, piece))
        if answer.reply is SubmitReply.ACCEPTED:
            self._bite = min(self._bite * 2, NO_LIMIT)
        return answer

    def _conclude(self, batch: Batch, members: Sequence[Job], answer: SubmitAnswer) -> list[Refusal]:
        title = self._scheduler.dialect.title
        if answer.reply is SubmitReply.REFUSED:
            return _refusals(members, f"{title}: {answer.text}")
        if answer.reply is SubmitReply.UNSURE:
            log.warning("whether %s took %d jobs of %s is unknown: %s", title, len(members), batch.name, answer.text)
            self._watch.forget(job.key for job in members)
            self._watch.doubt(answer.text)
            return []
        self._watch.note_sent(members, answer.id)
        self._acknowledge(batch.name, answer.id, members)
        return []

    def _acknowledge(self, batch: str, native_job: str, members: Sequence[Job]) -> None:
        """Without this record a job that is deleted from the queue may be submitted again: no reason to fail."""
        try:
            self._files.accept(batch, native_job, [job.index for job in members])
        except Unanswered as error:
            log.warning("that batch %s was accepted could not be noted: %s", batch, error)

    def _order(self, batch: Batch, piece: ArrayPiece) -> Order:
        """Raises InvalidInput."""
        return Order(
            name=naming.native_name(batch.name, piece.offset),
            directory=self._files.batch_directory(batch.name),
            tasks=piece.tasks,
            arguments=(str(piece.offset),),
            resources=batch.resources,
            options=options.combined(self._settings, batch.options, batch.resources, self._scheduler.dialect),
            at_once=options.array_limit(self._settings, batch.options),
            choice=batch.choice,
            avoid=batch.avoid,
            warning=batch.warning,
            time_margin=self._settings.time_margin,
            facts=self._known_facts(),
        )

    def _pieces(self, batch: Batch) -> list[ArrayPiece]:
        gaps = self._scheduler.dialect.arrays_may_have_gaps
        return naming.pieces((job.index for job in batch.jobs), self._known_facts().array_size, gaps=gaps)

    def _script(self, batch: str) -> str:
        return script.render(
            self._scheduler.dialect.job_script(), batch=batch, directory=self._files.batch_directory(batch),
            runner=self._files.runner_directory, python=self._settings.python,
        )  # fmt: skip

    # --- limits -------------------------------------------------------------------------------------------------

    def _known_facts(self) -> ClusterFacts:
        """The configuration of a cluster changes rarely; one that does not answer is not queried with every batch."""
        if self._clock() >= self._ask_facts_at and not self._watch.in_trouble:
            found = self._scheduler.facts()
            self._facts = found or self._facts
            self._ask_facts_at = self._clock() + (FACTS_FOR_S if found else NO_FACTS_FOR_S)
        return self._facts

    def _has_room(self) -> bool:
        if self._watch.in_trouble:
            return False
        most_jobs = self._facts.job_limit
        return self._free_tasks() > 0 and (most_jobs is None or self._watch.busy_jobs < most_jobs)

    def _free_tasks(self) -> int:
        limits = [self._settings.max_jobs, self._facts.task_limit]
        return max(0, min(limit for limit in limits if limit is not None) - self._watch.busy_tasks)

    def _hold(self, batch: Batch, jobs: Iterable[Job], because: str) -> None:
        self._held.update((job.key, (batch, job)) for job in jobs)
        self._held_because = because
        self._fed_at = self._clock()

    def _note_refused(self, batch: Batch, refused: Sequence[Refusal]) -> None:
        """No caller waits for the result of this submit: the next poll reports it."""
        texts = {refusal.key: refusal.text for refusal in refused}
        for job in batch.jobs:
            if job.key in texts:
                self._watch.note(job, Sighting(presence=Presence.GONE, text=texts[job.key], ending="rejected"))


def _refusals(jobs: Iterable[Job], text: str) -> list[Refusal]:
    return [Refusal(key=job.key, text=text, final=True, ending="rejected") for job in jobs]


def _regrouped(held: Iterable[tuple[Batch, Job]]) -> list[Batch]:
    """Batches with only the jobs that were held back."""
    members: dict[str, tuple[Batch, list[Job]]] = {}
    for batch, job in held:
        members.setdefault(batch.name, (batch, []))[1].append(job)
    return [replace(batch, jobs=tuple(jobs)) for batch, jobs in members.values()]
