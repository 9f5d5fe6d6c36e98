"""`runyard submit` against a real yard."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PROMISED = {
    "id", "project", "name", "state", "reason", "detail", "exit_code", "params", "site", "node", "attempt", "resources",
    "granted", "created_at", "started_at", "ended_at",
}  # fmt: skip
SHOW_ARGUMENTS = "import sys; print(ascii(sys.argv[1:]))"


def test_quiet_prints_the_id_alone(cli) -> None:
    first = cli("submit", "-q", "--", "true")
    second = cli("submit", "--quiet", "--", "true")
    assert int(second.stdout) == int(first.stdout) + 1
    assert first.stderr == ""


def test_json_is_the_run(document) -> None:
    run = document(
        "submit", "--name", "probe", "--project", "digits", "-p", "lr=0.1", "--wait", *run_words("echo {lr}")
    )
    assert run.keys() >= PROMISED
    assert (run["name"], run["project"], run["params"], run["state"]) == ("probe", "digits", {"lr": 0.1}, "succeeded")


def run_words(text: str) -> tuple[str, ...]:
    """Options must come before the command, so that --json can be added at the end."""
    return ("-f", write_spec({"command": text}))


def write_spec(spec: object) -> str:
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump(spec, file)
    return file.name


def test_arguments_arrive_unchanged(shared, cli) -> None:
    words = ["a b", 'quo"te', "it's", "line\nbreak", "tab\t", "", "*", "$HOME", "{x}", "ünï", "--json", "-q", "--"]
    done = cli("submit", "-q", "--follow", "--", sys.executable, "-c", SHOW_ARGUMENTS, *words)
    assert done.stdout.strip() == ascii(words)


def test_arguments_that_are_not_utf8_arrive_unchanged(shared) -> None:
    command = [*shared.command("submit", "-q", "--follow", "--"), sys.executable, "-c", SHOW_ARGUMENTS, b"\xff\xfe!"]
    done = subprocess.run(command, env=shared.env, capture_output=True, timeout=180, check=True)
    assert done.stdout.decode().strip() == ascii([os.fsdecode(b"\xff\xfe!")])


def test_a_run_without_parameters_keeps_its_braces(cli) -> None:
    done = cli("submit", "-q", "--follow", "--", "echo", "{print $1}", "{{}}")
    assert done.stdout == "{print $1} {{}}\n"


def test_parameters_are_filled_in(cli) -> None:
    done = cli("submit", "-q", "--follow", "-p", "lr=0.1", "-p", "m.n=3", "--", "echo", "{lr}", "{m.n}", "{{}}")
    assert done.stdout == "0.1 3 {}\n"


def test_a_run_is_executed_where_it_was_submitted(cli, tmp_path: Path) -> None:
    assert cli("submit", "-q", "--follow", "--", "pwd", cwd=tmp_path).stdout.strip() == str(tmp_path)
    assert cli("submit", "-q", "--follow", "--cwd", "/", "--", "pwd", cwd=tmp_path).stdout == "/\n"


def test_variables(shared, tmp_path: Path) -> None:
    (tmp_path / "env").write_text("FROM_FILE='a b'\n")
    command = shared.command(
        "submit", "-q", "--follow", "-e", "SET=1 2", "-e", "MINE", "--env-file", "env",
        "--", "sh", "-c", 'echo "$SET/$MINE/$FROM_FILE/$NOT_MINE"',
    )  # fmt: skip
    env = {**shared.env, "MINE": "passed on", "NOT_MINE": "x"}
    done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True, timeout=180, check=True)
    assert done.stdout == "1 2/passed on/a b/\n"


def test_follow_streams_the_log_and_exits_as_the_run_does(cli) -> None:
    done = cli("submit", "--follow", "--", "sh", "-c", "echo out; echo err >&2; exit 7", code=7)
    assert done.stdout == "out\nerr\n"
    assert "failed" in done.stderr


def test_follow_with_json_keeps_stdout_for_the_document(cli) -> None:
    done = cli("submit", "--follow", "--json", "--", "echo", "hello")
    assert json.loads(done.stdout)["state"] == "succeeded"
    assert "hello" in done.stderr


def test_leaving_a_followed_run_leaves_it_running(shared, document, cli) -> None:
    command = shared.command("submit", "--follow", "--", "sh", "-c", "echo started; sleep 600")
    following = subprocess.Popen(command, env=shared.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert following.stdout is not None
    assert following.stdout.readline() == "started\n"
    following.send_signal(signal.SIGINT)
    _, said = following.communicate(timeout=90)
    assert following.returncode == 130
    number = document("ls", "--limit", "1")[0]["id"]
    assert f"run {number} continues: runyard logs {number} -f" in said
    assert document("show", str(number))["state"] in ("starting", "running"), "its first line may come before its start"
    cli("cancel", str(number))


def test_dry_run_shows_everything_and_stores_nothing(cli, document) -> None:
    before = [run["id"] for run in document("ls", "--limit", "1")]
    options = ("--dry-run", "-e", "A=1", "-p", "x=2", "--cpus", "2", "--cwd", "/tmp")
    plan = json.loads(cli("submit", *options, "--json", "--", "echo", "{x}").stdout)
    assert (plan["argv"], plan["cwd"], plan["env"], plan["site"]) == (["echo", "2"], "/tmp", {"A": "1"}, "local")
    shown = cli("submit", *options, "--", "echo", "{x}").stdout
    for said in ("echo 2", "/tmp", "A=1", "local", "2 cpus"):
        assert said in shown
    assert [run["id"] for run in document("ls", "--limit", "1")] == before


def test_a_list_in_a_file_submits_many_and_flags_go_over_it(cli, document, tmp_path: Path) -> None:
    path = tmp_path / "runs.yaml"
    path.write_text("- {command: [echo, a], project: old}\n- command: 'echo b | cat'\n")
    runs = json.loads(cli("submit", "-f", str(path), "--project", "new", "--wait", "--json").stdout)
    assert [(run["project"], run["state"]) for run in runs] == [("new", "succeeded")] * 2
    assert cli("submit", "-q", "-f", str(path)).stdout.split() == [str(runs[1]["id"] + 1), str(runs[1]["id"] + 2)]


def test_standard_input_is_a_file_too(cli) -> None:
    assert cli("submit", "-q", "--follow", "-f", "-", input='{"command": "echo from stdin"}').stdout == "from stdin\n"


def test_after_last(submit, document, cli) -> None:
    first = submit("--", "false")
    second = submit("--after", "last", "--", "true")
    cli("wait", str(second), code=204)
    run = document("show", str(second))
    assert (run["after"], run["state"], run["reason"]) == ([first], "failed", "dependency")


def test_the_same_key_is_the_same_run(submit, refused) -> None:
    key = f"key-{time.time_ns()}"
    assert submit("--idempotency-key", key, "--", "true") == submit("--idempotency-key", key, "--", "true")
    refused("submit", "--idempotency-key", key, "--", "false", code=1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--",), "no command was given"),
        (("-f", "/none.yaml"), "/none.yaml cannot be read: no such file"),
        (("--cpus", "0", "--", "true"), "cpus"),
        (("--cpus", "-3", "--", "true"), "cpus"),
        (("--memory", "lots", "--", "true"), "'lots' is not a size"),
        (("--time", "soon", "--", "true"), "'soon' is not a duration"),
        (("--site", "mars", "--", "true"), "there is no site 'mars'"),
        (("--project", "a/b", "--", "true"), "'a/b' is not a valid name"),
        (("-p", "lr", "--", "true"), "'lr' is not a parameter"),
        (("-p", "lr=1", "--", "echo", "{rl}"), "no parameter 'rl'"),
        (("-e", "1X=1", "--", "true"), "'1X' is not a variable name"),
        (("--after", "first", "--", "true"), "'first' is not a run"),
        (("--after", "", "--", "true"), "'' names no run"),
        (("--stop-signal", "KILL", "--", "true"), "'KILL' is not known"),
        (("--cpus", "100000", "--", "true"), "cpus"),
        (("--gpus", "500", "--", "true"), "gpu"),
        (("--no-such-option", "--", "true"), "no such option"),
    ],
)
def test_bad_input_is_one_sentence(refused, words: tuple[str, ...], said: str) -> None:
    assert said in refused("submit", *words, code=2)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("command: [echo\n", "not YAML"),
        ("command: x\nresourcse: {cpus: 1}\n", "did you mean 'resources'?"),
        ("command: x\nresources: {cpu: 1}\n", "did you mean 'cpus'?"),
        ("- {command: x}\n- {name: y}\n", "runs[1]"),
        ("{}", "no command"),
    ],
)
def test_bad_files_are_one_sentence(refused, tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "run.yaml"
    path.write_text(text)
    assert said in refused("submit", "-f", str(path), code=2)
