"""Describing sites: added once, changed piece by piece, removed when nobody counts on them."""

from __future__ import annotations

import pytest

from runyard import errors
from runyard.model.site import SiteSpec
from tests.integration.yard.conftest import Driver

CEDAR = {
    "kind": "slurm", "dir": "/scratch/runyard/", "ssh": ["me@login1", "me@login2"], "setup": ["module load python"],
    "options": {"account": "def-lab", "partition": "gpu"}, "env": {"DATA": "/data"},
}  # fmt: skip


def _add(driver: Driver) -> None:
    driver.yard.sites.add("cedar", SiteSpec.parse(CEDAR)).result()


def test_a_site_is_shown_as_it_was_described(driver: Driver) -> None:
    _add(driver)
    shown = driver.yard.sites.get("cedar")
    assert shown["kind"] == "slurm"
    assert shown["config"]["dir"] == "/scratch/runyard"
    assert shown["config"]["ssh"] == CEDAR["ssh"]
    with pytest.raises(errors.Conflict, match="there is a site 'cedar' already"):
        _add(driver)


def test_options_and_variables_change_one_by_one(driver: Driver) -> None:
    _add(driver)
    changes = {"options": {"partition": "", "qos": "high"}, "env": {"MORE": "1"}, "ssh": []}
    config = driver.yard.sites.edit("cedar", changes).result()["config"]
    assert config["options"] == {"account": "def-lab", "qos": "high"}
    assert config["env"] == {"DATA": "/data", "MORE": "1"}
    assert config["ssh"] == []
    assert config["setup"] == CEDAR["setup"]


def test_a_site_with_unfinished_runs_stays(driver: Driver) -> None:
    _add(driver)
    [run] = driver.submit(site="cedar")
    with pytest.raises(errors.Conflict, match="has runs that have not ended"):
        driver.yard.sites.remove("cedar").result()
    driver.yard.cancel(driver.alice, [run]).result()
    driver.yard.sites.remove("cedar").result()
    with pytest.raises(errors.NotFound):
        driver.yard.sites.get("cedar")
    assert driver.state(run) == ("cancelled", "user")
    refused = driver.yard.retry(driver.alice, [run]).result()[run]
    assert isinstance(refused, errors.Conflict) and "for the site 'cedar', which is no more" in refused.message


@pytest.mark.parametrize("change", [{"dir": "/elsewhere"}, {"kind": "slurm"}, {"served_by": "agent"}])
def test_a_site_stays_where_its_runs_are_found(driver: Driver, change: dict[str, str]) -> None:
    """Whoever serves it then would look for them in vain, and take them for lost."""
    driver.hello()
    driver.submit()
    driver.take()
    with pytest.raises(errors.Conflict, match=f"has runs, so its {next(iter(change))} cannot change now"):
        driver.yard.sites.edit("local", change).result()
    driver.yard.sites.edit("local", {"env": {"DATA": "/data"}}).result()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"dir": "relative"}, "is not an absolute path"),
        ({"ssh": ["-oProxyCommand=evil"]}, "is not a login"),
        ({"ssh": ["two words"]}, "is not a login"),
        ({"env": {"1BAD": "x"}}, "is not a variable name"),
        ({"kind": "../x"}, "is not a valid name"),
        ({"kind": "slrum"}, "there is no kind of site 'slrum'"),
        ({"served_by": "nobody"}, "is not known"),
        ({"opions": {}}, "unknown field 'opions'"),
    ],
)
def test_a_bad_description_is_refused(driver: Driver, change: dict[str, object], sentence: str) -> None:
    _add(driver)
    before = driver.yard.sites.get("cedar")
    with pytest.raises(errors.InvalidInput, match=sentence):
        driver.yard.sites.edit("cedar", change).result()
    assert driver.yard.sites.get("cedar")["config"] == before["config"]


def test_agents_elsewhere_may_know_other_kinds(driver: Driver) -> None:
    with pytest.raises(errors.InvalidInput, match="there is no kind of site 'theirs'"):
        driver.yard.sites.add("birch", SiteSpec(kind="theirs")).result()
    driver.yard.sites.add("birch", SiteSpec(kind="theirs", served_by="agent")).result()
    with pytest.raises(errors.InvalidInput, match="there is no kind of site 'theirs'"):
        driver.yard.sites.edit("birch", {"served_by": "yard"}).result()


def test_a_yard_without_sites_says_so(driver: Driver) -> None:
    driver.yard.sites.remove("local").result()
    with pytest.raises(errors.Unsatisfiable, match="has no site yet"):
        driver.submit()
