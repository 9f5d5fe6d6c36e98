"""Checks of a site from this machine: whether its description is valid, whether it works, and what its scheduler would
get."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from runyard import errors, settings
from runyard.client import Client, find_yard
from runyard.model.nodes import NodeChoice
from runyard.model.resources import Resources
from runyard.model.site import SSH, SiteSpec
from runyard.model.wire import AttemptKey
from runyard.settings import Settings

if TYPE_CHECKING:
    from runyard.backends.base import Check


def dry_run(client: Client, plan: dict[str, Any]) -> dict[str, Any] | None:
    """The script and the commands of a submission. None without a scheduler, or if the site is not decided yet."""
    if plan["site"] == "any":
        return None
    described = SiteSpec.parse(client.site(plan["site"])["config"])
    if described.kind in ("local", SSH):
        return None
    from runyard.agent import sites
    from runyard.agent.run.start import warning_of
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


def check(name: str, described: SiteSpec) -> None:
    """Raises ConfigError, InvalidInput: only its backend knows the options of a scheduler, and a site that no agent can
    serve would never run anything."""
    from runyard.agent import sites

    sites.check(name, described, settings.load())


def describe(target: find_yard.Target, name: str) -> SiteSpec:
    """The description that the yard sends to an agent of the site."""
    from runyard.agent.http import HttpLink

    with contextlib.closing(HttpLink(target.url, target.token, target.ca_file)) as link:
        return link.describe(name)


def test(name: str, described: SiteSpec, loaded: Settings, *, probe: bool) -> list[Check]:
    """Checks of the site from this machine. Raises InvalidInput for the machine itself."""
    from runyard.agent import sites
    from runyard.backends.batch.lifecycle import BatchBackend

    if described.kind == SSH:
        return [check for node in described.nodes() for check in _test_node(name, described, loaded, node, probe)]
    backend = sites.backend(name, described, loaded)
    if not isinstance(backend, BatchBackend):
        raise errors.InvalidInput(f"site {name!r} is the machine its agent runs on", "check it with `runyard doctor`")
    return backend.site_test(probe=probe)


def _test_node(name: str, described: SiteSpec, loaded: Settings, node: str, probe: bool) -> list[Check]:
    from runyard.agent import sites
    from runyard.backends import ssh_check

    with contextlib.closing(sites.node_backend(name, described, loaded, node)) as backend:
        return ssh_check.examine(backend, probe=probe)
