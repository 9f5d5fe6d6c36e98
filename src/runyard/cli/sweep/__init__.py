"""`runyard sweep`: which of its commands lives in which file."""

from __future__ import annotations

from runyard.cli.sweep import changes, listing, replay, show, submit, table, watch
from runyard.cli.sweep.group import SweepGroup

command = SweepGroup(submit.command, name="sweep")
for each in (
    show.command, watch.command, table.command, show.best, changes.cancel, changes.retry, listing.command,
    replay.command,
):  # fmt: skip
    command.add_command(each)
