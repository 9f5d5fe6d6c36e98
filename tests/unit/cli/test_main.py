"""The program as a whole: its help, its failures, and what it does not load."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import click
import pytest

from runyard import errors
from runyard.cli.main import COMMANDS, cli
from runyard.cli.show import failures

HEAVY = ("rich", "http.client", "sqlalchemy", "starlette", "asyncio", "importlib.metadata", "yaml", "ssl")


def runyard(*words: str, **options) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "runyard", *words], capture_output=True, text=True, timeout=120, check=False, **options
    )


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys\nfrom runyard.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        f"print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True)
    assert done.stderr.strip() == "[]"
    assert "submit" in done.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_says_what_the_commands_say_of_themselves(name: str) -> None:
    command = cli.get_command(click.Context(cli), name)
    assert command is not None
    assert command.name == name
    assert (command.help or "").splitlines()[0] == COMMANDS[name]


def leaves(command: click.Command, path: str = "runyard") -> list[tuple[str, click.Command]]:
    if not isinstance(command, click.Group):
        return [(path, command)]
    context = click.Context(command)
    names = command.list_commands(context)
    return [leaf for name in names for leaf in leaves(command.get_command(context, name), f"{path} {name}")]


@pytest.mark.parametrize(("path", "command"), leaves(cli), ids=lambda value: value if isinstance(value, str) else "")
def test_every_command_speaks_json_and_explains_its_options(path: str, command: click.Command) -> None:
    assert any("--json" in option.opts for option in command.params)
    assert all(option.help for option in command.params if isinstance(option, click.Option))


def groups_that_work_bare(command: click.Group, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    context = click.Context(command)
    below = {name: command.get_command(context, name) for name in command.list_commands(context)}
    found = [(name, group) for name, group in below.items() if isinstance(group, click.Group)]
    here = [(*path, name) for name, group in found if not group.no_args_is_help]
    return here + [words for name, group in found for words in groups_that_work_bare(group, (*path, name))]


def test_there_are_groups_that_work_bare() -> None:
    assert {"token", "site", "recipe", "reply", "sweep"} == {words[-1] for words in groups_that_work_bare(cli)}


@pytest.mark.parametrize("words", groups_that_work_bare(cli), ids=" ".join)
def test_a_group_that_works_bare_speaks_json_too(words: tuple[str, ...], tmp_path: Path) -> None:
    """Without a yard it has nothing to say, but not because it was asked in a wrong way."""
    environ = {**os.environ, "RUNYARD_HOME": str(tmp_path)}
    bare, asked = runyard(*words, env=environ), runyard(*words, "--json", env=environ)
    assert bare.returncode in (1, 205), bare.stderr
    assert (asked.returncode, asked.stderr) == (bare.returncode, bare.stderr)
    assert "--json" in runyard(*words, "--help").stdout


def test_an_unknown_command_offers_the_nearest() -> None:
    done = runyard("submti")
    assert done.stderr.splitlines() == ["error: there is no command 'submti'", "fix: did you mean 'submit'?"]
    assert done.returncode == 2


def test_a_wrong_option_is_one_sentence() -> None:
    done = runyard("ls", "--limit", "many")
    assert done.stderr.splitlines()[1:] == ["fix: runyard ls --help"]
    assert done.stderr.startswith("error: invalid value for '-n' / '--limit'")
    assert done.returncode == 2


def test_the_version() -> None:
    from runyard import __version__

    assert runyard("--version").stdout == f"runyard {__version__}\n"


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (errors.NotFound("there is no run 4", "runyard ls"), 1, "error: there is no run 4\nfix: runyard ls\n"),
        (errors.InvalidInput("two\nlines"), 2, "error: two lines\n"),
        (errors.YardUnreachable("gone"), 205, "error: gone\n"),
        (FileNotFoundError(2, "No such file or directory", "x"), 1, "error: x: no such file or directory\n"),
        (KeyError("x"), 1, "error: unexpected error (KeyError: 'x')\nfix: RUNYARD_DEBUG=1 shows the traceback\n"),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
    ],
    ids=lambda value: type(value).__name__,
)
def test_every_failure_is_a_sentence_and_a_code(error: BaseException, code: int, said: str, capsys) -> None:
    def fail() -> None:
        raise error

    assert failures.guard(fail) == code
    assert capsys.readouterr().err == said


def test_the_traceback_is_there_for_those_who_ask(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("RUNYARD_DEBUG", "1")
    failures.guard(lambda: {}["missing"])
    assert "Traceback" in capsys.readouterr().err


@pytest.mark.parametrize("streams", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_may_be_closed(streams: str, tmp_path: Path) -> None:
    """As some daemons start programs: what they do and how they end stays the same."""
    command = f"{sys.executable} -m runyard"
    environ = {**os.environ, "RUNYARD_HOME": str(tmp_path), "RUNYARD_URL": ""}
    spoken = f"{command} --version {streams}; echo $?; {command} wait 1 {streams}; echo $?"
    done = subprocess.run(["sh", "-c", spoken], capture_output=True, text=True, timeout=120, check=False, env=environ)
    assert [line for line in done.stdout.splitlines() if line.isdigit()] == ["0", "205"]
    assert "unexpected" not in done.stdout + done.stderr


def test_a_document_is_written_at_once() -> None:
    """A command that goes on, such as `up --json`, is read from a pipe, too."""
    program = (
        "import os\nfrom runyard.cli.show import output\n"
        "output.writer(True).write({'a': 1}, lambda console: None)\nos._exit(0)"
    )
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120, check=True, env=environ)
    assert json.loads(done.stdout) == {"a": 1}


def test_a_locale_without_a_character_shows_another(tmp_path: Path) -> None:
    environ = {
        **os.environ,
        "PYTHONIOENCODING": "latin-1:strict",
        "RUNYARD_HOME": str(tmp_path / "名前"),
        "RUNYARD_URL": "",
    }
    done = runyard("down", env=environ, encoding="latin-1")
    assert (done.returncode, done.stdout) == (0, f"no yard is running for {tmp_path}/??\n")


def test_a_full_disk_is_told_once() -> None:
    with open("/dev/full", "wb") as full:
        command = [sys.executable, "-m", "runyard", "doctor", "--settings", "--json"]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (1, "error: no space left on device\n")


def test_a_closed_pipe_is_quiet() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-m", "runyard", "--help"], stdout=writing, stderr=subprocess.PIPE, timeout=120, check=False
    )
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == failures.CLOSED_PIPE
