"""Make the directories of attempts from the cache: a copy of their code, links to shared data, their inputs."""

import errno
import os
from typing import Any, Dict, Iterator, List, Optional, Set, Tuple

from . import checkpoints, files, trees
from .cache import Beat, CacheFiles, Json

Source = Tuple[str, str]  # what it is for, and its digest
Missing = List[List[Any]]  # digest, size (None: only the yard knows), bytes that are here already

_REPLACED = b"resumes"  # in the directory of an attempt whose run's checkpoints were put there for it


def build(cache: CacheFiles, at: List[int], plans: List[Json], beat: Beat) -> Iterator[Json]:
    """Make what can be made. Reports the problem of each plan that has one, and the missing files of each source.

    Existing results are kept: the call may be repeated after any interruption.
    """
    cache.pin_down({plan["name"]: _pin(cache, at, plan) for plan in plans}, beat)
    builder, built = _Builder(cache, beat), {}
    for number, plan in enumerate(plans):
        try:
            if builder.has_all(plan):
                builder.make(plan)
                built[plan["name"]] = _pin(cache, at, plan, built=True)
        except OSError as error:
            if not builder.lacks_more(plan, error):
                yield {"plan": number, "problem": _told(error)}
    cache.pin_down(built, beat)
    for (_, source), missing in builder.missing.items():
        if missing:
            yield {"source": source, "missing": missing}


class _Builder:
    def __init__(self, cache: CacheFiles, beat: Beat) -> None:
        self._cache, self._beat = cache, beat
        self._trees: Dict[str, trees.Tree] = {}
        self._shared: Set[str] = set()
        self.missing: Dict[Source, Missing] = {}

    def has_all(self, plan: Json) -> bool:
        """Also records what is missing. A source is checked once, however many attempts have it."""
        for item in plan["data"]:
            _check_path(item)
        lacking = [self._lacking(source) for source in _sources(plan)]
        return not any(lacking)

    def lacks_more(self, plan: Json, error: OSError) -> bool:
        """Whether something was deleted from the cache in the meantime, which can happen without locks."""
        if not isinstance(error, FileNotFoundError) or not os.fsencode(error.filename or b"").startswith(
            self._cache.root
        ):
            return False
        for source in _sources(plan):
            self.missing.pop(source, None)
        return not self.has_all(plan)

    def make(self, plan: Json) -> None:
        home = files.encode(plan["directory"])
        for item in plan["data"]:
            self._share(item["tree"])
        if plan["data"]:
            _appear(os.path.join(home, b"data"), lambda draft: self._fill_data(plan, draft))
        if plan["inputs"]:
            _appear(os.path.join(home, b"inputs"), lambda draft: self._fill_inputs(plan, draft))
        if plan["code"]:
            _appear(os.path.join(home, b"code"), lambda draft: self._fill_code(plan, draft))
        if _is_to_replace(plan):
            self._replace_checkpoints(plan)

    # --- what is missing ----------------------------------------------------------------------------------------

    def _lacking(self, source: Source) -> Missing:
        if source not in self.missing:
            self.missing[source] = self._look(*source)
        return self.missing[source]

    def _look(self, kind: str, source: str) -> Missing:
        if not self._cache.has(source, None, self._beat):
            return [[source, None, self._cache.held(source)]]
        if kind == "input":
            return []
        tree = self._trees[source] = self._cache.describe(source)
        if kind == "data" and self._cache.is_whole(source, tree, self._beat):
            return []
        wanted = trees.digests(tree).items()
        return [[digest, size, self._cache.held(digest)] for digest, size in wanted if not self._has(digest, size)]

    def _has(self, digest: str, size: int) -> bool:
        self._beat()
        return self._cache.has(digest, size, self._beat)

    # --- making -------------------------------------------------------------------------------------------------

    def _share(self, digest: Optional[str]) -> None:
        if digest is None or digest in self._shared:
            return
        tree = self._trees[digest]
        if not self._cache.is_whole(digest, tree, self._beat):
            self._cache.share(digest, tree, self._beat)
        os.utime(self._cache.tree(digest))
        self._shared.add(digest)

    def _fill_data(self, plan: Json, draft: bytes) -> None:
        for item in plan["data"]:
            _link(draft, trees.safe(item["to"]), self._leads_to(item))

    def _fill_inputs(self, plan: Json, draft: bytes) -> None:
        for digest, to in plan["inputs"]:
            target = os.path.join(draft, trees.safe(to))
            files.make_directory(os.path.dirname(target))
            size = os.stat(self._cache.blob(digest)).st_size
            self._cache.link(trees.TreeFile(target, digest, size, False), target, self._beat)

    def _fill_code(self, plan: Json, draft: bytes) -> None:
        """Data are also found beside the code, where it has nothing of that name itself."""
        tree = self._trees[plan["code"]]
        trees.make(tree, draft, lambda entry, path: self._cache.copy(entry, path, self._beat), self._beat)
        for item in plan["data"]:
            _link(draft, trees.safe(item["to"]), self._leads_to(item))

    def _replace_checkpoints(self, plan: Json) -> None:
        """Completely or not at all. A note in the attempt's directory records that it was done: later contents were
        saved by the attempt itself."""
        home = files.encode(plan["directory"])
        target = os.path.join(os.path.dirname(home), checkpoints.NAME)
        with checkpoints.drafted(target) as draft:
            if plan["checkpoint"]:
                tree = self._trees[plan["checkpoint"]]
                trees.make(tree, draft, lambda entry, path: self._cache.copy(entry, path, self._beat), self._beat)
        files.write(os.path.join(home, _REPLACED), b"")

    def _leads_to(self, item: Json) -> bytes:
        return files.encode(item["path"]) if item["tree"] is None else self._cache.tree(item["tree"])


