"""All data of a run in the yard, for a comparison."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from runyard import errors
from runyard.client import metrics, outputs
from runyard.client.compare import packages
from runyard.client.compare.comparison import Comparison, Side, compare
from runyard.model.tree import Tree

if TYPE_CHECKING:
    from runyard.client.session import Session


def compare_runs(session: Session, first: int, second: int) -> Comparison:
    """As they are now. Files that the yard no longer has are named in its notes."""
    blobs = _Blobs(session)
    return compare(_side(session, first, blobs), _side(session, second, blobs), blobs.read)


class _Blobs:
    """Each file is fetched once: two runs have most of theirs in common."""

    def __init__(self, client: Session) -> None:
        self._client = client
        self._known: dict[str, bytes | None] = {}

    def read(self, digest: str) -> bytes | None:
        if digest not in self._known:
            self._known[digest] = self._fetch(digest)
        return self._known[digest]

    def _fetch(self, digest: str) -> bytes | None:
        try:
            with self._client.open("GET", f"/blobs/{digest}") as stream:
                return b"".join(stream)
        except errors.NotFound:
            return None


def _side(session: Session, run: int, blobs: _Blobs) -> Side:
    data = session.call("GET", f"/runs/{run}")
    notes: list[str] = []
    return Side(
        run=data,
        code=_code(data, blobs, notes),
        packages=_packages(data, blobs, notes),
        outputs={output.path: output.digest for output in outputs.of_run(session, run)},
        metrics=dict(_values(metrics.summed_up(session, run))),
        notes=tuple(notes),
    )


def _code(data: Mapping[str, Any], blobs: _Blobs, notes: list[str]) -> Tree | None:
    code = data["spec"].get("code")
    if not code:
        return None
    text = blobs.read(code["tree"])
    if text is None:
        notes.append(f"run {data['id']}: the yard does not have its code any more")
        return None
    return Tree.parse(text)


def _packages(data: Mapping[str, Any], blobs: _Blobs, notes: list[str]) -> dict[str, str]:
    python = data["spec"].get("python_env")
    record = (python.get("record") if isinstance(python, Mapping) else None) or {}
    found: dict[str, str] = {}
    for name, parse in (("freeze", packages.of_pip), ("conda", packages.of_conda)):
        text = blobs.read(record[name]) if record.get(name) else b""
        if text is None:
            notes.append(f"run {data['id']}: the yard does not have its list of packages any more")
        else:
            found |= parse(text.decode("utf-8", "replace"))
    return found


def _values(answer: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield from ((metric["name"], metric["last"]) for metric in answer["metrics"])
    yield from ((f"summary: {name}", value) for name, value in answer["summary"].items())
