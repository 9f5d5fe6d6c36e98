"""A permit ends at a moment of the machine's own clock, and nothing makes it longer afterwards."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from runyard.runner import kernel, permit
from runyard.runner.supervisor import Attendant


def given(seconds: float, **changes: Any) -> dict[str, Any]:
    return {"permit": {**permit.document(kernel.uptime() + seconds), **changes}}


def left(control: Any) -> float:
    held = permit.Permit(60)
    held.take(control)
    return held.left()


def test_it_lasts_until_its_moment() -> None:
    assert 500 < left(given(600)) <= 600
    assert left(given(-5)) <= -5


@pytest.mark.parametrize(
    "control",
    [None, {}, {"stop": {"reason": "user"}}, {"permit": None}, {"permit": {}}, {"permit": {"until": "soon"}},
     given(60, boot_id="another boot"), given(60, until=None)],
)  # fmt: skip
def test_what_is_no_permit_for_this_machine_permits_nothing(control: Any) -> None:
    assert left(control) <= 0


def test_a_wall_clock_that_was_set_right_counts_too() -> None:
    """As after a pause of the whole machine, in which its other clock stood still."""
    assert left(given(60, wall=time.time() - 1)) <= 0


def test_half_a_file_changes_nothing() -> None:
    held = permit.Permit(60)
    held.take(given(600))
    held.take(None)
    assert held.left() > 500


def test_a_renewal_and_a_stop_stand_side_by_side(tmp_path: Path) -> None:
    directory, attendant = bytes(tmp_path), Attendant()
    (tmp_path / "started").mkdir()
    attendant.renew(directory, kernel.uptime() + 600)
    attendant.stop(directory, "user", 7, 0)
    attendant.renew(directory, kernel.uptime() + 900)
    control = json.loads((tmp_path / "control.json").read_text())
    assert control["stop"] == {"reason": "user", "grace": 7}
    assert left(control) > 700


def test_a_permit_that_ran_out_is_not_renewed(tmp_path: Path) -> None:
    """Its run may be alive elsewhere by now, and its runner stopped and not ended."""
    directory, attendant = bytes(tmp_path), Attendant()
    attendant.renew(directory, kernel.uptime() - 1)
    attendant.renew(directory, kernel.uptime() + 60)
    assert left(json.loads((tmp_path / "control.json").read_text())) <= 0
