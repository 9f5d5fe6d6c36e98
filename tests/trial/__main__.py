"""`python -m tests.trial [chaos] [endings] [gpu] [SIZE=NUMBER…] [--json]`: run the trials, or those that are named.

`chaos SEEDS=20` tries seeds 1 to 20, `SEED=7` one of them, `SEEDS=7,9` those from 7 to 9; `endings RUNS=60` is a
smaller one: a size is a number at the top of the trial's file. Exits with 1 if anything was violated.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from types import ModuleType

from bench.__main__ import resize
from tests.trial import chaos, endings, gpu, report

TRIALS: dict[str, ModuleType] = {"chaos": chaos, "endings": endings, "gpu": gpu}


def main(words: list[str]) -> int:
    is_json = "--json" in words
    words = [word for word in words if word != "--json"]
    names = [word for word in words if "=" not in word] or list(TRIALS)
    if unknown := [name for name in names if name not in TRIALS]:
        sys.exit(f"no such trial: {', '.join(unknown)}; known: {', '.join(TRIALS)}")
    for name, number in _sizes([word for word in words if "=" in word]):
        resize([TRIALS[one] for one in names], name, number)
    with tempfile.TemporaryDirectory(prefix="ry-trial-") as outside:
        os.chdir(outside)  # to submit from a checkout would send it along
        rows = [row for name in names for row in _run(name)]
        os.chdir("/")
    if is_json:
        print(report.document(rows))
    return 1 if any(row.violations for row in rows) else 0


def _sizes(words: list[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        name, _, number = word.partition("=")
        first, _, last = number.partition(",")
        if name == "SEED":
            first = last = number
        if name in ("SEED", "SEEDS") and first.isdigit() and last.isdigit():
            yield "FIRST", first
            yield "SEEDS", str(int(last) - int(first) + 1)
        else:
            yield name, number


def _run(name: str) -> list[report.Row]:
    """A line for each seed or site when it is over, and the table; on the error stream, so that JSON stays alone."""
    rows = []
    for row in TRIALS[name].run():
        rows.append(row)
        print(row.line(), *(f"  {row.name}: {text}" for text in row.violations), sep="\n", file=sys.stderr, flush=True)
    print(report.table(name, rows), file=sys.stderr, flush=True)
    return rows


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
