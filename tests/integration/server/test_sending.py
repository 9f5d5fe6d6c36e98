"""A client brings code and data to a real yard, over lines that are good and bad."""

from __future__ import annotations

import contextlib
import hashlib
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from runyard import Client, errors
from runyard.client import upload
from runyard.client.run_inputs import CodeHere
from runyard.model import packs
from runyard.model.tree import Tree
from tests.integration.server.api import Api, Served
from tests.integration.server.lines import Line, cut_after, damage

LARGE = packs.LARGE + 3_000_000


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is no checkout, with files that no other test has."""
    folder = tmp_path / "project"
    (folder / "lib").mkdir(parents=True)
    (folder / "train.py").write_bytes(b"# " + os.urandom(8).hex().encode() + b"\nprint(1)\n")
    (folder / "lib/nets.py").write_text("")
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def line(served: Served) -> Iterator[Line]:
    made = Line(served.api.url)
    yield made
    made.close()


@pytest.fixture
def client(line: Line, served: Served) -> Iterator[Client]:
    with Client(line.url, served.api.token, start=False) as made:
        yield made


def newest(api: Api) -> list[int]:
    return [run["id"] for run in api.get("/runs?limit=1").json["runs"]]


def code_of(api: Api, run: int) -> dict[str, Any]:
    return dict(api.get(f"/runs/{run}").json["spec"]["code"])


def tree_at(api: Api, digest: str) -> Tree:
    return Tree.parse(api.get(f"/blobs/{digest}").body)


def contents(api: Api, tree: Tree) -> dict[str, bytes]:
    return {file.path: api.get(f"/blobs/{file.digest}").body for file in tree.files}


def here(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_code_and_data_arrive_as_they_were(client: Client, api: Api, project: Path) -> None:
    (project / "corpora/en").mkdir(parents=True)
    (project / "corpora/en/a.txt").write_bytes(os.urandom(1000))
    run = client.submit("true", code=".", data=["corpora", "big=/scratch/big"])
    spec = run.spec
    assert "cwd" not in spec
    assert spec["data"][1] == {"path": "/scratch/big", "to": "big"}
    code, data = tree_at(api, spec["code"]["tree"]), tree_at(api, spec["data"][0]["tree"])
    assert contents(api, data) == here(project / "corpora")
    assert contents(api, code) == {"train.py": (project / "train.py").read_bytes(), "lib/nets.py": b""}
    assert (spec["code"]["files"], spec["code"]["size"]) == (2, code.size)


def test_edits_after_the_submit_change_nothing(client: Client, api: Api, project: Path) -> None:
    was = (project / "train.py").read_bytes()
    run = client.submit("true", code=True)
    (project / "train.py").write_text("changed")
    assert contents(api, tree_at(api, run.spec["code"]["tree"]))["train.py"] == was


def test_what_the_yard_has_is_not_sent_again(client: Client, line: Line, project: Path) -> None:
    for number in range(200):
        (project / f"data{number}.bin").write_bytes(os.urandom(5000))
    first = client.submit("true", code=".")
    assert line.sent > 1_000_000
    line.sent = 0
    second = client.submit("true", code=".")
    assert line.sent < 10_000
    assert second.spec["code"] == first.spec["code"]
    line.sent = 0
    (project / "train.py").write_bytes(os.urandom(5000))
    client.submit("true", code=".")
    assert 5_000 < line.sent < 60_000


def test_one_changed_file_among_many_costs_about_its_size(client: Client, line: Line, api: Api, project: Path) -> None:
    for number in range(1500):
        (project / f"lib/data{number}.bin").write_bytes(os.urandom(100))
    client.submit("true", code=".")
    (project / "lib/data700.bin").write_bytes(os.urandom(20_000))
    (project / "lib/data3.bin").unlink()
    line.sent = 0
    run = client.submit("true", code=".")
    assert 20_000 < line.sent < 30_000
    assert contents(api, tree_at(api, run.spec["code"]["tree"])) == here(project)


def test_what_is_remembered_of_one_yard_is_not_believed_of_another(
    client: Client, serve_yard: Callable[..., Served], project: Path
) -> None:
    client.submit("true", code=".")
    (project / "more.py").write_text("more")
    other = serve_yard().api
    with Client(other.url, other.token, start=False) as elsewhere:
        run = elsewhere.submit("true", code=".")
    assert contents(other, tree_at(other, run.spec["code"]["tree"])) == here(project)


def test_one_snapshot_for_all_runs_of_a_call(client: Client, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    monkeypatch.setattr(upload, "send", _noting(taken, upload.send))
    runs = client.submit_many([{"command": "true", "code": ".", "name": f"n{number}"} for number in range(3)])
    assert len({run.spec["code"]["tree"] for run in runs}) == 1
    assert taken == ["project"]


def _noting(taken: list[str], real: Callable[..., None]) -> Callable[..., None]:
    def send(client: Client, snapshots: list[Any], *further: Any) -> None:
        taken.extend(snapshot.root.name for snapshot in snapshots)
        real(client, snapshots, *further)

    return send


def test_without_code_the_run_works_in_this_folder(client: Client, project: Path) -> None:
    spec = client.submit("true").spec
    assert "code" not in spec
    assert spec["cwd"] == str(project)


@pytest.mark.component("git")
def test_in_a_checkout_code_is_brought_along_by_itself(client: Client, project: Path) -> None:
    subprocess.run(["git", "init", "-q"], check=True)
    assert client.submit("true").spec["code"]["files"] == 2
    assert "code" not in client.submit("true", code=False).spec
    assert "code" not in client.submit("true", cwd="/tmp").spec
    assert "code" not in client.submit("true", cwd=None).spec
    assert "code" not in client.submit([], script="#!/bin/sh\n").spec


def test_small_files_arrive_over_a_line_that_is_cut(client: Client, line: Line, api: Api, project: Path) -> None:
    for number in range(40):
        (project / f"{number}.bin").write_bytes(os.urandom(1_000_000))
    line.fault = cut_after(9_000_000, 12_000_000)
    run = client.submit("true", code=CodeHere(root=project))
    assert contents(api, tree_at(api, run.spec["code"]["tree"])) == here(project)


def test_a_large_file_goes_on_where_it_was_cut(client: Client, line: Line, api: Api, project: Path) -> None:
    data = os.urandom(5 * upload.PIECE + 1234)
    (project / "large.bin").write_bytes(data)
    line.fault = cut_after(2 * upload.PIECE + 4_000_000, upload.PIECE)
    run = client.submit("true", code=".")
    assert contents(api, tree_at(api, run.spec["code"]["tree"]))["large.bin"] == data
    assert line.sent < len(data) + 3 * upload.PIECE


def test_a_submit_that_was_ended_goes_on_in_the_next(client: Client, line: Line, api: Api, project: Path) -> None:
    data = os.urandom(4 * upload.PIECE)
    name = f"sha256:{hashlib.sha256(data).hexdigest()}"
    (project / "large.bin").write_bytes(data)

    @contextlib.contextmanager
    def impatient(title: str, total: int) -> Iterator[Callable[[int], object]]:
        def advance(size: int) -> None:
            if title == "sending" and size >= upload.PIECE:
                raise KeyboardInterrupt

        yield advance

    with pytest.raises(KeyboardInterrupt):
        client.submit("true", code=".", progress=impatient)
    held = api.request("PATCH", f"/blobs/{name}?offset=0&size={len(data)}", b"").json["held"]
    assert held >= upload.PIECE
    line.sent = 0
    client.submit("true", code=".")
    assert line.sent < len(data) - held + 1_000_000


@pytest.mark.parametrize("size", [1000, LARGE])
def test_bytes_that_were_damaged_once_are_sent_again(
    client: Client, line: Line, api: Api, project: Path, size: int
) -> None:
    marker = os.urandom(16)
    (project / "data.bin").write_bytes(marker + os.urandom(size))
    line.fault = damage(marker, 1)
    run = client.submit("true", code=".")
    assert contents(api, tree_at(api, run.spec["code"]["tree"])) == here(project)


@pytest.mark.parametrize("size", [1000, LARGE])
def test_a_line_that_always_damages_submits_nothing(
    client: Client, line: Line, api: Api, project: Path, size: int
) -> None:
    marker = os.urandom(16)
    (project / "data.bin").write_bytes(marker + os.urandom(size))
    line.fault = damage(marker, 1000)
    before = newest(api)
    with pytest.raises(errors.RunyardError, match="arrived damaged"):
        client.submit("true", code=".")
    assert newest(api) == before


@pytest.mark.parametrize("size", [1000, LARGE])
def test_a_file_that_changed_before_it_was_sent(
    client: Client, api: Api, project: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    (project / "data.bin").write_bytes(os.urandom(size))
    real = upload.send

    def late(*given: Any) -> None:
        (project / "data.bin").write_bytes(os.urandom(size))
        real(*given)

    monkeypatch.setattr(upload, "send", late)
    before = newest(api)
    with pytest.raises(errors.InvalidInput, match=r"data\.bin changed while it was read"):
        client.submit("true", code=".")
    assert newest(api) == before


def test_nothing_is_sent_for_a_plan(client: Client, line: Line, project: Path) -> None:
    (project / "weights.bin").write_bytes(os.urandom(200_000))
    planned = client.plan(command="true", code=".")
    assert planned["spec"]["code"]["files"] == 3
    assert planned["cwd"] is None
    assert planned["sent"][0]["biggest"][0] == ["weights.bin", 200_000]
    assert line.sent < 10_000


def test_limits_of_this_home_are_kept(
    client: Client, line: Line, served: Served, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUNYARD_CODE_LIMIT", "10K")
    (project / "weights.bin").write_bytes(bytes(20_000))
    with (
        Client(line.url, served.api.token, start=False) as limited,
        pytest.raises(errors.InvalidInput, match=r"the biggest: weights\.bin"),
    ):
        limited.submit("true", code=".")


def test_progress_is_told_about_every_byte(client: Client, project: Path) -> None:
    (project / "large.bin").write_bytes(os.urandom(LARGE))
    told: dict[str, list[int]] = {}

    def progress(title: str, total: int) -> AbstractContextManager[Callable[[int], object]]:
        told[title] = [total, 0]

        def advance(size: int) -> None:
            told[title][1] += size

        return contextlib.nullcontext(advance)

    client.submit("true", code=".", progress=progress)
    assert set(told) == {"reading the code", "sending"}
    assert all(total == done for total, done in told.values())
