"""The bar of a transfer."""

from __future__ import annotations

import io
import re

from rich.console import Console

from runyard.cli.show import progress_bar


def test_all_sizes_are_told_in_the_same_units() -> None:
    now = iter(range(1000))
    with progress_bar.build(Console(file=io.StringIO(), width=100)) as shown:
        shown.get_time = lambda: float(next(now))
        task = shown.add_task("run 4", total=200 << 20)
        for _ in range(4):
            shown.advance(task, 25 << 20)
        told = io.StringIO()
        Console(file=told, width=100).print(shown.get_renderable())
    assert "100 MB of 200 MB" in told.getvalue()
    assert re.search(r"25\.0 MB/s", told.getvalue()), told.getvalue()
