"""Attempts that are ended before anybody runs them."""

from __future__ import annotations

import os
from pathlib import Path

from runyard.runner import supervisor


def test_a_run_that_was_prevented_is_told_to_be_over_also_after_a_write_that_failed(tmp_path: Path) -> None:
    looks, directory = supervisor.Attendant(), os.fsencode(tmp_path)
    (tmp_path / "status.json").mkdir()  # nothing can be written in its place
    assert looks.stop(directory, "cancel", 1.0, 0.0)
    (tmp_path / "status.json").rmdir()
    assert looks.stop(directory, "cancel", 1.0, 1.0)
    assert looks.look(directory)["presence"] == supervisor.GONE
