"""What one does with runs that exist."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import time
from pathlib import Path

import pytest

WRITE_OUTPUTS = 'cd "$OUTPUT_DIR" && mkdir -p sub && printf model > model.bin && printf text > "sub/a b.txt"'


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--", "true"), 0),
        (("--", "sh", "-c", "exit 3"), 3),
        (("--", "sh", "-c", "kill -9 $$"), 137),
        (("--time", "1s", "--grace", "1s", "--", "sleep", "600"), 201),
        (("--", "/no/such/program"), 204),
    ],
    ids=["success", "own code", "signal", "timeout", "launch"],
)
def test_wait_exits_as_the_run_did(submit, cli, words: tuple[str, ...], code: int) -> None:
    number = submit(*words)
    assert f"run {number} " in cli("wait", str(number), code=code).stdout


def test_wait_takes_several_and_tells_of_the_first_that_failed(submit, cli) -> None:
    good, bad, worse = submit("--", "true"), submit("--", "sh", "-c", "exit 4"), submit("--", "sh", "-c", "exit 5")
    done = cli("wait", str(good), f"{bad}-{worse}", code=4)
    assert [line.split()[2] for line in done.stdout.splitlines()] == ["succeeded", "failed", "failed"]
    assert cli("wait", str(worse), str(bad), "-q", code=5).stdout.split() == [str(worse), str(bad)]


def test_wait_gives_up(submit, cli) -> None:
    number = submit("--", "sleep", "600")
    assert "still" in cli("wait", "last", "--timeout", "1s", code=124).stdout
    assert cli("cancel", str(number)).stdout == f"run {number} cancelled\n"
    cli("wait", str(number), code=200)


def test_wait_by_filter_tells_also_of_what_has_ended(submit, cli) -> None:
    number = submit("--tag", "ended-before", "--", "sh", "-c", "exit 6")
    cli("wait", str(number), code=6)
    assert f"run {number} failed" in cli("wait", "--tag", "ended-before", code=6).stdout


@pytest.mark.parametrize("words", [("--tag", "no such tag"), ("--project", "none", "--state", "failed")])
def test_wait_for_nothing_is_an_error(refused, words: tuple[str, ...]) -> None:
    assert "no run matches" in refused("wait", *words, code=1)


def test_when_none_of_the_active_ones_is_left_there_is_nothing_to_wait_for(cli) -> None:
    assert "no runs to wait for" in cli("wait", "--tag", "no such tag", "--state", "active").stderr


def test_cancel_says_what_it_waits_for_and_leaves_nothing(submit, cli, shared) -> None:
    number = submit("--grace", "1s", "--", "sh", "-c", "trap '' TERM; setsid sleep 4711 & sleep 4712")
    wait_for_state(cli, number, "running")
    done = cli("cancel", str(number))
    assert f"stopping run {number} (SIGTERM, after 1s SIGKILL)" in done.stderr
    assert done.stdout == f"run {number} cancelled\n"
    sleeping = subprocess.run(["pgrep", "-f", "sleep 471[12]"], capture_output=True, text=True, check=False).stdout
    assert sleeping == ""


def wait_for_state(cli, number: int, state: str) -> None:
    deadline = time.monotonic() + 90
    while json.loads(cli("show", str(number), "--json").stdout)["state"] != state:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_cancel_by_filter(submit, cli, document) -> None:
    tagged = [submit("--tag", "sweep", "--", "sleep", "600") for _ in range(3)]
    other = submit("--", "sleep", "600")
    answer = document("cancel", "--tag", "sweep")
    assert sorted(run["id"] for run in answer["runs"]) == tagged
    assert {run["state"] for run in answer["runs"]} == {"cancelled"}
    assert "no runs to cancel" in cli("cancel", "--tag", "sweep").stderr
    assert document("show", str(other))["state"] != "cancelled"
    cli("cancel", str(other), "--no-wait")
    cli("wait", str(other), code=200)


def test_cancelling_what_has_ended_is_fine(submit, cli) -> None:
    number = submit("--", "true")
    cli("wait", str(number))
    assert cli("cancel", str(number)).stdout == f"run {number} has already finished (succeeded)\n"


def test_retry(submit, cli, document) -> None:
    number = submit("--", "sh", "-c", "echo attempt $RUNYARD_ATTEMPT; exit 1")
    cli("wait", str(number), code=1)
    assert cli("retry", str(number)).stdout == f"run {number} queued again\n"
    cli("wait", str(number), code=1)
    assert document("show", str(number))["attempt"] == 2
    assert cli("logs", str(number), "--attempt", "2").stdout == "attempt 2\n"
    assert "attempt 1\n" in cli("logs", str(number)).stdout
    assert "ATTEMPT" in cli("show", str(number)).stdout


def test_retry_of_what_runs_is_refused(submit, cli, shared) -> None:
    number = submit("--", "sleep", "600")
    done = cli("retry", str(number), code=1)
    assert done.stderr.startswith(f"error: run {number} is ")
    cli("cancel", str(number))


def test_logs(submit, cli, document) -> None:
    number = submit("--split-output", "--", "sh", "-c", "echo 1; echo 2; echo 3; echo bad >&2")
    cli("wait", str(number))
    assert sorted(cli("logs", str(number)).stdout.split()) == ["1", "2", "3", "bad"]
    assert cli("logs", str(number), "--stdout").stdout == "1\n2\n3\n"
    assert cli("logs", str(number), "--stderr").stdout == "bad\n"
    assert cli("logs", "--stdout", "--tail", "2").stdout == "2\n3\n"
    assert cli("logs", "--stdout", "--tail", "1", "-f").stdout == "3\n"
    assert document("logs", str(number), "--stdout")["text"] == "1\n2\n3\n"


def test_logs_are_bytes(submit, shared, cli) -> None:
    number = submit("--", "printf", r"\377\000\r\n")
    cli("wait", str(number))
    command = shared.command("logs", str(number))
    done = subprocess.run(command, env=shared.env, capture_output=True, timeout=180, check=True)
    assert done.stdout == b"\xff\x00\r\n"


def test_following_a_log_until_the_run_ends(submit, cli) -> None:
    number = submit("--", "sh", "-c", "for i in 1 2 3 4; do echo $i; sleep 0.1; done")
    assert cli("logs", str(number), "-f").stdout == "1\n2\n3\n4\n"


def test_a_reader_that_goes_away_is_no_failure_to_tell_of(submit, shared, cli) -> None:
    number = submit("--", "sh", "-c", "yes | head -c 3000000")
    cli("wait", str(number))
    words = " ".join(shared.command("logs", str(number)))
    done = subprocess.run(
        ["bash", "-c", f"{words} | head -n 1"], env=shared.env, capture_output=True, timeout=180, check=True
    )
    assert (done.stdout, done.stderr) == (b"y\n", b"")


def test_ls_filters_and_pages(submit, cli, document) -> None:
    ids = [
        submit("--project", "paging", "--tag", f"t{index % 2}", "--name", f"n{index}", "--", "true")
        for index in range(5)
    ]
    cli("wait", "--project", "paging", "--state", "active")
    assert [run["id"] for run in document("ls", "--project", "paging")] == ids[::-1]
    assert [run["id"] for run in document("ls", "--project", "paging", "--tag", "t1")] == [ids[3], ids[1]]
    assert [run["id"] for run in document("ls", "--name", "n2")] == [ids[2]]
    assert document("ls", "--project", "paging", "--state", "failed") == []
    first = cli("ls", "--project", "paging", "--limit", "2", "-q")
    assert first.stdout.split() == [str(ids[4]), str(ids[3])]
    page = cli("ls", "--project", "paging", "--limit", "2")
    assert page.stderr == f"more: runyard ls --project paging --limit 2 --before {ids[3]}\n"
    assert cli("ls", "--project", "paging", "--before", str(ids[3]), "-q").stdout.split() == [
        str(i) for i in ids[2::-1]
    ]


def test_a_piped_table_is_neither_cut_nor_coloured(submit, shared, cli) -> None:
    number = submit("--name", "x" * 150, "--", "true")
    done = cli("ls", "--limit", "1")
    assert f"{number}" in done.stdout
    assert "x" * 150 in done.stdout
    assert "\x1b" not in done.stdout


def test_names_cannot_play_with_the_terminal(submit, cli) -> None:
    submit("--name", "\x1b[31mred[bold]\nnext", "--", "true")
    shown = cli("ls", "--limit", "1").stdout
    assert "␛[31mred[bold]⏎next" in shown


def test_show_tells_the_reason_and_the_next_step(submit, cli) -> None:
    number = submit("--memory", "64M", "--name", "probe", "--", "sh", "-c", "exit 3")
    cli("wait", str(number), code=3)
    shown = cli("show", str(number)).stdout
    for said in (
        "probe",
        "failed",
        "error",
        "exit code           3",
        "64.0 MB memory",
        f"runyard logs {number}",
        f"runyard retry {number}",
    ):
        assert said in shown
    assert "peak memory" in shown


def test_fetch(submit, cli, document, tmp_path: Path) -> None:
    number = submit("--", "sh", "-c", WRITE_OUTPUTS)
    cli("wait", str(number))
    done = cli("fetch", str(number), "-o", "out", cwd=tmp_path)
    assert done.stdout.splitlines() == ["out/model.bin", "out/sub/a b.txt"]
    assert (tmp_path / "out/model.bin").read_text() == "model"
    assert (tmp_path / "out/sub/a b.txt").read_text() == "text"
    before = os.stat(tmp_path / "out/model.bin").st_ino
    cli("fetch", str(number), "-o", "out", cwd=tmp_path)
    assert os.stat(tmp_path / "out/model.bin").st_ino == before
    assert "has no files that match *.npz" in cli("fetch", str(number), "--glob", "*.npz", cwd=tmp_path).stderr
    cli("fetch", "last", cwd=tmp_path)
    assert (tmp_path / f"run-{number}" / "model.bin").exists()


def test_outputs_from_python(submit, cli, shared) -> None:
    number = submit("--", "sh", "-c", WRITE_OUTPUTS)
    run = shared.client().run(number).wait()
    assert {output.path: output.size for output in run.outputs()} == {"model.bin": 5, "sub/a b.txt": 4}
    assert run.outputs()[0].digest == f"sha256:{hashlib.sha256(b'model').hexdigest()}"


def test_fetching_nothing_says_how_to_have_something(submit, cli, tmp_path: Path) -> None:
    number = submit("--", "true")
    cli("wait", str(number))
    assert "$OUTPUT_DIR" in cli("fetch", str(number), cwd=tmp_path).stderr


def test_events(submit, cli, document) -> None:
    number = submit("--", "true")
    cli("wait", str(number))
    kinds = [event["kind"] for event in document("events", str(number))]
    assert kinds[0] == "submitted"
    assert kinds[-1] == "succeeded"
    assert "submitted" in cli("events").stdout


def test_top_once(submit, cli, document) -> None:
    number = submit("--memory", "200M", "--", "sh", "-c", "while :; do :; done")
    wait_for_state(cli, number, "running")
    deadline = time.monotonic() + 90
    while (row := document("top", str(number))[0])["memory"]["used"] is None:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    assert (row["cpus"]["granted"], row["memory"]["limit"], row["processes"]) == (1, 200 << 20, 1)
    assert "of 1" in cli("top", "--once").stdout
    cli("cancel", str(number))


@pytest.mark.parametrize("command", ["show", "logs", "wait", "cancel", "retry", "fetch", "events", "top"])
def test_an_unknown_run(refused, command: str) -> None:
    assert "there is no run 999999" in refused(command, "999999", code=1)


@pytest.mark.parametrize("command", ["show", "wait", "cancel", "retry", "fetch"])
def test_what_is_not_a_run(refused, command: str) -> None:
    assert "'soon' is not a run" in refused(command, "soon", code=2)


@pytest.mark.parametrize("command", ["logs", "events", "cancel", "show"])
def test_a_variable_that_is_not_set_names_no_run(refused, command: str) -> None:
    assert "'' names no run" in refused(command, "", code=2)


@pytest.mark.parametrize("words", [("--project", ""), ("--state", "active", "--tag", "")])
def test_an_empty_filter_does_not_mean_all(refused, words: tuple[str, ...]) -> None:
    assert f"error: {words[-2]} is empty" in refused("cancel", *words, code=2)


@pytest.mark.parametrize("command", ["cancel", "retry"])
def test_what_changes_runs_needs_to_be_told_which(refused, command: str) -> None:
    assert "no run was named" in refused(command, code=2)
