"""All routes, in the order in which the document lists them."""

from __future__ import annotations

from runyard.server.route import Route
from runyard.server.routes import agents, blobs, links, logs, outputs, recipes, replies, runs, sites, system, tokens

_ROWS: tuple[Route, ...] = (
    *runs.ROUTES,
    *logs.ROUTES,
    *outputs.ROUTES,
    *recipes.ROUTES,
    *replies.ROUTES,
    *links.ROUTES,
    *sites.ROUTES,
    *agents.ROUTES,
    *blobs.ROUTES,
    *tokens.ROUTES,
    *system.ROUTES,
)
ROUTES: tuple[Route, ...] = (*_ROWS, system.describe(_ROWS))
