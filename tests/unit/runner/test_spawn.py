"""Programs that are started without a copy of the process that starts them."""

from __future__ import annotations

import errno
import os
import platform
from pathlib import Path

import pytest

from runyard.runner import spawn

ENV = {b"PATH": os.environb[b"PATH"]}


@pytest.fixture
def spawner() -> spawn.Spawner:
    made = spawn.make()
    if made is None and platform.libc_ver()[0] != "glibc":
        pytest.skip("this C library has no contexts")
    assert made is not None
    return made


def run(spawner: spawn.Spawner, *words: bytes, output: Path) -> int:
    with output.open("ab") as log:
        pid, number = spawner.spawn(words[0], words, ENV, log.fileno(), log.fileno())
    assert number == 0
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_one_after_the_other(spawner: spawn.Spawner, tmp_path: Path) -> None:
    told = tmp_path / "told"
    codes = [run(spawner, b"/bin/sh", b"-c", b"echo $0; exit $0", b"%d" % code, output=told) for code in range(50)]
    assert codes == list(range(50))
    assert told.read_text().split() == list(map(str, range(50)))


@pytest.mark.parametrize(
    ("program", "number"),
    [(b"/no/such/program", errno.ENOENT), (b"/etc/passwd", errno.EACCES), (b"/etc/passwd/x", errno.ENOTDIR)],
)
def test_why_a_program_cannot_be_started(spawner: spawn.Spawner, program: bytes, number: int) -> None:
    pid, told = spawner.spawn(program, [program], {}, 1, 2)
    assert told == number
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 127


def test_a_failure_is_not_told_of_the_next_one(spawner: spawn.Spawner, tmp_path: Path) -> None:
    os.waitpid(spawner.spawn(b"/no/such/program", [b""], {}, 1, 2)[0], 0)
    assert run(spawner, b"/bin/true", output=tmp_path / "told") == 0


@pytest.mark.parametrize(
    ("argv", "env"),
    [([b"echo", b"a\0b"], {}), ([b"echo"], {b"A": b"b\0c"}), ([b"echo"], {b"A=B": b""}), ([b"echo"], {b"": b""})],
    ids=["argument", "value", "name", "no name"],
)
def test_what_no_program_can_be_given(spawner: spawn.Spawner, argv: list[bytes], env: dict[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match=r"zero byte|wrong name"):
        spawner.spawn(b"/bin/echo", argv, env, 1, 2)
