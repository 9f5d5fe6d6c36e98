"""Who serves a site, made from its description."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard import settings
from runyard.agent import sites
from runyard.backends.base import Batch, Job
from runyard.backends.batch.lifecycle import BatchBackend
from runyard.model.resources import Resources
from runyard.model.site import SiteSpec
from runyard.model.wire import AttemptKey

FOR_THE_AGENT = {"cache_limit": "1G", "checkpoint_every": "5m", "conda_root": "/c", "disk_reserve": "1G", "keep": "all"}


@pytest.mark.parametrize("kind", ["slurm", "gridengine"])
def test_what_the_agent_itself_is_told_goes_to_no_scheduler(tmp_path: Path, kind: str) -> None:
    described = SiteSpec.parse({"kind": kind, "dir": str(tmp_path), "options": {**FOR_THE_AGENT, "account": "lab"}})
    backend = sites.backend("cluster", described, settings.load(tmp_path))
    assert isinstance(backend, BatchBackend)
    job = Job(key=AttemptKey(run=1, attempt=1), directory=str(tmp_path), tag="", batch="ry-x-1-1", index=1)
    words = backend.dry_run(Batch(name="ry-x-1-1", resources=Resources(), jobs=(job,))).commands
    said = " ".join(words).replace("-", "_")
    assert "lab" in said
    assert not [name for name in FOR_THE_AGENT if name in said]
