"""The processes below one process: who they are, and how to end all of them."""

import functools
import os
import signal
from typing import Callable, Container, Dict, Iterable, List, NamedTuple, Optional, Set

from . import json_files, kernel

_PASSES = 50  # of looking for processes that were forked while others were stopped


class Process(NamedTuple):
    """What one read of /proc/<pid>/stat tells."""

    pid: int
    name: str
    state: str
    parent: int
    session: int
    ticks: int  # cpu time of itself and of the children it waited for
    threads: int
    start_time: int  # ticks since boot; with the pid it names a process for ever
    rss: int  # bytes

    @property
    def alive(self) -> bool:
        return self.state not in "ZX"


def look(pid: int) -> Optional[Process]:
    """None when there is no such process."""
    try:
        data = json_files.read_bytes("/proc/%d/stat" % pid)
    except OSError:
        return None
    before, _, after = data.rpartition(b") ")  # the name may hold spaces and brackets
    fields = after.split()
    if len(fields) < 22:
        return None
    return Process(
        pid=pid,
        name=json_files.to_text(before.partition(b"(")[2]),
        state=fields[0].decode(),
        parent=int(fields[1]),
        session=int(fields[3]),
        ticks=sum(map(int, fields[11:15])),
        threads=int(fields[17]),
        start_time=int(fields[19]),
        rss=int(fields[21]) * kernel.PAGE,
    )


def is_alive(pid: int, start_time: int) -> bool:
    """Whether that very process still runs: numbers are reused, start times tell them apart."""
    process = look(pid)
    return process is not None and process.alive and process.start_time == start_time


def every_process() -> List[Process]:
    found = (look(int(name)) for name in os.listdir("/proc") if name.isdigit())
    return [process for process in found if process is not None]


def below(root: int) -> List[Process]:
    """All descendants, zombies included."""
    found = (look(pid) for pid in descendants(root))
    return [process for process in found if process is not None]


def descendants(root: int, spare: Container[int] = ()) -> List[int]:
    """Numbers of all descendants, parents before children, without those in `spare` and all below them."""
    return by_lists(root, spare) if _has_lists() else by_scan(root, spare)


def by_lists(root: int, spare: Container[int] = ()) -> List[int]:
    """From the kernel's lists of children: cheap also on a machine with thousands of processes."""
    return _walk(root, _listed_children, spare)


def by_scan(root: int, spare: Container[int] = ()) -> List[int]:
    """From the parents of all processes: for kernels without those lists."""
    by_parent: Dict[int, List[int]] = {}
    for process in every_process():
        by_parent.setdefault(process.parent, []).append(process.pid)
    return _walk(root, lambda pid: by_parent.get(pid, []), spare)


def end_all(find: Callable[[], Iterable[int]]) -> Set[int]:
    """SIGKILL for all that `find` finds. They are stopped first, so that none forks while others are killed."""
    seen: Set[int] = set()
    for _ in range(_PASSES):
        new = set(find()) - seen
        if not new:
            break
        send(new, signal.SIGSTOP)
        seen |= new
    send(seen, signal.SIGKILL)
    return seen


def send(pids: Iterable[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:  # gone meanwhile, or another user's
            pass


@functools.lru_cache(maxsize=None)
def _has_lists() -> bool:
    return os.path.exists("/proc/{0}/task/{0}/children".format(os.getpid()))


def _walk(root: int, children: Callable[[int], Iterable[int]], spare: Container[int]) -> List[int]:
    todo = [root]
    for pid in todo:
        todo += [child for child in children(pid) if child not in spare]
    return todo[1:]


def _listed_children(pid: int) -> List[int]:
    """Each thread has a list of the children it forked."""
    found: List[int] = []
    try:
        for thread in os.listdir("/proc/%d/task" % pid):
            found += map(int, json_files.read_bytes("/proc/%d/task/%s/children" % (pid, thread)).split())
    except OSError:  # it ended meanwhile
        pass
    return found
