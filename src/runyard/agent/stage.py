"""Build attempts' directories: everything a runner needs, complete before it is started."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import secrets
from collections.abc import Mapping, Sequence
from typing import Any

from runyard import errors
from runyard.agent import environment
from runyard.agent.attempts import Attempt
from runyard.agent.environment import Paths
from runyard.backends.base import Job
from runyard.hosts.base import Host
from runyard.model.resources import Capacity
from runyard.model.spec import RunSpec
from runyard.model.wire import Claim

FULL_DISK = frozenset({errno.ENOSPC, errno.EDQUOT})


class StagingFailed(Exception):
    """The directory of an attempt could not be built. `ending` is what its record will say."""

    def __init__(self, message: str, ending: str = "staging") -> None:
        super().__init__(message)
        self.message, self.ending = message, ending

    @classmethod
    def because(cls, error: OSError) -> StagingFailed:
        ending = "disk" if error.errno in FULL_DISK else "staging"
        return cls(f"{error.filename or 'its directory'}: {(error.strerror or str(error)).lower()}", ending)


class Stager:
    def __init__(self, host: Host, root: str, site: Capacity, base: Mapping[str, str]) -> None:
        self._host, self._root, self._site, self._base = host, root, site, base

    def receive(self, claim: Claim) -> Attempt:
        """An attempt with nothing on disk yet."""
        place = f"{claim.key.run}/a{claim.key.attempt}"
        job = Job(
            key=claim.key, directory=f"{self._root}/{place}", tag=secrets.token_hex(8), batch=claim.batch,
            index=claim.position,
        )  # fmt: skip
        return Attempt(claim=claim, job=job, place=place)

    def recall(self, claim: Claim) -> Attempt:
        """An attempt as an earlier incarnation left it: its tag and GPUs stand in the spec that was written then."""
        attempt = self.receive(claim)
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            frozen = json.loads(self._host.fetch(f"{attempt.job.directory}/spec.json"))
            attempt.job = Job(
                key=claim.key, directory=attempt.job.directory, tag=frozen["tag"], batch=claim.batch,
                index=claim.position,
            )  # fmt: skip
            attempt.prefer_gpus = tuple(frozen["gpus"])
        return attempt

    def understand(self, attempt: Attempt) -> None:
        try:
            attempt.spec = RunSpec.parse(attempt.claim.spec)
        except errors.InvalidInput as error:
            raise StagingFailed(f"the agent does not understand this run: {error.message}") from None

    def prepare(self, attempts: Sequence[Attempt]) -> None:
        """Directories and parameters of all of them, in one round trip."""
        directories: list[str] = []
        files: dict[str, bytes] = {}
        for attempt in attempts:
            run = str(attempt.key.run)
            directories += [run, f"{run}/checkpoints", attempt.place, f"{attempt.place}/outputs"]
            if attempt.claim.spec.get("cwd") is None:
                directories.append(f"{attempt.place}/work")
            files[f"{attempt.place}/params.json"] = _encode(attempt.claim.spec.get("params", {}))
        self._put(files, directories)

    def freeze(self, attempts: Sequence[Attempt]) -> None:
        """Write spec.json with what was granted: the last act before the start, in one round trip."""
        self._put({f"{attempt.place}/spec.json": _encode(self._frozen(attempt)) for attempt in attempts}, ())

    def output_directory(self, attempt: Attempt) -> str:
        """The place that the user named, or the attempt's own."""
        paths = self._paths(attempt)
        named = attempt.claim.spec.get("env", {}).get("OUTPUT_DIR") or paths.outputs
        return environment.resolve(named, paths.cwd)

    def _put(self, files: Mapping[str, bytes], directories: Sequence[str]) -> None:
        try:
            self._host.put(self._root, files, directories)
        except OSError as error:
            raise StagingFailed.because(error) from error

    def _frozen(self, attempt: Attempt) -> dict[str, Any]:
        spec, grant = attempt.spec, attempt.grant
        assert spec is not None and grant is not None, "staged and granted before it is started"
        paths = self._paths(attempt)
        if "OUTPUT_DIR" in spec.env:
            self._make_outputs(attempt)
        return {
            "key": str(attempt.key),
            "tag": attempt.job.tag,
            "argv": attempt.claim.argv,
            "env": environment.build(
                spec, attempt.key, attempt.claim.position, paths, grant.gpus, self._site, self._base
            ),
            "cwd": paths.cwd,
            "time_limit": grant.resources.time,
            "memory_limit": grant.resources.memory,
            "stop": spec.stop.to_json(),
            "split_output": spec.split_output,
            "cpus": grant.resources.cpus,
            "gpus": list(grant.gpus),
        }

    def _paths(self, attempt: Attempt) -> Paths:
        directory = attempt.job.directory
        return Paths(
            cwd=attempt.claim.spec.get("cwd") or f"{directory}/work",
            params=f"{directory}/params.json",
            outputs=f"{directory}/outputs",
            checkpoints=f"{os.path.dirname(directory)}/checkpoints",
        )

    def _make_outputs(self, attempt: Attempt) -> None:
        """A place that the user named is made as ours would be; where that fails, the run itself says it better."""
        with contextlib.suppress(OSError):
            self._host.put(self.output_directory(attempt), {})


def _encode(value: Any) -> bytes:
    """ASCII only: undecodable bytes travel as lone surrogates and arrive unchanged."""
    return json.dumps(value).encode("ascii")
