"""A place for results that a script sets itself is followed where that is sure, and told where it is not."""

from __future__ import annotations

import pytest

from runyard.bridges.scripts import results
from runyard.bridges.scripts.job import Here, ScriptJob
from tests.unit.bridges.test_jobs_described import gridengine_job, slurm_job

UNSURE = "the script sets OUTPUT_DIR to a value that only a shell can expand: files there are not uploaded"


def followed(here: Here, text: str, *flags: str) -> ScriptJob:
    job = gridengine_job(here, *flags, text=f"#!/bin/bash\n{text}\npython train.py\n")
    results.follow(job, here)
    return job


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("export OUTPUT_DIR=/results", "/results"),
        ("OUTPUT_DIR=/results", "/results"),
        ("OUTPUT_DIR=/results python train.py", "/results"),
        ("export OUTPUT_DIR=$HOME/experiments", "{home}/experiments"),
        ('export OUTPUT_DIR="${HOME}/my experiments"  # on the file server', "{home}/my experiments"),
        ('export OUTPUT_DIR="$HOME"/experiments', "{home}/experiments"),
        ("export OUTPUT_DIR=~/experiments", "{home}/experiments"),
        ("export OUTPUT_DIR='/odd $HOME'", "/odd $HOME"),
        ("export MLP_DATA_DIR=/data OUTPUT_DIR=/results", "/results"),
        ("BASE=/scratch/$USER\nexport OUTPUT_DIR=$BASE/one", "/scratch/{user}/one"),
        ("OUTPUT_DIR=/one\nOUTPUT_DIR=/two", "/two"),
        ("export OUTPUT_DIR=experiments", "{cwd}/experiments"),
        ("cd /tmp; export OTHER=1", None),
        ("export OUTPUT_DIR=${OUTPUT_DIR:-/results}", None),
        ("# export OUTPUT_DIR=/results", None),
        ("echo $OUTPUT_DIR", None),
    ],
)
def test_what_is_sure(here: Here, text: str, place: str | None) -> None:
    job = followed(here, text)
    expected = place and place.format(home=here.home, user=here.user, cwd=job.cwd)
    assert (job.carried.env.get("OUTPUT_DIR"), job.notices) == (expected, [])


@pytest.mark.parametrize(
    "text",
    [
        "export OUTPUT_DIR=$HOME/$(date +%s)",
        "export OUTPUT_DIR=/results/$JOB_ID",
        "export OUTPUT_DIR=${BASE:-/results}/one",
        "BASE=`mktemp -d`\nexport OUTPUT_DIR=$BASE",
        "if true; then\n    export OUTPUT_DIR=/results\nfi",
        "test -d /results && export OUTPUT_DIR=/results",
        "cd elsewhere\nexport OUTPUT_DIR=experiments",
    ],
)
def test_what_is_not(here: Here, text: str) -> None:
    job = followed(here, text)
    assert "OUTPUT_DIR" not in job.carried.env
    assert [notice.text for notice in job.notices] == [UNSURE]


def test_the_script_has_the_last_word(here: Here) -> None:
    assert (
        followed(here, "export OUTPUT_DIR=/results", "-v", "OUTPUT_DIR=/else").carried.env["OUTPUT_DIR"] == "/results"
    )


def test_what_other_shells_and_languages_write(here: Here) -> None:
    job = slurm_job(here, text="#!/bin/csh\nsetenv OUTPUT_DIR $HOME/experiments\n")
    results.follow(job, here)
    assert job.carried.env["OUTPUT_DIR"] == f"{here.home}/experiments"
    python = slurm_job(here, text="#!/usr/bin/env python3\nOUTPUT_DIR='/results'\n")
    results.follow(python, here)
    assert "OUTPUT_DIR" not in python.carried.env
