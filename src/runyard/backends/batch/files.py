"""What a batch site keeps on disk, through a host: manifests, acknowledgements, and the traces of jobs.

In `<site directory>/batches/<batch>/`:

- `manifest.json`: index → attempt directory, and the names of the native jobs; written before anything is submitted
- `job.sh`: the script that is submitted
- `accepted`: which indexes the scheduler has acknowledged, and in which native job
- `<native name>.<task>.out`: output of a task before its runner started
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from runyard import runner
from runyard.backends.base import Batch, Job, StopRequest
from runyard.backends.batch.dialect import Unanswered, one_line
from runyard.hosts.base import Host
from runyard.model.wire import AttemptKey

TIMEOUT_S = 60.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """What a job's directory shows. Ages are seconds by the clock of the host."""

    started: bool = False
    recorded: bool = False  # its exit record is there
    quiet: float | None = None  # since its runner was last heard; None: never
    entered: float | None = None  # since its batch was last submitted; None: it never was
    accepted: str = ""  # the id of the native job or array in which the scheduler has acknowledged it
    names: tuple[str, ...] = ()  # that native jobs of its batch have
    spoke: float | None = None  # since the native job last wrote to its own output; None: it never began
    words: str = ""  # what it wrote there

    @property
    def is_untouched(self) -> bool:
        """No submit was ever tried."""
        return self.entered is None and not self.started


@dataclass(frozen=True, kw_only=True, slots=True)
class Fenced:
    """The result of a stop request."""

    prevented: bool  # it had not begun, and never will
    told: float  # seconds since its directory first said so


class Files:
    def __init__(self, host: Host, directory: str, python: str) -> None:
        self._host, self._directory, self._python = host, directory, python
        # Named once: another version that is installed meanwhile is for the next start of this agent.
        self.runner_directory = f"{directory}/runner-{runner.digest()}"
        self._program = resources.files(__package__).joinpath("far.py").read_text(encoding="utf-8")
        self._has_runner = False

    def batch_directory(self, batch: str) -> str:
        return f"{self._directory}/batches/{batch}"

    def install_runner(self) -> None:
        """Raises OSError."""
        if not self._has_runner:
            self._host.install(self.runner_directory, runner.files())
            self._has_runner = True

    def enter(self, batch: Batch, script: str, names: Iterable[str], *, again: bool = False) -> list[Trace | None]:
        """Put its jobs into the manifest, with the names of the native jobs that will carry them.

        Those that were in it already are returned with a trace, and not changed unless `again`. Raises Unanswered.
        """
        told = self._ask(
            "enter", directory=self.batch_directory(batch.name), batch=batch.name, owner=batch.owner,
            jobs=[_about(job) for job in batch.jobs], script=script, names=sorted(names), again=again,
        )  # fmt: skip
        return [None if found is None else _trace(found) for found in told]

    def look(self, jobs: Sequence[Job]) -> dict[AttemptKey, Trace]:
        """Raises Unanswered."""
        asked = [{**_about(job), "batch": self.batch_directory(job.batch)} for job in jobs]
        found = self._ask("look", jobs=asked) if asked else []
        return {job.key: _trace(told) for job, told in zip(jobs, found, strict=True)}

    def accept(self, batch: str, native_id: str, indexes: Sequence[int]) -> None:
        """Raises Unanswered."""
        self._ask("accept", directory=self.batch_directory(batch), id=native_id, indexes=list(indexes))

    def fence(self, stops: Sequence[StopRequest], *, record: bool = True) -> list[Fenced | None]:
        """Request these to stop. `record`: one that had not started gets an exit record that says so. None: the request
        could not be written. Raises Unanswered."""
        found = self._ask("fence", stops=[_wish(stop, record) for stop in stops])
        return [None if told is None else Fenced(**told) for told in found]

    def owned(self, prefix: str, owner: str) -> list[str]:
        """The batches of this owner whose names begin so. Raises Unanswered."""
        found: list[str] = self._ask("owned", directory=f"{self._directory}/batches", prefix=prefix, owner=owner)
        return found

    def remove(self, batches: Iterable[str]) -> None:
        """Delete these batches; after a kill in the middle the next call of `owned` deletes the rest. Raises
        Unanswered."""
        self._ask("remove", directory=f"{self._directory}/batches", batches=sorted(batches))

    def _ask(self, verb: str, **request: Any) -> Any:
        asked = json.dumps({"do": verb, **request}).encode()
        result = self._host.run([self._python, "-I", "-S", "-c", self._program], timeout=TIMEOUT_S, input=asked)
        try:
            answer = json.loads(result.stdout)
        except ValueError:
            raise Unanswered(one_line(result.stderr) or f"{self._python} ended with {result.code}") from None
        if "problem" in answer:
            raise Unanswered(answer["problem"])
        return answer["answer"]


def _about(job: Job) -> dict[str, Any]:
    return {"directory": job.directory, "index": job.index}


def _trace(found: dict[str, Any]) -> Trace:
    return Trace(**{**found, "names": tuple(found["names"]), "words": " ".join(found["words"].split())})


def _wish(stop: StopRequest, recorded: bool) -> dict[str, Any]:
    record = {
        "state": "ended", "beat": 1, "ending": "stopped", "stop_reason": stop.reason, "exit_code": None,
        "signal": None, "message": "it was stopped before it began", "tree_gone": True, "leftovers": 0, "sizes": {},
    }  # fmt: skip
    control = {"stop": {"reason": stop.reason, "grace": stop.grace}}
    return {"directory": stop.job.directory, "control": control, "record": record if recorded else None}
