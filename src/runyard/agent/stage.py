"""Build attempts' directories: everything a runner needs, complete before it is started."""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from runyard import errors
from runyard.agent import dialects, environment
from runyard.agent.attempts import Attempt
from runyard.agent.environment import Paths
from runyard.backends.base import Job
from runyard.backends.batch import naming
from runyard.hosts.base import Host, Unreachable
from runyard.model import globs, output_file
from runyard.model.resources import Capacity
from runyard.model.site import SiteSpec
from runyard.model.spec import RunSpec
from runyard.model.wire import Claim

FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})
YARD = "yard"  # beside the runs: whose they are
NEW_DIRECTORY = "choose another directory with: runyard site edit --dir DIRECTORY"


class StagingFailed(Exception):
    """The directory of an attempt could not be built. `ending` is what its record will say; `of` what is missing."""

    def __init__(self, message: str, ending: str = "staging", of: str = "") -> None:
        super().__init__(message)
        self.message, self.ending, self.of = message, ending, of

    @classmethod
    def because(cls, error: OSError, root: str = "its directory", fix: str = "") -> StagingFailed:
        is_full = error.errno in FULL_DISK
        told = f"{os.fsdecode(error.filename or root)}: {(error.strerror or str(error)).lower()}"
        advice = f"; free some space there, or {fix}" if is_full else f"; {fix}"
        return cls(told + (advice if fix else ""), "disk" if is_full else "staging")


