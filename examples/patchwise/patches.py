"""Which patches of a page a network sees, and cutting them batch by batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from page import Array
from request import BadInput, Layer, Settings

# Neighbouring pixels show nearly the same patch: one in a hundred is enough, where that makes a batch.
ONE_IN = 100


@dataclass(frozen=True, kw_only=True)
class Patches:
    """Patches of one layer: around which pixels they lie, and how big they are. Cut when they are asked for."""

    colours: Array
    mask: Array
    corners: Array  # row and column where each begins
    height: int
    width: int

    def __len__(self) -> int:
        return len(self.corners)

    def split(self, share: float) -> tuple[Patches, Patches]:
        """That share of them and the rest, at least one of each."""
        count = min(max(1, round(len(self) * share)), len(self) - 1)
        return self._only(slice(None, count)), self._only(slice(count, None))

    def shuffled(self, rng: np.random.Generator) -> Patches:
        return self._only(rng.permutation(len(self)))

    def batches(self, size: int, first: int = 0) -> Iterator[tuple[Array, Array]]:
        """Colours (n, height, width, 3) and where the layer is (n, height, width, 1), from batch `first` on."""
        for start in range(first * size, len(self), size):
            places = [self._place(*corner) for corner in self.corners[start : start + size]]
            colours = np.stack([self.colours[place] for place in places])
            yield colours, np.stack([self.mask[place] for place in places])[..., np.newaxis]

    def _place(self, row: int, column: int) -> tuple[slice, slice]:
        return slice(row, row + self.height), slice(column, column + self.width)

    def _only(self, which: slice | Array) -> Patches:
        return Patches(
            colours=self.colours, mask=self.mask, corners=self.corners[which], height=self.height, width=self.width
        )


def count_pixels(mask: Array, settings: Settings) -> int:
    """How many pixels of a layer may be the middle of a patch."""
    return int(np.count_nonzero(_middles(mask, settings)))


def sample(colours: Array, mask: Array, limit: int, settings: Settings, rng: np.random.Generator) -> Patches:
    """`limit` patches around pixels of the layer at most, in random order."""
    middles = _middles(mask, settings)
    wanted = max(int(np.count_nonzero(middles)) // ONE_IN, settings.batch)
    corners = _pick(middles, min(limit, wanted), rng)
    return Patches(
        colours=colours, mask=mask, corners=corners, height=settings.patch_height, width=settings.patch_width
    )


def sample_limit(counts: dict[Layer, int], settings: Settings) -> int:
    """No layer gets more patches than the smallest has pixels, so that none drowns the others."""
    for layer, count in counts.items():
        if count < 2:
            raise BadInput(
                f"{layer.file} marks {'no' if not count else 'only one'} pixel around which"
                f" a patch of {settings.patch_height} × {settings.patch_width} fits on the page"
            )
    return min(settings.samples, *counts.values())


def _middles(mask: Array, settings: Settings) -> Array:
    """The part of the mask that is half a patch away from every edge: its pixel (0, 0) is of the patch at (0, 0)."""
    above, left = settings.patch_height // 2, settings.patch_width // 2
    below, right = settings.patch_height - above, settings.patch_width - left
    return mask[above : max(mask.shape[0] - below + 1, 0), left : max(mask.shape[1] - right + 1, 0)]


def _pick(mask: Array, count: int, rng: np.random.Generator) -> Array:
    """Rows and columns of `count` pixels of the mask, without a list of all, which would cost 16 bytes for each."""
    ends = np.cumsum(np.count_nonzero(mask, axis=1))
    ranks = rng.choice(ends[-1], count, replace=False)
    rows = np.searchsorted(ends, ranks, side="right")
    before = np.where(rows > 0, ends[rows - 1], 0)
    columns = [np.flatnonzero(mask[row])[rank] for row, rank in zip(rows, ranks - before, strict=True)]
    return np.stack([rows, np.array(columns)], axis=1)
