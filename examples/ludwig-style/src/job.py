"""One job: learn which letter follows which, and say how well that goes after each epoch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

LETTERS = "abcdefghijklmnopqrstuvwxyz "


def main(param2val: dict[str, Any]) -> list[pd.Series]:
    text = (Path(param2val["project_path"]) / "corpora" / "words.txt").read_text()
    letters = np.array([LETTERS.index(letter) for letter in text.lower() if letter in LETTERS])
    rng = np.random.default_rng(sum(param2val["seeds"]))
    size, rate = param2val["hidden_size"], param2val["learning_rate"]
    first = rng.normal(0, 0.5, (len(LETTERS), size))
    second = rng.normal(0, 0.5, (size, len(LETTERS)))
    losses = [epoch(first, second, letters, rate) for _ in range(param2val["epochs"])]
    np.save(Path(param2val["save_path"]) / "weights.npy", first)
    return [pd.Series(losses, name="loss"), pd.Series(np.exp(losses), name="perplexity")]


def epoch(first: np.ndarray, second: np.ndarray, letters: np.ndarray, rate: float) -> float:
    """One step down the slope for all pairs of letters; the mean loss before it."""
    before, after = letters[:-1], letters[1:]
    hidden = np.tanh(first[before])
    scores = hidden @ second
    chances = np.exp(scores - scores.max(axis=1, keepdims=True))
    chances /= chances.sum(axis=1, keepdims=True)
    loss = -np.log(chances[np.arange(len(after)), after]).mean()
    chances[np.arange(len(after)), after] -= 1
    slope = chances / len(after)
    below = (slope @ second.T) * (1 - hidden**2)
    second -= rate * hidden.T @ slope
    np.add.at(first, before, -rate * below)
    return float(loss)
