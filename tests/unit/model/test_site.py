"""How sites are described, those with nodes above all."""

from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.model.site import SiteSpec, node_name

BOXES = {
    "kind": "ssh",
    "dir": "/var/tmp/ry",
    "ssh": ["ada@hoff", "norman.lab"],
    "options": {"cpus": "8", "hoff.gpus": "2"},
}


def test_each_login_is_a_node() -> None:
    site = SiteSpec.parse(BOXES)
    assert site.nodes() == {"hoff": "ada@hoff", "norman.lab": "norman.lab"}
    assert SiteSpec.parse(site.to_json()) == site
    assert SiteSpec.parse({**BOXES, "kind": "slurm", "options": {}}).nodes() == {}


def test_what_is_said_of_a_node_wins_over_what_is_said_of_all() -> None:
    site = SiteSpec.parse({**BOXES, "options": {"cpus": "8", "norman.lab.cpus": "2"}})
    assert [site.node_option(node, "cpus") for node in site.nodes()] == ["8", "2"]
    assert site.node_option("hoff", "gpus") == ""


def test_what_is_said_of_a_node_goes_with_it() -> None:
    site = SiteSpec.parse(BOXES)
    assert site.edited({"ssh": ["norman.lab"]}).options == {"cpus": "8"}
    assert site.edited({"ssh": ["ada@hoff", "pitts"]}).options == {"cpus": "8", "hoff.gpus": "2"}
    with pytest.raises(errors.InvalidInput, match="there is no node 'hoff'"):
        site.edited({"ssh": ["norman.lab"], "options": {"hoff.gpus": "1"}})


@pytest.mark.parametrize(
    ("login", "name"), [("hoff", "hoff"), ("ada@hoff", "hoff"), ("ssh://ada@hoff.lab:2222", "hoff.lab")]
)
def test_the_name_of_a_node(login: str, name: str) -> None:
    assert node_name(login) == name


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"ssh": []}, "has nodes"),
        ({"dir": None}, "needs a directory"),
        ({"ssh": ["ada@hoff", "bob@hoff"], "options": {}}, "two nodes have the name 'hoff'"),
        ({"options": {"hof.cpus": "1"}}, "there is no node 'hof'"),
        ({"options": {"cups": "1"}}, "options.cups: there is no such option"),
        ({"options": {"cpus": "many"}}, "'many' is not a number"),
        ({"options": {"hoff.memory": "lots"}}, "options.hoff.memory"),
        ({"ssh": ["ada@[::1]"]}, "is not the name of a node"),
    ],
)
def test_what_cannot_be_is_told(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        SiteSpec.parse({**BOXES, **changes})
    assert words in caught.value.message


@pytest.mark.parametrize("option", ["foo", "partition", "cpus", "hoff.keep"])
def test_this_machine_takes_no_option_that_nobody_reads(option: str) -> None:
    with pytest.raises(errors.InvalidInput, match=f"options.{option}: there is no such option") as caught:
        SiteSpec().edited({"options": {option: "1"}})
    assert caught.value.fix


@pytest.mark.parametrize("kind", ["local", "slurm", "gridengine"])
def test_what_the_agent_itself_is_told_is_the_same_everywhere(kind: str) -> None:
    told = {"cache_limit": "1G", "keep": "failed:1d", "checkpoint_every": "5m", "scratch": "/s", "disk_reserve": "1G"}
    assert SiteSpec.parse({"kind": kind, "options": told}).options == told
    with pytest.raises(errors.InvalidInput, match="disk_reserve"):
        SiteSpec.parse({"kind": kind, "options": {"disk_reserve": "much"}})
