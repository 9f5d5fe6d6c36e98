"""Bring the files that runs ask for into their directories, before any slot is held."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence

from runyard import errors
from runyard.agent.attempts import Attempt
from runyard.agent.errands import Errands
from runyard.agent.link import Link
from runyard.agent.stage import StagingFailed, inputs_directory
from runyard.hosts.base import Host, Parcel, Unreachable
from runyard.model.wire import AttemptKey

LANE = "inputs"

Trouble = StagingFailed | Unreachable | errors.YardUnreachable  # the last two pass
Brought = Callable[[Attempt, Trouble | None], None]
Troubles = dict[AttemptKey, Trouble]


class Inputs:
    def __init__(self, link: Link, host: Host, errands: Errands) -> None:
        self._link, self._host, self._errands = link, host, errands

    def bring(self, attempts: Sequence[Attempt], brought: Brought) -> None:
        """Of all of these at once; `brought` is called for each: now where it asks for nothing, or else later."""
        asking = [attempt for attempt in attempts if attempt.spec is not None and attempt.spec.inputs]
        for attempt in attempts:
            attempt.bringing = attempt in asking
            if not attempt.bringing:
                brought(attempt, None)
        if asking:
            self._errands.send(LANE, lambda: self._deliver(asking), functools.partial(_tell, asking, brought))

    def _deliver(self, attempts: Sequence[Attempt]) -> Troubles:
        """In one round trip; after a failure one by one, because it may be of one only."""
        try:
            self._host.deliver(list(self._parcels(attempts)))
        except (Unreachable, errors.YardUnreachable) as error:
            return {attempt.key: error for attempt in attempts}
        except (OSError, errors.RunyardError) as error:
            if len(attempts) > 1:
                return {key: one for attempt in attempts for key, one in self._deliver([attempt]).items()}
            return {attempts[0].key: _failure(error, inputs_directory(attempts[0]))}
        return {}

    def _parcels(self, attempts: Iterable[Attempt]) -> Iterable[Parcel]:
        """Each file travels once, however many of them ask for it."""
        targets: dict[str, list[str]] = {}
        for attempt in attempts:
            assert attempt.spec is not None, "only what was understood is staged"
            for asked in attempt.spec.inputs:
                targets.setdefault(asked.digest, []).append(f"{inputs_directory(attempt)}/{asked.to}")
        for digest, places in targets.items():
            read = functools.partial(self._link.get_blob, digest)
            yield Parcel(digest=digest, targets=tuple(places), read=read)


def _tell(attempts: Sequence[Attempt], brought: Brought, troubles: Troubles | None, error: Exception | None) -> None:
    for attempt in attempts:
        attempt.bringing = False
    if error is not None:
        raise error
    for attempt in attempts:
        brought(attempt, (troubles or {}).get(attempt.key))


def _failure(error: OSError | errors.RunyardError, directory: str) -> StagingFailed:
    if isinstance(error, OSError):
        return StagingFailed.because(error, directory)
    return StagingFailed(f"its inputs cannot be brought: {error.message}")
