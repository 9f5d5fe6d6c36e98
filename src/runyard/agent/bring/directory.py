"""Build attempts' directories: everything that a runner needs, complete before it is started."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from runyard import errors
from runyard.agent.attempts import Attempt
from runyard.agent.bring import environment, script_variables
from runyard.agent.bring.environment import Paths
from runyard.backends.base import Job
from runyard.backends.batch import naming
from runyard.hosts.base import Host, Unreachable
from runyard.model import globs, output_file
from runyard.model.resources import Capacity
from runyard.model.site import SiteSpec
from runyard.model.spec import RunSpec
from runyard.model.wire import Claim

FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})
YARD = "yard"  # file beside the runs: the yard that owns them
NEW_DIRECTORY = "choose another directory with: runyard site edit --dir DIRECTORY"


class StagingFailed(Exception):
    """The directory of an attempt could not be built. `ending` is the ending in its record; `of` what is missing."""

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
        scratch: str = "", node: str | None = None, signals: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """`scratch`: base of scratch directories, if it is set; `node`: where runs execute, unless a scheduler decides
        later; `signals`: what its scheduler sends to runners, see `Backend.signals`."""
        self._node, self._signals = node, signals
        self._host, self._root, self._site, self._scratch = host, root, site, scratch
        self._described = described or SiteSpec()
        self._is_ours = False
        # On another machine, runs have the environment of that machine, with ours on top.
        self._inherits = site.elastic or host.copies
        self._base = {} if self._inherits else base

    def receive(self, claim: Claim) -> Attempt:
        """An attempt with nothing on disk yet."""
        return Attempt(claim=claim, job=self._job(claim, secrets.token_hex(8)), fresh=True)

    def recall(self, claims: Sequence[Claim]) -> list[Attempt]:
        """Attempts of an earlier incarnation: their tags and GPUs are in the specs that it wrote.
        Raises Unreachable."""
        files = {claim.key: f"{self._directory(claim)}/spec.json" for claim in claims}
        frozen = self._host.fetch_many(list(files.values()))
        return [self._recalled(claim, frozen.get(files[claim.key], b"")) for claim in claims]

    def _recalled(self, claim: Claim, frozen: bytes) -> Attempt:
        tag, gpus = secrets.token_hex(8), ()
        with contextlib.suppress(ValueError, KeyError, TypeError):
            said = json.loads(frozen)
            tag, gpus = said["tag"], tuple(said["gpus"])
        return Attempt(claim=claim, job=self._job(claim, tag), prefer_gpus=gpus)

    def _job(self, claim: Claim, tag: str) -> Job:
        return Job(
            key=claim.key, directory=self._directory(claim), tag=tag, batch=claim.batch, index=claim.position,
            permit=claim.permit,
        )  # fmt: skip

    def _directory(self, claim: Claim) -> str:
        return f"{self._root}/{claim.key.run}/a{claim.key.attempt}"

    def understand(self, attempt: Attempt) -> None:
        """Raises StagingFailed."""
        try:
            attempt.built.spec = RunSpec.parse(attempt.claim.spec)
        except errors.InvalidInput as error:
            raise StagingFailed(f"the agent cannot parse this run: {error.message}") from None

    def prepare(self, attempts: Sequence[Attempt]) -> None:
        """Create directories and parameters of all attempts, in one round trip."""
        if self._site.elastic and not self._is_ours:
            self._take_root(attempts)
        directories: list[str] = []
        files: dict[str, bytes] = {}
        for attempt in attempts:
            run = str(attempt.key.run)
            # Its directory first: expired checkpoints are deleted only if there is no new attempt.
            directories += [run, attempt.place, f"{attempt.place}/outputs", f"{run}/checkpoints"]
            if self._paths(attempt).cwd == f"{attempt.job.directory}/work":
                directories.append(f"{attempt.place}/work")
            files[f"{attempt.place}/params.json"] = _encode(attempt.claim.spec.get("params", {}))
            script = attempt.claim.spec.get("script")
            if script is not None:
                files[f"{attempt.place}/script"] = script.encode("utf-8", "surrogateescape")
        self._put(files, directories)

    def _take_root(self, attempts: Sequence[Attempt]) -> None:
        """Several yards may share a file system, and each numbers its runs from one: another yard's files could be
        mistaken for ours. So the directory belongs to the yard that used it first."""
        path, yard = f"{self._root}/{YARD}", naming.yard_prefix(attempts[0].claim.batch).encode()
        held = self._host.fetch_many([path]).get(path)
        if held is None:
            self._put({YARD: yard}, ())
            held = self._host.fetch_many([path]).get(path)
        if held != yard:
            for attempt in attempts:  # a directory of its name must be neither read nor deleted
                attempt.built.refused = True
            other = os.fsdecode(held or b"").rstrip("-")
            raise StagingFailed(
                f"{self._root} has the runs of another yard, {other}, with the same numbers; {NEW_DIRECTORY}, "
                f"or remove {path} if that yard does not exist any more"
            )
        self._is_ours = True

    def find_checkpoints(self, attempts: Sequence[Attempt]) -> None:
        """Decide what later attempts resume from: local checkpoints or the yard's; in one round trip at most."""
        later = [
            attempt for attempt in attempts if attempt.claim.resume is not None and self.keeps_checkpoints(attempt)
        ]
        held = {attempt.key: self.checkpoints(attempt) for attempt in later if _may_be_here(attempt)}
        filled = self._host.filled(list(held.values())) if held else set()
        for attempt in later:
            is_here = held.get(attempt.key) in filled
            attempt.built.checkpoint = None if is_here or attempt.claim.resume is None else attempt.claim.resume.tree
            attempt.built.afresh = attempt.key not in held and attempt.built.checkpoint is None

    def start_afresh(self, attempt: Attempt, why: str) -> None:
        """Its checkpoint cannot be fetched."""
        attempt.built.checkpoint, attempt.built.afresh = None, True
        attempt.built.notes.append(f"started from the beginning: {why}")

    def freeze(self, attempts: Sequence[Attempt]) -> None:
        """Write spec.json with the granted resources: the last step before the start, in one round trip; and one more
        for attempts that may resume from checkpoints."""
        again = {attempt.key: self.checkpoints(attempt) for attempt in attempts if _may_go_on(attempt)}
        filled = self._host.filled(list(again.values())) if again else set()
        resume = {key: directory for key, directory in again.items() if directory in filled}
        frozen = {attempt.place: self._frozen(attempt, resume.get(attempt.key)) for attempt in attempts}
        self._put({f"{place}/spec.json": _encode(spec) for place, spec in frozen.items()}, ())

    def output_directory(self, attempt: Attempt) -> str:
        """The directory that the user set, or the attempt's own."""
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
        assert grant is not None, "granted before it is started"
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
                **script_variables.variables(spec, attempt.key, self._described.kind, self._node),
            },
            "inherit_env": self._inherits,
            "programs": f"{attempt.python}/bin" if attempt.python else "",
            "signals": self._signals,
            "scratch": self._scratch,
            "scratch_names": script_variables.scratch_names(spec),
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
        """The directory that the user set, or the run's own."""
        paths = self._paths(attempt)
        named = attempt.claim.spec.get("env", {}).get("CHECKPOINT_DIR") or paths.checkpoints
        return environment.resolve(named, paths.cwd)

    def keeps_checkpoints(self, attempt: Attempt) -> bool:
        """Whether runyard uploads, fetches and deletes them: not in a directory that the user set."""
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
        """Create a directory that the user set; if that fails, the run itself reports it better."""
        with contextlib.suppress(OSError):
            self._host.put(self.output_directory(attempt), {})


