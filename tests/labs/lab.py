"""What all labs have in common: they start, are put in order between tests, and leave nothing behind."""

from __future__ import annotations

import abc
import os
from pathlib import Path
from typing import Self

_END = 4096  # bytes of a log


class Lab(abc.ABC):
    """`logs` is the directory with what its daemons say."""

    logs: Path

    @abc.abstractmethod
    def start(self) -> Self:
        """Until it can be used."""

    @abc.abstractmethod
    def stop(self) -> None:
        """Everything ends, and its directory is gone."""

    @abc.abstractmethod
    def tidy(self) -> None:
        """Ready for the next test, whatever the last one did."""

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException as error:
            error.add_note(self.log_ends())  # the logs go with the lab
            self.stop()
            raise

    def __exit__(self, *error: object) -> None:
        self.stop()

    def log_ends(self) -> str:
        """The last lines of every log."""
        logs = sorted(path for path in self.logs.iterdir() if path.is_file())
        return "\n".join(f"--- {path.name}\n{_end(path)}" for path in logs)


def _end(log: Path) -> str:
    size = log.stat().st_size
    with log.open("rb") as file:
        file.seek(max(0, size - _END), os.SEEK_SET)
        return "\n".join(file.read().decode(errors="replace").splitlines()[-15:])
