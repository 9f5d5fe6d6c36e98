"""Runs that have just been submitted: printed, waited for, or followed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from runyard import errors
from runyard.cli.show import failures, output, run_endings
from runyard.client import Run
from runyard.model import ranges


@dataclass(frozen=True, kw_only=True, slots=True)
class Telling:
    """What to do after submitting."""

    as_json: bool
    quiet: bool
    wait: bool = False
    follow: bool = False

    def check(self, several: bool) -> None:
        """Check before anything is submitted."""
        if self.follow and several:
            raise errors.InvalidInput("--follow needs exactly one run", "use --wait")

    def tell(self, runs: list[Run], several: bool) -> int:
        """Returns the exit code; with `several` the document is a list."""
        if self.follow:
            return self._follow(runs[0])
        if self.wait:
            return self._wait(runs, several)
        document = _document(runs, several) if self.as_json else None
        self._writer.write(document, lambda console: _tell(runs), [run.id for run in runs])
        return 0

    @property
    def _writer(self) -> output.OutputWriter:
        return output.writer(self.as_json, self.quiet)

    def _follow(self, run: Run) -> int:
        if not self.quiet:
            output.remark(f"run {run.id}: following its log; Ctrl-C leaves it running")
        code = run_endings.follow(run, to_stderr=self.as_json)
        if self.as_json and run.final:
            self._writer.write(_document([run], several=False), lambda console: None)
        return code

    def _wait(self, runs: list[Run], several: bool) -> int:
        if not self.quiet:
            output.remark(f"submitted {_name(runs)}; waiting")
        try:
            run_endings.wait_all(runs)
        except KeyboardInterrupt:
            output.remark(f"\nno longer waiting; {_name(runs)} continue{'s' if len(runs) == 1 else ''}")
            return failures.INTERRUPTED
        self._writer.write(_document(runs, several), lambda console: run_endings.tell(runs), [run.id for run in runs])
        return run_endings.first_code(runs)


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
        output.remark(f"  runyard show {runs[0].id}       show its state")
    else:
        output.remark("  runyard ls    show their states")
