"""Save when the run is requested to end, and resume from the checkpoint.

When the warning comes, a loop that calls `should_stop()` continues to that call, which then saves: the step is complete
there, so that a resumed run does not repeat or miss half a step. In a program that has never called it, the state is
saved wherever the main thread is, between two instructions of Python, and the program ends.
"""

import os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Callable, Optional, Type

from .run_facts import made
from .stop_request import asking

if TYPE_CHECKING:
    from pathlib import Path

Save = Callable[..., Any]


def checkpointing(save: Save) -> "Checkpoints":
    """`with checkpointing(save) as ckpt:`. When the run is requested to end, `save(directory)` is called, or `save()`
    if it takes no argument; at most once for each warning, by the thread that calls `should_stop()`, else the main
    one."""
    return Checkpoints(save)


class Checkpoints:
    """directory: where to save, shared by all attempts of the run; outside a run `./checkpoints`
    resume_from: the directory with the checkpoint of an earlier attempt; None: start from the beginning"""

    def __init__(self, save: Save) -> None:
        self._save, self._takes_directory = save, _takes_one(save)
        self._outer: Optional[Callable[[], None]] = None
        self.directory = made(os.environ.get("CHECKPOINT_DIR") or "checkpoints")
        resume = os.environ.get("RUNYARD_RESUME")
        self.resume_from: "Optional[Path]" = type(self.directory)(resume) if resume else None

    def save(self) -> None:
        """Save now, for example at the end of an epoch."""
        if self._takes_directory:
            self._save(self.directory)
        else:
            self._save()

    def __enter__(self) -> "Checkpoints":
        self._outer, asking.save = asking.save, self.save
        asking.listen(insist=True)
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        """A warning that came after the last safe point is handled here; not after an error, when the state may be
        inconsistent."""
        try:
            if kind is None:
                asking.save_if_asked()
        finally:
            asking.save = self._outer
            if asking.save is None and not asking.polled:
                asking.forget()


def _takes_one(save: Save) -> bool:
    """Whether it wants an argument: one with a default of its own is not ours to fill."""
    import inspect  # here: it is large, and most programs need none of this

    try:
        wanted = inspect.signature(save).parameters.values()
    except (TypeError, ValueError):
        return True
    places = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(each.default is each.empty and each.kind in places for each in wanted)
