"""The result of changing several runs: those that were changed, and those that were refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import click

from runyard import errors
from runyard.cli.show import failures, output
from runyard.client import Client, Run


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeOutcome:
    runs: list[Run]
    refused: dict[int, errors.RunyardError]

    @classmethod
    def split(cls, outcome: Mapping[int, Run | errors.RunyardError]) -> ChangeOutcome:
        runs = [item for item in outcome.values() if isinstance(item, Run)]
        refused = {number: item for number, item in outcome.items() if not isinstance(item, Run)}
        return cls(runs=runs, refused=refused)

    def forgive_ended(self, client: Client) -> ChangeOutcome:
        """Cancelling a run that finished by itself in the meantime is no failure."""
        again = {
            number: client.run(number) for number, error in self.refused.items() if isinstance(error, errors.Conflict)
        }
        ended = {number: run for number, run in again.items() if run.final}
        refused = {number: error for number, error in self.refused.items() if number not in ended}
        return ChangeOutcome(runs=[*self.runs, *ended.values()], refused=refused)

    def tell(self, writer: output.OutputWriter, sentence: Callable[[Run], str], nothing: str) -> int:
        """Write the report; returns the exit code of the first refusal."""

        def draw(console: object) -> None:
            for run in self.runs:
                click.echo(sentence(run))
            if not self.runs and not self.refused:
                output.remark(nothing)

        writer.write(self._document(), draw, [run.id for run in self.runs])
        for error in self.refused.values():
            failures.report(error.message, error.fix)
        return next((error.exit_code for error in self.refused.values()), 0)

    def _document(self) -> dict[str, object]:
        refused = {str(number): error.to_json()["error"] for number, error in self.refused.items()}
        return {"runs": [run.data for run in self.runs], "errors": refused}
