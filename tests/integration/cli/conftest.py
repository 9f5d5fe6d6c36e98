"""One yard for the tests of a file, and `runyard` as a person calls it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.labs.waiting import until
from tests.labs.yard import Yard

Result = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module")
def shared() -> Iterator[Yard]:
    made = Yard(cpus=2)
    try:
        client = made.start().client()
        until(client.agents, "an agent that says what it has")
        yield made
    finally:
        made.remove()


@pytest.fixture
def cli(shared: Yard) -> Callable[..., Result]:
    """`cli("ls", "--json")` runs the command and expects it to exit with `code`."""

    def call(*words: str, code: int = 0, **options: Any) -> Result:
        done = shared.cli(*words, **options)
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        return done

    return call


@pytest.fixture
def document(cli: Callable[..., Result]) -> Callable[..., Any]:
    """The JSON document that a command prints."""
    return lambda *words, **options: json.loads(cli(*words, "--json", **options).stdout)


@pytest.fixture
def submit(cli: Callable[..., Result]) -> Callable[..., int]:
    """`submit("--cpus", "1", "--", "true")` gives the id."""
    return lambda *words, **options: int(cli("submit", "--quiet", *words, **options).stdout)


@pytest.fixture
def refused(shared: Yard) -> Callable[..., str]:
    """What a command says that is refused: one sentence and perhaps a fix, nothing on stdout, no traceback."""

    def call(*words: str, code: int, **options: Any) -> str:
        done = shared.cli(*words, **options)
        lines = done.stderr.splitlines()
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.stdout == ""
        assert lines[0].startswith("error: ")
        assert [line.partition(" ")[0] for line in lines[1:]] in ([], ["fix:"])
        return done.stderr

    return call
