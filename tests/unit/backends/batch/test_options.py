"""A site's options: what is runyard's, what goes to the scheduler, and what its rules make of a request."""

from __future__ import annotations

import pytest

from runyard import errors
from runyard.backends.batch import options, rules
from runyard.backends.batch.dialect import Dialect
from runyard.backends.batch.gridengine import GridEngine
from runyard.backends.batch.options import BatchSettings
from runyard.backends.batch.slurm import Slurm
from runyard.model.resources import Resources
from tests.unit.backends.batch import texts

GB = 1 << 30


def parsed(kind: type[Dialect] = Slurm, **given: str) -> tuple[BatchSettings, Dialect]:
    return options.parse(given, kind)


def test_settings_and_native_options_are_told_apart() -> None:
    settings, _ = parsed(account="def-lab", p="gpu", poll_interval="1m", max_jobs="50", client_env="A=1 B='x y'")
    assert settings.native == {"account": "def-lab", "partition": "gpu"}
    assert (settings.poll_interval, settings.max_jobs, settings.client_env) == (60, 50, ("A=1", "B=x y"))


def test_settings_of_a_dialect_are_not_options() -> None:
    settings, dialect = parsed(GridEngine, memory_resource="h_vmem", queue="cpu")
    assert settings.native == {"q": "cpu"}
    assert "h_vmem=1024M" in dialect.submit_command(texts.order(1, resources=Resources(memory=GB)))
    assert parsed(Slurm, memory_resource="x")[0].native == {"memory-resource": "x"}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"job-name": "x"}, "runyard's own"),
        ({"array": "1-3"}, "runyard's own"),
        ({"poll_interval": "often"}, "poll_interval"),
        ({"max_jobs": "-1"}, "max_jobs"),
        ({"relay": "pigeon"}, "relay"),
        ({"client_env": "no"}, "NAME=value"),
        ({"client_env": "A='"}, "client_env"),
        ({"accounting": "maybe"}, "accounting"),
        ({"rules": "nonsense"}, "not a rule"),
        ({"rules": "gpus>0 => gres='gpu"}, "no closing quotation"),
        ({"part ition": "x"}, "not an option"),
        ({"account": "a\nb"}, "line break"),
        ({"account": "a\0b"}, "zero byte"),
    ],
)
def test_bad_options_are_configuration_errors(given: dict[str, str], complaint: str) -> None:
    with pytest.raises(errors.ConfigError, match=complaint):
        options.parse(given, Slurm)


def test_from_weak_to_strong() -> None:
    settings, dialect = parsed(account="lab", partition="cpu", qos="low", rules="gpus>0 => partition=gpu qos=high")
    asked = Resources(gpus=1)
    assert options.combined(settings, {"qos": "mine"}, asked, dialect) == {
        "account": "lab",
        "partition": "gpu",
        "qos": "mine",
    }
    assert options.combined(settings, {}, Resources(), dialect)["partition"] == "cpu"


def test_requests_of_grid_engine_add_up() -> None:
    settings, dialect = parsed(GridEngine, resource="site=1", rules="gpu_type=a100 => l=gpu_a100={gpus}")
    asked = Resources(gpus=2, gpu_type="A100")
    assert options.combined(settings, {"-l": "mine=1"}, asked, dialect) == {"l": "site=1,gpu_a100=2,mine=1"}


def test_a_run_may_limit_its_own_array() -> None:
    settings, dialect = parsed(array_limit="8")
    assert options.array_limit(settings, {}) == 8
    assert options.array_limit(settings, {"array_limit": "2"}) == 2
    assert options.combined(settings, {"array_limit": "2"}, Resources(), dialect) == {}


def test_a_run_cannot_take_what_is_runyards() -> None:
    settings, dialect = parsed()
    with pytest.raises(errors.InvalidInput, match="runyard's own") as caught:
        options.combined(settings, {"time": "10"}, Resources(), dialect)
    assert caught.value.fix == "use --time"


SEED = "memory>128000M => gres=gpu:v100l:1 ; memory>192000M => gres=gpu:p100l:4"


@pytest.mark.parametrize(
    ("text", "asked", "found"),
    [
        (SEED, Resources(memory=128000 << 20), {}),
        (SEED, Resources(memory=(128000 << 20) + 1), {"gres": "gpu:v100l:1"}),
        (SEED, Resources(memory=257000 << 20), {"gres": "gpu:p100l:4"}),
        (SEED, Resources(), {}),
        ("gpu_type=A100 and gpus>=2 => mcs-label='b n'", Resources(gpus=2, gpu_type="a100"), {"mcs-label": "b n"}),
        ("gpu_type=A100 and gpus>=2 => mcs-label='b n'", Resources(gpus=1, gpu_type="a100"), {}),
        ("time>24h => partition=long exclusive=", Resources(time=90000), {"partition": "long", "exclusive": ""}),
        ("gpus!=0 => gres=gpu:{gpus} ntasks={cpus}", Resources(gpus=3, cpus=6), {"gres": "gpu:3", "ntasks": "6"}),
    ],
)  # fmt: skip
def test_rules(text: str, asked: Resources, found: dict[str, str]) -> None:
    applied: dict[str, str] = {}
    for rule in rules.parse(text):
        applied |= rule.apply(asked)
    assert applied == found


@pytest.mark.parametrize("text", ["memory>1G", "memory>1G =>", "colour=red => a=b", "gpus>many => a=b", "=> a=b"])
def test_what_is_no_rule(text: str) -> None:
    with pytest.raises(errors.InvalidInput, match="rules:"):
        rules.parse(text)


@pytest.mark.parametrize("directory", ["/scratch/50%", "/a,b", "/a:b", "/a$b", '/a"b', "/a\nb", "/a\\b"])
def test_directories_that_schedulers_would_misread(directory: str) -> None:
    with pytest.raises(errors.ConfigError, match="pattern"):
        options.check_directory(directory)
    options.check_directory("/scratch/mein Ordner/läuft")
