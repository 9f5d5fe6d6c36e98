"""Ray Tune on the objective that (r) gives to both: run by the Python of `.venv-ray`, with nothing of runyard."""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any

os.environ.setdefault("RAY_AIR_NEW_OUTPUT", "0")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
from ray import tune


def objective(config: dict[str, Any]) -> None:
    time.sleep(config["seconds"])
    tune.report({"loss": (config["x"] - 0.3) ** 2 + config["y"]})


def main(trials: int, slots: int, seconds: float, directory: str) -> None:
    ray.init(num_cpus=slots, include_dashboard=False, logging_level="error", log_to_driver=False, _temp_dir=directory)
    print("ready", flush=True)
    sys.stdin.readline()
    began = time.perf_counter()
    space = {"x": tune.uniform(0, 1), "y": tune.uniform(0, 1), "seconds": seconds}
    config = tune.TuneConfig(metric="loss", mode="min", num_samples=trials, max_concurrent_trials=slots)
    run = tune.RunConfig(storage_path=os.path.join(directory, "results"), verbose=0)
    results = tune.Tuner(objective, param_space=space, tune_config=config, run_config=run).fit()
    took = time.perf_counter() - began
    done = sum(1 for result in results if result.error is None and "loss" in (result.metrics or {}))
    print(json.dumps({"seconds": took, "trials": done}), flush=True)
    sys.stdin.readline()
    ray.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4])
