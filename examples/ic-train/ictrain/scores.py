"""How good a trained model is on pictures it has not seen, as plain numbers that JSON can hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ictrain.images import Array


def score(likely: Array, labels: NDArray[np.int64]) -> dict[str, float]:
    classes = likely.shape[1]
    hot = np.eye(classes)[labels]
    chosen = (likely >= 0.5).astype(float)  # precision and recall count what the model is sure of
    hits = float((chosen * hot).sum())
    precision, recall = _share(hits, float(chosen.sum())), _share(hits, float(hot.sum()))
    return {
        "AUC": _area(likely.ravel(), hot.ravel()),
        "categorical_crossentropy": float(-np.log(np.maximum((likely * hot).sum(axis=1), 1e-7)).mean()),
        "precision": precision,
        "recall": recall,
        "accuracy": _top(likely, labels, 1),
        "accuracy_top3": _top(likely, labels, 3),
        "accuracy_top10": _top(likely, labels, 10),
        "F1": _share(2 * precision * recall, precision + recall),
    }


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _top(likely: Array, labels: NDArray[np.int64], count: int) -> float:
    best = np.argsort(-likely, axis=1)[:, :count]
    return float((best == labels[:, None]).any(axis=1).mean())


def _area(likely: NDArray[np.float32], hot: NDArray[np.float64]) -> float:
    """The chance that a true pair is rated above a false one; pairs of equal rank count half."""
    order = np.argsort(likely, kind="stable")
    ranks = np.empty(len(likely))
    _, first = np.unique(likely[order], return_index=True)
    for start, stop in zip(first, [*first[1:], len(likely)], strict=True):
        ranks[order[start:stop]] = (start + stop + 1) / 2
    positive = int(hot.sum())
    negative = len(hot) - positive
    return float((ranks[hot == 1].sum() - positive * (positive + 1) / 2) / (positive * negative))
