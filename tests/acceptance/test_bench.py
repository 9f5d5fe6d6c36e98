"""The measurements measure: each runs once, small, and gives numbers for runyard and for the alternative."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import a_interpreter_runs, c_submit, d_log_latency, e_listing, f_memory, g_start_up, harness, short_runs


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_runs, "COUNT", 10)
    monkeypatch.setattr(c_submit, "MANY", 20)
    monkeypatch.setattr(c_submit, "SINGLES", 40)
    monkeypatch.setattr(d_log_latency, "LINES", 5)
    monkeypatch.setattr(e_listing, "MANY", 20_000)
    monkeypatch.setattr(e_listing, "PAGES", 20)
    monkeypatch.setattr(f_memory, "RUNS", 30)
    monkeypatch.setattr(g_start_up, "REPETITIONS", 1)


@pytest.mark.component("GNU parallel")
@pytest.mark.parametrize("module", [a_interpreter_runs, c_submit, d_log_latency, e_listing, f_memory, g_start_up])
def test_it_measures(module: object, tmp_path: Path) -> None:
    results = list(module.measure(tmp_path))  # type: ignore[attr-defined]
    assert results
    for result in results:
        assert result.value > 0
        assert result.alternative > 0
        assert "ratio" in result.line()


def test_the_disk_is_described(tmp_path: Path) -> None:
    assert "fsyncs/s" in harness.describe(tmp_path)
    assert harness.file_system(Path("/proc")) == "proc"
