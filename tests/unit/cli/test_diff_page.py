"""Two runs beside each other, as people see them."""

from __future__ import annotations

import io
from typing import Any

from rich.console import Console

from runyard.cli.show import diff_page
from runyard.client.compare import Comparison
from runyard.client.compare.differences import Difference, DifferenceKind, Section
from runyard.client.compare.files import FileChange


def comparison(
    *sections: Section, files: tuple[FileChange, ...] = (), over: bool = True, knows_code: bool = True
) -> Comparison:
    return Comparison(runs=(42, 57), sections=sections, files=files, over=over, knows_code=knows_code, notes=())


def one(name: str, kind: DifferenceKind, **values: tuple[Any, Any]) -> Section:
    found = (Difference(name=each, before=before, after=after) for each, (before, after) in values.items())
    return Section(name=name, kind=kind, differences=tuple(found))


def drawn(found: Comparison, *, lines: bool = True, width: int = 80) -> str:
    console = Console(file=io.StringIO(), width=width, markup=False, highlight=False)
    diff_page.draw(console, found, lines=lines)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


LR = one("parameters", DifferenceKind.ASKED, lr=(0.1, 0.2))
LOSS = one("metrics", DifferenceKind.RESULT, loss=(0.5, 0.4))


def test_the_verdict() -> None:
    both = one("code", DifferenceKind.ASKED, snapshot=("sha256:1", "sha256:2"))
    script = FileChange(path="script", change="changed", diff="-a\n+b")
    assert diff_page.verdict(comparison()) == "runs 42 and 57: same inputs, same results"
    assert diff_page.verdict(comparison(LOSS)) == "runs 42 and 57: same inputs, different results"
    assert "different parameters, same" in diff_page.verdict(comparison(LR))
    assert "different parameters and code, different results" in diff_page.verdict(comparison(LR, both, LOSS))
    assert "different parameters and script" in diff_page.verdict(comparison(LR, files=(script,)))
    assert diff_page.verdict(comparison(over=False)).endswith("same inputs; they have not both finished")


def test_the_verdict_on_code_that_nobody_kept() -> None:
    said = diff_page.verdict(comparison(knows_code=False))
    assert said == "runs 42 and 57: same inputs, as far as is known, same results"
    assert "different parameters, same" in diff_page.verdict(comparison(LR, knows_code=False))


def test_values_as_people_read_them() -> None:
    shown = drawn(
        comparison(
            one("resources", DifferenceKind.ASKED, memory=(1 << 30, None)),
            one("command", DifferenceKind.ASKED, command=(["python", "a b.py"], "python\n\x1b[31m")),
            one("data", DifferenceKind.ASKED, corpora=(f"sha256:{'ab' * 32}", f"sha256:{'cd' * 32}")),
        )
    )
    assert "1.0 GB" in shown
    assert "python 'a b.py'" in shown
    assert "sha256:abababababab " in shown and "ab" * 8 not in shown
    assert "\x1b" not in shown


def test_lines_of_files() -> None:
    change = FileChange(
        path="train.py", change="changed", diff="--- a/train.py\n+++ b/train.py\n@@ -1 +1,2 @@\n-b\n+c\n+\td"
    )
    shown = drawn(comparison(files=(change, FileChange(path="m.bin", change="added"))))
    assert "changed  train.py  +2 -1" in shown
    assert "added    m.bin\n" in shown
    assert "\n+       d\n" in shown
    assert "@@" not in drawn(comparison(files=(change,)), lines=False)


def test_a_long_section_is_cut() -> None:
    many = one("outputs", DifferenceKind.RESULT, **{f"f{index}": ("a", "b") for index in range(50)})
    assert "… 10 more: --json has all" in drawn(comparison(many))
