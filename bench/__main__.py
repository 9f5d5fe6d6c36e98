"""`python -m bench [NAME…] [SIZE=NUMBER…]`: run the measurements, or those whose names start with the given words.

`python -m bench h RUNS=100 PAIRS=1` is a smaller one: a size is a number at the top of the measurement's file.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from bench import harness

MEASUREMENTS = (
    "a_interpreter_runs",
    "b_true_runs",
    "c_submit",
    "d_log_latency",
    "e_listing",
    "f_memory",
    "g_start_up",
    "h_slurm_sweep",
    "i_requests",
    "j_ticket_latency",
    "k_results",
    "l_staging",
    "m_fetch",
    "n_node_start",
    "o_grid",
    "p_metrics",
    "q_ask_tell",
    "r_ray_tune",
)


def main(words: list[str]) -> None:
    wanted, sizes = [word for word in words if "=" not in word], [word for word in words if "=" in word]
    chosen = [name for name in MEASUREMENTS if not wanted or any(name.startswith(word) for word in wanted)]
    if not chosen:
        sys.exit(f"no such measurement; known: {', '.join(MEASUREMENTS)}")
    modules = [import_module(f"bench.{name}") for name in chosen]
    for size in sizes:
        resize(modules, *size.split("=", 1))
    with harness.workspace() as place:
        print(harness.describe(place), flush=True)
        for module in modules:
            for result in module.measure(place):
                print(result.line(), flush=True)


def resize(modules: Sequence[ModuleType], name: str, number: str) -> None:
    """Set a number that stands at the top of a measurement, in those that have it."""
    having = [module for module in modules if isinstance(getattr(module, name, None), int) and name.isupper()]
    if not having or not number.isdigit():
        sys.exit(f"{name}={number}: no measurement among the chosen ones has such a number")
    for module in having:
        setattr(module, name, int(number))


if __name__ == "__main__":
    main(sys.argv[1:])
