"""`runyard sweep` and `runyard best`, as typed."""

from __future__ import annotations

import json

import pytest

from runyard.model import exits


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["sweep", "show", "S99"], 1, "no sweep S99"),
        (["sweep", "show", "nonsense"], 2, "'nonsense' is not a sweep"),
        (["sweep", "shwo", "S1"], 2, "nothing to sweep over"),
        (["sweep", "--param", "lr=5..2", "--", "true"], 2, "5 to 2"),
        (["sweep", "--param", "lr=0.0..1.0", "--", "true"], 2, "grid needs steps"),
        (["sweep", "--param", "lr=log:0..1", "--", "true"], 2, "logarithm"),
        (["sweep", "--param", "lr=", "--", "true"], 2, "no value"),
        (["sweep", "--param", "lr=1,2", "--method", "random", "--", "true"], 2, "trials"),
        (["sweep", "--param", "lr=1,2", "--stop", "asha", "--", "true"], 2, "minimize or maximize"),
        (["sweep", "--param", "lr=1,2", "--stop", "halving", "--minimize", "loss", "--", "true"], 2, "asha"),
        (["sweep", "--param", "lr=1,2", "--", "true", "{width}"], 2, "{width}"),
        (["sweep", "-f", "nothing.yaml"], 2, "cannot be read"),
        (["best", "1"], 2, "--metric"),
        (["best", "S99"], 1, "no sweep S99"),
        (["wait", "S99"], 1, "no sweep S99"),
        (["ls", "--sweep", "x"], 2, "'x' is not a sweep"),
    ],
)
def test_bad_input_is_one_sentence_and_a_way_out(refused, words: list[str], code: int, said: str) -> None:
    assert said in refused(*words, code=code)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("spaec: {lr: [1]}\ncommand: true", "did you mean 'space'"),
        ("1: 2", "unknown field 1"),
        ("- lr", "must be a mapping"),
        ("space: {}\ncommand: [a]", "nothing to sweep over"),
        ("space: {lr: [1]}\nconfigurations: [{lr: 2}]\ncommand: [a]", "and not both"),
    ],
)
def test_bad_files_are_told(refused, tmp_path, text: str, said: str) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text(text)
    assert said in refused("sweep", "-f", str(file), code=2)


def test_a_dry_run_stores_nothing(cli, document, tmp_path) -> None:
    words = ["--param", "lr=1..40", "--param", "kind=a,b", "--reps", "3", "--dry-run", "--", "true"]
    before = document("sweep", "list")
    said = cli("sweep", *words, cwd=tmp_path).stdout
    assert "would make 240 runs: 80 configurations × 3 repetitions" in said
    assert "… and 70 more" in said
    planned = json.loads(cli("sweep", "--json", *words, cwd=tmp_path).stdout)
    assert (planned["runs"], planned["configurations"][1]) == (240, {"lr": 2, "kind": "a"})
    search = [
        "--param",
        "lr=0.0..1.0",
        "--method",
        "tpe",
        "--trials",
        "9",
        "--minimize",
        "loss",
        "--dry-run",
        "--",
        "true",
    ]
    assert cli("sweep", *search).stdout.splitlines() == [
        "would make 9 runs: 9 configurations × 1 repetition", "tpe chooses each by what came of those before",
    ]  # fmt: skip
    assert document("sweep", "list") == before


def test_without_words_it_lists(cli) -> None:
    label = cli("sweep", "--quiet", "--param", "x=1,2", "--fresh", "--wait", "--", "true").stdout.strip()
    lines = cli("sweep").stdout.splitlines()
    assert lines[0].split()[:3] == ["SWEEP", "STATE", "NAME"]
    assert lines[1].split()[:2] == [label, "succeeded"]
    assert f"sweep {label} succeeded" in cli("sweep", "show", label).stdout
    assert len(cli("ls", "--quiet", "--sweep", label, "--state", "succeeded").stdout.split()) == 2
    assert f"{label}, trial 1, repetition 1" in cli("show", label).stdout
    assert cli("sweep", "replay", label).stdout == f"sweep {label}: 0 decisions made again, none different\n"


def test_a_sweep_that_has_ended_stays_what_it_came_to(cli, document) -> None:
    label = cli("sweep", "--quiet", "--param", "x=1,2", "--fresh", "--wait", "--", "true").stdout.strip()
    assert cli("sweep", "cancel", label).stdout == f"sweep {label} had ended: succeeded\n"
    assert "there is nothing to run again" in cli("sweep", "retry", label).stdout
    assert document("sweep", "show", label)["state"] == "succeeded"


def test_who_cancels_the_runs_of_a_sweep_ends_the_sweep(cli, document) -> None:
    """Others would be made in their places, without end."""
    words = ["--param", "x=1..40", "--parallel", "2", "--fresh", "--", "sleep", "600"]
    label = cli("sweep", "--quiet", *words).stdout.strip()
    cli("cancel", label, "--state", "queued", "--state", "starting", "--state", "running", "--no-wait")
    assert document("sweep", "show", label)["state"] in ("queued", "running"), "some of its runs are not all of it"
    cli("cancel", label)
    view = json.loads(cli("sweep", "watch", label, "--json", code=exits.wait_code("cancelled", None, None)).stdout)
    assert view["state"] == "cancelled"