class Stager:
    def __init__(
        self, host: Host, root: str, site: Capacity, base: Mapping[str, str], described: SiteSpec | None = None,
        scratch: str = "", node: str | None = None,
    ) -> None:  # fmt: skip
        """`scratch`: where runs get their scratch directory, if anybody says so; `node`: where they execute, where no
        scheduler decides on it later."""
        self._node = node
        self._host, self._root, self._site, self._scratch = host, root, site, scratch
        self._described = described or SiteSpec()
        self._is_ours = False
        # What runs on another machine has the environment of that one: what we say is laid over it.
        self._inherits = site.elastic or host.copies
        self._base = {} if self._inherits else base

    def receive(self, claim: Claim) -> Attempt:
        """An attempt with nothing on disk yet."""
        place = f"{claim.key.run}/a{claim.key.attempt}"
        job = Job(
            key=claim.key, directory=f"{self._root}/{place}", tag=secrets.token_hex(8), batch=claim.batch,
            index=claim.position, permit=claim.permit,
        )  # fmt: skip
        return Attempt(claim=claim, job=job, place=place)

    def recall(self, claims: Sequence[Claim]) -> list[Attempt]:
        """Attempts as an earlier incarnation left them: their tags and GPUs stand in the specs that were written then.
        Raises Unreachable."""
        attempts = {_spec_file(attempt): attempt for attempt in map(self.receive, claims)}
        for path, text in self._host.fetch_many(list(attempts)).items():
            with contextlib.suppress(ValueError, KeyError, TypeError):
                frozen, attempt = json.loads(text), attempts[path]
                attempt.job = dataclasses.replace(attempt.job, tag=frozen["tag"])
                attempt.prefer_gpus = tuple(frozen["gpus"])
        return list(attempts.values())

    def understand(self, attempt: Attempt) -> None:
        try:
            attempt.spec = RunSpec.parse(attempt.claim.spec)
        except errors.InvalidInput as error:
            raise StagingFailed(f"the agent does not understand this run: {error.message}") from None

    def prepare(self, attempts: Sequence[Attempt]) -> None:
        """Directories and parameters of all of them, in one round trip."""
        if self._site.elastic and not self._is_ours:
            self._take_root(attempts)
        directories: list[str] = []
        files: dict[str, bytes] = {}
        for attempt in attempts:
            run = str(attempt.key.run)
            # Its own first: checkpoints of runs that are over are removed only where there is no new attempt.
            directories += [run, attempt.place, f"{attempt.place}/outputs", f"{run}/checkpoints"]
            if self._paths(attempt).cwd == f"{attempt.job.directory}/work":
                directories.append(f"{attempt.place}/work")
            files[f"{attempt.place}/params.json"] = _encode(attempt.claim.spec.get("params", {}))
            if attempt.spec is not None and attempt.spec.script is not None:
                files[f"{attempt.place}/script"] = attempt.spec.script.encode("utf-8", "surrogateescape")
        self._put(files, directories)

    def _take_root(self, attempts: Sequence[Attempt]) -> None:
        """What a cluster's nodes share may be shared by yards, too, and each counts its runs from one: what another's
        left would be taken for ours. So the directory is that of the yard which came first."""
        path, yard = f"{self._root}/{YARD}", naming.yard_prefix(attempts[0].claim.batch).encode()
        held = self._host.fetch_many([path]).get(path)
        if held is None:
            self._put({YARD: yard}, ())
            held = self._host.fetch_many([path]).get(path)
        if held != yard:
            for attempt in attempts:  # what has its name there is not ours to read, nor to remove
                attempt.place, attempt.left_out = f"refused/{attempt.place}", True
            other = os.fsdecode(held or b"").rstrip("-")
            raise StagingFailed(
                f"{self._root} has the runs of another yard, {other}, with the same numbers; {NEW_DIRECTORY}, "
                f"or remove {path} if that yard is no more"
            )
        self._is_ours = True

    def find_checkpoints(self, attempts: Sequence[Attempt]) -> None:
        """Decide what later attempts go on from: what lies here, or what the yard has; in one round trip at most."""
        later = [
            attempt for attempt in attempts if attempt.claim.resume is not None and self.keeps_checkpoints(attempt)
        ]
        held = {attempt.key: self.checkpoints(attempt) for attempt in later if _may_be_here(attempt)}
        filled = self._host.filled(list(held.values())) if held else set()
        for attempt in later:
            is_here = held.get(attempt.key) in filled
            attempt.checkpoint = None if is_here or attempt.claim.resume is None else attempt.claim.resume.tree
            attempt.afresh = attempt.key not in held and attempt.checkpoint is None

    def freeze(self, attempts: Sequence[Attempt]) -> None:
        """Write spec.json with what was granted: the last act before the start, in one round trip; and one more where
        attempts may go on from checkpoints."""
        again = {attempt.key: self.checkpoints(attempt) for attempt in attempts if _may_go_on(attempt)}
        filled = self._host.filled(list(again.values())) if again else set()
        resume = {key: directory for key, directory in again.items() if directory in filled}
        frozen = {attempt.place: self._frozen(attempt, resume.get(attempt.key)) for attempt in attempts}
        self._put({f"{place}/spec.json": _encode(spec) for place, spec in frozen.items()}, ())

    def output_directory(self, attempt: Attempt) -> str:
        """The place that the user named, or the attempt's own."""
        paths = self._paths(attempt)
        named = attempt.claim.spec.get("env", {}).get("OUTPUT_DIR") or paths.outputs
        return environment.resolve(named, paths.cwd)

    def _put(self, files: Mapping[str, bytes], directories: Sequence[str]) -> None:
        try:
            self._host.put(self._root, files, directories)
        except Unreachable:
            raise
        except OSError as error:
            raise StagingFailed.because(error, self._root, NEW_DIRECTORY if self._inherits else "") from error

    def _frozen(self, attempt: Attempt, resume: str | None) -> dict[str, Any]:
        spec, grant = attempt.spec, attempt.grant
        assert spec is not None and grant is not None, "staged and granted before it is started"
        paths = self._paths(attempt)
        if "OUTPUT_DIR" in spec.env:
            self._make_outputs(attempt)
        return {
            "key": str(attempt.key),
            "tag": attempt.job.tag,
            "argv": [*_interpreter(spec.script, attempt.job.directory), *attempt.claim.argv],
            "env": {
                **environment.build(
                    spec, attempt.key, paths, grant.gpus, self._site, self._base,
                    self._described.env, resume=resume, here=not self._host.copies, python=attempt.python,
                ),
                **dialects.variables(spec, attempt.key, self._described.kind, self._node),
            },
            "inherit_env": self._inherits,
            "programs": f"{attempt.python}/bin" if attempt.python else "",
            "scheduler": self._described.kind if self._site.elastic else None,
            "scratch": self._scratch,
            "scratch_names": dialects.scratch_names(spec),
            "keeps_tmpdir": "TMPDIR" in spec.env,
            "setup": list(self._described.setup),
            "checkpoint": self._checkpoint(spec, attempt),
            "cwd": paths.cwd,
            "time_limit": grant.resources.time,
            "memory_limit": grant.resources.memory,
            "stop": spec.stop.to_json(),
            "permit": {"seconds": attempt.job.permit} if attempt.job.permit is not None else None,
            "split_output": spec.split_output,
            "metrics": spec.metrics.to_json(),
            **_files(spec, attempt),
            "cpus": grant.resources.cpus,
            "gpus": list(grant.gpus),
        }  # fmt: skip

    def _checkpoint(self, spec: RunSpec, attempt: Attempt) -> dict[str, Any] | None:
        if spec.checkpoint is None:
            return None
        asked = spec.checkpoint
        told = {"signal": asked.signal, "grace": asked.grace, "directory": self.checkpoints(attempt)}
        pruned = {"prune": globs.pattern(asked.prune), "keep": asked.keep} if asked.prune else {}
        return {**told, **pruned}

    def checkpoints(self, attempt: Attempt) -> str:
        """The place that the user named, or the run's own."""
        paths = self._paths(attempt)
        named = attempt.claim.spec.get("env", {}).get("CHECKPOINT_DIR") or paths.checkpoints
        return environment.resolve(named, paths.cwd)

    def keeps_checkpoints(self, attempt: Attempt) -> bool:
        """Whether they are runyard's to send, to bring and to remove. A place that the user named is the user's."""
        return self.checkpoints(attempt) == self._paths(attempt).checkpoints

    def _paths(self, attempt: Attempt) -> Paths:
        directory = attempt.job.directory
        return Paths(
            cwd=attempt.claim.spec.get("cwd") or f"{directory}/{'code' if attempt.claim.spec.get('code') else 'work'}",
            params=f"{directory}/params.json",
            outputs=f"{directory}/outputs",
            checkpoints=f"{os.path.dirname(directory)}/checkpoints",
            inputs=f"{directory}/inputs",
            code=f"{directory}/code",
            data=f"{directory}/data",
            metrics=f"{directory}/metrics.jsonl",
            control=f"{directory}/control.json",
        )

    def _make_outputs(self, attempt: Attempt) -> None:
        """A place that the user named is made as ours would be; where that fails, the run itself says it better."""
        with contextlib.suppress(OSError):
            self._host.put(self.output_directory(attempt), {})


