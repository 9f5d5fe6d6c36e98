"""The client for Ludwig projects and a real yard: what is handed in, what is refused, and many who submit at once."""

from __future__ import annotations

import contextlib
import math
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runyard import errors
from runyard.bridges.ludwig import Client
from runyard.client.run import Run
from tests.acceptance.witness import until
from tests.labs.yard import Yard

RUN = "import os; print(os.environ['MINE'])"
READ_CHUNK = """
import json, os, pickle, socket
path = "{}/{}_param2val_chunk.pkl".format(json.loads(os.environ["LUDWIG_JOB"])["project_path"], socket.gethostname())
[found] = pickle.load(open(path, "rb"))
print(found["clip"], found["start"])
"""


@pytest.fixture
def client(yard: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Client:
    """From a project's folder, with a `run.py` that needs nothing."""
    (tmp_path / "project" / "src").mkdir(parents=True)
    (tmp_path / "project" / "src" / "code.py").touch()
    (tmp_path / "project" / "run.py").write_text(RUN)
    (tmp_path / "drive").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    default = {"size": 1, "rate": 0.1}
    return Client("digits", default, share=tmp_path / "drive", python=sys.executable, yard=yard.client())


def submit(client: Client, *arguments: Any, **options: Any) -> list[Run]:
    return client.submit([Path("src")], *arguments, env={"MINE": "kept"}, **options)


def test_a_run_is_what_people_expect_of_it(client: Client) -> None:
    (run,) = submit(client, {"size": [3]}, priority=7, tags=["probe"])
    shown = run.wait(120).refresh().data
    assert shown["state"] == "succeeded", run.logs()
    assert (shown["project"], shown["priority"], shown["params"]) == ("digits", 7, {"size": 3, "rate": 0.1})
    assert {"probe", "ludwig", "param_001"} <= set(shown["tags"])
    assert shown["name"].endswith("_num0")
    assert run.logs() == "kept\n"


def test_data_is_where_the_project_has_it_and_on_the_drive_by_its_name(client: Client, tmp_path: Path) -> None:
    corpora = Path("resources/corpora")
    corpora.mkdir(parents=True)
    (corpora / "a.txt").write_text("words")
    Path("run.py").write_text(f"print(open('{corpora}/a.txt').read())")
    (run,) = submit(client, {"size": [3]}, data_ps=[corpora])
    assert run.wait(120).refresh().data["state"] == "succeeded", run.logs()
    assert run.logs() == "words\n"
    assert (tmp_path / "drive" / "digits" / "corpora" / "a.txt").read_text() == "words"


def test_a_test_starts_and_writes_nothing(
    client: Client, yard: Yard, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submit(client, {"size": [1, 2]}, test=True, reps=3) == []
    assert capsys.readouterr().out.count("Would run param_00") == 6
    assert os.listdir(tmp_path / "drive" / "digits" / "runs") == []
    assert yard.client().runs() == []


def test_how_full_the_drive_is_can_be_asked_of_a_client_and_of_the_class(
    client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ludwig_data").mkdir()
    monkeypatch.setenv("LUDWIG_MNT", str(tmp_path))
    for asked, drive in ((client, "drive"), (Client, "ludwig_data")):
        with contextlib.suppress(RuntimeError):  # the disk of whoever runs this may be nearly full
            asked.check_lab_disk_space()
        assert f"Percent Disk Space used at {tmp_path / drive}: " in capsys.readouterr().out
    monkeypatch.setenv("LUDWIG_MNT", str(tmp_path / "away"))
    with pytest.raises(errors.InvalidInput, match="is not there"):
        Client.check_lab_disk_space()


def test_who_submits_at_the_same_time_starts_nothing_twice(client: Client, yard: Yard) -> None:
    requests = {"size": [1, 2, 3], "rate": [0.1, 0.2]}
    with ThreadPoolExecutor(4) as pool:
        started = list(pool.map(lambda _: submit(client, requests, reps=2), range(4)))
    assert sorted(map(len, started)) == [0, 0, 0, 12]
    assert len(yard.client().runs(project="digits")) == 12


def test_what_json_has_no_number_for_arrives_all_the_same(client: Client) -> None:
    Path("run.py").write_text(READ_CHUNK)
    (run,) = submit(client, [{"clip": (math.inf, -math.inf), "start": math.nan}])
    assert run.wait(120).refresh().data["params"] == {"clip": ["inf", "-inf"], "start": "nan"}
    assert run.logs() == "(inf, -inf) nan\n"
    assert submit(client, [{"start": math.nan, "clip": (math.inf, -math.inf)}]) == []


def test_anew_means_again(client: Client) -> None:
    assert len(submit(client, {"size": [1]})) == 1
    assert len(submit(client, {"size": [1]}, anew=True)) == 1
    assert len(submit(client, {"size": [1]}, reps=2)) == 0


def test_another_drive_is_another_count(client: Client, yard: Yard, tmp_path: Path) -> None:
    assert len(submit(client, [{"size": 1}])) == 1
    (tmp_path / "other").mkdir()
    other = Client("digits", share=tmp_path / "other", python=sys.executable, yard=yard.client())
    assert len(submit(other, [{"size": 1}])) == 1


def test_what_cannot_be_is_told_and_starts_nothing(client: Client, yard: Yard, tmp_path: Path) -> None:
    until(lambda: yard.client().agents(), what="an agent that says what it has")
    away = Client("digits", share=tmp_path / "away", yard=yard.client())
    plain = Client("digits", share=tmp_path / "drive", yard=yard.client())
    for name in ("tasks", "old/tasks", "runs", "broken"):
        Path(name).mkdir(parents=True)
    Path("broken/link").symlink_to("nowhere")
    attempts: list[tuple[Client, dict[str, Any], str]] = [
        (client, {}, "there are no configurations"),
        (client, {"param2val_list": [3]}, r"param2val_list\[0\]: it is no dict"),
        (client, {"param2val_list": [{"a": object()}]}, r"param2val_list\[0\]\['a'\]: an? object cannot be sent"),
        (plain, {"param2requests": {"size": [1]}}, "param2requests needs param2default"),
        (away, {"param2val_list": [{"a": 1}]}, "the shared drive .*away is not there"),
        (client, {"param2requests": {"size": [1]}, "data_ps": ["corpora"]}, "there is no folder corpora"),
        (client, {"param2requests": {"size": [1]}, "data_ps": ["tasks", "old/tasks"]}, "both be 'tasks' on the drive"),
        (client, {"param2requests": {"size": [1]}, "data_ps": ["runs"]}, "'runs' is where results are"),
        (
            client,
            {"param2requests": {"size": [1]}, "data_ps": ["broken"]},
            "broken/link cannot be copied to",
        ),
        (client, {"param2requests": {"size": [1]}, "worker": "hof"}, "there is no node 'hof'"),
    ]
    for who, options, message in attempts:
        with pytest.raises(errors.RunyardError, match=message):
            submit(who, **options)
    assert yard.client().runs() == []
    with pytest.raises(errors.InvalidInput, match=r"project_name: '\.\./digits' is not a valid name"):
        Client("../digits", share=tmp_path / "drive")
