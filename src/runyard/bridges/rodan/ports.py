"""Rodan's ports, in both of its vocabularies, and the names of their files for a trainer.

Inputs are paths below Rodan's address. The older jobs have three layers with names, the newer ones up to ten with
numbers, from 0 without a gap.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from runyard import errors

_COMMON = {"Image": "image.png", "Background": "background.png", "Selected Regions": "regions.png"}
_NAMED = {"Music Layer": "music", "Staff Layer": "staff", "Text": "text"}
_NAMED_MODELS = {"music": "Music Symbol Model", "staff": "Staff Lines Model", "text": "Text Model"}
_NUMBERED = re.compile(r"rgba PNG - Layer (\d)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Input:
    port: str
    path: str  # below Rodan's address
    file: str  # as the trainer knows it


@dataclass(frozen=True, kw_only=True, slots=True)
class Model:
    port: str
    files: tuple[str, ...]  # as trainers call it; the first that is there counts


def inputs(given: object) -> list[Input]:
    """Raises InvalidInput with one sentence."""
    if not isinstance(given, Mapping):
        raise errors.InvalidInput("inputs: must be an object of ports and paths")
    files = {**_COMMON, **_layer_files(given)}
    for port in given:
        if port not in files:
            raise errors.InvalidInput(f"inputs: {port!r} is no port of this job; it has {', '.join(files)}")
    return [Input(port=port, path=_path(port, given.get(port)), file=file) for port, file in files.items()]


def models(given: Mapping[str, Any]) -> list[Model]:
    """The outputs that Rodan expects for these inputs."""
    if any(_NUMBERED.fullmatch(port) for port in given):
        count = sum(1 for port in given if _NUMBERED.fullmatch(port))
        # The suffix that the old trainer gave its models, though they are HDF5.
        layers = [_model(f"Model {number}", f"model_{number}.hdf5", f"model_{number}.png") for number in range(count)]
    else:
        layers = [_model(port, f"{name}.hdf5") for name, port in _NAMED_MODELS.items()]
    return [_model("Background Model", "background.hdf5"), *layers]


def _model(port: str, *others: str) -> Model:
    return Model(port=port, files=(f"{port}.hdf5", *others))


def _layer_files(given: Mapping[str, Any]) -> dict[str, str]:
    numbers = sorted(int(match[1]) for match in map(_NUMBERED.fullmatch, given) if match)
    named = [port for port in _NAMED if port in given]
    if numbers and named:
        raise errors.InvalidInput(f"inputs: 'rgba PNG - Layer {numbers[0]}' and {named[0]!r} are ports of two jobs")
    if not numbers and not named:
        raise errors.InvalidInput("inputs: no layer; add 'rgba PNG - Layer 0', or 'Music Layer', 'Staff Layer', 'Text'")
    if named:
        return {port: f"{name}.png" for port, name in _NAMED.items()}
    gap = next((number for number in range(numbers[-1]) if number not in numbers), None)
    if gap is not None:
        last = numbers[-1]
        raise errors.InvalidInput(f"inputs: 'rgba PNG - Layer {gap}' is missing, and there is a layer {last}")
    return {f"rgba PNG - Layer {number}": f"layer_{number}.png" for number in numbers}


def _path(port: str, value: object) -> str:
    if value is None:
        raise errors.InvalidInput(f"inputs: {port!r} is missing")
    if not isinstance(value, str) or not re.fullmatch(r"/(?!/)[^\s\x00-\x1f\x7f\\\ud800-\udfff]+", value):
        raise errors.InvalidInput(f"inputs: {port!r} is no path on Rodan, such as /uploads/projects/…: {value!r:.80}")
    if ".." in value.partition("?")[0].split("/"):
        raise errors.InvalidInput(f"inputs: {port!r} leads upwards: {value!r:.80}")
    return value
