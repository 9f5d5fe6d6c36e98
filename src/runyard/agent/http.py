"""The link to a yard on another machine, over its HTTP API."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from runyard import errors
from runyard.agent.link import Link
from runyard.client.transport import Transport, encode
from runyard.model import packs
from runyard.model.site import AGENT, SiteSpec
from runyard.model.wire import AttemptKey, Claim, ExpiryQuestion, Hello, SyncRequest, SyncResponse

NEWS_WAIT_S = 20
NEWS_PAUSE_S = 5.0  # after a failed request for news: the syncs report why
TRANSFER_TIMEOUT_S = 300.0

log = logging.getLogger(__name__)


class HttpLink:
    def __init__(self, url: str, token: str, ca_file: str = "") -> None:
        self._transport = Transport(url, token, ca_file=ca_file)
        self._closed = threading.Event()

    def describe(self, site: str) -> SiteSpec:
        """The site's description in the yard; an unknown site is the agent's own machine."""
        try:
            return SiteSpec.parse(self._transport.json("GET", "/agents/site", query={"site": site})["config"])
        except errors.NotFound:
            return SiteSpec(served_by=AGENT)

    def hello(self, hello: Hello) -> tuple[int, list[Claim]]:
        answer = self._transport.json("POST", "/agents/hello", hello.to_json())
        return int(answer["incarnation"]), [Claim.parse(claim) for claim in answer["claims"]]

    def sync(self, request: SyncRequest) -> SyncResponse:
        # Not repeatable: a claim whose answer was lost is found again by hello, and only there.
        return SyncResponse.parse(self._transport.json("POST", "/agents/sync", request.to_json()))

    def append(
        self, site: str, agent: str, incarnation: int, key: AttemptKey, file: str, offset: int, data: bytes
    ) -> int:
        query = {"site": site, "agent": agent, "incarnation": incarnation, "offset": offset}
        path = f"/agents/files/{key.run}/{key.attempt}/{file}"
        headers = {"Content-Type": "application/octet-stream"}
        with self._transport.open("PUT", path, query=query, body=data, headers=headers) as answer:
            return int(answer.json()["size"])

    def missing_blobs(self, digests: Iterable[str]) -> set[str]:
        asked, missing = list(digests), set[str]()
        for start in range(0, len(asked), packs.MOST_ASKED):
            body = {"digests": asked[start : start + packs.MOST_ASKED]}
            missing.update(self._transport.json("POST", "/blobs/missing", body, repeatable=True)["missing"])
        return missing

    def put_blob(self, digest: str, path: Path, movable: bool) -> None:
        headers = {"Content-Type": "application/octet-stream"}
        with self._transport.open(
            "PUT", f"/blobs/{digest}", body=path, headers=headers, timeout=TRANSFER_TIMEOUT_S
        ) as answer:
            answer.read()

    def get_blob(self, digest: str, offset: int = 0) -> Iterator[bytes]:
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        try:
            with self._transport.open("GET", f"/blobs/{digest}", headers=headers, timeout=TRANSFER_TIMEOUT_S) as answer:
                yield from answer
        except errors.InvalidInput:
            if not offset:  # beyond its end there is nothing
                raise

    def get_blobs(self, digests: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        asked = {"Content-Type": "application/json"}
        with self._transport.open(
            "POST", "/blobs/fetch", body=encode({"digests": list(digests)}), headers=asked, timeout=TRANSFER_TIMEOUT_S,
            repeatable=True,
        ) as answer:  # fmt: skip
            yield from packs.unpack(answer)

    def expired_checkpoints(self, site: str, agent: str, incarnation: int, runs: Sequence[int]) -> dict[int, int]:
        question = ExpiryQuestion(site=site, agent=agent, incarnation=incarnation, runs=tuple(runs))
        found = self._transport.json("POST", "/agents/checkpoints", question.to_json(), repeatable=True)["expired"]
        return {int(run): attempt for run, attempt in found.items()}

    def on_news(self, site: str, callback: Callable[[], None]) -> None:
        threading.Thread(target=self._ask_for_news, args=(site, callback), name="agent-news", daemon=True).start()

    def close(self) -> None:
        self._closed.set()
        self._transport.close()

    def _ask_for_news(self, site: str, callback: Callable[[], None]) -> None:
        seen: int | None = None
        while not self._closed.is_set():
            query = {"site": site, "wait": NEWS_WAIT_S, "seen": seen}
            try:
                answer = self._transport.json("GET", "/agents/news", query=query, timeout=NEWS_WAIT_S + 30)
            except errors.RunyardError as error:
                log.debug("no news: %s", error)
                self._closed.wait(NEWS_PAUSE_S)
                continue
            seen = answer["number"]
            if answer["news"] and not self._closed.is_set():
                callback()


def _proof(link: HttpLink) -> Link:
    return link
