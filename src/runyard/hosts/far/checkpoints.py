"""The checkpoints of a run: in a directory beside those of its attempts, which is kept until it is no longer needed."""

import contextlib
import os
import re
from typing import Callable, Iterator, List, Tuple

from . import files
from .cache import CacheFiles, names

Beat = Callable[[], None]

NAME = b"checkpoints"
LOOK_S = 3600.0  # between two questions what is there

_RUN = re.compile(rb"[1-9]\d{0,17}")
_ATTEMPT = re.compile(rb"a(\d+)")


def saved(cache: CacheFiles, runs: bytes) -> List[int]:
    """Runs that have such a directory. None if this was called lately, by any agent: nothing expires within an hour."""
    looked = os.path.join(cache.root, b"expiry")
    if files.age(looked, missing=float("inf")) < LOOK_S:
        return []
    files.make_directory(cache.root)
    files.write(looked, b"")
    return [int(run) for run in names(runs) if _RUN.fullmatch(run) and os.path.isdir(os.path.join(runs, run, NAME))]


def forget(runs: bytes, expired: List[Tuple[int, int]], beat: Beat) -> None:
    """`expired`: runs with the newest attempt that the caller knows of."""
    for run, attempt in expired:
        beat()
        home = os.path.join(runs, b"%d" % int(run))
        aside = os.path.join(home, NAME + b".gone")
        if _put_aside(home, aside, attempt):
            files.remove_tree(aside)
            _remove_empty(home)


@contextlib.contextmanager
def drafted(target: bytes) -> Iterator[bytes]:
    """A directory that replaces `target` when it is filled."""
    draft, old = target + b".part", target + b".old"
    files.remove_tree(draft)
    os.mkdir(draft, 0o700)
    try:
        yield draft
        files.remove_tree(old)
        if os.path.isdir(target):
            os.rename(target, old)
        os.rename(draft, target)
    finally:
        files.remove_tree(draft)
    files.remove_tree(old)


def _put_aside(home: bytes, aside: bytes, attempt: int) -> bool:
    """An attempt may start at this moment: it makes its own directory first, so this is checked afterwards."""
    target = os.path.join(home, NAME)
    try:
        os.rename(target, aside)
    except OSError:  # nothing is there; or something that an interruption left
        return os.path.isdir(aside)
    if not any(number > attempt for number in _attempts(home)):
        return True
    with contextlib.suppress(OSError):  # an empty one, that the attempt made meanwhile
        os.rmdir(target)
    os.rename(aside, target)
    return False


def _attempts(home: bytes) -> List[int]:
    return [int(found.group(1)) for found in map(_ATTEMPT.fullmatch, names(home)) if found]


def _remove_empty(home: bytes) -> None:
    with contextlib.suppress(OSError):
        os.rmdir(home)