def _may_be_here(attempt: Attempt) -> bool:
    return attempt.claim.resume is not None and attempt.claim.resume.held


def _may_go_on(attempt: Attempt) -> bool:
    return attempt.claim.resume is not None and not attempt.claim.resume.afresh


def _interpreter(script: str | None, directory: str) -> list[str]:
    """The script, after the words of its #! line, as the kernel would parse it if the file were executable."""
    if script is None:
        return []
    first = script.partition("\n")[0]
    words = first[2:].split(None, 1) if first.startswith("#!") else []
    return [*(word.rstrip() for word in words or ["/bin/sh"]), f"{directory}/script"]


def _files(spec: RunSpec, attempt: Attempt) -> dict[str, str]:
    """Output files that the user named. A later attempt appends to them."""
    run = attempt.key.run
    array = spec.array.first_run(run) if spec.array is not None else run
    named = {"stdout": spec.stdout, "stderr": spec.stderr}
    found = {name: output_file.with_ids(path, run, array) for name, path in named.items() if path is not None}
    if not found:
        return {}
    goes_on = spec.open_mode == output_file.TRUNCATE and attempt.key.attempt > 1
    return {**found, "open_mode": "continue" if goes_on else spec.open_mode}


def _encode(value: Any) -> bytes:
    """ASCII only: undecodable bytes are lone surrogates and arrive unchanged."""
    return json.dumps(value).encode("ascii")
