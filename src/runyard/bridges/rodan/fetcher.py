"""Fetch the files of requests from Rodan into the yard, and then start their runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from runyard import errors
from runyard.bridges.rodan import ports
from runyard.bridges.rodan.api import Api, NotEver, TemporaryRodanError
from runyard.loop import Loop
from runyard.model import units
from runyard.model.bridge import RodanBridge
from runyard.model.input_file import InputFile
from runyard.model.intake import Intake

HOLD_S = 10.0  # a request that takes longer is held anew so often

log = logging.getLogger(__name__)


class FetchTask(Protocol):
    @property
    def id(self) -> int: ...
    @property
    def bodies(self) -> Sequence[Mapping[str, Any]]: ...


class FetchTasks(Protocol):
    """The yard's side."""

    def take(self, queue: str, limit: int) -> Sequence[Any]: ...
    def hold(self, request_id: int) -> None: ...
    def start(self, intake: Intake, preparation: Any, inputs: Sequence[InputFile]) -> None: ...
    def fail(self, request_id: int, error: str) -> None: ...
    def postpone(self, preparation: Any, trouble: str) -> float: ...


class RodanFetcher(Loop):
    def __init__(
        self, bridge: RodanBridge, api: Api, preparations: FetchTasks, keep: Callable[[Iterable[bytes]], str]
    ) -> None:
        """`keep` stores bytes in the yard and returns their digest."""
        self._bridge, self._intake = bridge, bridge.intake()
        self._api, self._preparations, self._keep = api, preparations, keep
        self._trouble = ""
        super().__init__("rodan")

    def drain(self, deadline: float) -> None:
        """Until no request can be tried now, or until the deadline (monotonic)."""
        while time.monotonic() < deadline and self.tick():
            pass

    def tick(self) -> bool:
        """The next request; False when there is none that may be tried now."""
        taken = self._preparations.take(self._intake.name, 1)
        for preparation in taken:
            self._serve(preparation)
        return bool(taken)

    def _serve(self, preparation: FetchTask) -> None:
        try:
            wanted = ports.inputs(preparation.bodies[0]["inputs"])
            self._preparations.start(self._intake, preparation, [self._bring(preparation, one) for one in wanted])
        except (NotEver, errors.InvalidInput) as error:
            self._fail(preparation, str(error))
        except (TemporaryRodanError, errors.RunyardError, OSError) as error:
            self._postpone(preparation, str(error))
        else:
            self._trouble = ""

    def _bring(self, preparation: FetchTask, wanted: ports.Input) -> InputFile:
        chunks = self._api.download(wanted.path, self._bridge.input_limit)
        try:
            return InputFile(digest=self._keep(self._held(preparation, chunks)), to=wanted.file)
        except NotEver as error:
            raise NotEver(f"the input '{wanted.port}' cannot be had: {error}") from None
        except TemporaryRodanError as error:
            raise TemporaryRodanError(f"the input '{wanted.port}' cannot be had: {error}") from None

    def _held(self, preparation: FetchTask, chunks: Iterable[bytes]) -> Iterator[bytes]:
        held_at = time.monotonic()
        for chunk in chunks:
            if time.monotonic() > held_at + HOLD_S:
                self._preparations.hold(preparation.id)
                held_at = time.monotonic()
            yield chunk

    def _fail(self, preparation: FetchTask, error: str) -> None:
        log.warning("request %d of Rodan cannot be met: %s", preparation.id, error)
        self._preparations.fail(preparation.id, error)

    def _postpone(self, preparation: FetchTask, trouble: str) -> None:
        if trouble != self._trouble:
            log.warning("request %d of Rodan waits: %s", preparation.id, trouble)
        self._trouble = trouble
        waited = self._preparations.postpone(preparation, trouble)
        if waited > self._bridge.patience:
            self._fail(preparation, f"{trouble}; it was tried for {units.show_duration(waited)}")
