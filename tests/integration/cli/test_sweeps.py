"""`runyard sweep` and `runyard best`, as typed."""

from __future__ import annotations

import json

import pytest

from runyard.model import exit_codes
from tests.labs.yard import Yard


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["sweep", "show", "S99"], 1, "no sweep S99"),
        (["sweep", "show", "nonsense"], 1, "there is no sweep 'nonsense'"),
        (["sweep", "retry", ""], 2, "'' is not a sweep"),
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
        (["wait", "nonsense"], 2, "'nonsense' is not a run, and there is no sweep with that name"),
        (["best", "nonsense"], 2, "'nonsense' is not a run, and there is no sweep with that name"),
        (["ls", "--sweep", "nonsense"], 1, "there is no sweep 'nonsense'"),
        (["ls", "--sweep", "\udcff"], 1, "there is no sweep"),
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
    before = [sweep["id"] for sweep in document("sweep", "list")]
    said = cli("sweep", *words, cwd=tmp_path).stdout
    assert "would submit 240 runs: 80 configurations × 3 repetitions" in said
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
        "would submit 9 runs: 9 configurations × 1 repetition",
        "tpe chooses each configuration by the results of earlier ones",
    ]
    assert [sweep["id"] for sweep in document("sweep", "list")] == before


def test_a_dry_run_says_what_is_there_already(cli) -> None:
    words = ["--param", "x=1,2,3", "--name", "planned twice", "--", "echo", "{x}"]
    assert cli("sweep", "--dry-run", *words).stdout.startswith("would submit 3 runs: 3 configurations × 1 repetition\n")
    label = cli("sweep", "--quiet", "--wait", *words).stdout.strip()
    said = cli("sweep", "--dry-run", "--reps", "2", *words).stdout.splitlines()
    assert said[:2] == [
        "would submit 3 runs: 3 configurations × 2 repetitions",
        f"sweep {label} exists: 3 new, 0 retried, 3 reused",
    ]
    planned = json.loads(cli("sweep", "--json", "--dry-run", "--reps", "2", *words).stdout)
    assert (planned["sweep"], planned["created"], planned["reused"]) == (int(label[1:]), 3, 3)
    anew = cli("sweep", "--dry-run", "--fresh", *words).stdout
    assert anew.startswith("would submit 3 runs: 3 configurations × 1 repetition\n")


def test_old_results_are_not_taken_for_those_of_new_code(cli, tmp_path) -> None:
    (tmp_path / "program.py").write_text("print(1)")
    words = ["--param", "x=1,2", "--code", ".", "--", "python3", "program.py", "{x}"]
    label = cli("sweep", "--quiet", "--wait", *words, cwd=tmp_path).stdout.strip()
    known = f"sweep {label} exists: 0 new, 0 retried, 2 reused"
    assert cli("sweep", *words, cwd=tmp_path).stdout == f"{known}\n"
    (tmp_path / "program.py").write_text("print(2)")
    told = f"{known}, its runs used other code than now; --fresh runs all of it again"
    assert told in cli("sweep", "--dry-run", *words, cwd=tmp_path).stdout
    assert cli("sweep", *words, cwd=tmp_path).stdout == f"{told}\n"
    assert json.loads(cli("sweep", "--json", *words, cwd=tmp_path).stdout)["differs"] == ["code"]
    assert json.loads(cli("sweep", "--json", "--fresh", *words, cwd=tmp_path).stdout)["differs"] == []


def test_a_list_of_configurations_in_a_file(cli, tmp_path) -> None:
    file = tmp_path / "sweep.yaml"
    file.write_text('command: [echo, "{x}"]\nparam2val_list: [{x: 1}, {x: 5}]')
    assert "would submit 2 runs: 2 configurations" in cli("sweep", "-f", str(file), "--dry-run").stdout


def test_a_table_by_another_metric_than_its_own(cli, document) -> None:
    pattern = ["--metric-pattern", r"loss=(?P<loss>\S+) (?P<name>\w+)=(?P<value>\S+)"]
    words = ["--param", "x=1,2", *pattern, "--minimize", "loss", "--wait", "--", "echo", "loss={x} acc=0.{x}"]
    label = cli("sweep", "--quiet", *words).stdout.strip()
    assert [row["value"] for row in document("sweep", "table", label)] == [1.0, 2.0]
    for command in (["sweep", "table"], ["sweep", "best"], ["best"]):
        rows = document(*command, label, "--metric", "acc", "--maximize")
        assert [(row["trial"], row["value"]) for row in rows] == [(2, 0.2), (1, 0.1)]
    said = cli("sweep", "table", label, "--metric", "ac").stderr
    assert said == f"no run of sweep {label} has reported ac\n"


def test_who_waits_for_a_sweep_waits_for_runs_that_it_has_not_made_yet(cli) -> None:
    words = ["--param", "x=1,2,3", "--parallel", "1", "--fresh", "--", "sh", "-c", "sleep 0.2; echo {x}"]
    label = cli("sweep", "--quiet", *words).stdout.strip()
    assert len(cli("wait", label, "--quiet").stdout.split()) == 3
    endless = cli("sweep", "--quiet", "--param", "x=1,2", "--parallel", "1", "--", "sleep", "1000").stdout.strip()
    assert "still" in cli("wait", endless, "--timeout", "1s", code=124).stdout
    cli("sweep", "cancel", endless)


