"""What may be said of a run's Python environment."""

from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.model.python_env import PythonEnv
from runyard.model.spec import RunSpec

DIGEST = f"sha256:{'a' * 64}"
NOTED = {"python": "3.11.7", "prefix": "/venv", "packages": 2, "freeze": DIGEST, "conda": None, "notes": ["x"]}


@pytest.mark.parametrize(
    "given",
    [
        "none",
        "conda:nets",
        "conda:/opt/envs/nets",
        {"use": "record", "record": NOTED},
        {"use": "file", "file": DIGEST, "kind": "conda", "name": "environment.yml", "python": ""},
        {"use": "sync", "file": DIGEST, "kind": "pip", "name": "lock", "python": "3.11", "record": NOTED},
    ],
)
def test_it_is_kept_as_it_was_given(given: Any) -> None:
    spec = RunSpec.parse({"command": "x", "python_env": given})
    assert spec.to_json()["python_env"] == given
    assert RunSpec.parse(spec.to_json()) == spec


def test_nothing_is_said_of_the_usual() -> None:
    assert "python_env" not in RunSpec.parse({"command": "x", "python_env": "record"}).to_json()
    assert not PythonEnv().of_site


def test_a_file_needs_no_further_word() -> None:
    assert PythonEnv.parse({"file": DIGEST}).use == "file"
    assert PythonEnv.parse({"file": DIGEST, "record": NOTED}).digests() == {DIGEST}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("sinc", "did you mean 'sync'?"),
        ("sync", "needs the digest of a file"),
        ("conda:", "is not a name of a conda environment"),
        ("conda:../x", "is not a name of a conda environment"),
        ("conda:/a\nb", "control character"),
        ({"use": "none", "file": DIGEST}, "'none' builds nothing"),
        ({"file": "../x"}, "not a digest"),
        ({"file": DIGEST, "kind": "npm"}, "python_env.kind"),
        ({"file": DIGEST, "python": "3"}, "not a version of Python"),
        (3, "python_env"),
    ],
)
def test_bad_ones_are_refused(given: Any, told: str) -> None:
    with pytest.raises(errors.InvalidInput) as error:
        PythonEnv.parse(given)
    assert told in str(error.value) + error.value.fix
