"""Which variables go with a job, and that secrets do not."""

from __future__ import annotations

import pytest

from runyard.bridges.scripts import exports

ENVIRON = {
    "PATH": "/venv/bin:/bin", "VIRTUAL_ENV": "/venv", "LD_LIBRARY_PATH": "/lib", "CONDA_PREFIX": "/conda",
    "LR": "0.1", "DATA": "/data", "WIDTH": "32", "AWS_SECRET_ACCESS_KEY": "s3cret", "WANDB_API_KEY": "s3cret",
    "GITHUB_TOKEN": "s3cret", "DATABASE": "postgresql://ann:s3cret@db/x", "PGPASS": "s3cret", "TERM": "xterm",
    "SSH_AUTH_SOCK": "/run/x", "RUNYARD_TOKEN": "s3cret", "SLURM_JOB_ID": "7", "JOB_ID": "7", "BASH_FUNC_m%%": "() {",
}  # fmt: skip


def test_what_finds_programs_and_what_the_script_names() -> None:
    carried = exports.everything(ENVIRON, "echo $LR ${DATA:-x}; python -c 'import os; os.environ[\"WIDTH\"]'")
    assert carried.env == {"LR": "0.1", "DATA": "/data", "WIDTH": "32"}
    assert set(carried.origin) == {"PATH", "VIRTUAL_ENV", "LD_LIBRARY_PATH", "CONDA_PREFIX"}
    assert carried.left == []


def test_secrets_stay_behind_even_when_the_script_names_them() -> None:
    script = " ".join(f"${name}" for name in ENVIRON)
    carried = exports.everything(ENVIRON, script)
    assert "s3cret" not in str(carried)
    assert carried.secret == ["AWS_SECRET_ACCESS_KEY", "WANDB_API_KEY", "GITHUB_TOKEN", "DATABASE", "PGPASS"]
    assert not {"SLURM_JOB_ID", "JOB_ID", "TERM"} & set(carried.env)


def test_what_stays_behind_is_named() -> None:
    assert exports.everything(ENVIRON, "echo").left == ["LR", "DATA", "WIDTH"]


@pytest.mark.parametrize(
    "text",
    ["$NAME", "${NAME}", "${NAME%x}", "${#NAME}", "os.environ['NAME']", 'os.environ.get("NAME", 1)',
     "os.getenv('NAME')", "$ENV{NAME}", 'ENV["NAME"]', 'Sys.getenv("NAME")'],
)  # fmt: skip
def test_how_scripts_name_variables(text: str) -> None:
    assert exports.named_in(text) == {"NAME"}


def test_named_by_hand() -> None:
    assert exports.by_name(["A=1", "B=x=y", "LR", "NOT"], ENVIRON) == ({"A": "1", "B": "x=y", "LR": "0.1"}, ["NOT"])