def _sources(plan: Json) -> Iterator[Source]:
    """Of directories that are not made yet; data are checked each time, because they may have been damaged since."""
    home = files.encode(plan["directory"])
    for item in plan["data"]:
        if item["tree"] is not None:
            yield "data", item["tree"]
    if plan["inputs"] and not os.path.isdir(os.path.join(home, b"inputs")):
        for digest, _ in plan["inputs"]:
            yield "input", digest
    if plan["code"] and not os.path.isdir(os.path.join(home, b"code")):
        yield "code", plan["code"]
    if plan["checkpoint"] and _is_to_replace(plan):
        yield "checkpoint", plan["checkpoint"]


def _is_to_replace(plan: Json) -> bool:
    asked = plan["checkpoint"] or plan["afresh"]
    return bool(asked) and not os.path.exists(os.path.join(files.encode(plan["directory"]), _REPLACED))


def _pin(cache: CacheFiles, at: List[int], plan: Json, built: bool = False) -> Json:
    """Copies need their originals no longer than it takes to make them."""
    data = [item["tree"] for item in plan["data"] if item["tree"] is not None]
    code = [digest for digest in (plan["code"], plan["checkpoint"]) if digest]
    blobs = [digest for digest, _ in plan["inputs"]]
    making = {} if built else {"from": data + code, "blobs": blobs}
    return dict(making, agent=cache.agent, at=at, trees=data)


def _appear(target: bytes, fill: Any) -> None:
    """An existing directory is complete. Files of an interrupted try are deleted first."""
    if os.path.isdir(target):
        return
    draft = target + b".part"
    files.remove_tree(draft)
    os.mkdir(draft, 0o700)
    try:
        fill(draft)
        os.rename(draft, target)
    except BaseException:
        files.remove_tree(draft)
        raise


def _link(root: bytes, path: bytes, target: bytes) -> None:
    """Unless something exists there. Parent directories are made, and links in the path are not followed."""
    place = root
    for part in path.split(b"/")[:-1]:
        place = os.path.join(place, part)
        if not os.path.lexists(place):
            os.mkdir(place, 0o700)
        elif os.path.islink(place) or not os.path.isdir(place):
            return
    if not os.path.lexists(os.path.join(root, path)):
        os.symlink(target, os.path.join(root, path))


def _check_path(item: Json) -> None:
    if item["tree"] is None:
        try:
            os.stat(files.encode(item["path"]))
        except (FileNotFoundError, NotADirectoryError):
            raise OSError(errno.ENOENT, "does not exist at this site", item["path"]) from None


def _told(error: OSError) -> List[Any]:
    name = os.fsencode(error.filename).decode("utf-8", "surrogateescape") if error.filename else None
    return [error.errno, error.strerror or str(error), name]
