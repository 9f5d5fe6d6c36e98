"""Which yard is meant."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from runyard import errors
from runyard.client import address, find_yard
from tests.unit.client.server import Handler, Server

Serve = Callable[[Callable[[Handler], None]], Server]
URL = "http://127.0.0.1:4711"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home whose yard seems to run: its process is this one."""
    (tmp_path / "yard.json").write_text(json.dumps({"url": URL, "pid": os.getpid(), "version": "1"}))
    (tmp_path / "token").write_text("ry_of_home\n")
    return tmp_path


def find(default: Path, environ: dict[str, str] | None = None, **given) -> find_yard.Target:
    environ = {"RUNYARD_HOME": str(default), **(environ or {})}
    choice = {"url": None, "token": None, "home": None, "start": False, "notify": pytest.fail, **given}
    return find_yard.Finder.build(**choice, environ=environ).find()


def test_the_files_of_the_home(home: Path) -> None:
    assert find(home) == find_yard.Target(url=URL, token="ry_of_home")


def test_variables_go_before_files(home: Path) -> None:
    there = {"RUNYARD_URL": "http://lab:1", "RUNYARD_TOKEN": "t"}
    assert find(home, there) == find_yard.Target(url="http://lab:1", token="t")


def test_arguments_go_before_variables(home: Path) -> None:
    there = {"RUNYARD_URL": "http://lab:1", "RUNYARD_TOKEN": "t"}
    assert find(home, there, url="http://mine:2", token="m") == find_yard.Target(url="http://mine:2", token="m")


def test_a_home_that_is_named_is_meant(home: Path) -> None:
    there = {"RUNYARD_URL": "http://lab:1", "RUNYARD_TOKEN": "t"}
    assert find(Path("/nowhere"), there, home=home) == find_yard.Target(url=URL, token="ry_of_home")


def test_the_token_of_the_home_goes_nowhere_else(home: Path, serve: Serve) -> None:
    other = serve(lambda handler: handler.reply(200)).url
    with pytest.raises(errors.Unauthorized, match=f"no token for the yard at {other}"):
        find(home, {"RUNYARD_URL": other})
    assert find(home, {"RUNYARD_URL": f"{URL}/"}).token == "ry_of_home"


@pytest.mark.parametrize("url", ["notaurl", "ftp://lab", "http://lab:port"])
def test_a_bad_address_is_told_before_a_missing_token(home: Path, url: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        find(home, {"RUNYARD_URL": url})
    assert "http://127.0.0.1:9090" in caught.value.fix


def test_that_nobody_answers_is_told_before_a_missing_token(home: Path) -> None:
    with socket.socket() as taken:  # a port that nobody else gets, and at which nobody listens
        taken.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(errors.YardUnreachable, match=f"no yard answers at {nobody}"):
            find(home, {"RUNYARD_URL": nobody})


def test_a_yard_that_is_gone_is_not_spoken_to(home: Path) -> None:
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    (home / "yard.json").write_text(json.dumps({"url": URL, "pid": child}))
    with pytest.raises(errors.YardUnreachable, match="no yard is running") as caught:
        find(home)
    assert caught.value.fix == "runyard up -d"


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"url": "x", "pid": "many"}', "\0\xff"])
def test_half_an_address_is_none(home: Path, text: str) -> None:
    (home / "yard.json").write_text(text)
    assert find_yard.running(home) is None


def test_no_token_file(home: Path) -> None:
    (home / "token").unlink()
    with pytest.raises(errors.Unauthorized, match="there is no token"):
        find(home)


def test_a_complaint_is_read_from_what_a_command_wrote() -> None:
    text = "2026-01-01 starting\nerror: port 9090 is taken\nfix: runyard up --port 0\n"
    assert address.complaint(text) == ("port 9090 is taken", "runyard up --port 0")
    assert address.complaint("Segmentation fault\n\n") == ("the yard could not be started: Segmentation fault", "")
    assert address.complaint("")[0].endswith("it said nothing")


def test_a_home_for_a_yard_elsewhere(home: Path, serve: Serve) -> None:
    (home / "config.toml").write_text('url = "https://lab.example/"\nca_file = "/lab.pem"\n')
    (home / "token").chmod(0o644)
    with pytest.raises(errors.Unauthorized, match="others may read") as caught:
        find(home)
    assert "chmod 600" in caught.value.fix
    (home / "token").chmod(0o600)
    assert find(home) == find_yard.Target(url="https://lab.example/", token="ry_of_home", ca_file="/lab.pem")
    other = serve(lambda handler: handler.reply(200)).url
    with pytest.raises(errors.Unauthorized, match=f"no token for the yard at {other}"):
        find(home, {"RUNYARD_URL": other})
