"""Tokens: random, kept as SHA-256, looked up in memory for a few seconds."""

from __future__ import annotations

import hashlib
import json
import secrets
import time
from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

from sqlalchemy import Connection

from runyard import errors
from runyard.broker.hints import Hints
from runyard.model.nodes import Limits
from runyard.model.roles import NETWORK, Caller, NewToken, Role
from runyard.store import Store, counters, recipes, site_rows
from runyard.store.rows import AnyRow
from runyard.yard import views

CHANGED = "tokens"  # the hint that one was revoked
SHORTEST = 20  # minimum length of a token that was not made by runyard
REMEMBERED = 5.0  # seconds: how long another server's revocation may go unnoticed


class Tokens:
    def __init__(self, store: Store, hints: Hints) -> None:
        self._store, self._hints = store, hints
        self._callers: dict[str, tuple[float, Caller]] = {}
        hints.listen(CHANGED, self.forget)

    def authenticate(self, secret: str) -> Caller:
        return self.remembered(secret) or self._look_up(token_digest(secret))

    def remembered(self, secret: str) -> Caller | None:
        """The cached caller of a token, without a query."""
        known = self._callers.get(token_digest(secret))
        return known[1] if known is not None and known[0] > time.monotonic() else None

    def forget(self) -> None:
        """Also discards lookups that are under way: they write into the previous cache."""
        self._callers = {}

    def tokens(self) -> list[dict[str, Any]]:
        with self._store.read() as connection:
            return [views.token_view(row) for row in site_rows.all_tokens(connection)]

    def create(self, token: NewToken) -> Future[dict[str, Any]]:
        return self._store.write(lambda connection: _create(connection, self._store.now(), token))

    def revoke(self, token_id: int) -> Future[None]:
        def work(connection: Connection) -> None:
            if not site_rows.revoke_token(connection, token_id, self._store.now()):
                raise errors.NotFound(f"there is no token {token_id}", "list them with `runyard token list`")

        return self._store.write(work, lambda _: self._hints.ring(CHANGED))

    def _look_up(self, digest: str) -> Caller:
        callers = self._callers
        with self._store.read() as connection:
            row = site_rows.token_by_digest(connection, digest)
        if row is None:
            callers.pop(digest, None)
            raise errors.Unauthorized(
                "this token is not known", "check RUNYARD_TOKEN, or read yours with `runyard token show`"
            )
        caller = _caller(row)
        callers[digest] = (time.monotonic() + REMEMBERED, caller)
        return caller


def token_digest(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()


def _caller(row: AnyRow) -> Caller:
    return Caller(
        name=row.name, role=Role(row.role), site=row.site, recipes=tuple(json.loads(row.recipes)),
        limits=Limits.from_json(json.loads(row.limits)),
    )  # fmt: skip


def ensure_admin(connection: Connection, now: float, name: str, secret: str) -> None:
    """The owner's token file is valid, whatever the store contains."""
    if site_rows.token_by_digest(connection, token_digest(secret)) is None:
        _refuse_revoked(connection, secret, "the owner's token", "remove the file `token`: the next start makes one")
        _insert(connection, now, NewToken(name=name, role=Role.ADMIN), secret)


def ensure_agent(connection: Connection, now: float, site: str, secret: str) -> None:
    """The token in a file is that of the site's agents; the previous token of that file is revoked."""
    if len(secret) < SHORTEST:
        fix = f"write a random text of {SHORTEST} characters or more into it"
        raise errors.ConfigError(f"agent_tokens.{site}: the token in the file is too short", fix)
    name = f"file:{site}"  # not a valid name for other tokens
    row = site_rows.token_by_digest(connection, token_digest(secret))
    if row is not None and row.name != name:
        fix = "write another random text into the file"
        raise errors.ConfigError(f"agent_tokens.{site}: its token is the one of {row.name!r}", fix)
    if row is None:
        fix = "write another random text into the file"
        _refuse_revoked(connection, secret, f"agent_tokens.{site}: the token in the file", fix)
        for old in (token for token in site_rows.all_tokens(connection) if token.name == name):
            site_rows.revoke_token(connection, old.id, now)
        _insert(connection, now, NewToken(name=name, role=Role.AGENT, site=site), secret)


def _refuse_revoked(connection: Connection, secret: str, what: str, fix: str) -> None:
    """A revoked token stays revoked, even if a file contains it."""
    if site_rows.was_revoked(connection, token_digest(secret)):
        raise errors.ConfigError(f"{what} was revoked", fix)


def _create(connection: Connection, now: float, token: NewToken) -> dict[str, Any]:
    """A new token. Its secret is shown only once: the store keeps only the digest."""
    if token.name == NETWORK:
        raise errors.InvalidInput(f"name: {NETWORK!r} is the name of callers without a token", "choose another name")
    _check_site(connection, token.role, token.site)
    _check_recipes(connection, token.role, token.recipes)
    if token.limits and token.role != Role.AGENT:
        raise errors.InvalidInput("limits: only an agent's token names projects and users whose runs it may take")
    secret = "ry_" + secrets.token_urlsafe(32)
    token_id = _insert(connection, now, token, secret)
    return {"id": token_id, **token.to_json(), "secret": secret}


def _check_site(connection: Connection, role: Role, site: str | None) -> None:
    if (role == Role.AGENT) != (site is not None):
        raise errors.InvalidInput("site: an agent's token needs a site, and other tokens have none")
    if site is not None and site_rows.site(connection, site) is None:
        fix = f"add it first: `runyard site add {site} --kind local --served-by agent`"
        raise errors.InvalidInput(f"site: there is no site {site!r}", fix)


def _check_recipes(connection: Connection, role: Role, wanted: Sequence[str]) -> None:
    if wanted and role != Role.CALLER:
        raise errors.InvalidInput("recipes: only a caller's token names recipes", "a member may call all of them")
    for name in wanted:
        if recipes.get(connection, name) is None:
            fix = f"add it first: `runyard recipe add {name} -f recipe.yaml`"
            raise errors.InvalidInput(f"recipes: there is no recipe {name!r}", fix)


def _insert(connection: Connection, now: float, token: NewToken, secret: str) -> int:
    token_id = counters.take(connection, "tokens")
    site_rows.insert_token(
        connection, id=token_id, name=token.name, role=token.role, site=token.site,
        recipes=json.dumps(list(token.recipes)), limits=json.dumps(token.limits.to_json()),
        digest=token_digest(secret), created_at=now,
    )  # fmt: skip
    return token_id
