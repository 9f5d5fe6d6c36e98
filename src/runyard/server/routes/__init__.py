"""All routes, in the order in which the document lists them."""

from __future__ import annotations

from runyard.server.route import Route
from runyard.server.routes import (
    agents,
    blobs,
    drop_boxes,
    links,
    logs,
    outputs,
    packs,
    recipes,
    replies,
    runs,
    sites,
    system,
    tokens,
    training_runs,
)

_ROWS: tuple[Route, ...] = (
    *runs.ROUTES,
    *logs.ROUTES,
    *outputs.ROUTES,
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
