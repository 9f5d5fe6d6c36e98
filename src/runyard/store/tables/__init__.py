"""The tables, by subject. Importing this package puts all of them into `metadata`."""

from runyard.store.tables.base import metadata
from runyard.store.tables.checkpoints import checkpoints, condemned
from runyard.store.tables.metrics import metric_positions, metrics, summaries
from runyard.store.tables.requests import recipes, requests
from runyard.store.tables.runs import (
    ACTIVE,
    WAITING,
    attempts,
    batches,
    children,
    events,
    outputs,
    parents,
    run_tags,
    runs,
)
from runyard.store.tables.sites import agents, shares, sites, tokens
from runyard.store.tables.sweeps import decisions, sweep_runs, sweeps, trials
from runyard.store.tables.yard import counters, cursors, keys

__all__ = [
    "ACTIVE",
    "WAITING",
    "agents",
    "attempts",
    "batches",
    "checkpoints",
    "children",
    "condemned",
    "counters",
    "cursors",
    "decisions",
    "events",
    "keys",
    "metadata",
    "metric_positions",
    "metrics",
    "outputs",
    "parents",
    "recipes",
    "requests",
    "run_tags",
    "runs",
    "shares",
    "sites",
    "summaries",
    "sweep_runs",
    "sweeps",
    "tokens",
    "trials",
]
