"""Hands a Python function to the yard: a run for each learning rate, and the best of their results.

python examples/python-function/hand_in.py
"""

from __future__ import annotations

from line import fit

from runyard import Client


def main() -> None:
    calls = Client().map(fit, {"lr": [0.5, 0.1, 0.01]}, params={"steps": 300}, project="python-function")
    results = [(call.result()["loss"], call) for call in calls]
    for loss, call in results:
        print(f"run {call.id}: lr {call.params['lr']} has loss {loss:.4f}")
    loss, best = min(results, key=lambda result: result[0])
    print(f"The best is run {best.id}: lr {best.params['lr']}")


if __name__ == "__main__":
    main()
