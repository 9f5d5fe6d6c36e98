"""The client from Python, against a real yard."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from runyard import Client, Run, errors


@pytest.fixture
def client(shared) -> Client:
    return shared.client()


def test_submit_and_everything_after(client: Client, tmp_path: Path) -> None:
    run = client.submit(
        ["sh", "-c", "echo lr={lr}; echo x > $OUTPUT_DIR/model; exit 3"], params={"lr": 0.1}, name="probe", tags=["t"]
    )
    assert run.wait() is run
    assert (run.state, run.reason, run.exit_code, run.name, run.tags) == ("failed", "error", 3, "probe", ["t"])
    assert run.logs() == "lr=0.1\n"
    assert [output.path for output in run.outputs()] == ["model"]
    assert run.fetch(tmp_path) == [tmp_path / "model"]
    assert run.events()[0]["kind"] == "submitted"
    assert run.data["id"] == run.id
    assert len(run.attempts) == 1
    with pytest.raises(AttributeError, match="no field 'colour'"):
        _ = run.colour


def test_submit_many_is_one_call(client: Client) -> None:
    runs = client.submit_many([{"command": ["true"], "name": f"m{number}"} for number in range(20)])
    assert [run.id for run in runs] == list(range(runs[0].id, runs[0].id + 20))
    assert {run.wait().state for run in runs} == {"succeeded"}
    assert client.submit_many([]) == []


def test_many_are_all_or_none(client: Client) -> None:
    before = client.runs(limit=1)
    with pytest.raises(errors.InvalidInput, match=r"runs\[1\]"):
        client.submit_many([{"command": ["true"]}, {"comand": ["true"]}])
    assert [run.id for run in client.runs(limit=1)] == [run.id for run in before]


def test_listing_pages_by_itself(client: Client) -> None:
    ids = [run.id for run in client.submit_many([{"command": ["true"], "project": "pages"}] * 7)]
    assert [run.id for run in client.iter_runs(project="pages", page=3)] == ids[::-1]
    assert [run.id for run in client.runs(project="pages", limit=2)] == ids[:-3:-1]
    assert client.last().id == ids[-1]
    for run in client.runs(project="pages"):
        run.wait()
    assert client.runs(project="pages", state=["queued", "running"]) == []
    assert client.runs_by_id(range(1, 10_500), project="pages").keys() == set(ids)


def test_follow_gives_bytes_while_it_runs(client: Client, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    run = client.submit(["sh", "-c", f"echo first; while [ ! -e {gate} ]; do sleep 0.02; done; echo second"])
    pieces = run.follow()
    assert next(pieces) == b"first\n"
    gate.touch()
    assert b"".join(pieces) == b"second\n"


def test_waiting_can_time_out(client: Client) -> None:
    run = client.submit(["sleep", "600"])
    with pytest.raises(TimeoutError, match=f"run {run.id} is still"):
        run.wait(timeout=0.2)
    assert run.cancel().state == "cancelled"


def test_cancel_and_retry_tell_of_each(client: Client) -> None:
    run = client.submit(["false"], wait=True)
    outcome = client.retry([run.id, 999999])
    assert isinstance(outcome[run.id], Run)
    assert isinstance(outcome[999999], errors.NotFound)
    run.wait()
    assert isinstance(client.cancel([run.id])[run.id], errors.Conflict)


def test_one_client_in_many_threads(client: Client) -> None:
    states: list[str] = []
    threads = [
        threading.Thread(target=lambda: states.append(client.submit(["true"], wait=True).state)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(180)
    assert states == ["succeeded"] * 8


def test_a_client_finds_a_yard_that_moved(make_yard) -> None:
    yard = make_yard()
    client = yard.client()
    run = client.submit(["true"], wait=True)
    before = client.url
    yard.restart()
    assert client.run(run.id).state == "succeeded"
    assert client.url == yard.url != before


def test_plan_sites_agents_health(client: Client) -> None:
    assert client.plan(command=["echo", "{x}"], params={"x": 1})["argv"] == ["echo", "1"]
    assert [site["name"] for site in client.sites()] == ["local"]
    assert client.site("local")["name"] == "local"
    assert [agent["site"] for agent in client.agents()] == ["local"]
    assert client.health()["status"] == "ok"


def test_a_fresh_directory_when_no_cwd_is_wanted(client: Client) -> None:
    run = client.submit(["pwd"], cwd=None, wait=True)
    assert run.logs().strip() != str(Path.cwd())
    assert run.state == "succeeded"
