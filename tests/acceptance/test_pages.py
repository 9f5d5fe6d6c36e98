"""The commands in the pages work: each page is carried out from top to bottom, as by a newcomer, in a home of its own.

Blocks marked `console` and `python` are executed; `sh` and `yaml` are only shown.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.labs.yard import Yard

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"

_BLOCK = re.compile(r"^```(console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def beside_train(place: Path) -> Path:
    shutil.copy(EXAMPLES / "digits" / "train.py", place)
    shutil.copy(EXAMPLES / "run.yaml", place)
    return place


def in_digits(place: Path) -> Path:
    return at_the_root(place) / "examples" / "digits"


def at_the_root(place: Path) -> Path:
    shutil.copytree(EXAMPLES, place / "examples")
    return place


def beside_a_function(place: Path) -> Path:
    return at_the_root(place) / "examples" / "python-function"


PAGES: dict[str, Callable[[Path], Path]] = {
    "README.md": beside_train,
    "docs/quickstart.md": in_digits,
    "docs/howto/retry-and-resume.md": at_the_root,
    "docs/howto/inside-a-run.md": beside_a_function,
    "docs/howto/reproduce.md": in_digits,
    "docs/howto/metrics.md": in_digits,
    "docs/howto/sweeps.md": at_the_root,
}


@pytest.fixture
def newcomer() -> Iterator[Yard]:
    """A home in which nothing has been started yet; what the page starts there is ended after the test."""
    home = Yard()
    home.env["PATH"] = f"{Path(sys.executable).parent}:{home.env['PATH']}"
    yield home
    home.remove()


@pytest.mark.parametrize("page", PAGES)
def test_the_page_can_be_followed(page: str, newcomer: Yard, tmp_path: Path) -> None:
    directory = PAGES[page](tmp_path)
    script = build_script((ROOT / page).read_text(encoding="utf-8"), directory)
    done = subprocess.run(
        ["sh", "-exc", script],
        cwd=directory,
        env=newcomer.env,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def build_script(text: str, directory: Path) -> str:
    """All blocks of a page as one shell script, so that a `cd` holds for what follows."""
    lines: list[str] = []
    for number, (kind, block) in enumerate(_BLOCK.findall(text)):
        if kind == "python":
            (directory / f"block{number}.py").write_text(block, encoding="utf-8")
            lines.append(f"python {shlex.quote(str(directory / f'block{number}.py'))}")
        else:
            lines += [line.removeprefix("$ ") for line in block.splitlines() if line.startswith("$ ")]
    assert lines, "the page has nothing to execute"
    return "\n".join(lines)
