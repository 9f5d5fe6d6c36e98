"""`python -m bench [NAME…]`: run the measurements, or those whose names start with the given words."""

from __future__ import annotations

import sys
from importlib import import_module

from bench import harness

MEASUREMENTS = (
    "a_interpreter_runs",
    "b_true_runs",
    "c_submit",
    "d_log_latency",
    "e_listing",
    "f_memory",
    "g_start_up",
)


def main(wanted: list[str]) -> None:
    chosen = [name for name in MEASUREMENTS if not wanted or any(name.startswith(word) for word in wanted)]
    if not chosen:
        sys.exit(f"no such measurement; known: {', '.join(MEASUREMENTS)}")
    with harness.workspace() as place:
        print(harness.describe(place), flush=True)
        for name in chosen:
            for result in import_module(f"bench.{name}").measure(place):
                print(result.line(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
