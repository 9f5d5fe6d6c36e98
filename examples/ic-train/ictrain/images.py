"""Pictures of flowers, drawn by formula: petals around a centre, with jitter, noise and a colour of their own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
SIDE = 16
EACH = 60  # pictures of a class, unless downsampled
SOURCES = {
    "flowers": ("daisy", "dandelion", "roses", "sunflowers", "tulips"),
    "cub": ("albatross", "bunting", "cardinal", "cormorant"),
    "gbif": ("amanita", "boletus", "cantharellus", "lactarius", "morchella", "russula"),
}


@dataclass(frozen=True)
class Split:
    images: Array  # (n, SIDE, SIDE, 3), 0 to 1
    labels: NDArray[np.int64]


@dataclass(frozen=True)
class Dataset:
    names: list[str]  # by label
    train: Split
    validation: Split
    test: Split


def load(config: dict[str, Any], seeds: dict[str, int]) -> Dataset:
    """The whole data set of a source, divided; the seeds are the ones that are used."""
    names = sorted(SOURCES[config["source"]])
    each = _per_class(config.get("downsample"))
    labels = np.repeat(np.arange(len(names)), each)
    random = np.random.default_rng(seeds["seed_shuffle"])
    images = np.stack([_draw(int(label), random) for label in labels])
    rest, test = _divide(labels, config["split_test"], seeds["seed_split_test"])
    chosen, validation = _divide(labels[rest], config["split_val"], seeds["seed_split_val"])
    parts = [Split(images[part], labels[part]) for part in (rest[chosen], rest[validation], test)]
    return Dataset(names, parts[0], parts[1], parts[2])


def _per_class(downsample: int | str | None) -> int:
    """All classes are of one size here, so the smallest is any of them."""
    return EACH if downsample is None or downsample == "min" else min(EACH, int(downsample))


def _divide(labels: NDArray[np.int64], share: float, seed: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Positions of the larger part and of the smaller one, each class in the same proportion, at least one of each."""
    random = np.random.default_rng(seed)
    taken = []
    for label in np.unique(labels):
        places = random.permutation(np.flatnonzero(labels == label))
        taken.append(places[: max(1, round(share * len(places)))])
    small = np.concatenate(taken)
    large = np.setdiff1d(np.arange(len(labels)), small)
    return random.permutation(large), small


def _draw(label: int, random: np.random.Generator) -> Array:
    y, x = np.mgrid[0:SIDE, 0:SIDE] / (SIDE - 1) * 2 - 1
    x, y = x + random.normal(0, 0.1), y + random.normal(0, 0.1)
    angle, radius = np.arctan2(y, x), np.hypot(x, y)
    edge = 0.55 + 0.25 * np.cos((label + 2) * angle + random.normal(0, 0.3))
    colour = 0.5 + 0.4 * np.cos(label * 1.3 + np.arange(3) * 2.1) + random.normal(0, 0.15, 3)
    picture = (radius < edge)[..., None] * colour + random.normal(0, 0.2, (SIDE, SIDE, 3))
    return np.asarray(np.clip(picture, 0, 1), np.float32)
