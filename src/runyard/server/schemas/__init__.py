"""The shapes of bodies and answers, each written once.

What is declared in runyard.model has its schema from there. The rest describes answers.
"""

from __future__ import annotations

from runyard.model import staged, wire
from runyard.model.array import Array
from runyard.model.checkpoints import Checkpoint
from runyard.model.declaration import Declared, schema
from runyard.model.json_schema import Schema, ref
from runyard.model.nodes import Limits
from runyard.model.recipe import Recipe
from runyard.model.resources import Capacity, Gpu, Resources
from runyard.model.roles import NewToken
from runyard.model.site import SiteSpec
from runyard.model.spec import Retry, RunSpec, Stop
from runyard.model.sweep import SweepSpec
from runyard.model.sweep.objective import Objective
from runyard.model.sweep.stopping import Stopping
from runyard.server.schemas import common, metrics, places, recipes, runs, sweeps

__all__ = ["COMPONENTS", "Schema", "ref"]

DECLARED: tuple[type[Declared], ...] = (
    RunSpec, Resources, Retry, Stop, Array, Checkpoint, staged.Code, staged.Git, SiteSpec, Gpu, Capacity, Limits,
    wire.Disk, wire.Hello, wire.Report, wire.ReportedOutput, wire.SyncRequest, wire.SyncResponse, wire.Claim,
    wire.ExpiryQuestion, NewToken, SweepSpec, Objective,
)  # fmt: skip

COMPONENTS: dict[str, Schema] = {
    **{kind.__name__: schema(kind) for kind in DECLARED},
    "Data": staged.DATA_SCHEMA,
    "Submitted": runs.SUBMITTED,
    "Run": runs.RUN,
    "FullRun": runs.FULL_RUN,
    "Attempt": runs.ATTEMPT,
    "Event": runs.EVENT,
    "Output": runs.OUTPUT,
    "SavedCheckpoint": runs.SAVED_CHECKPOINT,
    "Plan": runs.PLAN,
    "Usage": runs.USAGE,
    "Metric": metrics.METRIC,
    "Metrics": metrics.METRICS,
    "MetricPoint": metrics.POINT,
    "NewSite": places.NEW_SITE,
    "Site": places.SITE,
    "FullSite": places.FULL_SITE,
    "Agent": places.AGENT,
    "Node": places.NODE,
    "RecipeSpec": schema(Recipe),
    "Recipe": recipes.RECIPE,
    "RecipeSummary": recipes.SUMMARY,
    "Request": recipes.REQUEST,
    "FullRequest": recipes.FULL_REQUEST,
    "Reply": recipes.REPLY,
    "Token": places.TOKEN,
    "Secret": places.SECRET,
    "EarlyStop": schema(Stopping),
    "SubmittedSweep": sweeps.SUBMITTED_SWEEP,
    "PlannedSweep": sweeps.PLANNED_SWEEP,
    "Sweep": sweeps.SWEEP,
    "Trial": sweeps.TRIAL,
    "TrialRun": sweeps.TRIAL_RUN,
    "Decision": sweeps.DECISION,
    "Replay": sweeps.REPLAY,
    "Error": common.ERROR,
}
