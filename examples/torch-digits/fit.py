"""A network in PyTorch that learns to read digits, and that may be interrupted at any step.

The pictures are made here: ten drawn digits, moved, broken and noisy, 28 by 28 as in MNIST. Everything random follows
from the seed, and what is saved is all that the next step depends on: weights, the optimizer's memory, the random
state, the place in the epoch. So a run that was stopped and went on ends with the very loss of one that was not.

    runyard submit --checkpoint -- python fit.py --epochs 5

With the warning before a time limit, and when it is cancelled, it saves and ends; after a loss it goes on from the last
one that it saved by itself.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from runyard import job

GLYPHS = """
.##. ..#. .##. ###. #..# #### .##. #### .##. .##.
#..# .##. #..# ...# #..# #... #... ...# #..# #..#
#..# ..#. ...# .##. #### ###. ###. ..#. .##. .###
#..# ..#. ..#. ...# ...# ...# #..# ..#. #..# ...#
#..# ..#. .#.. ...# ...# ...# #..# .#.. #..# ...#
.##. .### #### ###. ...# ###. .##. .#.. .##. .##.
"""
SIDE, BATCH = 28, 64


class Training:
    """All that the next step depends on."""

    def __init__(self, options: argparse.Namespace) -> None:
        torch.manual_seed(options.seed)
        self.model = nn.Sequential(
            nn.Conv2d(1, 8, 5, stride=2), nn.ReLU(), nn.Flatten(), nn.Dropout(0.2), nn.Linear(8 * 12 * 12, 10)
        )
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=options.lr)
        self.epoch, self.batch = 0, 0

    def save(self, directory: Path) -> None:
        """Whole or not at all: written beside its name and renamed, so that a kill never leaves half of it."""
        beside = directory / "last.pt.tmp"
        torch.save(
            {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "random": torch.get_rng_state(),
                "place": [self.epoch, self.batch],
            },
            beside,
        )
        os.replace(beside, directory / "last.pt")

    def load(self, directory: Path) -> None:
        saved = torch.load(directory / "last.pt", weights_only=True)
        self.model.load_state_dict(saved["model"])
        self.optimizer.load_state_dict(saved["optimizer"])
        torch.set_rng_state(saved["random"])
        self.epoch, self.batch = saved["place"]
        print(f"going on in epoch {self.epoch} after batch {self.batch}", flush=True)

    def step(self, pictures: Tensor, digits: Tensor) -> float:
        self.model.train()
        self.optimizer.zero_grad()
        loss: Tensor = nn.functional.cross_entropy(self.model(pictures), digits)
        loss.backward()
        self.optimizer.step()
        self.batch += 1
        return float(loss.item())


def main() -> None:
    options = parse()
    torch.set_num_threads(1)  # sums in another order have other last digits
    torch.use_deterministic_algorithms(True)
    training = Training(options)
    with job.checkpointing(training.save) as checkpoints:
        if checkpoints.resume_from is not None:
            training.load(checkpoints.resume_from)
        if train(training, options, checkpoints):
            finish(training, options)


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lr", type=float, default=0.003, help="learning rate")
    parser.add_argument("--epochs", type=int, default=5, help="rounds through the pictures")
    parser.add_argument("--pictures", type=int, default=4000, help="to learn from")
    parser.add_argument("--save-every", type=int, default=20, help="batches from one checkpoint to the next")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait after each batch")
    parser.add_argument("--seed", type=int, default=job.seed() or 0, help="of everything random")
    return parser.parse_args()


def train(training: Training, options: argparse.Namespace, checkpoints: job.Checkpoints) -> bool:
    """False when it was asked to stop before the end."""
    pictures, digits = make_pictures(options.pictures, options.seed + 1)
    batches = len(digits) // BATCH
    while training.epoch < options.epochs:
        order = torch.randperm(len(digits), generator=generator(options.seed * 1000 + training.epoch))
        while training.batch < batches:
            if job.should_stop():
                return False
            chosen = order[training.batch * BATCH : (training.batch + 1) * BATCH]
            loss = training.step(pictures[chosen], digits[chosen])
            step = training.epoch * batches + training.batch
            job.log(step=step, loss=loss)
            if step % options.save_every == 0:
                checkpoints.save()
            time.sleep(options.pause)
        training.epoch, training.batch = training.epoch + 1, 0
        print(f"epoch {training.epoch}: loss {loss:.4f}", flush=True)
    return True


def finish(training: Training, options: argparse.Namespace) -> None:
    training.model.eval()
    pictures, digits = make_pictures(1000, options.seed + 2)
    with torch.no_grad():
        scores = training.model(pictures)
        loss = nn.functional.cross_entropy(scores, digits).item()
    accuracy = (scores.argmax(1) == digits).float().mean().item()
    job.summary(loss=loss, accuracy=accuracy)
    result = {"loss": loss, "exactly": loss.hex(), "accuracy": accuracy}
    (job.outputs() / "result.json").write_text(json.dumps(result))
    torch.save(training.model.state_dict(), job.outputs() / "model.pt")
    print(f"loss {loss:.6f}, accuracy {accuracy:.3f}", flush=True)


def make_pictures(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """`count` pictures and the digits they show."""
    random, drawn = generator(seed), draw_digits()
    digits = torch.randint(0, 10, (count,), generator=random)
    places = torch.randint(0, SIDE - drawn.shape[1], (count, 2), generator=random)
    pictures = torch.zeros(count, 1, SIDE, SIDE)
    for picture, digit, (row, column) in zip(pictures, digits, places.tolist(), strict=True):
        picture[0, row : row + drawn.shape[1], column : column + drawn.shape[2]] = drawn[digit]
    pictures *= (torch.rand(pictures.shape, generator=random) > 0.2).float()
    pictures += 0.3 * torch.randn(pictures.shape, generator=random)
    return pictures, digits


def draw_digits() -> Tensor:
    """Three pixels for each mark."""
    lines = [line.split() for line in GLYPHS.split("\n") if line]
    marks: list[Any] = [[[mark == "#" for mark in line[digit]] for line in lines] for digit in range(10)]
    return torch.tensor(marks).float().repeat_interleave(3, 1).repeat_interleave(3, 2)


def generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


if __name__ == "__main__":
    main()
