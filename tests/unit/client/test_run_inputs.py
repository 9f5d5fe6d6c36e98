"""What people write for code and data, and what it means from where they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from runyard import errors
from runyard.client import origin
from runyard.client.run_inputs import CodeHere, DataHere, resolve


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "project"
    for name in ("corpora", "sets/mnist", "a=b"):
        (folder / name).mkdir(parents=True)
    (tmp_path / "beside").mkdir()
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("spec", ["command", ["true"], None])
def test_what_is_no_run(spec: Any) -> None:
    with pytest.raises(errors.InvalidInput, match="a run is a mapping"):
        resolve(spec)


def test_who_says_where_a_run_works_need_not_be_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert [spec["cwd"] for spec in origin.complete([resolve({"cwd": "/x"}), {"cwd": None}])] == ["/x", None]
    with pytest.raises(errors.InvalidInput, match="current directory does not exist"):
        origin.complete([{}])


def test_code_by_default_only_in_a_checkout(here: Path) -> None:
    assert resolve({"command": "x"}) == {"command": "x"}
    (here / ".git").mkdir()
    assert resolve({"command": "x"}) == {"command": "x", "code": CodeHere(root=here)}


@pytest.mark.parametrize("spec", [{"cwd": "/x"}, {"cwd": None}, {"script": "x"}, {"code": False}, {"code": None}])
def test_no_code_by_default_where_the_run_works_elsewhere(here: Path, spec: dict[str, Any]) -> None:
    (here / ".git").mkdir()
    assert "code" not in resolve(spec)


@pytest.mark.parametrize(
    ("given", "paths"),
    [
        (True, (".",)),
        (".", (".",)),
        ("src", ("src",)),
        (Path("src"), ("src",)),
        (["src", Path("run.py")], ("src", "run.py")),
    ],
)
def test_code_as_people_write_it(here: Path, given: object, paths: tuple[str, ...]) -> None:
    assert resolve({"code": given})["code"] == CodeHere(root=here, paths=paths)


@pytest.mark.parametrize("given", [3, "", [], ["src", ""], [None], [["a"]]])
def test_code_that_is_no_path(here: Path, given: object) -> None:
    with pytest.raises(errors.InvalidInput, match=r"^code"):
        resolve({"code": given})


def test_what_the_yard_knows_passes_as_it_is(here: Path) -> None:
    known = {"code": {"tree": "sha256:x"}, "data": [{"path": "/x", "to": "y"}]}
    assert resolve(known) == known


def test_data_as_people_write_it(here: Path) -> None:
    given = [
        "corpora",
        "./sets/mnist/",
        Path("../beside"),
        "words=corpora",
        "/scratch/imagenet/",
        "big=/scratch/x",
        "a=b",
    ]
    assert resolve({"data": given})["data"] == [
        DataHere(folder=here / "corpora", to="corpora"),
        DataHere(folder=here / "sets/mnist", to="sets/mnist"),
        DataHere(folder=here.parent / "beside", to="beside"),
        DataHere(folder=here / "corpora", to="words"),
        {"path": "/scratch/imagenet", "to": "imagenet"},
        {"path": "/scratch/x", "to": "big"},
        DataHere(folder=here / "a=b", to="a=b"),
    ]
    assert resolve({"data": "corpora"})["data"] == [DataHere(folder=here / "corpora", to="corpora")]


@pytest.mark.parametrize("given", ["nowhere", "", 3, ["corpora", None], "x=nowhere", "/", "x=", "../x=/y", "a\nb=/y"])
def test_bad_data(here: Path, given: object) -> None:
    with pytest.raises(errors.InvalidInput, match=r"^data"):
        resolve({"data": [given] if isinstance(given, str) else given})


def test_relative_to_a_file_elsewhere(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    assert resolve({"code": ".", "data": ["corpora"]}, here) == {
        "code": CodeHere(root=here),
        "data": [DataHere(folder=here / "corpora", to="corpora")],
    }
    assert resolve({"command": "x"}, here) == {"command": "x"}
