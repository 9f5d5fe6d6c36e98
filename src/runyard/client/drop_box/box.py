"""A drop box, as seen by the submitting user."""

from __future__ import annotations

import json
import re
import secrets
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import unquote, urlsplit

from runyard import errors
from runyard.client import run_inputs, staging
from runyard.client.drop_box.folder import FolderStorage
from runyard.client.drop_box.sftp import SftpStorage
from runyard.client.drop_box.storage import BoxStorage, BundleFile
from runyard.client.fetch import make_directory, safe_parts
from runyard.client.snapshot import ProgressDisplay, Snapshot, reading
from runyard.client.staging import Staging
from runyard.model import bundle as names
from runyard.model.bundle import CODE, DATA, FILES, LINKS, RUN
from runyard.model.states import FINAL
from runyard.settings import Settings

POLL_S = 2.0
ENDED = frozenset((*FINAL, names.REFUSED))
Json = dict[str, Any]


def open_box(text: str) -> DropBox:
    """`sftp://[user@]host[:port]/folder`, `file:///folder` or a path."""
    if text.startswith("sftp://"):
        return DropBox(SftpStorage.parse(text))
    path = unquote(urlsplit(text).path) if text.startswith("file://") else text
    if "://" in path or not path:
        raise errors.InvalidInput(f"--via: {text!r} is not an address", "name a folder, or sftp://host/folder")
    return DropBox(FolderStorage(Path(path).expanduser().absolute()))


class DropBox:
    def __init__(self, place: BoxStorage) -> None:
        self._place = place

    def __str__(self) -> str:
        return str(self._place)

    def hand_in(self, spec: Mapping[str, Any], settings: Settings, progress: ProgressDisplay | None = None) -> str:
        """The name that the other commands take."""
        staged = staging.build(settings, progress)
        (run,) = staged.complete([run_inputs.resolve(spec)])
        names.check_fields(run)
        name = _name(run)
        self._place.deliver(names.partial(name), f"{name}{names.HANDED_IN}", _parts(run, staged))
        return name

    def states(self) -> list[Json]:
        """Of all bundles, the newest name last; one that no agent has read is `waiting`."""
        there = self._place.names()
        handed = {one.removesuffix(names.HANDED_IN) for one in there if _is(one, names.HANDED_IN)}
        known = {one.removesuffix(names.STATE) for one in there if _is(one, names.STATE)}
        found = self._read(sorted(known))
        return [found.get(name) or _unseen(name) for name in sorted(handed | known)]

    def state(self, name: str) -> Json:
        found = self._read([names.check_name(name)])
        if name in found:
            return found[name]
        if f"{name}{names.HANDED_IN}" not in self._place.names():
            raise errors.NotFound(f"{self} has no bundle {name}", f"runyard ls --via {self}")
        return _unseen(name)

    def log(self, name: str, follow: bool = False) -> Iterator[bytes]:
        with TemporaryDirectory(prefix="runyard-via-") as place:
            copied, shown = Path(place, "log"), 0
            while True:
                is_over = not follow or self.state(name)["state"] in ENDED
                data = self._new(name, copied, shown)
                shown += len(data)
                yield data
                if is_over:
                    return
                time.sleep(POLL_S)

    def fetch(self, name: str, target: Path) -> list[Path]:
        """The results of a run that has ended; raises Conflict before."""
        state = self.state(name)
        if state["state"] not in ENDED:
            raise errors.Conflict(f"{name} is {state['state']}", f"wait for its end: runyard ls --via {self}")
        outputs = {"/".join(safe_parts(item["path"])): item for item in state.get("outputs") or ()}
        make_directory(target)
        missing = [path for path, item in outputs.items() if not _has(target / path, item)]
        self._place.bring(missing, f"{name}{names.STATE}/{names.OUTPUTS}", target)
        for path in missing:
            if not _has(target / path, outputs[path]):
                raise errors.RunyardError(f"{path} arrived damaged and was not kept", "fetch again")
        return [target / path for path in outputs]

    def cancel(self, name: str) -> None:
        """Request its end; the state shows when it has ended."""
        self.state(name)
        self._place.touch(f"{name}{names.CANCEL}")

    def _new(self, name: str, copied: Path, shown: int) -> bytes:
        try:
            self._place.copy(f"{name}{names.STATE}/{names.LOG}", copied)
        except errors.NotFound:  # it has written nothing yet
            return b""
        with copied.open("rb") as log:
            log.seek(shown)
            return log.read()

    def _read(self, bundles: list[str]) -> dict[str, Json]:
        paths = {f"{name}{names.STATE}/{names.STATE_FILE}": name for name in bundles}
        return {paths[path]: json.loads(data) for path, data in self._place.read(list(paths)).items()}


def _parts(run: Json, staged: Staging) -> list[BundleFile]:
    by_tree = {snapshot.tree.digest: snapshot for snapshot in staged.snapshots()}
    folders = {CODE: by_tree[run["code"]["tree"]]} if run.get("code") else {}
    folders |= {f"{DATA}/{item['to']}": by_tree[item["tree"]] for item in run.get("data") or ()}
    said = {name: value for name, value in run.items() if value is not None}
    parts = [BundleFile(path=RUN, source=json.dumps(said, indent=2).encode())]
    links = {folder: [list(link) for link in shot.tree.links] for folder, shot in folders.items() if shot.tree.links}
    if links:
        parts.append(BundleFile(path=LINKS, source=json.dumps(links).encode()))
    for digest, data in _texts(staged).items():
        parts.append(BundleFile(path=f"{FILES}/{digest.removeprefix('sha256:')}", source=data))
    return parts + [part for folder, shot in folders.items() for part in _files(folder, shot)]


def _texts(staged: Staging) -> dict[str, bytes]:
    """Without the trees, which are made again from the folders."""
    found = staged.texts()
    for snapshot in staged.snapshots():
        found |= {digest: data for digest, data in snapshot.texts().items() if digest != snapshot.tree.digest}
    return found


def _files(folder: str, snapshot: Snapshot) -> Iterator[BundleFile]:
    for file in snapshot.tree.files:
        yield BundleFile(path=f"{folder}/{file.path}", source=snapshot.root / file.path, executable=file.executable)


def _name(run: Json) -> str:
    """Names sort by time, and two users do not get the same one."""
    called = re.sub(r"[^A-Za-z0-9_-]+", "-", str(run.get("name") or run.get("project") or "run")).strip("-_")[:40]
    return f"{datetime.now(UTC):%Y%m%d-%H%M%S}-{called or 'run'}-{secrets.token_hex(3)}"


def _is(name: str, ending: str) -> bool:
    return name.endswith(ending) and not name.startswith(".")


def _unseen(name: str) -> Json:
    return {"bundle": name, "id": None, "state": names.WAITING, "detail": "no agent has read it yet"}


def _has(path: Path, item: Json) -> bool:
    """An existing entry that cannot become it is deleted; a partial one may be continued."""
    if not path.is_file():
        return False
    if path.stat().st_size < item["size"]:
        return False
    if reading.read_digest(path, str(path))[0] == item["digest"]:
        return True
    path.unlink()
    return False
