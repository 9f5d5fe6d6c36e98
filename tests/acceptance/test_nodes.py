"""A pool of real agents, each as on a node of its own: runs choose among them, and each says what goes on there."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import runyard
from tests.acceptance.pool import SITE, Pool
from tests.acceptance.witness import until
from tests.labs.disks import small_disk
from tests.labs.yard import Yard

WHERE = ["/bin/sh", "-c", "echo $RUNYARD_SCRATCH; echo x > $TMPDIR/x"]


@pytest.fixture
def pool(yard: Yard) -> Pool:
    return Pool(yard)


@pytest.fixture
def nodes(pool: Pool, yard: Yard) -> Iterator[Pool]:
    """hoff and norman with labels, and pitts for one project only."""
    words = {
        "hoff": ("--node", "hoff", "--label", "rack=a", "--label", "fast"),
        "norman": ("--node", "norman.lab.example", "--label", "rack=b"),
        "pitts": ("--node", "pitts", "--only-project", "digits"),
    }
    with contextlib.ExitStack() as stack:
        for name, more in words.items():
            stack.enter_context(pool.agent(name, *more, cpus=2))
        until(lambda: len(yard.client().site(SITE)["nodes"]) == 3, what="three nodes", timeout=120)
        yield pool


def run(yard: Yard, **fields: Any) -> str:
    """Where it ran."""
    ended = yard.client().submit(command=["true"], cwd="/", site=SITE, **fields).wait(timeout=120)
    assert ended.state == "succeeded", ended.data
    return str(ended.data["node"])


def test_runs_choose_among_the_nodes(yard: Yard, nodes: Pool) -> None:
    assert [run(yard, node=name) for name in ("hoff", "norman")] == ["hoff", "norman.lab.example"]
    assert run(yard, labels={"rack": "b"}) == "norman.lab.example"
    assert run(yard, exclude=["norman"]) == "hoff"
    assert run(yard, project="digits", exclude=["hoff", "norman"]) == "pitts"
    assert run(yard, node=["pitts", "hoff"]) == "hoff", "pitts takes others only"
    many = yard.client().submit_many(
        [{"command": ["sleep", "0.2"], "cwd": "/", "site": SITE, "labels": "fast"} for _ in range(12)]
    )
    assert {one.wait(timeout=120).data["node"] for one in many} == {"hoff"}


def test_the_command_line_says_what_cannot_be(yard: Yard, nodes: Pool) -> None:
    def refused(*words: str) -> str:
        answer = yard.cli("submit", "--site", SITE, "--no-code", *words, "--", "true")
        assert answer.returncode == 2, answer
        return answer.stderr

    assert "there is no node 'hof' at site 'pool'" in refused("--node", "hof")
    assert "did you mean 'hoff'?" in refused("--node", "norman,hof")
    assert "no node where the label is rack=z" in refused("--label", "rack=z")
    assert "'a|b' is not the name of a node" in refused("--exclude", "a|b")
    planned = yard.cli("submit", "--site", SITE, "--no-code", "--node", "hoff,norman", "--dry-run", "--", "true")
    assert "on hoff or norman" in planned.stdout


def test_a_site_shows_who_runs_what_where(yard: Yard, nodes: Pool) -> None:
    client = yard.client()
    held = client.submit(command=["sleep", "600"], cwd="/", site=SITE, node="hoff", name="long one", project="digits")
    until(lambda: client.run(held.id).state == "running", what="it runs", timeout=120)
    until(lambda: _node(yard, "hoff")["free"]["cpus"] == 1, what="its slot is taken")
    shown = json.loads(yard.cli("site", "show", SITE, "--json").stdout)
    by_name = {node["name"]: node for node in shown["nodes"]}
    assert [one["id"] for one in by_name["hoff"]["runs"]] == [held.id]
    assert by_name["hoff"]["labels"] == ["fast", "rack=a"]
    assert by_name["pitts"]["limits"] == {"projects": ["digits"], "users": []}
    assert by_name["norman.lab.example"]["disk"]["free"] > 0
    text = yard.cli("site", "show", SITE).stdout
    assert any("hoff" in line and "1/2" in line and "fast rack=a" in line for line in text.splitlines()), text
    assert any("long one" in line and "digits" in line for line in text.splitlines()), text
    client.cancel([held.id])


def _node(yard: Yard, name: str) -> dict[str, Any]:
    return next(node for node in yard.client().site(SITE)["nodes"] if node["name"] == name)


def test_scratch_is_there_for_the_run_and_gone_after_it(yard: Yard, nodes: Pool) -> None:
    ended = yard.client().submit(command=WHERE, cwd="/", site=SITE, node="hoff").wait(timeout=120)
    place = Path(ended.logs().strip())
    assert place.name.startswith(f"{ended.id}.1-")
    until(lambda: not place.exists() and not place.with_name(f"{place.name}.owner").is_symlink(), what="gone")


def test_scratch_of_a_runner_that_is_killed_goes_too(yard: Yard, nodes: Pool) -> None:
    client = yard.client()
    job = ["/bin/sh", "-c", "echo $TMPDIR; echo x > $TMPDIR/x; echo $PPID; sleep 600"]
    killed = client.submit(command=job, cwd="/", site=SITE, node="hoff")
    until(lambda: len(client.run(killed.id).logs().split()) == 2, what="its words", timeout=120)
    place, runner = client.run(killed.id).logs().split()
    os.kill(int(runner), 9)
    assert client.run(killed.id).wait(timeout=120).data["reason"] == "lost"
    until(lambda: not Path(place).exists(), what="its scratch is gone")


@pytest.mark.component("root")
def test_a_full_disk_stops_new_starts_until_there_is_room(make_yard: Callable[..., Yard], tmp_path: Path) -> None:
    with small_disk(tmp_path / "small", "size=64m") as small:
        _fill_and_free(make_yard(cpus=1, scratch=str(small), disk_reserve="20M"), small)


def _fill_and_free(yard: Yard, small: Path) -> None:
    client = yard.client()
    assert client.submit(command=["true"], cwd="/").wait(timeout=120).state == "succeeded"
    held = client.submit(command=["sleep", "600"], cwd="/")
    until(lambda: client.run(held.id).state == "running", what="it runs", timeout=120)
    (small / "filler").write_bytes(b"x" * (50 << 20))
    until(lambda: client.agents()[0]["state"] == "full", what="the full disk is seen", timeout=240)
    waiting = client.submit(command=["true"], cwd="/")
    client.cancel([held.id])
    until(lambda: client.run(held.id).final, what="the slot is free", timeout=240)
    told = f"free in {small}, 20.0 MB are reserved"
    until(lambda: told in (client.run(waiting.id).data["detail"] or ""), what="it is told")
    for words in (["status"], ["doctor"], ["site", "show", "local"]):
        told = yard.cli(*words)
        assert "starts nothing: " in " ".join((told.stdout + told.stderr).split()), told
    assert client.run(waiting.id).state == "queued"
    (small / "filler").unlink()
    assert client.run(waiting.id).wait(timeout=120).state == "succeeded"


def test_a_token_for_one_person_serves_nobody_else(yard: Yard, pool: Pool) -> None:
    made = yard.cli("token", "create", "limited", "--role", "agent", "--site", SITE, "--only-user", "ada", "-q")
    assert made.returncode == 0, made.stderr
    ada = yard.cli("token", "create", "ada", "-q").stdout.strip()
    with pool.agent("hoff", "--node", "hoff", "--token", made.stdout.strip()):
        until(lambda: yard.client().site(SITE)["nodes"], what="the node", timeout=120)
        others = yard.client().submit(command=["true"], cwd="/", site=SITE)
        with runyard.Client(yard.url, ada) as adas:
            assert adas.submit(command=["true"], cwd="/", site=SITE).wait(timeout=120).state == "succeeded"
        assert yard.client().run(others.id).state == "queued"
