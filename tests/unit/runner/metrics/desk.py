"""An output folder that is read as a runner would read it, and the lines that come of it."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from runyard.runner.metrics import folder, reader, sink

FOR_EVER = float("inf")


class Desk:
    """The current directory is the attempt's. What is in the folder when this is made is older than the attempt."""

    def __init__(self, outputs: Path) -> None:
        self.outputs = outputs
        self.folder = folder.MetricsFolder(os.fsencode(outputs))
        self.sink = sink.Sink()
        self.reader = reader.Reader(self.folder, self.sink)

    def look(self, seconds: float = FOR_EVER) -> bool:
        return self.reader.take(self.folder.written(), time.monotonic() + seconds)

    def finish(self, *, is_whole: bool = True) -> None:
        self.reader.finish(self.folder.written(), FOR_EVER, is_whole)

    def lines(self) -> list[dict[str, Any]]:
        path = Path("metrics.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def points(self) -> list[tuple[str, float | None, float]]:
        """(name, step, value) in the order of the lines."""
        return [(name, line["step"], value) for line in self.lines() for name, value in line.get("m", {}).items()]

    def curve(self, name: str) -> list[tuple[float | None, float]]:
        return [(step, value) for found, step, value in self.points() if found == name]
