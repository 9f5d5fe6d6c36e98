"""(l) A folder of 2,000 files and 200 MB to a node: `runyard submit`, against rsync and tar over ssh to its sshd.

From the first word of the command to the moment when the tree is there. For runyard that is when its run begins, on a
node that the yard drives over ssh: the files go from the person to the yard by HTTP, are safe on its disk, and go on to
the node's cache. As data the tree is shared by all runs, as rsync's would be; as code each run gets a copy that it may
write to, which is one more copy of 200 MB where the file system cannot share blocks. The others copy once, and nothing
is safe before the kernel writes it. How long the command itself takes is told too: then the yard has everything, and
the person may go.

The first time all is new to the yard, the second time one file was changed. Bytes are those that leave the person's
machine: for runyard all that is written to the yard's socket, in a submit of its own behind a line that counts; for
rsync what it says itself.
"""

from __future__ import annotations

import re
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from bench import harness, node_sides
from bench.harness import Result
from bench.node_sides import SITE, Node
from bench.pipe import Pipe
from tests.integration.server.lines import Line

FILES, KILOBYTES, FOLDERS = 2000, 100, 40
FIRSTS, SECONDS = 3, 7
FORMS = ("data", "code")
GIT = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@lab.example", "-c", "core.compression=0"]
SENT = re.compile(r"Total bytes sent: ([\d,]+)")


@dataclass(frozen=True, kw_only=True)
class Taken:
    there: float  # until the tree is at the node
    command: float


def measure(place: Path) -> Iterator[Result]:
    if harness.lacks("l", "sshd", "rsync", "git"):
        return
    with ExitStack() as stack:
        node = stack.enter_context(node_sides.node(place))
        begun = stack.enter_context(Pipe(place / "staged"))
        for form in FORMS:
            sides = Sides(node, place, begun, form)
            firsts = [sides.first(f"{form}-{number}") for number in range(FIRSTS)]
            seconds = [sides.second(number) for number in range(SECONDS)]
            yield from _results(f"as {form}, all new", firsts, "tar | ssh tar", 2.0)
            yield from _results(f"as {form}, one changed", seconds, "rsync -a", 1.5)
            yield _bytes_result(form, *sides.bytes_of_a_change())


def _bytes_result(form: str, ours: int, theirs: int) -> Result:
    return Result(
        letter="l",
        what=f"as {form}, one of {KILOBYTES:,} KB changed: sent by the person's machine",
        value=ours / 1000,
        against="`rsync -a`",
        alternative=theirs / 1000,
        unit="KB",
        target="about the file's size: within 1.5×",
        met=ours < 1.5 * 1000 * KILOBYTES,
    )


def _results(what: str, pairs: list[tuple[Taken, float]], against: str, most: float) -> Iterator[Result]:
    alternative = median(other for _, other in pairs)
    for name, until in (("there", "until it is at the node"), ("command", "until the command returns")):
        value = median(getattr(ours, name) for ours, _ in pairs)
        yield Result(
            letter="l",
            what=f"{FILES:,} files, {FILES * KILOBYTES // 1000:,} MB {what}: {until}, median of {len(pairs)}",
            value=value,
            against=f"`{against}`",
            alternative=alternative,
            unit="s",
            target=f"within {most}×",
            met=value <= most * alternative,
        )


class Sides:
    """Both do the same in turns."""

    def __init__(self, node: Node, place: Path, begun: Pipe, form: str) -> None:
        self._node, self._place, self._begun, self._form = node, place, begun, form
        self._env = {**node.yard.env, "XDG_CACHE_HOME": str(place / "person")}
        self._tree, self._copied = place, node.place

    def first(self, name: str) -> tuple[Taken, float]:
        self._tree, self._copied = self._place / name, self._node.place / name
        _write_checkout(self._tree)
        unpack = self._node.ssh(f"mkdir {self._copied} && tar -C {self._copied} -xf -")
        return self._submit(), _timed(
            lambda: _pipe(["tar", "-C", str(self._tree), "--exclude=.git", "-cf", "-", "."], unpack)
        )

    def second(self, number: int) -> tuple[Taken, float]:
        self._change(number)
        return self._submit(), _timed(self._rsync)

    def bytes_of_a_change(self) -> tuple[int, int]:
        self._change(FILES - 1)
        line = Line(self._node.yard.url)
        try:
            self._submit(RUNYARD_URL=line.url, RUNYARD_TOKEN=self._node.yard.token)
        finally:
            line.close()
        said = SENT.search(self._rsync())
        assert said is not None, "rsync --stats says so"
        return line.sent, int(said[1].replace(",", ""))

    def _change(self, number: int) -> None:
        node_sides.write_random(self._tree / _name(number % FILES), 1000 * KILOBYTES)

    def _submit(self, **env: str) -> Taken:
        brings = {"code": ("--code", "."), "data": ("--no-code", "--cwd", "/", "--data", "tree=.")}[self._form]
        run = ("--site", SITE, "--", "sh", "-c", self._begun.command)
        begin = time.monotonic()
        done = subprocess.run(
            self._node.yard.command("submit", "--quiet", *brings, *run),
            cwd=self._tree,
            env={**self._env, **env},
            capture_output=True,
            text=True,
        )
        returned = time.monotonic()
        if done.returncode:
            raise SystemExit(done.stderr)
        taken = Taken(there=self._begun.wait() - begin, command=returned - begin)
        self._node.yard.client().run(int(done.stdout)).wait(60)
        return taken

    def _rsync(self) -> str:
        return node_sides.run([*self._node.rsync(self._tree, self._copied), "--exclude=.git"])


def _timed(call: Callable[[], object]) -> float:
    begin = time.monotonic()
    call()
    return time.monotonic() - begin


def _pipe(source: list[str], target: list[str]) -> None:
    with subprocess.Popen(source, stdout=subprocess.PIPE) as sender:
        subprocess.run(target, stdin=sender.stdout, check=True)
    assert sender.returncode == 0, "the sender did not end well"


def _name(number: int) -> str:
    return f"part{number % FOLDERS:02d}/file{number:04d}.bin"


def _write_checkout(tree: Path) -> None:
    for number in range(FILES):
        path = tree / _name(number)
        path.parent.mkdir(parents=True, exist_ok=True)
        node_sides.write_random(path, 1000 * KILOBYTES)
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"]):
        node_sides.run([*GIT, *words], cwd=tree)
