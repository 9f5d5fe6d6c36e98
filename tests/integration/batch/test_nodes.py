"""Several nodes, and nodes to avoid, on real clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runyard.backends.base import Job, Presence
from runyard.model.nodes import NodeChoice
from runyard.model.resources import Resources
from runyard.testing.backend_contract import record_of
from tests.integration.agent.conftest import WAIT
from tests.integration.batch.site import Site, batch_of, let_go_on, recorded, runs_on, until, wait
from tests.labs.cluster import Cluster
from tests.labs.gridengine.configuration import SPREAD

GetLab = Callable[..., Cluster]
PAIR = Resources(nodes=2, cpus=2)


@pytest.fixture(params=["slurm", "gridengine"])
def site(request: pytest.FixtureRequest) -> Site:
    get: GetLab = request.getfixturevalue(f"{request.param}_lab")
    return Site(get(), request.param)


def finished(site: Site, job: Job) -> str:
    until(lambda: recorded(job), "the exit record")
    assert (record_of(job) or {})["exit_code"] == 0, site.log_of(job)
    return site.log_of(job)


def test_slurm_gives_nodes_for_the_runs_own_srun(slurm_lab: GetLab) -> None:
    site = Site(slurm_lab(), "slurm")
    body = "echo first $SLURMD_NODENAME of $SLURM_JOB_NODELIST; srun printenv SLURMD_NODENAME SLURM_CPUS_PER_TASK"
    job, backend = site.jobs.make(["sh", "-c", body], inherit_env=True), site.backend()
    assert backend.submit(batch_of(job, resources=PAIR)) == []
    first, *others = finished(site, job).splitlines()
    assert first == "first n1 of n[1-2]"
    assert sorted(others) == ["2", "2", "n1", "n2"]
    assert wait(backend, job, Presence.GONE).node in ("n[1-2]", None)


def test_grid_engine_gives_nodes_by_an_environment_that_the_site_names(gridengine_lab: GetLab) -> None:
    site = Site(gridengine_lab(), "gridengine", {"nodes_environment": SPREAD})
    job = site.jobs.make(["sh", "-c", f'cut -d" " -f1,2 "$PE_HOSTFILE" | sort; {WAIT}'], inherit_env=True)
    backend = site.backend()
    assert backend.submit(batch_of(job, resources=PAIR)) == []
    assert runs_on(backend, job, "ge1,ge2")
    let_go_on(job)
    assert finished(site, job) == "ge1 2\nge2 2\n"


def test_grid_engine_gives_no_nodes_where_no_environment_has_them(gridengine_lab: GetLab) -> None:
    """The cluster itself says how many slots its environment takes of each host."""
    lab = gridengine_lab()
    [refusal] = Site(lab, "gridengine").backend().submit(batch_of(Site(lab, "gridengine").sleeper(), resources=PAIR))
    assert (refusal.final, refusal.ending, "nodes_environment" in refusal.text) == (True, "rejected", True)
    site = Site(lab, "gridengine", {"nodes_environment": SPREAD})
    [refusal] = site.backend().submit(batch_of(site.sleeper(), resources=replace(PAIR, cpus=1)))
    assert f"the parallel environment {SPREAD} takes 2 slots of each node" in refusal.text
    site = Site(lab, "gridengine", {"nodes_environment": "smp"})
    [refusal] = site.backend().submit(batch_of(site.sleeper(), resources=PAIR))
    assert "does not say how many slots it takes of each node ($pe_slots)" in refusal.text


def test_a_cluster_of_bad_nodes_only_is_used_all_the_same(site: Site) -> None:
    job, backend = site.jobs.make(["true"]), site.backend()
    batch = batch_of(job, resources=Resources(memory=50 << 20))
    assert backend.submit(replace(batch, avoid=tuple(site.lab.nodes))) == []
    finished(site, job)


def test_bad_nodes_are_avoided_as_long_as_there_are_others(site: Site) -> None:
    """What is asked for must not make them seem to be the last ones."""
    *bad, good = site.lab.nodes
    job, backend = site.sleeper(), site.backend()
    batch = batch_of(job, resources=Resources(memory=50 << 20, time=600))
    assert backend.submit(replace(batch, avoid=tuple(bad), warning=60)) == []
    assert runs_on(backend, job, good)


def test_a_run_goes_to_the_node_that_it_names(site: Site) -> None:
    for node in site.lab.nodes:
        job, backend = site.sleeper(), site.backend()
        assert backend.submit(replace(batch_of(job), choice=NodeChoice(node=(node,)))) == []
        assert runs_on(backend, job, node)


def test_a_run_goes_to_any_of_the_nodes_that_it_names(site: Site) -> None:
    """And to none that it excludes."""
    *others, last = site.lab.nodes
    job, backend = site.sleeper(), site.backend()
    choice = NodeChoice(node=tuple(site.lab.nodes), exclude=tuple(others))
    assert backend.submit(replace(batch_of(job), choice=choice)) == []
    assert runs_on(backend, job, last)


def test_a_node_that_a_cluster_does_not_have_is_its_own_word(site: Site) -> None:
    """Slurm refuses it at once; Grid Engine lets it wait for a host that may come."""
    job, backend = site.sleeper(), site.backend()
    refusals = backend.submit(replace(batch_of(job), choice=NodeChoice(node=("nowhere",))))
    if site.kind == "slurm":
        [refusal] = refusals
        assert (refusal.final, refusal.ending) == (True, "rejected")
        assert "Invalid node name specified" in refusal.text
    else:
        assert refusals == []
        assert backend.poll([job])[job.key].presence in (Presence.PENDING, Presence.UNKNOWN)


def test_labels_are_features_of_slurm(slurm_lab: GetLab) -> None:
    site = Site(slurm_lab(), "slurm")
    *_, last = site.lab.nodes
    _give_features(site, last, "fast,rack=a")
    try:
        job, backend = site.sleeper(), site.backend()
        assert backend.submit(replace(batch_of(job), choice=NodeChoice(labels=("fast", "rack=a")))) == []
        assert runs_on(backend, job, last)
        [refusal] = backend.submit(replace(batch_of(site.sleeper()), choice=NodeChoice(labels=("slow",))))
        assert "feature" in refusal.text.lower()
    finally:
        _give_features(site, last, "")


def _give_features(site: Site, node: str, features: str) -> None:
    words = [f"{which}Features={features}" for which in ("Available", "Active")]
    site.lab.admin("scontrol", "update", f"NodeName={node}", *words)


def test_labels_are_resources_of_grid_engine(gridengine_lab: GetLab) -> None:
    site = Site(gridengine_lab(), "gridengine")
    *_, last = site.lab.nodes
    site.lab.admin("qconf", "-aattr", "exechost", "complex_values", "fast=true,rack=a", last)
    try:
        job, backend = site.sleeper(), site.backend()
        assert backend.submit(replace(batch_of(job), choice=NodeChoice(labels=("fast", "rack=a")))) == []
        assert runs_on(backend, job, last)
    finally:
        site.lab.admin("qconf", "-dattr", "exechost", "complex_values", "fast=true,rack=a", last)


def test_a_job_has_scratch_space_on_its_node_until_it_ends(site: Site) -> None:
    body = 'echo "$RUNYARD_SCRATCH"; [ "$TMPDIR" = "$RUNYARD_SCRATCH" ] && echo x > "$TMPDIR/x"'
    job, backend = site.jobs.make(["sh", "-c", body], inherit_env=True), site.backend()
    assert backend.submit(batch_of(job)) == []
    place = Path(finished(site, job).strip())
    assert place.parent.name == f"runyard-{site.lab.user.uid}"
    wait(backend, job, Presence.GONE)
    assert not place.exists()


def test_a_name_that_is_no_node_hinders_nobody(site: Site) -> None:
    job, backend = site.jobs.make(["true"]), site.backend()
    assert backend.submit(replace(batch_of(job), avoid=("login1",))) == []
    finished(site, job)
