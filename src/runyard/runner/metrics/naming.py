"""The names of values: a folder's name may say which part of the training a file is about.

`2026-11-15_12-30-00/train-summaries/events…` with the tag `error` is `train/error`: a part of a path that only says
which run it is, or that there are logs in it, would make each run's metric another one.
"""

import os
import re
from typing import Dict, List, Tuple

from . import folder

_NEUTRAL = re.compile(
    r"(?:lightning_|tensorboard_|tb_)?(?:logs?|events?|summar(?:y|ies)|runs?|metrics?|tensorboard|tb|progress|history"
    r"|training|outputs?|results?|stats?|statistics|default|checkpoints?)"
    r"|(?:version|run|trial|attempt|job|exp|experiment)[-_.]?\d*|\d*"
)
_DATED = re.compile(r"(?:19|20)\d\d[-_.]?\d\d[-_.]?\d\d|\d\d[-_:.]\d\d[-_:.]\d\d|\d{8,}")
_ENDING = re.compile(r"[-_.](?:summar(?:y|ies)|logs?|events?|metrics?|history|stats)$")


class Naming:
    def __init__(self) -> None:
        self._owners: Dict[Tuple[str, str], str] = {}  # who has a prefix, for each kind of file

    def prefix(self, path: bytes, kind: str) -> str:
        """With a slash at its end, or empty. Another place that would have the same one gets its whole path: the values
        of two trainings must not become one curve."""
        place = _place(path.decode("utf-8", "replace"), kind)
        short = "".join("%s/" % part for part in _telling(place.split("/")))
        is_first = self._owners.setdefault((kind, short), place) == place
        return short if is_first else place + "/"


def _place(path: str, kind: str) -> str:
    """The name of an event file has no meaning; that of a table does."""
    return os.path.dirname(path) if kind == folder.EVENTS else os.path.splitext(path)[0]


def _telling(parts: List[str]) -> List[str]:
    kept = [part for part in parts if not _NEUTRAL.fullmatch(part.lower()) and not _DATED.search(part)]
    return [_ENDING.sub("", part) for part in kept]
