"""From the options of `submit` to a spec; what is said on the command line goes over what a file says."""

from __future__ import annotations

import click
import pytest

from runyard import errors
from runyard.cli.input.spec_options import override, spec_options
from runyard.model.spec import RunSpec


def spec_of(*words: str, file: dict | None = None) -> dict:
    """The spec that `submit WORDS` makes."""
    made = []

    @click.command(context_settings={"allow_interspersed_args": False})
    @spec_options
    @click.argument("command", nargs=-1, type=click.UNPROCESSED)
    def command(command: tuple[str, ...], **given: object) -> None:
        made.append(override(file or {}, given, command))

    command.main(list(words), standalone_mode=False)
    return made[0]


def test_nothing_said_is_nothing_in_the_spec() -> None:
    assert spec_of("--", "echo", "hi") == {"command": ["echo", "hi"]}


def test_everything_said_is_a_good_spec() -> None:
    spec = spec_of(
        "--nodes", "3", "--cpus", "2", "--memory", "4G", "--time", "2h", "--gpus", "1", "--gpu-type", "a100",
        "--gpu-memory", "40G", "--name", "probe", "--project", "digits", "-p", "lr=0.1", "-p", "model.depth=3",
        "--env", "A=b", "--cwd", "/tmp", "--site", "local", "--priority", "-3", "--retry", "2",
        "--tag", "x", "--tag", "y", "--seed", "7", "--output", "*.pt", "--split-output", "--stop-signal", "INT",
        "--grace", "30s", "--idempotency-key", "k", "--params-as", "hydra", "--", "train", "{lr}",
    )  # fmt: skip
    parsed = RunSpec.parse(spec)
    assert (parsed.resources.cpus, parsed.resources.memory, parsed.resources.time) == (2, 4 << 30, 7200)
    assert parsed.resources.nodes == 3
    assert (parsed.resources.gpus, parsed.resources.gpu_type, parsed.resources.gpu_memory) == (1, "a100", 40 << 30)
    assert (parsed.name, parsed.project, parsed.params) == ("probe", "digits", {"lr": 0.1, "model": {"depth": 3}})
    assert (parsed.env, parsed.cwd, parsed.site, parsed.priority) == ({"A": "b"}, "/tmp", "local", -3)
    assert (parsed.retry.max, parsed.tags, parsed.seed, parsed.outputs) == (2, ("x", "y"), 7, ("*.pt",))
    assert (parsed.split_output, parsed.stop.signal, parsed.stop.grace) == (True, "INT", 30)
    assert (parsed.idempotency_key, parsed.argv()) == ("k", ["train", "0.1", "model.depth=3"])


def test_patterns_for_what_it_prints() -> None:
    spec = spec_of("--metric-pattern", r"loss=(?P<loss>\S+)", "--metric-pattern", "(?P<a>b)", "--", "train")
    assert spec["metrics"] == {"stdout": [r"loss=(?P<loss>\S+)", "(?P<a>b)"]}
    assert RunSpec.parse(spec).metrics.stdout == (r"loss=(?P<loss>\S+)", "(?P<a>b)")


def test_what_follows_the_first_word_belongs_to_the_command() -> None:
    spec = spec_of("--cpus", "2", "python", "train.py", "--cpus", "9", "--name", "x", "--", "-q")
    assert spec == {
        "command": ["python", "train.py", "--cpus", "9", "--name", "x", "--", "-q"],
        "resources": {"cpus": 2},
    }


def test_flags_go_over_the_file() -> None:
    file = {
        "command": "train", "name": "old", "resources": {"cpus": 1, "memory": "1G"}, "params": {"lr": 1, "m": {"a": 1}},
        "retry": 1, "tags": ["old"], "env": {"A": "1", "B": "2"}, "stop": {"grace": 5},
    }  # fmt: skip
    spec = spec_of(
        "--name", "new", "--cpus", "4", "-p", "m.b=2", "--retry", "3", "--tag", "new", "-e", "B=3", "--grace", "0",
        file=file,
    )  # fmt: skip
    assert spec == {
        "command": "train", "name": "new", "resources": {"cpus": 4, "memory": "1G"},
        "params": {"lr": 1, "m": {"a": 1, "b": 2}}, "retry": {"max": 3}, "tags": ["new"], "env": {"A": "1", "B": "3"},
        "stop": {"grace": 0},
    }  # fmt: skip
    assert RunSpec.parse(spec).stop.grace == 0


def test_a_command_goes_over_the_file() -> None:
    assert spec_of("echo", "hi", file={"command": "old"})["command"] == ["echo", "hi"]


def test_variables_on_the_line_go_over_those_in_files(tmp_path) -> None:
    (tmp_path / "env").write_text("A=file\nB=file\n")
    assert spec_of("--env-file", str(tmp_path / "env"), "-e", "B=line", "x")["env"] == {"A": "file", "B": "line"}


@pytest.mark.parametrize("field", ["resources", "params", "env"])
def test_a_file_with_nonsense_where_options_add(field: str) -> None:
    from runyard import errors

    words = {"resources": ("--cpus", "1"), "params": ("-p", "a=1"), "env": ("-e", "A=1")}[field]
    with pytest.raises(errors.InvalidInput, match=f"{field}: must be a mapping"):
        spec_of(*words, file={"command": "x", field: ["no"]})


def test_code_and_data_go_over_the_file() -> None:
    file = {"command": "train", "code": ".", "data": ["old"]}
    said = spec_of("--code", "src", "--code", "run.py", "--data", "a", "--data", "b=/x", file=file)
    assert (said["code"], said["data"]) == (["src", "run.py"], ["a", "b=/x"])
    assert spec_of("--no-code", file=file)["code"] is False
    assert spec_of("--name", "x", file=file)["code"] == "."


def test_code_and_no_code_are_refused() -> None:
    with pytest.raises(errors.InvalidInput, match="exclude each other"):
        spec_of("--code", ".", "--no-code", "--", "x")
