"""Starting and stopping yards; who may speak to them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard import Client, errors
from runyard.client import find_yard
from tests.labs.waiting import until
from tests.labs.yard import Yard


@pytest.fixture
def fresh() -> Iterator[Yard]:
    """A home in which nothing runs yet."""
    home = Yard(cpus=2)
    yield home
    home.remove()


def started(home: Yard) -> list[int]:
    """The processes `runyard up` of this home."""
    found = []
    for pid in home.processes():
        with contextlib.suppress(OSError):  # gone since
            found += [pid] if b"runyard\0up" in Path(f"/proc/{pid}/cmdline").read_bytes() else []
    return found


def test_the_first_submit_starts_a_yard_and_says_so(fresh: Yard) -> None:
    done = fresh.cli("submit", "-q", "--", "true")
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert "no yard is running; starting one in the background" in done.stderr
    assert fresh.cli("submit", "-q", "--", "true").stderr == ""
    assert fresh.cli("down").stdout.startswith("the yard is down")


def test_two_at_once_start_one_yard(fresh: Yard) -> None:
    both = [
        subprocess.Popen(fresh.command("submit", "-q", "--", "true"), env=fresh.env, stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    said = sorted(process.communicate(timeout=180)[0] for process in both)
    assert said == [b"1\n", b"2\n", b"3\n"]
    # Those that lost find out a little later, and for a moment a child looks like its parent.
    until(lambda: [find_yard.read_address(fresh.home).pid] == started(fresh), "one yard")


def test_python_starts_a_yard_too(fresh: Yard, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in fresh.env.items():
        monkeypatch.setenv(name, value)
    said: list[str] = []
    with Client(notify=said.append) as client:
        run = client.submit(["echo", "hello"], wait=True)
        assert (run.state, run.logs()) == ("succeeded", "hello\n")
    assert len(said) == 1
    with pytest.raises(errors.YardUnreachable):
        Client(home=fresh.home / "other", start=False).health()


def test_up_in_the_background(fresh: Yard) -> None:
    first = json.loads(fresh.cli("up", "-d", "--json").stdout)
    again = json.loads(fresh.cli("up", "-d", "--json").stdout)
    assert first == again
    assert first.keys() == {"url", "pid", "version", "home"}
    assert os.getsid(first["pid"]) == first["pid"]
    status = json.loads(fresh.cli("status", "--json").stdout)
    assert {name: status[name] for name in first} == first
    assert first["url"] in fresh.cli("status").stdout


def test_files_are_for_their_owner_alone(fresh: Yard) -> None:
    fresh.cli("up", "-d")
    for path, mode in ((fresh.home, 0o700), (fresh.home / "token", 0o600), (fresh.home / "yard.log", 0o600)):
        assert stat.S_IMODE(path.stat().st_mode) == mode


def test_down_leaves_runs_running_and_up_finds_them(fresh: Yard) -> None:
    fresh.cli("submit", "-q", "--", "sh", "-c", "while [ ! -e stop ]; do sleep 0.05; done; echo end", cwd=fresh.home)
    wait_until_running(fresh)
    done = fresh.cli("down")
    assert "1 run continues" in done.stderr
    assert fresh.cli("down").stdout.startswith("no yard is running")
    fresh.cli("up", "-d")
    (fresh.home / "stop").touch()
    assert fresh.cli("wait", "1").returncode == 0
    assert fresh.cli("logs", "1").stdout == "end\n"


def wait_until_running(home: Yard) -> None:
    until(lambda: home.cli("ls", "--state", "running", "-q").stdout, "a run that runs")


def test_down_can_take_the_runs_along(fresh: Yard) -> None:
    fresh.cli("submit", "-q", "--", "sleep", "4713")
    wait_until_running(fresh)
    done = fresh.cli("down", "--kill-runs", "--json")
    assert json.loads(done.stdout)["cancelled"] == 1
    assert subprocess.run(["pgrep", "-f", "sleep 4713"], capture_output=True, check=False).stdout == b""


def test_down_stops_a_yard_that_does_not_answer(fresh: Yard) -> None:
    pid = json.loads(fresh.cli("up", "-d", "--json").stdout)["pid"]
    os.kill(pid, signal.SIGSTOP)
    stopping = subprocess.Popen(fresh.command("down"), env=fresh.env, stdout=subprocess.PIPE)
    until(lambda: is_pending(pid, signal.SIGTERM), "that it is told without being asked")
    os.kill(pid, signal.SIGCONT)
    assert stopping.communicate(timeout=120)[0].startswith(b"the yard is down")
    assert not started(fresh)


def is_pending(pid: int, number: int) -> bool:
    """Whether a process that stands still has this signal to hear."""
    (mask,) = re.findall(r"^ShdPnd:\s*(\w+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return bool(int(mask, 16) >> (number - 1) & 1)


def test_down_ends_no_other_process(fresh: Yard) -> None:
    fresh.home.joinpath("yard.json").write_text(json.dumps({"url": "http://127.0.0.1:9", "pid": os.getpid()}))
    fresh.home.joinpath("lock.holder").write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
    assert fresh.cli("down").stdout.startswith("no yard is running")


def test_a_followed_log_survives_kill_9(fresh: Yard) -> None:
    fresh.cli("submit", "-q", "--", "sh", "-c", "for i in 1 2 3 4 5 6; do echo $i; sleep 0.5; done")
    # Without a buffer: what it holds after the first line would be lost to `communicate`.
    following = subprocess.Popen(fresh.command("logs", "1", "-f"), env=fresh.env, stdout=subprocess.PIPE, bufsize=0)
    assert following.stdout is not None
    assert following.stdout.readline() == b"1\n"
    address = find_yard.read_address(fresh.home)
    assert address is not None
    os.kill(address.pid, signal.SIGKILL)
    fresh.cli("up", "-d")
    rest = following.communicate(timeout=150)[0].decode().split()
    assert (following.returncode, rest) == (0, ["2", "3", "4", "5", "6"]), fresh.cli("show", "1").stdout


def test_no_yard(fresh: Yard) -> None:
    for words in (("ls",), ("wait", "1"), ("logs", "1"), ("cancel", "1"), ("status",)):
        done = fresh.cli(*words)
        assert done.returncode == 205
        assert done.stderr == f"error: no yard is running for {fresh.home}\nfix: runyard up -d\n"
    assert not started(fresh)


def test_a_yard_that_does_not_answer(fresh: Yard) -> None:
    fresh.env |= {"RUNYARD_URL": "http://127.0.0.1:9", "RUNYARD_TOKEN": "x"}
    done = fresh.cli("submit", "--", "true")
    assert done.returncode == 205
    assert done.stderr.startswith("error: no yard answers at http://127.0.0.1:9: connection refused\n")
    assert not started(fresh)


def test_a_second_yard_in_the_same_home(fresh: Yard) -> None:
    fresh.cli("up", "-d")
    done = fresh.cli("up")
    address = find_yard.read_address(fresh.home)
    assert address is not None
    assert done.returncode == 1
    assert f"{fresh.home} is in use by process {address.pid}" in done.stderr


@pytest.mark.parametrize("words", [("up",), ("up", "-d")])
def test_a_port_that_is_taken(fresh: Yard, words: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = fresh.cli(*words, "--port", str(port))
    assert done.returncode == 1
    assert re.fullmatch(rf"error: port {port} .* is used by .*\nfix: .*--port 0.*\n", done.stderr)


def test_the_usual_port_is_only_a_wish(fresh: Yard) -> None:
    fresh.env.pop("RUNYARD_PORT")
    try:
        taken = socket.create_server(("127.0.0.1", 9090))
    except OSError:
        taken = socket.socket()  # somebody else has it: just as good
    with taken:
        url = json.loads(fresh.cli("up", "-d", "--json").stdout)["url"]
    assert not url.endswith(":9090")
    assert fresh.cli("submit", "-q", "--wait", "--", "true").returncode == 0


@pytest.mark.parametrize("words", [("up",), ("up", "-d"), ("submit", "--", "true")])
def test_a_corrupt_configuration(fresh: Yard, words: tuple[str, ...]) -> None:
    (fresh.home / "config.toml").write_text("port = \n")
    done = fresh.cli(*words)
    assert done.returncode in (2, 205)
    assert re.search(r"^error: .*config\.toml cannot be read: .*line 1", done.stderr, re.MULTILINE)
    assert "fix: correct that line" in done.stderr
    assert "Traceback" not in done.stderr


def test_settings_with_a_wrong_name(fresh: Yard) -> None:
    (fresh.home / "config.toml").write_text("prot = 1\n")
    done = fresh.cli("up")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, "fix: did you mean 'port'?")


def test_a_module_in_the_directory_does_not_replace_ours(fresh: Yard, tmp_path: Path) -> None:
    for name in ("click.py", "starlette.py", "json.py"):
        (tmp_path / name).write_text("raise SystemExit('not this one')")
    program = "import sys; sys.path = [p for p in sys.path if p]; from runyard.cli.main import main; main()"
    command = [fresh.command()[0], "-P", "-c", program, "submit", "-q", "--", "true"]
    done = subprocess.run(
        command, env=fresh.env, cwd=tmp_path, capture_output=True, text=True, timeout=180, check=False
    )
    assert done.stdout == "1\n", done.stderr


def test_a_login_node_does_not_train_by_accident(fresh: Yard, tmp_path: Path) -> None:
    (tmp_path / "sinfo").write_text("#!/bin/sh\necho batch up infinite 1 idle node1\n")
    (tmp_path / "sinfo").chmod(0o755)
    fresh.env["PATH"] = f"{tmp_path}:{fresh.env['PATH']}"
    refused = fresh.cli("submit", "--", "true")
    assert refused.returncode == 2
    assert "slurm answers on this machine" in refused.stderr
    assert fresh.cli("submit", "-q", "--site", "local", "--wait", "--", "true").returncode == 0
    findings = {item["check"]: item for item in json.loads(fresh.cli("doctor", "--json").stdout)}
    assert findings["scheduler"]["verdict"] == "warn"


def test_a_home_on_a_network_file_system_is_refused(fresh: Yard) -> None:
    fresh.env["RUNYARD_NETWORK_HOME"] = "yes"
    for words in (("up",), ("up", "-d")):
        done = fresh.cli(*words)
        assert done.returncode in (1, 2, 205)
        assert "network file system" in done.stderr
        assert "set RUNYARD_HOME to a local disk" in done.stderr


def test_doctor(fresh: Yard) -> None:
    done = fresh.cli("doctor")
    assert done.returncode == 0, done.stdout
    fresh.cli("submit", "-q", "--wait", "--", "true")
    findings = {item["check"]: item for item in json.loads(fresh.cli("doctor", "--json").stdout)}
    assert {item["verdict"] for item in findings.values()} <= {"ok", "warn"}
    assert "1 run in" in findings["store"]["message"]
    assert "serves local" in findings["agent"]["message"]
    assert "process" in findings["zygote"]["message"]
    (fresh.home / "token").chmod(0o644)
    done = fresh.cli("doctor")
    assert done.returncode == 1
    assert f"fix: chmod 600 {fresh.home / 'token'}" in done.stdout


def test_doctor_finds_a_damaged_store(fresh: Yard) -> None:
    (fresh.home / "yard.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 8000)
    findings = {item["check"]: item for item in json.loads(fresh.cli("doctor", "--json").stdout)}
    assert findings["store"]["verdict"] == "fail"


def test_doctor_shows_the_settings(fresh: Yard) -> None:
    shown = {item["name"]: item["value"] for item in json.loads(fresh.cli("doctor", "--settings", "--json").stdout)}
    assert (shown["cpus"], shown["home"]) == (2, str(fresh.home))


def test_tokens(fresh: Yard) -> None:
    fresh.cli("up", "-d")
    assert fresh.cli("token").stdout.strip() == find_yard.read_token(fresh.home)
    made = json.loads(fresh.cli("token", "create", "ada", "--role", "viewer", "--json").stdout)
    address = find_yard.read_address(fresh.home)
    assert address is not None
    ada = Yard.__new__(Yard)
    ada.env = {**fresh.env, "RUNYARD_URL": address.url, "RUNYARD_TOKEN": made["secret"]}
    assert ada.cli("ls").returncode == 0
    done = ada.cli("submit", "--", "true")
    assert done.returncode == 1
    assert "viewer" in done.stderr
    assert "ada" in fresh.cli("token", "list").stdout
    assert made["secret"] not in fresh.cli("token", "list", "--json").stdout
    assert fresh.cli("token", "revoke", str(made["id"])).returncode == 0
    assert "error:" in ada.cli("ls").stderr


def test_sites(fresh: Yard) -> None:
    fresh.cli("submit", "-q", "--wait", "--", "true")
    (site,) = json.loads(fresh.cli("site", "list", "--json").stdout)
    assert (site["name"], site["drained"]) == ("local", False)
    until(lambda: "2 of 2" in fresh.cli("site", "list").stdout, "both slots free")
    assert "starts no new runs" in fresh.cli("site", "drain", "local").stdout
    assert "drained" in fresh.cli("site", "show", "local").stdout
    fresh.cli("submit", "-q", "--", "true")
    assert fresh.cli("wait", "2", "--timeout", "1s").returncode == 124
    fresh.cli("site", "resume", "local")
    assert fresh.cli("wait", "2").returncode == 0
    assert fresh.cli("site", "show", "mars").returncode == 1
    assert [site["name"] for site in json.loads(fresh.cli("site", "--json").stdout)] == ["local"]


def test_a_site_that_cannot_work_is_refused_at_once(fresh: Yard) -> None:
    fresh.cli("up", "-d")
    unknown = fresh.cli("site", "add", "cedar", "--kind", "slrum")
    told = "error: there is no kind of site 'slrum'\nfix: did you mean 'slurm'?\n"
    assert (unknown.returncode, unknown.stderr) == (2, told)
    useless = fresh.cli("site", "edit", "local", "--option", "foo=bar")
    assert useless.returncode == 2
    assert "options.foo: there is no such option" in useless.stderr
    for words, sentence in (
        (["--option", "array=1-3"], "the option 'array' is runyard's own"),
        (["--option", "rules=gpus>0 => gres='gpu"], "no closing quotation"),
        (["--ssh", "ann@login"], "is reached by ssh and has no directory"),
    ):
        done = fresh.cli("site", "add", "cedar", "--kind", "slurm", *words)
        assert (done.returncode, sentence in done.stderr) == (2, True), done.stderr
    assert fresh.cli("site", "add", "cedar", "--kind", "slurm", "--served-by", "agent").returncode == 0
    few = fresh.cli("site", "edit", "cedar", "--option", "max_jobs=few")
    assert (few.returncode, "option max_jobs: 'few'" in few.stderr) == (2, True), few.stderr


def test_the_line_for_cron(fresh: Yard) -> None:
    line = fresh.cli("check", "--crontab").stdout.strip()
    assert json.loads(fresh.cli("check", "--crontab", "--json").stdout) == {"crontab": line}
    refused = fresh.cli("check", "--dir", "/scratch")
    assert (refused.returncode, "--dir needs a yard on another machine" in refused.stderr) == (2, True)


def test_a_crontab_with_a_wrong_site_is_told_also_when_there_is_nothing_to_do(fresh: Yard) -> None:
    fresh.cli("up", "-d")
    fresh.cli("down")
    assert fresh.cli("check", "--site", "local").returncode == 0
    refused = fresh.cli("check", "--site", "locla")
    assert (refused.returncode, "this yard serves no site 'locla'" in refused.stderr) == (1, True), refused.stderr


def test_an_agent_serves_a_site_over_http(fresh: Yard, tmp_path: Path) -> None:
    """First with the admin's token, which adds the site; then with one that is good for nothing else."""
    fresh.cli("up", "-d")
    words = ("submit", "-q", "--site", "lab", "--follow", "--", "sh", "-c", "echo here; echo x > $OUTPUT_DIR/x")
    with agent(fresh, find_yard.read_token(fresh.home)):
        assert wait_for_site(fresh, words).stdout == "here\n"
    secret = fresh.cli("token", "create", "lab-agent", "--role", "agent", "--site", "lab", "-q").stdout.strip()
    with agent(fresh, secret):
        assert fresh.cli(*words).stdout == "here\n"
    fetched = fresh.cli("fetch", "last", "-o", str(tmp_path / "out"))
    assert (tmp_path / "out" / "x").read_text() == "x\n", fetched.stderr


@contextlib.contextmanager
def agent(home: Yard, token: str) -> Iterator[None]:
    address = find_yard.read_address(home.home)
    assert address is not None
    command = home.command("agent", "--site", "lab", "--dir", str(home.home / "lab"), "--url", address.url)
    process = subprocess.Popen(command, env={**home.env, "RUNYARD_TOKEN": token}, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        assert "serves lab" in process.stderr.readline()
        yield
        process.send_signal(signal.SIGINT)
        assert "the agent has stopped" in process.communicate(timeout=90)[1]
        assert process.returncode == 0
    finally:
        process.kill()
        process.wait()


def wait_for_site(home: Yard, words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """The site exists from the agent's first word on."""
    deadline = time.monotonic() + 90
    while (done := home.cli(*words)).returncode == 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    return done


def test_an_agent_with_a_wrong_token(fresh: Yard) -> None:
    fresh.cli("up", "-d")
    address = find_yard.read_address(fresh.home)
    assert address is not None
    done = fresh.cli("agent", "--site", "lab", "--url", address.url, "--token", "wrong")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "served by the yard itself" in fresh.cli("agent", "--site", "local").stderr
