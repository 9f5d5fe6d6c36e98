"""What a run is told about itself, and what importing that costs."""

from __future__ import annotations

import sys

from runyard import job
from tests.unit.job.conftest import Place

HEAD = "from runyard import job\n"


def test_parameters_outputs_seed_and_number(place: Place) -> None:
    (place.directory / "p.json").write_text('{"lr": 0.1, "model": {"depth": 2}, "name": "\\u00fc"}')
    env = {"RUNYARD_PARAMS": str(place.directory / "p.json"), "RUNYARD_SEED": "0", "RUNYARD_INDEX": "7"}
    said, _ = place.run(HEAD + "print(ascii(job.params()), job.seed(), job.index(), job.outputs().name)", **env)
    assert said == "{'lr': 0.1, 'model': {'depth': 2}, 'name': '\\xfc'} 0 7 out\n"
    assert (place.directory / "out").is_dir()


def test_outside_of_a_run_outputs_are_here(place: Place) -> None:
    assert place.outside(HEAD + "print(job.outputs())") == "outputs\n"
    assert (place.directory / "outputs").is_dir()


def test_every_name_is_there() -> None:
    assert all(callable(getattr(job, name)) for name in job.__all__)


def test_the_import_is_light(place: Place) -> None:
    """Nothing but the standard library, and of that nothing large."""
    code = "import sys\nbefore = set(sys.modules)\nfrom runyard import job\nprint(*sorted(set(sys.modules) - before))"
    loaded = set(place.outside(code).split())
    roots = {name.split(".")[0] for name in loaded}
    assert roots <= set(sys.stdlib_module_names) | {"runyard"}
    assert {name for name in loaded if name.startswith("runyard")} == {
        "runyard", "runyard.job", "runyard.job.stop_request", "runyard.job.checkpoints", "runyard.job.run_facts",
        "runyard.job.metrics", "runyard.version",
    }  # fmt: skip
    heavy = {"asyncio", "logging", "subprocess", "socket", "inspect", "dataclasses", "tempfile", "threading", "pathlib"}
    assert not heavy & roots
