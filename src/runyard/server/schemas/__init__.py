"""The shapes of bodies and answers, each written once.

RunSpec is checked by runyard.model, which finds better words; a test keeps the names here equal to the names there. The
bodies of agents and tokens are checked against these schemas by runyard.server.check.
"""

from __future__ import annotations

from runyard.server.schemas import common, metrics, nodes, places, recipes, runs, staged, sweeps, wire
from runyard.server.schemas.build import Schema, ref

__all__ = ["COMPONENTS", "Schema", "ref"]

COMPONENTS: dict[str, Schema] = {
    "RunSpec": runs.RUN_SPEC,
    "Resources": runs.RESOURCES,
    "Retry": runs.RETRY,
    "Stop": runs.STOP,
    "Array": runs.ARRAY,
    "Checkpoint": runs.CHECKPOINT,
    "Code": staged.CODE,
    "Git": staged.GIT,
    "Data": staged.DATA,
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
    "Gpu": places.GPU,
    "Capacity": places.CAPACITY,
    "SiteSpec": places.SITE_SPEC,
    "NewSite": places.NEW_SITE,
    "Site": places.SITE,
    "FullSite": places.FULL_SITE,
    "Agent": places.AGENT,
    "Node": places.NODE,
    "Limits": nodes.LIMITS,
    "Disk": nodes.DISK,
    "RecipeSpec": recipes.RECIPE_SPEC,
    "Recipe": recipes.RECIPE,
    "RecipeSummary": recipes.SUMMARY,
    "Request": recipes.REQUEST,
    "FullRequest": recipes.FULL_REQUEST,
    "Reply": recipes.REPLY,
    "Token": places.TOKEN,
    "NewToken": places.NEW_TOKEN,
    "Secret": places.SECRET,
    "Hello": wire.HELLO,
    "Report": wire.REPORT,
    "ReportedOutput": wire.REPORTED_OUTPUT,
    "SyncRequest": wire.SYNC_REQUEST,
    "SyncResponse": wire.SYNC_RESPONSE,
    "Claim": wire.CLAIM,
    "ExpiryQuestion": wire.EXPIRY_QUESTION,
    "SweepSpec": sweeps.SWEEP_SPEC,
    "Objective": sweeps.OBJECTIVE,
    "EarlyStop": sweeps.EARLY_STOP,
    "SubmittedSweep": sweeps.SUBMITTED_SWEEP,
    "PlannedSweep": sweeps.PLANNED_SWEEP,
    "Sweep": sweeps.SWEEP,
    "Trial": sweeps.TRIAL,
    "TrialRun": sweeps.TRIAL_RUN,
    "Decision": sweeps.DECISION,
    "Replay": sweeps.REPLAY,
    "Error": common.ERROR,
}
