"""A progress bar for bytes, in the units of all sizes. Imported only if there is a terminal."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from runyard.model import units


class Moved(ProgressColumn):
    def render(self, task: Task) -> Text:
        return Text(f"{units.show_size(task.completed)} of {units.show_size(task.total)}", style="progress.download")


class Speed(ProgressColumn):
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text(f"{units.show_size(speed)}/s" if speed else "", style="progress.data.speed")


def build(console: Console) -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), Moved(), Speed(), TimeRemainingColumn())
    return Progress(*columns, console=console, transient=True)
