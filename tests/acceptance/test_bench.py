"""The measurements measure: each runs once, small, and gives numbers for runyard and for the alternative."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from types import ModuleType

import pytest

from bench import (
    __main__ as bench,
)
from bench import (
    a_interpreter_runs,
    b_true_runs,
    c_submit,
    d_log_latency,
    e_listing,
    f_memory,
    g_start_up,
    h_slurm_sweep,
    harness,
    i_requests,
    j_ticket_latency,
    k_results,
    l_staging,
    m_fetch,
    n_node_start,
    o_grid,
    p_metrics,
    q_ask_tell,
    r_ray_tune,
    short_runs,
)
from tests.labs import table

pytestmark = pytest.mark.long


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
    for name, number in {"RUNS": 12, "SLEEP_S": 1, "PAIRS": 1, "FEWER": 3, "NO_OPS": 6, "NO_OP_PAIRS": 1}.items():
        monkeypatch.setattr(h_slurm_sweep, name, number)
    monkeypatch.setattr(i_requests, "REQUESTS", 40)
    monkeypatch.setattr(i_requests, "REPETITIONS", 1)
    monkeypatch.setattr(j_ticket_latency, "STARTS", 3)
    for name, number in {"MEGABYTES": 3, "REPETITIONS": 1, "LARGEST": 1 << 20}.items():
        monkeypatch.setattr(k_results, name, number)
    for name, number in {"FILES": 60, "KILOBYTES": 10, "FOLDERS": 3, "FIRSTS": 1, "SECONDS": 1}.items():
        monkeypatch.setattr(l_staging, name, number)
    for name, number in {"MEGABYTES": 20, "REPETITIONS": 1}.items():
        monkeypatch.setattr(m_fetch, name, number)
    monkeypatch.setattr(n_node_start, "STARTS", 2)
    monkeypatch.setattr(o_grid, "SIDE", 5)
    for name, number in {"RUNS": 3, "STEPS": 100, "REPETITIONS": 1, "CALLS": 100}.items():
        monkeypatch.setattr(p_metrics, name, number)
    monkeypatch.setattr(q_ask_tell, "TRIALS", 15)
    monkeypatch.setattr(r_ray_tune, "TRIALS", 4)


@pytest.mark.component("GNU parallel")
@pytest.mark.parametrize(
    "module",
    [
        a_interpreter_runs, b_true_runs, c_submit, d_log_latency, e_listing, f_memory, o_grid, p_metrics, q_ask_tell,
    ],
)  # fmt: skip
def test_it_measures(module: object, tmp_path: Path) -> None:
    check(list(module.measure(tmp_path)))  # type: ignore[attr-defined]


def test_our_side_of_the_comparison_with_ray_tune(tmp_path: Path) -> None:
    """Ray itself takes more than a minute and a gigabyte to come up beside other tests."""
    with harness.yard(tmp_path, cpus=r_ray_tune.SLOTS) as yard:
        taken = r_ray_tune.by_runyard(yard)
    assert min(taken.seconds, taken.megabytes) > 0


@pytest.mark.parametrize("module", [a_interpreter_runs, b_true_runs])
def test_a_missing_alternative_is_told(module: ModuleType, tmp_path: Path, monkeypatch, capsys) -> None:
    for name in ("seq", "xargs"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path))
    table.look_up.cache_clear()
    try:
        results = list(module.measure(tmp_path))
    finally:
        table.look_up.cache_clear()
    check(results)
    assert [result.against.split()[0] for result in results] == ["xargs"]
    assert f"({results[0].letter}, against GNU parallel) left out: " in capsys.readouterr().err


def test_start_up_is_measured(tmp_path: Path) -> None:
    results = list(g_start_up.measure(tmp_path))
    check(results)
    assert any("`runyard check`" in result.what for result in results)


@pytest.mark.component("slurm")
def test_a_cluster_is_measured() -> None:
    with tempfile.TemporaryDirectory() as place:  # pytest's own cannot be entered by the cluster's user
        results = list(h_slurm_sweep.measure(Path(place)))
    check(results)
    (counted,) = [result for result in results if result.unit == "commands"]
    assert (counted.met, "1 sbatch" in counted.what) == (True, True), counted


@pytest.mark.component("rabbitmq", "postgresql", "flask, celery")
@pytest.mark.parametrize("module", [i_requests, j_ticket_latency, k_results])
def test_the_broker_is_measured(module: object) -> None:
    with tempfile.TemporaryDirectory() as place:  # pytest's own cannot be entered by PostgreSQL's user
        check(list(module.measure(Path(place))))  # type: ignore[attr-defined]


@pytest.mark.component("sshd", "rsync", "git")
@pytest.mark.parametrize("module", [l_staging, m_fetch, n_node_start])
def test_a_node_is_measured(module: object) -> None:
    with tempfile.TemporaryDirectory() as place:  # pytest's own cannot be entered by who logs in
        check(list(module.measure(Path(place))))  # type: ignore[attr-defined]


def check(results: list[harness.Result]) -> None:
    assert results
    for result in results:
        assert result.value > 0
        assert result.alternative > 0
        assert "ratio" in result.line()


def test_a_measurement_can_be_made_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f_memory, "RUNS", 10)
    bench.resize([g_start_up, f_memory], "RUNS", "20")
    assert f_memory.RUNS == 20
    with pytest.raises(SystemExit, match="WALKS=20"):
        bench.resize([f_memory], "WALKS", "20")


def test_the_disk_is_described(tmp_path: Path) -> None:
    assert "fsyncs/s" in harness.describe(tmp_path)
    assert harness.file_system(Path("/proc")) == "proc"
