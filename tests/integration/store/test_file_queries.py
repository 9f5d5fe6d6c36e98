"""Questions to the SQLite file itself, beside the yard that has it open."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.model.spec import RunSpec
from runyard.settings import Settings
from runyard.store import file_queries
from runyard.yard import Yard


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    yard = Yard.open(Settings(home=tmp_path / "home"))
    yield yard
    yard.close()


def test_a_tick_has_work_when_a_run_waits(yard: Yard) -> None:
    database = yard.settings.database
    assert not file_queries.has_open_work(database)
    yard.sites.ensure("local", "local").result()
    yard.submit(yard.owner(), [RunSpec.parse({"command": ["true"]})]).result()
    assert file_queries.has_open_work(database)


def test_a_site_is_known_by_its_name(yard: Yard) -> None:
    yard.sites.ensure("cedar", "slurm").result()
    assert file_queries.has_site(yard.settings.database, "cedar")
    assert not file_queries.has_site(yard.settings.database, "oak")


def test_an_attempt_that_nobody_knows_is_settled(yard: Yard) -> None:
    assert not file_queries.is_unsettled(yard.settings.database, 1, 1)


def test_a_sound_store_is_reported_with_its_runs(yard: Yard) -> None:
    assert file_queries.examine(yard.settings.database) == ("ok", 0)


def test_no_file_has_no_work_and_a_damaged_one_is_left_to_the_yard(tmp_path: Path) -> None:
    database = tmp_path / "yard.db"
    assert not file_queries.has_open_work(database)
    database.write_bytes(b"this is no database" * 100)
    assert file_queries.has_open_work(database)
    assert file_queries.examine(database)[0] != "ok"


def test_a_file_that_cannot_be_opened_is_no_damage(tmp_path: Path) -> None:
    with pytest.raises(file_queries.Unreadable):
        file_queries.examine(tmp_path)


def test_a_check_with_nothing_to_do_loads_no_sqlalchemy(tmp_path: Path) -> None:
    program = (
        "import atexit, sys, runyard.cli.main as m; atexit.register(lambda: print(*sys.modules)); m.main(['check'])"
    )
    environ = {**os.environ, "RUNYARD_HOME": str(tmp_path / "home")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environ, check=True)
    assert "runyard.app.check" in done.stdout
    assert not {"sqlalchemy", "runyard.server", "runyard.agent"} & set(done.stdout.split())
