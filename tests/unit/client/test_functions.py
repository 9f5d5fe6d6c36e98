"""Which functions a run can call, and what it is then."""

from __future__ import annotations

import functools
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from runyard import errors, machine
from runyard.client import functions
from runyard.client.run_inputs import CodeHere

Load = Callable[..., ModuleType]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Load]:
    """Import a file below the test's directory, under a name of its own."""
    loaded: list[str] = []

    def load(path: str = "train.py", text: str = "def train(lr): return lr", name: str = "") -> ModuleType:
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        spec = importlib.util.spec_from_file_location(name or f"loaded_{len(loaded)}", file)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        loaded.append(spec.name)
        spec.loader.exec_module(module)
        return module

    yield load
    for name in loaded:
        del sys.modules[name]


def one(function: Any, **common: Any) -> dict[str, Any]:
    (spec,) = functions.specs(function, [{"lr": 1}], common)
    return spec


def test_a_function_is_named_by_its_file_in_the_code(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    spec = one(load("a/{b}/train.py").train, code="a", name="mine", resources={"cpus": 2})
    assert spec["command"][1:] == ["-m", "runyard.job.call", "a/{{b}}/train.py:train"]
    assert spec["code"] == CodeHere(root=tmp_path, paths=("a",))
    assert (spec["params"], spec["index"], spec["name"], spec["resources"]) == ({"lr": 1}, 1, "mine", {"cpus": 2})


def test_without_a_checkout_the_folder_of_its_package_comes_along(load: Load, tmp_path: Path) -> None:
    (tmp_path / "src" / "nets").mkdir(parents=True)
    (tmp_path / "src" / "nets" / "__init__.py").touch()
    spec = one(load("src/nets/train.py").train)
    assert spec["code"] == CodeHere(root=tmp_path / "src")
    assert spec["command"][-1] == "nets/train.py:train"


def test_in_a_checkout_all_of_it_comes_along(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.chdir(tmp_path)
    spec = one(load("src/train.py").train)
    assert (spec["code"], spec["command"][-1]) == (CodeHere(root=tmp_path), "src/train.py:train")


def test_without_code_it_runs_here(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    spec = one(load("src/train.py").train, code=False)
    assert (spec["code"], spec["command"][-1]) == (False, "src/train.py:train")


def test_a_file_that_does_not_come_along_is_refused(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(errors.InvalidInput, match=r"train\.py is not below"):
        one(load().train, code=".")


def test_on_this_machine_it_has_the_python_of_the_submitter(load: Load) -> None:
    spec = one(load().train)
    assert spec["origin"]["host"] == machine.host_id()
    assert spec["origin"]["env"]["PATH"].split(os.pathsep)[0] == os.path.dirname(sys.executable)
    assert spec["command"][0] == "python"


def test_a_grid_is_every_combination_with_the_first_name_fastest(load: Load) -> None:
    made = functions.specs(load().train, {"lr": [1, 2], "width": (8, 16)}, {"params": {"steps": 5, "lr": 0}})
    assert [(spec["params"]["lr"], spec["params"]["width"]) for spec in made] == [(1, 8), (2, 8), (1, 16), (2, 16)]
    assert [spec["index"] for spec in made] == [1, 2, 3, 4]
    assert {spec["params"]["steps"] for spec in made} == {5}


@pytest.mark.parametrize("values", ["abc", 3])
def test_what_is_no_list_of_values_is_refused(values: Any) -> None:
    with pytest.raises(errors.InvalidInput, match="'lr'"):
        functions.configurations({"lr": values})


def test_too_many_are_refused() -> None:
    with pytest.raises(errors.InvalidInput, match="more than"):
        functions.configurations({name: range(100) for name in "abcde"})


class Trainer:
    def train(self) -> None: ...


def make_train() -> Callable[[], int]:
    inner = 3
    return lambda: inner


def make_named() -> Callable[[], None]:
    def train() -> None: ...

    return train


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (lambda: 1, "is a lambda"),
        (make_train(), "is a lambda"),
        (make_named(), "is defined inside another function or a class"),
        (Trainer().train, "is no plain Python function"),
        (Trainer.train, "is defined inside another function or a class"),
        (functools.partial(make_named), "is no plain Python function"),
        (len, "is no plain Python function"),
        ("train", "is no plain Python function"),
    ],
)
def test_what_cannot_be_imported_is_refused_in_one_sentence(function: Any, sentence: str) -> None:
    with pytest.raises(errors.InvalidInput, match=sentence) as caught:
        one(function)
    assert caught.value.fix


def test_a_function_that_was_typed_in_is_refused() -> None:
    typed: dict[str, Any] = {"__name__": "builtins"}  # a module without a file, as the main one is then
    exec("def train(): pass", typed)
    with pytest.raises(errors.InvalidInput, match="was typed in"):
        one(typed["train"])


def test_a_function_whose_name_means_another_is_refused(load: Load) -> None:
    module = load(text="def train(): pass\nfirst = train\ndef train(): pass\n")
    with pytest.raises(errors.InvalidInput, match="is not what"):
        one(module.first)


def test_handing_in_while_a_run_imports_the_file_is_refused(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the guard each run would hand in the same runs again."""
    monkeypatch.setenv(functions.LOADING, "train.py:train")
    with pytest.raises(errors.InvalidInput, match="while a run imports") as caught:
        one(load().train)
    assert "__main__" in caught.value.fix
