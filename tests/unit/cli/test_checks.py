"""What `runyard doctor` shows of the settings."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from runyard.cli.doctor import checks
from runyard.settings import Settings


def test_settings_are_shown_without_passwords(tmp_path: Path) -> None:
    loaded = Settings(
        home=tmp_path,
        store="postgresql://ann:s3cret@db/yard",
        broker="amqps://ann:s3cr:et@mq.example/lab",
        broker_password="s3cret",
    )
    shown = {item["name"]: item["value"] for item in checks.shown_settings(loaded)}
    assert shown["store"] == "postgresql://ann:…@db/yard"
    assert shown["broker"] == "amqps://ann:…@mq.example/lab"
    assert shown["broker_password"] == "…"
    assert shown["home"] == str(tmp_path)


def test_addresses_without_a_password_are_shown_whole(tmp_path: Path) -> None:
    loaded = Settings(home=tmp_path, broker="amqp://ann@mq/", store="")
    shown = {item["name"]: item["value"] for item in checks.shown_settings(loaded)}
    assert (shown["broker"], shown["store"]) == ("amqp://ann@mq/", "")


def test_a_store_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    loaded = Settings(home=tmp_path / "what?")
    loaded.database.mkdir(parents=True)
    assert checks._store(loaded)[1].startswith(f"{loaded.database} cannot be read: ")


def test_the_size_of_a_store_counts_what_is_not_moved_in_yet(tmp_path: Path) -> None:
    loaded = Settings(home=tmp_path)
    with contextlib.closing(sqlite3.connect(loaded.database)) as connection:
        connection.execute("PRAGMA journal_mode = wal")
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.execute("CREATE TABLE runs (spec TEXT)")
        connection.execute("INSERT INTO runs VALUES (?)", ["x" * (3 << 20)])
        connection.commit()
        assert checks._store(loaded)[1] == "1 run in 3.0 MB, undamaged"
