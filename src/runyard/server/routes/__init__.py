"""All routes, in the order in which the document lists them."""

from __future__ import annotations

from runyard.server.route import Route
from runyard.server.routes import (
    agents,
    blobs,
    checkpoints,
    drop_boxes,
    links,
    logs,
    metrics,
    outputs,
    packs,
    recipes,
    replies,
    reruns,
    runs,
    sites,
    sweeps,
    system,
    tokens,
    training_runs,
)

_ROWS: tuple[Route, ...] = (
    *reruns.ROUTES,  # its fixed word is looked at before {id}
    *runs.ROUTES,
    *logs.ROUTES,
    *metrics.ROUTES,
    *outputs.ROUTES,
    *checkpoints.ROUTES,
    *sweeps.ROUTES,
    *recipes.ROUTES,
    *replies.ROUTES,
    *links.ROUTES,
    *sites.ROUTES,
    *agents.ROUTES,
    *drop_boxes.ROUTES,
    *packs.ROUTES,  # its fixed words are looked at before {digest}
    *blobs.ROUTES,
    *tokens.ROUTES,
    *system.ROUTES,
    *training_runs.ROUTES,
)
ROUTES: tuple[Route, ...] = (*_ROWS, system.describe(_ROWS))
