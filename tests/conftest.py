"""Wiring of the test run: real components, skips that count as failures, and the closing table."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.labs import components, table

pytest_plugins = ["tests.labs.postgres", "tests.labs.yard", "tests.labs.clusters"]

_PROPERTY = "component"

# A shell gives what it starts in the background deaf ears for Ctrl-C, and tests send some.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Two busy cores: how long a draw takes says nothing here. `make test-long` asks for the many.
_CALM: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("few", max_examples=25, **_CALM)
settings.register_profile("many", max_examples=1000, **_CALM)
settings.load_profile("few")

# Tests of a file that talk to the same lab go to one worker, one after the other: they wait more than they compute, and
# other workers have the cores meanwhile. One lab for the whole run would mean fewer starts, but its tests alone would
# then take longer than all others together: those at one RabbitMQ half an hour.
_LABS = ("slurm", "gridengine", "rabbitmq")


@pytest.fixture(scope="session", autouse=True)
def outside_of_the_checkout() -> Iterator[None]:
    """Whoever submits from a checkout brings it along, and this one is nobody's experiment. Every account may be there:
    some tests run commands as another one."""
    before = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="ry-outside-") as place:
        os.chmod(place, 0o755)
        os.chdir(place)
        yield
        os.chdir(before)


@pytest.fixture
def component(request: pytest.FixtureRequest) -> Callable[[str], str]:
    """`component("tmux")` gives its version, or skips the test; the closing table counts it."""
    return lambda name: _need(request.node, name)


@pytest.hookimpl(tryfirst=True)  # before xdist looks for the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if group := _group(item):
            item.add_marker(pytest.mark.xdist_group(group))


def _group(item: pytest.Item) -> str | None:
    """The lab that a test talks to, by its fixtures and parameters."""
    parameters = getattr(item, "callspec", None)
    words = {*getattr(item, "fixturenames", ()), *(map(str, parameters.params.values()) if parameters else ())}
    lab = next((lab for lab in _LABS if lab in item.path.name or any(word.startswith(lab) for word in words)), None)
    if lab is None and words & {"cluster_yard", "cron_yard"}:  # which is told the kind by the test
        lab = "gridengine" if "gridengine" in item.nodeid else "slurm"
    is_unit = item.nodeid.startswith("tests/unit/")  # where only words of schedulers are tested
    return None if lab is None or is_unit else f"{lab}-{item.path.stem}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("component"):
        for name in marker.args:
            _need(item, name)


def _need(node: Any, name: str) -> str:
    if name not in components.KNOWN:
        raise pytest.UsageError(f"no component {name!r}; known: {', '.join(components.KNOWN)}")
    found = table.look_up(name)
    node.user_properties.append((_PROPERTY, (name, found.version)))
    if found.version is None:
        pytest.skip(f"{name}: {found.missing}")
    return found.version


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """As root and with CI=true a skip hides something that `make test` should have installed: it is a failure."""
    report = yield
    if report.skipped and components.strict() and not hasattr(report, "wasxfail") and not _excused(report):
        report.outcome = "failed"
        report.longrepr = f"skipped, which root and CI=true do not allow: {report.longrepr}"
    return report


def _excused(report: pytest.TestReport) -> bool:
    """Skipped for a component that only some machines have."""
    missing = [name for name, version in table.used(report, _PROPERTY) if version is None]
    return bool(missing) and not any(components.KNOWN[name].everywhere for name in missing)


def pytest_terminal_summary(terminalreporter: Any) -> None:
    reports = [report for group in terminalreporter.stats.values() for report in group]
    terminalreporter.section("real components")
    for line in table.lines(reports, _PROPERTY):
        terminalreporter.write_line(line)
    terminalreporter.section("time")
    for line in table.times(reports):
        terminalreporter.write_line(line)
