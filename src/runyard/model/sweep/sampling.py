"""Configurations that are drawn without looking at results: the n-th is the same however many are asked for."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator

from runyard.model.sweep.space import Params, Space, identity

_VAIN = 1000  # draws in a row that bring nothing new: then a finite space is as good as used up


def draw(space: Space, seed: int) -> Iterator[Params]:
    """At random. Of a finite space no configuration comes twice, and the draws end."""
    return _distinct(space, (_random(space, seed, number) for number in itertools.count(1)))


def spread(space: Space, seed: int) -> Iterator[Params]:
    """Evenly (a Halton sequence, shifted by the seed): no two close together before the whole space was visited."""
    shift = random.Random(f"runyard:{seed}")
    shifts = {name: shift.random() for name in space.dimensions}
    bases = dict(zip(space.dimensions, _primes(), strict=False))
    return _distinct(space, (_halton(space, bases, shifts, number) for number in itertools.count(1)))


def _random(space: Space, seed: int, number: int) -> Params:
    # A text, because its digest is what seeds: neighbouring numbers give unrelated draws.
    source = random.Random(f"runyard:{seed}:{number}")
    return space.choose(lambda _, dimension: dimension.at(source.random()))


def _halton(space: Space, bases: dict[str, int], shifts: dict[str, float], number: int) -> Params:
    return space.choose(lambda name, dimension: dimension.at((_mirrored(number, bases[name]) + shifts[name]) % 1.0))


def _mirrored(number: int, base: int) -> float:
    """The digits of the number behind the point, the last one first."""
    value, share = 0.0, 1.0
    while number:
        share /= base
        number, digit = divmod(number, base)
        value += digit * share
    return value


def _primes() -> Iterator[int]:
    found: list[int] = []
    for number in itertools.count(2):
        if all(number % prime for prime in found):
            found.append(number)
            yield number


def _distinct(space: Space, drawn: Iterator[Params]) -> Iterator[Params]:
    if space.count is None:
        yield from drawn
        return
    seen: set[str] = set()
    vain = 0
    for params in drawn:
        key = identity(params)
        vain = vain + 1 if key in seen else 0
        if not vain:
            seen.add(key)
            yield params
        if vain >= _VAIN or len(seen) == space.count:
            return
