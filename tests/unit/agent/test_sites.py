"""Who serves a site, made from its description."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runyard import errors, settings
from runyard.agent import sites
from runyard.backends.base import Batch, Job
from runyard.backends.batch.lifecycle import BatchBackend
from runyard.model.resources import Resources
from runyard.model.site import SiteSpec
from runyard.model.wire import AttemptKey

FOR_THE_AGENT = {"cache_limit": "1G", "checkpoint_every": "5m", "conda_root": "/c", "disk_reserve": "1G", "keep": "all"}


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"options": {"array": "1-3"}}, "the option 'array' is runyard's own"),
        ({"options": {"poll_interval": "often"}}, "poll_interval"),
        ({"dir": "/scratch/100%"}, "holds the character '%'"),
        ({"ssh": ["ann@login"]}, "is reached by ssh and has no directory"),
    ],
)
def test_a_cluster_that_nobody_could_serve_is_refused(tmp_path: Path, given: dict[str, Any], sentence: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        sites.check("cedar", SiteSpec.parse({"kind": "slurm", **given}), settings.load(tmp_path))
    assert sentence in caught.value.message
    for kind in ("local", "slurm", "a-plug-in-of-somebody-else"):
        sites.check("cedar", SiteSpec(kind=kind), settings.load(tmp_path))
    assert list(tmp_path.iterdir()) == []


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
