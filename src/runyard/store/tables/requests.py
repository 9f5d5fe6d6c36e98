"""Requests of other programs, and recipes."""

from __future__ import annotations

from sqlalchemy import Column, Double, Index, Integer, Table, Text, text

from runyard.store.tables.base import Id, metadata

recipes = Table(
    "recipes",
    metadata,
    Column("name", Text, primary_key=True),
    Column("config", Text, nullable=False),
    Column("is_default", Integer, nullable=False),  # 1: the one that is meant when none is named
    Column("changed_by", Text, nullable=False),
    Column("changed_at", Double, nullable=False),
)

requests = Table(  # of other programs, by messages; the outbox is made of those that are over and not answered
    "requests",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("queue", Text, nullable=False),  # the intake's name
    Column("identity", Text, nullable=False),  # by which a message is known when it comes again
    Column("digest", Text, nullable=False),  # of what it asks for
    Column("correlation_id", Text),
    Column("reply_to", Text),  # NULL: no reply is expected
    Column("recipe", Text),
    Column("first_run", Id),  # its runs have consecutive numbers; NULL: refused, or waiting
    Column("run_count", Integer, nullable=False),
    Column("is_group", Integer, nullable=False),
    Column("error", Text),  # why it was refused
    Column("waiting", Text),  # its contents, as JSON, while files that its runs need are fetched
    Column("received_at", Double, nullable=False),
    Column("due_at", Double),  # when its reply was first tried
    Column("replied_at", Double),
    Column("tries", Integer, nullable=False),  # of the reply, in vain
    Column("next_try", Double, nullable=False),
    Column("trouble", Text),  # why the last try was in vain
)
Index("ix_requests_identity", requests.c.queue, requests.c.identity, unique=True)
UNANSWERED = text("replied_at IS NULL")
Index("ix_requests_unanswered", requests.c.next_try, sqlite_where=UNANSWERED, postgresql_where=UNANSWERED)
