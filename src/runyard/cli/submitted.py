"""Runs that have just been handed in: told, waited for, or followed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from runyard import errors
from runyard.cli import endings, failures, output
from runyard.client import Run
from runyard.model import ranges


@dataclass(frozen=True, kw_only=True, slots=True)
class Telling:
    """How the person wants to hear of them."""

    as_json: bool
    quiet: bool
    wait: bool = False
    follow: bool = False

    def check(self, several: bool) -> None:
        """Before anything is handed in."""
        if self.follow and several:
            raise errors.InvalidInput("--follow follows one run, and these are several", "use --wait")

    def tell(self, runs: list[Run], several: bool) -> int:
        """The exit code; with `several` the document is a list."""
        if self.follow:
            return self._follow(runs[0])
        if self.wait:
            return self._wait(runs, several)
        document = _document(runs, several) if self.as_json else None
        self._writer.write(document, lambda console: _tell(runs), [run.id for run in runs])
        return 0

    @property
    def _writer(self) -> output.Writer:
        return output.writer(self.as_json, self.quiet)

    def _follow(self, run: Run) -> int:
        if not self.quiet:
            output.remark(f"run {run.id}: following its log; Ctrl-C leaves it running")
        code = endings.follow(run, to_stderr=self.as_json)
        if self.as_json and run.final:
            self._writer.write(_document([run], several=False), lambda console: None)
        return code

    def _wait(self, runs: list[Run], several: bool) -> int:
        if not self.quiet:
            output.remark(f"submitted {_name(runs)}; waiting")
        try:
            endings.wait_all(runs)
        except KeyboardInterrupt:
            output.remark(f"\nno longer waiting; {_name(runs)} goes on")
            return failures.INTERRUPTED
        self._writer.write(_document(runs, several), lambda console: endings.tell(runs), [run.id for run in runs])
        return endings.first_code(runs)


def _document(runs: list[Run], several: bool) -> Any:
    shown = [run.data if run.notes is None else {**run.data, "notes": run.notes} for run in runs]
    return shown if several else shown[0]


def _name(runs: list[Run]) -> str:
    ids = ranges.show(run.id for run in runs)
    return f"run {ids}" if len(runs) == 1 else f"{len(runs)} runs: {ids}"


def _tell(runs: list[Run]) -> None:
    click.echo(f"submitted {_name(runs)}")
    if len(runs) == 1:
        output.remark(f"  runyard logs {runs[0].id} -f    follow its log")
        output.remark(f"  runyard show {runs[0].id}       see how it is doing")
    else:
        output.remark("  runyard ls    see how they are doing")