def _may_be_here(attempt: Attempt) -> bool:
    return attempt.claim.resume is not None and attempt.claim.resume.held


def _may_go_on(attempt: Attempt) -> bool:
    return attempt.claim.resume is not None and not attempt.claim.resume.afresh


def _interpreter(script: str | None, directory: str) -> list[str]:
    """The script, after the words of its #! line: a kernel would read them so, but only from a file that may be
    executed."""
    if script is None:
        return []
    first = script.partition("\n")[0]
    words = first[2:].split(None, 1) if first.startswith("#!") else []
    return [*(word.rstrip() for word in words or ["/bin/sh"]), f"{directory}/script"]


def _files(spec: RunSpec, attempt: Attempt) -> dict[str, str]:
    """Files of the user's own. A later attempt goes on in them."""
    run = attempt.key.run
    array = spec.array.first_run(run) if spec.array is not None else run
    named = {"stdout": spec.stdout, "stderr": spec.stderr}
    found = {name: output_file.with_ids(path, run, array) for name, path in named.items() if path is not None}
    if not found:
        return {}
    goes_on = spec.open_mode == output_file.TRUNCATE and attempt.key.attempt > 1
    return {**found, "open_mode": "continue" if goes_on else spec.open_mode}


def _spec_file(attempt: Attempt) -> str:
    return f"{attempt.job.directory}/spec.json"


def _encode(value: Any) -> bytes:
    """ASCII only: undecodable bytes travel as lone surrogates and arrive unchanged."""
    return json.dumps(value).encode("ascii")
