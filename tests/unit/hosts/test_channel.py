"""A request and its answer, over the pipes of real interpreters."""

from __future__ import annotations

import ast
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.hosts import far
from runyard.hosts.channel import Channel, Conversation, Frame, NoAnswer, question
from runyard.hosts.far import server
from tests.labs import components

INTERPRETER = [sys.executable, *far.OPTIONS.split(), "-c", far.BOOT]


def shell(before: str = "", after: str = "") -> list[str]:
    return ["sh", "-c", f"{before}\n{shlex.join(INTERPRETER)}\n{after}"]


def ask(command: list[str], patience: float = 90.0, **request: object) -> list[Frame]:
    with Conversation(Channel(command), question(request), patience) as spoken:
        return list(spoken.frames())


def test_what_a_shell_says_before_and_after_is_not_the_answer(tmp_path: Path) -> None:
    noisy = shell("echo Welcome; head -c 200000 /dev/zero; echo careful >&2", "echo bye")
    assert ask(noisy, do="filled", directories=["/", str(tmp_path)]) == [(server.DOCUMENT, b'["/"]')]


def test_modules_in_the_current_directory_are_not_ours(tmp_path: Path) -> None:
    for name in ("json", "os", "struct", "types"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a stranger')")
    assert ask(shell(f"cd {tmp_path}"), do="filled", directories=[]) == [(server.DOCUMENT, b"[]")]


@pytest.mark.parametrize("missing", [1, 5, 60, 5000])
def test_a_request_that_was_cut_off_is_not_carried_out(tmp_path: Path, missing: int) -> None:
    request = {"do": "put", "root": str(tmp_path / "made"), "directories": [], "files": [["x", 10]]}
    whole = question(request, [b"0123456789"])
    subprocess.run(INTERPRETER, input=whole[:-missing], stderr=subprocess.DEVNULL)
    assert not (tmp_path / "made").exists()
    subprocess.run(INTERPRETER, input=whole, check=True, capture_output=True)
    assert (tmp_path / "made" / "x").read_bytes() == b"0123456789"


def test_half_an_answer_is_none() -> None:
    with pytest.raises(NoAnswer) as caught:
        ask(["sh", "-c", "printf '\\0runyard answers\\0J\\0\\0'; echo why >&2; exit 9"], do="filled", directories=[])
    assert (caught.value.code, caught.value.said, caught.value.begun) == (9, "why\n", True)


def test_no_answer_at_all_tells_what_was_said_instead() -> None:
    with pytest.raises(NoAnswer) as caught:
        ask(["echo", "This account is currently not available."], do="filled", directories=[])
    assert (caught.value.begun, caught.value.said) == (False, "This account is currently not available.\n")


def test_silence_is_given_up_and_its_program_ended(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    for patience in (0.3, 3, 30):  # on a busy machine it may be ended before it has begun
        with pytest.raises(NoAnswer, match=f"within {patience:g} seconds") as caught:
            ask(["sh", "-c", f"echo $$ > {pid}; sleep 600 & wait"], patience, do="filled", directories=[])
        assert caught.value.code is None
        if pid.exists() and pid.read_text():
            break
    assert not Path("/proc", pid.read_text().strip(), "cmdline").exists()


def test_work_that_takes_long_is_not_silence(tmp_path: Path) -> None:
    """An answer that keeps coming may take longer than the patience: hashing says that it goes on."""
    (tmp_path / "sparse").touch()
    with (tmp_path / "sparse").open("r+b") as file:
        file.truncate(2 << 30)
    search = {"directory": str(tmp_path), "pattern": ".*", "newer_than": [], "most": 10}
    [(kind, _)] = ask(INTERPRETER, patience=5.0, do="find", searches=[search])
    assert kind == server.DOCUMENT


def test_a_python_that_is_too_old_says_so() -> None:
    try:
        old = components.python("2.7")
    except components.Missing:
        old = None
    lie = "import sys; sys.version_info = (3, 5, 3); sys.version = '3.5.3 (default)'; exec(sys.argv[1])"
    commands = [[sys.executable, "-c", lie, far.BOOT], *([[str(old), *INTERPRETER[1:]]] if old else [])]
    for command in commands:
        with pytest.raises(NoAnswer) as caught:
            ask(command, do="filled", directories=[])
        assert caught.value.said.startswith(far.TOO_OLD)


def test_the_far_half_needs_the_standard_library_only() -> None:
    here = Path(far.__file__).parent
    imported = {
        name.name if isinstance(node, ast.Import) else str(node.module)
        for module in (*far.MODULES, "boot")
        for node in ast.walk(ast.parse((here / f"{module}.py").read_text()))
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and not node.level)
        for name in node.names
    }
    assert imported <= sys.stdlib_module_names
    assert sorted(path.stem for path in here.glob("*.py")) == sorted([*far.MODULES, "boot", "__init__"])
