"""What a scheduler would be told: the very script and the very commands of a submit."""

from __future__ import annotations

from typing import Any

from runyard import settings
from runyard.client import Client
from runyard.model.nodes import NodeChoice
from runyard.model.resources import Resources
from runyard.model.site import SSH, SiteSpec
from runyard.model.wire import AttemptKey


def dry_run(client: Client, plan: dict[str, Any]) -> dict[str, Any] | None:
    """None where no scheduler is in between, or where it is left open which site it will be."""
    if plan["site"] == "any":
        return None
    described = SiteSpec.parse(client.site(plan["site"])["config"])
    if described.kind in ("local", SSH):
        return None
    from runyard.agent import sites
    from runyard.agent.start import warning_of
    from runyard.backends.base import Batch, Job
    from runyard.backends.batch.lifecycle import BatchBackend

    backend = sites.backend(plan["site"], described, settings.load())
    if not isinstance(backend, BatchBackend):
        return None
    job = Job(key=AttemptKey(run=0, attempt=1), directory="ATTEMPT", tag="", batch="ry-dry-run", index=1)
    resources = Resources(**plan["resources"])
    warning = warning_of(plan["spec"], resources)
    spec = plan["spec"]
    batch = Batch(
        name=job.batch, resources=resources, jobs=(job,), options=spec.get("options", {}), warning=warning,
        choice=NodeChoice.from_json(spec),
    )  # fmt: skip
    shown = backend.dry_run(batch)
    return {"script": shown.script, "commands": list(shown.commands)}