def test_a_sweep_by_its_name(cli, document, refused) -> None:
    words = ["--param", "x=1,2", "--name", "by name", "--", "echo", "{x}"]
    label = cli("sweep", "--quiet", "--wait", *words).stdout.strip()
    assert document("sweep", "show", "by name")["id"] == int(label[1:])
    assert f"sweep {label}: nothing to retry" in cli("sweep", "retry", "by name").stdout
    assert len(cli("sweep", "table", "by name", "--csv").stdout.splitlines()) == 3
    other = cli("sweep", "--quiet", "--wait", "--fresh", *words).stdout.strip()
    for command in (["sweep", "cancel", "by name"], ["wait", "by name"], ["ls", "--sweep", "by name"]):
        said = refused(*command, code=1)
        assert "2 sweeps are called 'by name'" in said
        assert f"{other}, {label}" in said


@pytest.mark.parametrize(
    "command", [["best"], ["sweep", "best"], ["wait"], ["show"], ["metrics"], ["sweep", "replay"], ["ls", "--sweep"]]
)
def test_a_name_does_wherever_the_number_does(cli, document, shared: Yard, command: list[str]) -> None:
    name = "wide, and/or deep"
    pattern = ["--metric-pattern", r"loss=(?P<loss>\S+)", "--minimize", "loss"]
    words = ["--param", "x=1,2", "--name", name, *pattern, "--wait", "--", "echo", "loss={x}"]
    label = cli("sweep", "--quiet", *words).stdout.strip()
    assert document(*command, name) == document(*command, label)
    assert [run.sweep["id"] for run in shared.client().runs(sweep=name)] == [int(label[1:])] * 2


def test_a_name_that_is_nearly_right_is_offered(cli, refused) -> None:
    cli("sweep", "--quiet", "--param", "x=1", "--name", "momentum", "--", "true")
    for command in (["sweep", "show"], ["ls", "--sweep"], ["best"], ["fetch"]):
        assert "did you mean 'momentum'?" in refused(*command, "momentun", code=2 if len(command) == 1 else 1)
    assert "runyard sweep list" in refused("sweep", "show", "quite another", code=1)


def test_who_cancels_a_sweep_by_its_name_ends_the_sweep(cli, document) -> None:
    words = ["--param", "x=1..40", "--parallel", "2", "--name", "to be ended", "--", "sleep", "600"]
    label = cli("sweep", "--quiet", *words).stdout.strip()
    cli("cancel", "to be ended")
    assert document("sweep", "show", label)["state"] == "cancelled"


@pytest.mark.parametrize(
    ("words", "is_told"),
    [
        (["--", "true"], True),
        (["--params-as", "flags", "--", "true"], False),
        (["--", "echo", "{width}"], False),
        (["--", "echo", "{index}"], False),
        (["--", "sh", "-c", "cat $RUNYARD_PARAMS"], False),
    ],
)
def test_who_passes_no_parameters_is_told(cli, words: list[str], is_told: bool) -> None:
    said = cli("sweep", "--dry-run", "--param", "lr=1,2", "--param", "width=8", *words)
    assert ("all runs would be equal" in said.stderr) is is_told
    assert not is_told or "none of lr, width" in said.stderr
    assert "every run" not in said.stdout


def test_without_words_it_lists(cli) -> None:
    label = cli("sweep", "--quiet", "--param", "x=1,2", "--fresh", "--wait", "--", "true").stdout.strip()
    lines = cli("sweep").stdout.splitlines()
    assert lines[0].split()[:3] == ["SWEEP", "STATE", "NAME"]
    assert lines[1].split()[:2] == [label, "succeeded"]
    assert f"sweep {label} succeeded" in cli("sweep", "show", label).stdout
    assert len(cli("ls", "--quiet", "--sweep", label, "--state", "succeeded").stdout.split()) == 2
    assert f"{label}, trial 1, repetition 1" in cli("show", label).stdout
    assert cli("sweep", "replay", label).stdout == f"sweep {label}: 0 decisions recomputed, none different\n"


def test_a_sweep_that_has_ended_stays_what_it_came_to(cli, document) -> None:
    label = cli("sweep", "--quiet", "--param", "x=1,2", "--fresh", "--wait", "--", "true").stdout.strip()
    assert cli("sweep", "cancel", label).stdout == f"sweep {label} has already finished (succeeded)\n"
    assert "nothing to retry" in cli("sweep", "retry", label).stdout
    assert document("sweep", "show", label)["state"] == "succeeded"


def test_who_cancels_the_runs_of_a_sweep_ends_the_sweep(cli, document) -> None:
    """Others would be made in their places, without end."""
    words = ["--param", "x=1..40", "--parallel", "2", "--fresh", "--", "sleep", "600"]
    label = cli("sweep", "--quiet", *words).stdout.strip()
    cli("cancel", label, "--state", "queued", "--state", "starting", "--state", "running", "--no-wait")
    assert document("sweep", "show", label)["state"] in ("queued", "running"), "some of its runs are not all of it"
    cli("cancel", label)
    view = json.loads(cli("sweep", "watch", label, "--json", code=exit_codes.wait_code("cancelled", None, None)).stdout)
    assert view["state"] == "cancelled"
