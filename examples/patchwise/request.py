"""What a training is asked to do: which layers are there, and which settings hold."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

# Two halvings in the network: each side has to divide by four to meet its own copy on the way up.
SIDE_STEP, SMALLEST_SIDE = 4, 16


class BadInput(Exception):
    """The request cannot be met; the text is one sentence that says why."""


@dataclass(frozen=True, kw_only=True)
class Layer:
    """One layer of the page: the file that marks its pixels, and the port that its model goes out by."""

    name: str
    port: str

    @property
    def file(self) -> str:
        return f"{self.name}.png"


IMAGE, REGIONS = "image.png", "regions.png"
BACKGROUND = Layer(name="background", port="Background Model")
NAMED_LAYERS = (
    Layer(name="music", port="Music Symbol Model"),
    Layer(name="staff", port="Staff Lines Model"),
    Layer(name="text", port="Text Model"),
)


def find_layers(inputs: Path) -> list[Layer]:
    """The layers in the order of their ports. They are either numbered from 0 or the three that have names."""
    if not inputs.is_dir():
        raise BadInput(f"{inputs} is not a directory")
    found = [re.fullmatch(r"layer_(\d+)\.png", path.name) for path in inputs.iterdir()]
    count = max((int(match[1]) + 1 for match in found if match), default=0)
    numbered = [Layer(name=f"layer_{number}", port=f"Model {number}") for number in range(count)]
    layers = [BACKGROUND, *(numbered or NAMED_LAYERS)]
    for file in (IMAGE, REGIONS, *(layer.file for layer in layers)):
        if not (inputs / file).is_file():
            instead = ", and so is layer_0.png" if file in [layer.file for layer in NAMED_LAYERS] else ""
            raise BadInput(f"{file} is missing in {inputs}{instead}")
    return layers


def _option(default: Any, least: float, text: str, label: str = "") -> Any:
    return field(default=default, metadata={"least": least, "help": text, "label": label})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Each has a flag; those with a label are known by it in a file of settings."""

    epochs: int = _option(15, 1, "rounds through the patches at most", "Maximum number of training epochs")
    samples: int = _option(10000, 2, "patches for a layer at most", "Maximum number of samples per label")
    patch_height: int = _option(256, SMALLEST_SIDE, "rows of a patch", "Patch height")
    patch_width: int = _option(256, SMALLEST_SIDE, "columns of a patch", "Patch width")
    batch: int = _option(16, 1, "patches in a step")
    filters: int = _option(32, 1, "width of the network's first level")
    learning_rate: float = _option(1e-4, 0, "of Adam")
    patience: int = _option(3, 1, "epochs without a better model after which training stops")
    validation: float = _option(0.2, 0, "share of the patches that judge the model and do not train it")
    seed: int = _option(0, 0, "of everything random (default: $RUNYARD_SEED, or 0)")

    def __post_init__(self) -> None:
        for option in dataclasses.fields(self):
            if getattr(self, option.name) < option.metadata["least"]:
                raise BadInput(f"{_name(option)} must be at least {option.metadata['least']}")
        for name in ("patch_height", "patch_width"):
            if getattr(self, name) % SIDE_STEP:
                raise BadInput(f"{name.replace('_', ' ')} must be a multiple of {SIDE_STEP}, not {getattr(self, name)}")
        if not 0 < self.validation < 1:
            raise BadInput("validation must lie between 0 and 1")
        if not self.learning_rate:
            raise BadInput("learning rate must be more than 0")


# Settings of the same form that say where and how long the training runs, not what it does.
NOT_OURS = {"Maximum time (D-HH:MM)", "Maximum memory (MB)", "CPUs", "Slurm Notification Email", "token"}


def add_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--settings", type=Path, metavar="FILE", help="JSON: an object of settings by their labels")
    for option in dataclasses.fields(Settings):
        flag, kind = f"--{option.name.replace('_', '-')}", _kind(option)
        given = "" if "default" in option.metadata["help"] else f" (default: {option.default})"
        parser.add_argument(flag, type=kind, metavar="N", help=option.metadata["help"] + given)


def settings_of(options: argparse.Namespace) -> Settings:
    """Flags win over the file, the file over the defaults."""
    found = _read_settings(options.settings) if options.settings else {}
    found.setdefault("seed", int(os.environ.get("RUNYARD_SEED", "0")))
    flags = {option.name: getattr(options, option.name) for option in dataclasses.fields(Settings)}
    return Settings(**{**found, **{name: value for name, value in flags.items() if value is not None}})


def _read_settings(path: Path) -> dict[str, Any]:
    """A whole request is taken too: then it is its part `settings` that counts."""
    try:
        read = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise BadInput(f"the settings {path} cannot be read: {error}") from None
    read = read.get("settings", read) if isinstance(read, dict) else read
    if not isinstance(read, dict):
        raise BadInput(f"the settings {path} are not a JSON object")
    return dict(_setting(label, value) for label, value in read.items() if label not in NOT_OURS)


def _setting(label: str, value: Any) -> tuple[str, Any]:
    known = {name: option for option in dataclasses.fields(Settings) for name in (option.name, _name(option))}
    if label not in known:
        names = ", ".join(_name(option) for option in dataclasses.fields(Settings))
        raise BadInput(f"there is no setting {label!r}; there are: {names}")
    kind = _kind(known[label])
    if isinstance(value, bool) or not isinstance(value, (int, kind)):
        raise BadInput(f"{label} must be {'a whole number' if kind is int else 'a number'}, not {value!r}")
    return known[label].name, kind(value)


def _kind(option: dataclasses.Field[Any]) -> type[int] | type[float]:
    return int if isinstance(option.default, int) else float


def _name(option: dataclasses.Field[Any]) -> str:
    return str(option.metadata["label"] or option.name.replace("_", " "))
