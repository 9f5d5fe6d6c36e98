"""`runyard doctor`."""

from __future__ import annotations

import dataclasses
from typing import Any

import click

from runyard import settings
from runyard.cli.doctor import checks, verdicts
from runyard.cli.show import output


@click.command("doctor")
@click.option("--settings", "only_settings", is_flag=True, help="Show the current settings and what they mean.")
@output.json_option
def command(only_settings: bool, as_json: bool) -> int:
    """Check this machine and this yard.

    Each line is ok, warn or fail, with a fix; exits with 1 if a check fails.
    """
    writer = output.writer(as_json)
    if only_settings:
        shown = checks.shown_settings(settings.load())
        writer.write(shown, lambda console: _draw_settings(console, shown))
        return 0
    if as_json:
        found = list(checks.examine())
        writer.write([dataclasses.asdict(finding) for finding in found], lambda console: None)
    else:
        found = checks.draw(output.console(), checks.examine())
    return int(any(finding.verdict == verdicts.FAIL for finding in found))


def _draw_settings(console: Any, shown: list[dict[str, Any]]) -> None:
    from runyard.cli.show import tables

    columns = (
        tables.Column(title="SETTING", value=lambda item: item["name"]),
        tables.Column(title="VALUE", value=lambda item: "-" if item["value"] in ("", []) else str(item["value"])),
        tables.Column(title="MEANING", value=lambda item: item["meaning"], flexible=True, wrapped=True),
    )
    console.print(tables.build(columns, shown))
