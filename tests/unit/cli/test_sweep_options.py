"""From the options of `sweep` to its document; what is said on the command line goes over what a file says."""

from __future__ import annotations

from typing import Any

import click
import pytest

from runyard import errors
from runyard.cli.commands.sweep import command as sweep_command
from runyard.cli.commands.sweep.submit import describe
from runyard.cli.input.spec_options import shared_options, sweep_options
from runyard.cli.main import cli
from runyard.model.sweep import SweepSpec


def document_of(*words: str, file: dict[str, Any] | None = None) -> dict[str, Any]:
    """The document that `sweep WORDS` makes."""
    made: list[dict[str, Any]] = []

    @click.command(context_settings={"allow_interspersed_args": False})
    @sweep_options
    @shared_options
    @click.argument("command", nargs=-1, type=click.UNPROCESSED)
    def command(command: tuple[str, ...], **given: Any) -> None:
        made.append(describe(file or {}, given, command))

    command.main(list(words), standalone_mode=False)
    return made[0]


def test_what_is_typed_is_a_good_sweep() -> None:
    document = document_of(
        "--param", "lr=log:1e-5..1e-1", "-p", "depth=2..8", "-p", "kind=a,b", "--method", "tpe", "--trials", "60",
        "--reps", "3", "--parallel", "8", "--minimize", "val/loss", "--stop", "asha,first=2,factor=4", "--seed", "7",
        "--name", "deep", "--params-as", "flags", "--grace", "5s", "--cpus", "2", "--", "python", "train.py",
    )  # fmt: skip
    sweep = SweepSpec.parse(document)
    assert sweep.space is not None
    assert list(sweep.space.dimensions) == ["lr", "depth", "kind"]
    assert (sweep.method, sweep.trials, sweep.reps, sweep.parallel) == ("tpe", 60, 3, 8)
    assert sweep.objective is not None and sweep.objective.metric == "val/loss"
    assert sweep.stop is not None
    assert (sweep.stop.rule, sweep.stop.first, sweep.stop.factor) == ("asha", 2, 4)
    assert (sweep.seed, sweep.name, sweep.run.params_as) == (7, "deep", "flags")
    assert (sweep.run.stop.grace, sweep.run.resources.cpus) == (5, 2)


def test_options_go_over_the_file() -> None:
    file = {
        "command": "train {lr} {width}", "space": {"lr": [1, 2], "width": [8]}, "reps": 3, "stop": "asha",
        "objective": {"metric": "loss"}, "name": "old",
    }  # fmt: skip
    document = document_of("--param", "lr=5", "--reps", "5", "--maximize", "acc", "--grace", "1s", file=file)
    assert document == {
        "command": "train {lr} {width}", "space": {"lr": [5], "width": [8]}, "reps": 5, "maximize": "acc",
        "stop": {"rule": "asha", "grace": "1s"}, "name": "old",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--", "train"], "nothing to sweep over"),
        (["--param", "lr=1,2"], "no command"),
        (["--param", "lr", "--", "train"], "'lr' is not a parameter"),
        (["--param", "lr=1", "--minimize", "a", "--maximize", "b", "--", "train"], "exclude each other"),
    ],
)
def test_what_cannot_be_is_refused_with_a_way_out(words: list[str], said: str) -> None:
    with pytest.raises(errors.InvalidInput, match=said) as raised:
        document_of(*words)
    assert raised.value.fix


def named(*words: str) -> tuple[str | None, list[str]]:
    """Which command of the group the words mean, and what is left for it."""
    with sweep_command.make_context("sweep", list(words), parent=click.Context(cli, info_name="runyard")) as context:
        left = [*context._protected_args, *context.args]
        name, _, rest = sweep_command.resolve_command(context, left)
        return name, rest


def test_words_that_are_no_command_submit() -> None:
    assert named("show", "S1") == ("show", ["S1"])
    assert named("--param", "lr=1", "--", "show") == ("submit", ["--param", "lr=1", "--", "show"])
    assert named("python", "train.py", "--help") == ("submit", ["python", "train.py", "--help"])
    assert named() == ("list", [])
