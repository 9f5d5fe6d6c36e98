"""Where the training of a layer stands: what it needs to go on as if it had never been interrupted."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from page import Array
from request import BadInput, Settings


@dataclass(kw_only=True)
class Progress:
    epoch: int = 0  # how many are over
    step: int = 0  # batches of the next one that are over
    loss: float = 0.0  # sums over these batches' patches
    accuracy: float = 0.0
    best: float = -1.0  # validation accuracy
    best_epoch: int = 0
    least: float = float("inf")  # validation loss
    least_epoch: int = 0
    over: bool = False
    history: list[dict[str, Any]] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Saved:
    progress: Progress
    arrays: dict[str, list[Array]]


class Checkpoints:
    """One file per layer. `origin` tells which request they belong to."""

    def __init__(self, directory: Path, origin: str) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._directory, self._origin = directory, origin

    def save(self, name: str, progress: Progress, **arrays: list[Array]) -> None:
        """Whole or not at all: written beside and renamed, so that a kill never leaves half a checkpoint."""
        about = json.dumps({"origin": self._origin, "progress": dataclasses.asdict(progress)})
        named: dict[str, Any] = {"about": np.array(about)}
        for kind, found in arrays.items():
            named |= {f"{kind}.{index:03}": array for index, array in enumerate(found)}
        path, beside = self._path(name), self._path(f".{name}.tmp")
        with beside.open("wb") as file:
            np.savez(file, **named)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)

    def load(self, name: str) -> Saved | None:
        path = self._path(name)
        if not path.exists():
            return None
        try:
            with np.load(path) as file:
                about, arrays = json.loads(str(file["about"])), _grouped(file)
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise BadInput(f"the checkpoint {path} cannot be read ({error}); remove it to begin anew") from None
        if about["origin"] != self._origin:
            raise BadInput(f"the checkpoint {path} is of other inputs or settings; remove it to begin anew")
        return Saved(progress=Progress(**about["progress"]), arrays=arrays)

    def forget(self, name: str) -> None:
        self._path(name).unlink(missing_ok=True)

    def _path(self, name: str) -> Path:
        return self._directory / f"{name}.npz"


def _grouped(file: Any) -> dict[str, list[Array]]:
    arrays: dict[str, list[Array]] = {}
    for name in sorted(file.files):
        if name != "about":
            arrays.setdefault(name.split(".")[0], []).append(file[name])
    return arrays


def origin_of(settings: Settings, files: list[Path]) -> str:
    digest = hashlib.sha256(json.dumps(dataclasses.asdict(settings), sort_keys=True).encode())
    for file in files:
        with file.open("rb") as opened:
            digest.update(hashlib.file_digest(opened, "sha256").digest())
    return digest.hexdigest()
