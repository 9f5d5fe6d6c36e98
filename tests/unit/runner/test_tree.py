from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Iterator

import pytest

from runyard.runner import kernel, tree
from tests.labs.waiting import until


@pytest.fixture
def family() -> Iterator[list[int]]:
    """A shell, a second one below it, and its child; each tells its number."""
    script = "echo $$; sh -c 'echo $$; sleep 600 & echo $!; wait'; wait"
    shell = subprocess.Popen(["sh", "-c", script], stdout=subprocess.PIPE, text=True)
    assert shell.stdout is not None
    pids = [int(shell.stdout.readline()) for _ in range(3)]
    yield pids
    tree.end_all(lambda: [pid for pid in pids if tree.look(pid)])
    shell.wait()
    shell.stdout.close()


def test_a_process_is_told_by_its_stat(family: list[int]) -> None:
    before, own, after = sum(os.times()[:4]), tree.look(os.getpid()), sum(os.times()[:4])
    assert own is not None
    assert (own.parent, own.session) == (os.getppid(), os.getsid(0))
    assert own.rss > 5 << 20
    assert before - 0.1 <= own.ticks / kernel.TICKS <= after + 0.1
    until(lambda: tree.look(os.getpid()).threads == len(os.listdir("/proc/self/task")), "as many threads")  # type: ignore[union-attr]
    child = tree.look(family[0])
    assert child is not None
    assert (child.name, child.parent) == ("sh", os.getpid())


def test_a_name_with_brackets_confuses_nobody() -> None:
    strange = "a) R 1 (b"
    code = f"open('/proc/self/comm', 'w').write({strange!r}); print(flush=True); input()"
    process = subprocess.Popen(["python3", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    seen = tree.look(process.pid)
    process.communicate(b"\n")
    assert seen is not None
    assert (seen.name, seen.parent) == (strange, os.getpid())


def test_both_ways_find_the_same_family(family: list[int]) -> None:
    for find in (tree.by_lists, tree.by_scan):
        found = find(os.getpid())
        assert set(family) <= set(found)
        assert find(family[0]) == family[1:]
        assert find(family[2]) == []
        assert set(find(os.getpid(), {family[1]})) & set(family) == {family[0]}


def test_children_of_threads_count() -> None:
    started: list[subprocess.Popen[bytes]] = []
    done = threading.Event()

    def start() -> None:
        started.append(subprocess.Popen(["sleep", "600"]))
        done.wait()

    thread = threading.Thread(target=start)
    thread.start()
    while not started:
        pass
    assert started[0].pid in tree.by_lists(os.getpid())
    done.set()
    thread.join()
    started[0].kill()
    started[0].wait()


def test_a_number_alone_is_no_identity() -> None:
    own = tree.look(os.getpid())
    assert own is not None
    assert tree.is_alive(own.pid, own.start_time)
    assert not tree.is_alive(own.pid, own.start_time - 1)


def test_a_zombie_is_not_alive() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    zombie = tree.look(process.pid)
    assert zombie is not None
    assert not zombie.alive
    assert not tree.is_alive(zombie.pid, zombie.start_time)
    process.wait()
    assert tree.look(process.pid) is None


def test_all_are_ended(family: list[int]) -> None:
    assert tree.end_all(lambda: [*family[:1], *tree.descendants(family[0])]) == set(family)
    assert os.waitpid(family[0], 0)[1] == signal.SIGKILL
