"""A home without a daemon: each command is a yard while it runs, and cron does the rest."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.witness import Witness, until
from tests.labs.yard import Yard


@pytest.fixture
def home() -> Iterator[Yard]:
    """A home that is treated as lying on a network file system, so that no daemon may run in it."""
    yard = Yard(cpus=2, network_home="yes")
    yield yard
    yard.remove()


def _cron(home: Yard) -> list[str]:
    """The very line, as cron would run it: without an environment."""
    line = home.cli("check", "--crontab").stdout
    assert line.startswith("* * * * * ")
    settings = f"RUNYARD_NETWORK_HOME=yes RUNYARD_CPUS=2 {line.removeprefix('* * * * * ').strip()}"
    return ["env", "-i", "/bin/sh", "-c", settings]


def _states(home: Yard) -> list[str]:
    answer = home.cli("ls", "--json", "--limit", "100")
    assert answer.returncode == 0, answer.stderr
    return [run["state"] for run in json.loads(answer.stdout)]


@pytest.mark.long
def test_twenty_runs_end_and_no_daemon_is_left(home: Yard, tmp_path: Path) -> None:
    witness = Witness(tmp_path)
    for _ in range(4):
        spec = tmp_path / "runs.yaml"
        spec.write_text("runs:\n" + f"  - command: {witness.command('echo done')}\n" * 5)
        assert home.cli("submit", "--quiet", "-f", str(spec)).returncode == 0
    tick = _cron(home)

    def all_ended() -> bool:
        answer = subprocess.run(tick, capture_output=True, text=True)
        assert answer.returncode == 0, answer.stderr
        return _states(home) == ["succeeded"] * 20

    until(all_ended, timeout=120, what="twenty runs")
    assert witness.count("start") == witness.count("end") == dict.fromkeys(range(1, 21), 1)
    daemons = [pid for pid in home.processes() if b"\0up\0" in Path(f"/proc/{pid}/cmdline").read_bytes()]
    assert daemons == []
    assert home.cli("logs", "7").stdout == "done\n"


def test_overlapping_ticks_are_harmless(home: Yard, tmp_path: Path) -> None:
    witness = Witness(tmp_path)
    home.cli("submit", "--quiet", "--", *witness.command("sleep 1"))
    tick = _cron(home)

    def ended() -> bool:
        together = [subprocess.Popen(tick, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) for _ in range(3)]
        for process in together:
            _, said = process.communicate(timeout=240)
            assert process.returncode == 0, said.decode()
        return _states(home) == ["succeeded"]

    until(ended, what="the run")
    assert witness.count("start") == {1: 1}


def test_the_second_login_node_refuses_and_names_the_holder(home: Yard) -> None:
    home.cli("submit", "--quiet", "--", "true")
    (home.home / "lock.holder").write_text('{"pid": 4711, "host": "login2", "boot_id": "x"}')
    answer = subprocess.run(_cron(home), capture_output=True, text=True)
    assert answer.returncode != 0
    assert "process 4711 on login2" in answer.stderr
    (home.home / "lock.holder").write_text(f'{{"pid": 4711, "host": "{socket.gethostname()}", "boot_id": "x"}}')
    assert subprocess.run(_cron(home), capture_output=True).returncode == 0


def test_a_command_follows_its_run_without_cron(home: Yard) -> None:
    answer = home.cli("submit", "--follow", "--", "sh", "-c", "echo a; sleep 1; echo b; exit 3")
    assert (answer.stdout, answer.returncode) == ("a\nb\n", 3)
    assert not (home.home / "lock.holder").exists()


def test_the_client_library_needs_no_daemon_either(home: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    script = "from runyard import Client; print(Client().submit(command=['echo', 'x']).wait().logs())"
    done = subprocess.run([*home.command()[:1], "-c", script], env=home.env, capture_output=True, text=True)
    assert done.stdout == "x\n\n", done.stderr


def test_a_tick_brings_what_a_run_says_and_does_not_stay_to_hear_more(home: Yard) -> None:
    """Whoever wants the home would have to wait for it."""
    home.cli("submit", "--quiet", "--", "sh", "-c", "while :; do echo line; sleep 0.05; done")
    until(lambda: home.cli("check").returncode == 0 and "running" in _states(home), what="it runs")
    answer = home.cli("check", "--limit", "600", timeout=120)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert home.cli("logs", "1").stdout.startswith("line\n")
    assert home.cli("cancel", "1").returncode == 0


def test_an_idle_tick_does_next_to_nothing(home: Yard) -> None:
    """It does not even load the store's library."""
    assert home.cli("submit", "--wait", "--", "true").returncode == 0
    loud = {**home.env, "PYTHONPROFILEIMPORTTIME": "1"}
    answer = subprocess.run(home.command("check"), env=loud, capture_output=True, text=True)
    assert answer.returncode == 0
    assert "| sqlite3" in answer.stderr
    assert not [name for name in ("sqlalchemy", "rich", "starlette", "runyard.agent") if name in answer.stderr]


