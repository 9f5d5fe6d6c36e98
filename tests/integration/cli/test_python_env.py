"""`runyard submit --python-env`, against a real yard."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runyard.model import exit_codes
from tests.labs.yard import Yard


@pytest.fixture
def venv(shared: Yard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An active environment with one package."""
    place = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
    info = next(place.glob("lib/python*/site-packages")) / "nets-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: nets\nVersion: 1.0\n")
    monkeypatch.setitem(shared.env, "VIRTUAL_ENV", str(place))
    return place


def test_what_one_has_is_recorded_and_shown(cli, submit, document, venv: Path, tmp_path: Path) -> None:
    number = submit("--", "true", cwd=tmp_path)
    noted = document("show", str(number))["spec"]["python_env"]["record"]
    assert noted["prefix"] == str(venv) and noted["packages"] == 1
    shown = " ".join(cli("show", str(number)).stdout.split())
    assert f"in {venv}, 1 package" in shown.replace("- ", "-")


def test_it_may_be_left_out(submit, document, venv: Path, tmp_path: Path) -> None:
    number = submit("--python-env", "none", "--", "true", cwd=tmp_path)
    assert document("show", str(number))["spec"]["python_env"] == "none"


def test_what_cannot_be_synced_is_refused_before_anything_is_stored(cli, venv: Path, tmp_path: Path) -> None:
    info = next(venv.glob("lib/python*/site-packages")) / "nets-1.0.dist-info"
    (info / "direct_url.json").write_text(json.dumps({"url": "file:///home/ada/nets", "dir_info": {"editable": True}}))
    refused = cli("submit", "--python-env", "sync", "--", "true", cwd=tmp_path, code=2)
    assert "nets (/home/ada/nets)" in refused.stderr


def test_a_conda_environment_that_is_not_there_ends_the_run(cli, submit, document, venv: Path, tmp_path: Path) -> None:
    number = submit("--python-env", "conda:no-such-env", "--", "true", cwd=tmp_path)
    cli("wait", str(number), code=exit_codes.OTHER_FAILURE)
    run = document("show", str(number))
    assert run["reason"] == "staging" and "no-such-env" in run["detail"]
