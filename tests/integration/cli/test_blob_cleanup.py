"""Blobs of checkpoints that went are removed by a yard that runs, and by one that is only looked after."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from runyard.settings import Settings
from runyard.store import blob_deletions
from runyard.yard import Yard as OpenYard
from runyard.yard.blobs import GRACE_S
from runyard.yard.checkpoints.blob_cleanup import LATE_S
from tests.labs.waiting import until
from tests.labs.yard import Yard


@pytest.fixture
def home() -> Iterator[Yard]:
    made = Yard(cpus=2)
    yield made
    made.remove()


def condemn(home: Yard, data: bytes, age_s: float) -> str:
    """A blob that nothing refers to, as if it had been condemned so long ago."""
    yard = OpenYard.open(Settings(home=home.home), passing=True)
    try:
        digest = yard.blobs.add([data])
        since = time.time() - age_s
        yard.store.write(lambda connection: blob_deletions.condemn(connection, since, [digest])).result()
        return digest
    finally:
        yard.close()


def is_there(home: Yard, digest: str) -> bool:
    return (home.home / "blobs" / digest[7:9] / digest[9:]).exists()


def test_a_check_removes_what_is_overdue(home: Yard) -> None:
    digest = condemn(home, b"due", GRACE_S + 60)
    done = home.cli("check", "--json")
    assert (done.returncode, json.loads(done.stdout)["did"]) == (0, "nothing"), "that is not worth a tick"
    condemn(home, b"overdue", GRACE_S + LATE_S + 60)
    done = home.cli("check", "--json")
    assert (done.returncode, json.loads(done.stdout)["did"]) == (0, "a tick"), done.stderr
    assert not is_there(home, digest), "it goes along"
    assert json.loads(home.cli("check", "--json").stdout)["did"] == "nothing"


def test_a_yard_removes_what_is_due(home: Yard) -> None:
    due, fresh = condemn(home, b"due", GRACE_S + 60), condemn(home, b"fresh", 60)
    home.start()
    until(lambda: not is_there(home, due), "the removal")
    assert is_there(home, fresh)