def test_the_end_of_a_job_waits_for_others_unless_they_have_settled_it(home: Yard) -> None:
    assert home.cli("submit", "--wait", "--", "true").returncode == 0
    (home.home / "lock.holder").write_text('{"pid": 4711, "host": "n3", "boot_id": "x"}')
    settled = home.cli("check", "--site", "local", "--ended", "/site/runs/1/a1")
    assert (settled.returncode, settled.stderr) == (0, "")
    (home.home / "lock.holder").unlink()
    assert home.cli("submit", "--quiet", "--", "sleep", "600").returncode == 0
    until(lambda: home.cli("check").returncode == 0 and "running" in _states(home), what="it runs")
    (home.home / "lock.holder").write_text('{"pid": 4711, "host": "n3", "boot_id": "x"}')
    waiting = subprocess.Popen(
        home.command("check", "--site", "local", "--ended", "/site/runs/2/a1"), env=home.env, stderr=subprocess.PIPE
    )
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(3)
    assert b"left to others" in waiting.communicate(timeout=240)[1]
    assert waiting.returncode == 0


def test_what_is_handed_in_as_a_bundle_is_taken_by_cron(home: Yard, tmp_path: Path) -> None:
    box = tmp_path / "box"
    box.mkdir()
    (home.home / "config.toml").write_text(f'spool = ["{box}"]\n')
    tick = _cron(home)
    assert subprocess.run(tick, capture_output=True, text=True).stderr == ""
    work = ["sh", "-c", "echo training; echo 42 > $OUTPUT_DIR/best.txt"]
    name = home.cli("submit", "--quiet", "--via", str(box), "--", *work).stdout.strip()

    def state() -> dict[str, object]:
        answer = subprocess.run(tick, capture_output=True, text=True)
        assert (answer.returncode, answer.stderr) == (0, "")
        found = box / f"{name}.state" / "state.json"
        return dict(json.loads(found.read_text())) if found.exists() else {}

    until(lambda: state().get("state") == "succeeded", timeout=120, what="its end, written beside the bundle")
    assert (box / f"{name}.state" / "log").read_text() == "training\n"
    assert (box / f"{name}.state" / "outputs" / "best.txt").read_text() == "42\n"
    shutil.rmtree(box / f"{name}.run")
    subprocess.run(tick, check=True)
    assert [path.name for path in box.iterdir()] == []


def test_a_drop_box_that_cannot_be_used_stops_no_run(home: Yard, tmp_path: Path) -> None:
    home.cli("submit", "--quiet", "--", "true")
    (home.home / "config.toml").write_text(f'spool = ["{tmp_path / "away"}"]\n')
    tick = _cron(home)

    def is_over() -> bool:
        answer = subprocess.run(tick, capture_output=True, text=True)
        assert "cannot be opened: no such file or directory" in answer.stderr
        return _states(home) == ["succeeded"]

    until(is_over, timeout=120, what="the end of a run")
