"""Real schedulers warn a run of its end: it hears it once, from whomever it came, and the record tells why it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from runyard.backends.base import Job, Presence
from runyard.backends.batch.lifecycle import BatchBackend
from runyard.model.resources import Resources
from runyard.testing.backend_contract import record_of
from tests.integration.batch.site import Site, batch_of, begun, recorded, until, wait
from tests.labs.cluster import Cluster

GetLab = Callable[..., Cluster]
SAVES = """
import os, signal, sys, time
def save(number, frame):
    print("saves", flush=True)
    open(os.path.join(sys.argv[1], "model"), "w").close()
    time.sleep(1)
    sys.exit(0)
signal.signal(signal.SIGTERM, signal.SIG_IGN)  # Slurm tells it to all processes
signal.signal(signal.SIGUSR1, save)
print("ready", flush=True)
time.sleep(600)
"""


class Warned:
    """A job that saves when it is warned. Its runner has no time limit of its own."""

    def __init__(self, site: Site, **spec: Any) -> None:
        place = site.directory / "checkpoints"
        place.mkdir()
        site.lab.user.own(place)
        rule = {"signal": "USR1", "grace": 60, "directory": str(place)}
        argv = ["/usr/bin/python3", "-c", SAVES, str(place)]
        self.job: Job = site.jobs.make(argv, scheduler=site.kind, checkpoint=rule, **spec)
        self.site = site

    def submit(self, backend: BatchBackend, time: int | None = None, warning: int = 60) -> str:
        """Its native id, once it listens."""
        batch = batch_of(self.job, resources=Resources(time=time))
        assert backend.submit(replace(batch, warning=warning)) == []
        native = begun(backend, self.job)
        log = Path(self.job.directory, "log")
        until(lambda: log.exists() and log.read_text(), "its first word")
        return native

    def record(self) -> dict[str, Any]:
        until(lambda: recorded(self.job), "the exit record", 280)
        return dict(record_of(self.job) or {})


def check(warned: Warned, ending: str) -> None:
    record = warned.record()
    assert (record["ending"], record["stop_reason"], record["exit_code"]) == (ending, "external", 0)
    assert record["checkpoint_changed"] is True
    assert warned.site.log_of(warned.job) == "ready\nsaves\n"


def test_slurm_warns_before_its_time_limit(slurm_lab: GetLab) -> None:
    site = Site(slurm_lab(), "slurm")
    warned, backend = Warned(site), site.backend(time_margin="0")
    warned.submit(backend, time=300, warning=200)  # Slurm warns up to a minute early, but not before it listens
    check(warned, "timeout")
    assert wait(backend, warned.job, Presence.GONE).ending is None, "Slurm saw it end by itself"


@pytest.mark.parametrize(
    ("words", "ending"), [(["--batch", "--signal=USR1"], "timeout"), ([], "stopped")], ids=["signal", "cancel"]
)
def test_scancel_warns(slurm_lab: GetLab, words: list[str], ending: str) -> None:
    site = Site(slurm_lab(), "slurm")
    warned, backend = Warned(site), site.backend()
    site.lab.ask("scancel", *words, warned.submit(backend))
    check(warned, ending)


def test_grid_engine_warns_before_its_time_limit(gridengine_lab: GetLab) -> None:
    site = Site(gridengine_lab(), "gridengine")
    warned, backend = Warned(site), site.backend(time_margin="0")
    warned.submit(backend, time=40, warning=25)  # until it listens, it must not be warned
    check(warned, "timeout")


def test_qdel_warns(gridengine_lab: GetLab) -> None:
    site = Site(gridengine_lab(), "gridengine")
    warned, backend = Warned(site), site.backend()
    site.lab.ask("qdel", warned.submit(backend))
    check(warned, "stopped")


def test_qdel_of_a_run_whose_user_asked_for_notice(gridengine_lab: GetLab) -> None:
    site = Site(gridengine_lab(), "gridengine")
    job, backend = site.sleeper(scheduler="gridengine"), site.backend()
    backend.submit(batch_of(job, notify=""))
    site.lab.ask("qdel", begun(backend, job))
    until(lambda: recorded(job), "the exit record")
    record = record_of(job) or {}
    assert (record["ending"], record["stop_reason"]) == ("stopped", "external")
