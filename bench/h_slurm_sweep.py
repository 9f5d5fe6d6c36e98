"""(h) A sweep on a Slurm cluster through runyard, against `sbatch --array` of the same by hand."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench import harness, slurm_sides
from bench.harness import Result
from bench.slurm_sides import Taken

RUNS, SLEEP_S, PAIRS = 1000, 2, 5
FEWER = 10  # times fewer runs, each so many times longer, keep the cluster busy for as long
NO_OPS, NO_OP_PAIRS = 200, 3
# Slots that this machine's cores do not have. With more of them Slurm itself, which takes 35 ms of CPU for each task,
# would be what is measured.
NODES, CPUS = 4, 8
MOST_RATIO, MOST_SUBMIT_S, LOOK_EVERY_S = 1.15, 3.0, 10.0

Pair = tuple[Taken, Taken]  # by runyard, by hand


def measure(place: Path) -> Iterator[Result]:
    if harness.lacks("h", "slurm"):
        return
    with slurm_sides.both(place, nodes=NODES, cpus=CPUS) as sides:
        pairs(sides, 1, 4 * NODES, "true")  # whatever is done only once is done now
        swept = pairs(sides, PAIRS, RUNS, f"sleep {SLEEP_S}")
        yield wall(swept)
        yield submit(swept)
        few = max(1, RUNS // FEWER)
        yield commands([ours for ours, _ in swept], few, sides[0].take(few, f"sleep {SLEEP_S * FEWER}"))
        yield from cpu(pairs(sides, NO_OP_PAIRS, NO_OPS, "true"))


def pairs(
    sides: tuple[slurm_sides.ByRunyard, slurm_sides.ByHand], repetitions: int, count: int, command: str
) -> list[Pair]:
    """By turns, so that a busy moment of the machine hits both."""
    return [(sides[0].take(count, command), sides[1].take(count, command)) for _ in range(repetitions)]


def wall(swept: Sequence[Pair]) -> Result:
    ratio = statistics.median(ours.wall_s / other.wall_s for ours, other in swept)
    return Result(
        letter="h",
        what=f"{RUNS:,} runs of `sleep {SLEEP_S}` on a Slurm of {NODES * CPUS} slots, median of {len(swept)} pairs",
        value=statistics.median(ours.wall_s for ours, _ in swept),
        against="`sbatch --array`",
        alternative=statistics.median(other.wall_s for _, other in swept),
        ratio=ratio,
        unit="s",
        target=f"at most {MOST_RATIO} times",
        met=ratio <= MOST_RATIO,
    )


def submit(swept: Sequence[Pair]) -> Result:
    longest = max(ours.submit_s for ours, _ in swept)
    return Result(
        letter="h",
        what=f"`runyard submit` of those {RUNS:,} runs, the longest",
        value=longest,
        against="`sbatch --array`",
        alternative=max(other.submit_s for _, other in swept),
        unit="s",
        target=f"under {MOST_SUBMIT_S:g} s",
        met=longest < MOST_SUBMIT_S,
    )


def commands(swept: Sequence[Taken], few: int, fewer: Taken) -> Result:
    """Equal, but for the looks at the queue, which are made by the clock."""
    most = max(swept, key=lambda taken: taken.commands.total())
    same = _without_looks(most) == _without_looks(fewer) and all(map(_looks_by_the_clock, (most, fewer)))
    return Result(
        letter="h",
        what=f"commands to Slurm for {RUNS:,} runs: {_told(most)}; for {few}: {_told(fewer)}",
        value=most.commands.total(),
        against=f"{few} runs of `sleep {SLEEP_S * FEWER}`",
        alternative=fewer.commands.total(),
        unit="commands",
        target=f"the same, and a squeue each {LOOK_EVERY_S:g} s",
        met=same,
    )


def cpu(no_ops: Sequence[Pair]) -> Iterator[Result]:
    parts = {
        "the nodes (slurmd, slurmstepd, the task)": "nodes_cpu_s",
        "the other machines (slurmctld, yard)": "other_cpu_s",
    }
    for where, name in parts.items():
        ours, other = (
            1000 * statistics.median(getattr(pair[side], name) for pair in no_ops) / NO_OPS for side in (0, 1)
        )
        yield Result(
            letter="h",
            what=f"CPU for each `true` of {NO_OPS}, on {where}",
            value=ours,
            against="`sbatch --array`",
            alternative=other,
            unit="ms",
        )


def _without_looks(taken: Taken) -> Counter[str]:
    return Counter({name: count for name, count in taken.commands.items() if name != "squeue"})


def _looks_by_the_clock(taken: Taken) -> bool:
    return taken.commands["squeue"] <= taken.wall_s / LOOK_EVERY_S + 2


def _told(taken: Taken) -> str:
    counts = ", ".join(f"{count} {name}" for name, count in sorted(taken.commands.items()))
    return f"{counts} in {taken.wall_s:.0f} s"
