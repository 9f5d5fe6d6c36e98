"""Upload code and data of runs: folders become snapshots, specs name these, and the yard gets their files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runyard.client import python_env, upload
from runyard.client.python_env import Recording, requested
from runyard.client.run_inputs import CodeHere, DataHere, Spec
from runyard.client.snapshot import Camera, ProgressDisplay, Snapshot, SnapshotLimits, take_code, take_data, unseen
from runyard.client.snapshot.limits import biggest
from runyard.settings import Settings, find_cache

if TYPE_CHECKING:
    from runyard.client.session import Session


class Staging:
    """State of one call: each folder is read once, however many runs name it."""

    def __init__(self, camera: Camera, record: Callable[[], Recording]) -> None:
        """`record` returns the Python environment here; it is called once."""
        self._camera = camera
        self._record = functools.cache(record)
        self._pythons: dict[tuple[Any, Path | None], Any] = {}
        self._texts: dict[str, bytes] = {}  # files that are in no folder
        self._code: dict[tuple[CodeHere, frozenset[str]], Snapshot] = {}
        self._data: dict[Path, Snapshot] = {}

    def complete(self, specs: Iterable[Spec]) -> list[dict[str, Any]]:
        """The specs in the yard's form, from those that `run_inputs` has resolved."""
        return [self._complete(spec) for spec in specs]

    def send(self, client: Session, known: set[str]) -> None:
        """`known`: digests of small files that the yard was sent before."""
        texts = {digest: data for digest, data in self._texts.items() if digest not in known}
        upload.send(client, self.snapshots(), self._camera.progress, texts)
        known.update(texts)

    def describe(self) -> list[dict[str, Any]]:
        """What would be sent, as text for the user."""
        return [
            {
                "folder": str(snapshot.root),
                "files": len(snapshot.tree.files),
                "size": snapshot.tree.size,
                "biggest": [list(item) for item in biggest((file.path, file.size) for file in snapshot.tree.files)],
            }
            for snapshot in self.snapshots()
        ]

    def texts(self) -> dict[str, bytes]:
        """Small files that belong to no folder, by digest."""
        return dict(self._texts)

    def snapshots(self) -> list[Snapshot]:
        return [*self._code.values(), *self._data.values()]

    def _complete(self, spec: Spec) -> dict[str, Any]:
        complete = dict(spec)
        data = spec.get("data") or ()
        if isinstance(spec.get("code"), CodeHere):
            complete["code"] = self._snapshot(spec["code"], data).code().to_json()
        if complete.get("code") is not None:
            complete.setdefault("cwd", None)  # it works in its copy of the code
        if data:
            complete["data"] = [self._described(item) for item in data]
        complete["python_env"] = self._python(spec)
        return complete

    def _python(self, spec: Spec) -> Any:
        given, code = spec.get("python_env"), spec.get("code")
        root = code.root if isinstance(code, CodeHere) else None
        known = (given, root) if not isinstance(given, Mapping) else None
        if known is None:
            return given
        if known not in self._pythons:
            self._pythons[known], texts = requested.complete(given, self._record(), root)
            self._texts |= texts
        return self._pythons[known]

    def _snapshot(self, code: CodeHere, data: Iterable[DataHere | Spec]) -> Snapshot:
        """Without the folders that are sent as data and will be linked at the same paths."""
        sent = (item.to for item in data if isinstance(item, DataHere) and item.folder == code.root / item.to)
        key = (code, frozenset(sent))
        if key not in self._code:
            self._code[key] = take_code(code.root, code.paths, self._camera, without=key[1])
        return self._code[key]

    def _described(self, item: DataHere | Spec) -> Spec:
        if not isinstance(item, DataHere):
            return item
        if item.folder not in self._data:
            self._data[item.folder] = take_data(item.folder, self._camera)
        return {"tree": self._data[item.folder].tree.digest, "to": item.to}


def build(settings: Settings, progress: ProgressDisplay | None = None) -> Staging:
    cache = find_cache()
    limits = SnapshotLimits(code=settings.code_limit, code_files=settings.code_files, data=settings.data_limit)
    camera = Camera(limits=limits, cache=cache / "snapshots", progress=progress or unseen)
    return Staging(camera, lambda: python_env.record(cache / "pythons"))
