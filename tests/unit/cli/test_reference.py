"""The reference pages say what the program does."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

from runyard import errors
from runyard.cli.show import failures, run_endings
from runyard.model import exit_codes

ROOT = Path(__file__).resolve().parents[3]
REFERENCE = ROOT / "docs" / "reference"


def test_the_command_line_page_is_up_to_date() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "write_cli_page.py"))
    assert (REFERENCE / "cli.md").read_text(encoding="utf-8") == script["page"](), "run: make docs"


def test_every_exit_code_is_on_its_page() -> None:
    page = (REFERENCE / "exit-codes.md").read_text(encoding="utf-8")
    listed = {int(code) for code in re.findall(r"^\| (\d+) \|", page, re.MULTILINE)}
    waiting = {value for name, value in vars(exit_codes).items() if name.isupper() and isinstance(value, int)}
    of_errors = {kind.exit_code for kind in vars(errors).values() if isinstance(kind, type)}
    assert listed == waiting | of_errors | {0, run_endings.NOT_YET, failures.INTERRUPTED, failures.CLOSED_PIPE}


def test_every_code_that_a_command_can_exit_with_is_passed_on_as_the_page_says() -> None:
    page = (REFERENCE / "exit-codes.md").read_text(encoding="utf-8")
    first, last = map(int, re.findall(r"^\| (\d+)–(\d+) \| the command's own", page, re.MULTILINE)[0])
    passed = [code for code in range(1, 256) if exit_codes.wait_code("failed", "error", code) == code]
    assert passed == list(range(first, last + 1))
