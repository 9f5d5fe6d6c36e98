"""The ways to a login node, and the sentences when there is none."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runyard.hosts import ssh
from runyard.hosts.base import KnownFiles, OutputSearch, SourceFile, Unreachable
from runyard.hosts.logins import FIRST_PAUSE_S, Logins
from runyard.hosts.ssh import SshHost
from tests.labs.sshd import SshLab

MakeHost = Callable[..., SshHost]


def node(host: SshHost) -> str:
    result = host.run(["sh", "-c", "echo $RUNYARD_LAB_NODE"], timeout=90)
    return result.stdout.decode().strip() or result.stderr.decode()


def first(config: Path, **settings: str) -> None:
    """Put these before everything else: of several values ssh takes the first one."""
    lines = "".join(f"{name} {value}\n" for name, value in settings.items())
    config.write_text(f"Host *\n{lines}{config.read_text()}")


# --- ways in --------------------------------------------------------------------------------------------------------


def test_the_first_login_that_answers_is_used(lab: SshLab, make_host: MakeHost) -> None:
    host = make_host("login1", "login2")
    assert node(host) == "login1"
    lab.kill_sshd("login1")
    assert node(host) == "login1"  # the connection that is there goes on
    assert node(make_host("nosuch.invalid", "login2")) == "login2"


def test_a_login_that_is_down_is_left_for_a_while(lab: SshLab, config: Path) -> None:
    now = 1000.0
    logins = Logins(["login1", "login2"], str(config), clock=lambda: now)
    lab.kill_sshd("login1")
    assert logins.choose().name == "login2"
    lab.start_sshd("login1")
    assert logins.choose().name == "login2"
    now += FIRST_PAUSE_S
    assert logins.choose().name == "login1"


def test_when_no_login_answers_they_are_not_asked_again_at_once(config: Path, count: Callable[[], int]) -> None:
    logins = Logins(["nosuch1.invalid", "nosuch2.invalid"], str(config), clock=lambda: 1000.0)
    with pytest.raises(Unreachable) as first_time:
        logins.choose()
    assert "nosuch1.invalid" in str(first_time.value) and "nosuch2.invalid" in str(first_time.value)
    count()
    with pytest.raises(Unreachable) as second_time:
        logins.choose()
    assert (str(second_time.value), count()) == (str(first_time.value), 0)


@pytest.fixture
def short_directory() -> Iterator[Path]:
    """The address of a socket has little room."""
    with tempfile.TemporaryDirectory(prefix="ry-", dir="/tmp") as directory:
        yield Path(directory)


def test_a_connection_that_the_user_shares_is_used(
    lab: SshLab, make_host: MakeHost, config: Path, short_directory: Path
) -> None:
    """As with a second factor: nobody gets in but over the connection that a person has opened."""
    first(config, ControlPath=f'"{short_directory}/%r@%h"')
    by_hand = ["ssh", "-F", str(config)]
    opening = [*by_hand, "-N", "-oControlMaster=yes", "-oControlPersist=60", "login1"]
    subprocess.run(opening, check=True, timeout=90, stderr=subprocess.DEVNULL)
    config.write_text(config.read_text().replace(str(lab.identity), "/dev/null"))
    host = make_host("login1")
    assert node(host) == "login1"
    subprocess.run([*by_hand, "-O", "exit", "login1"], check=True, timeout=90, stderr=subprocess.DEVNULL)
    assert "without a question" in node(host)


def test_a_jump_host_on_the_way(lab: SshLab, make_host: MakeHost, config: Path) -> None:
    config.write_text(config.read_text().replace("Host login2\n", "Host login2\nProxyJump login1\n"))
    assert node(make_host("login2")) == "login2"
    assert lab.drop_connections("login1")
    lab.kill_sshd("login1")
    assert node(make_host("login2")) != "login2"


@pytest.mark.parametrize("shell", ["sh", "dash", "bash", "csh", "tcsh"])
def test_every_shell_starts_the_interpreter(host: SshHost, shell: str) -> None:
    """A login's shell reads one line, and it is the same one for every request."""
    asked = b"print(6*7)"
    done = subprocess.run([shell, "-c", host.command_line], input=b"%d\n%s" % (len(asked), asked), capture_output=True)
    assert (done.stdout, done.stderr) == (b"42\n", b"")


def test_the_interpreter_may_have_a_weird_name(lab: SshLab, make_host: MakeHost, far_directory: str) -> None:
    python = Path(far_directory, "my 'own' $python")
    python.symlink_to("/usr/bin/python3")
    assert node(make_host("login1", python=str(python))) == "login1"


@pytest.fixture
def count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], int]]:
    """How many times ssh was called since the last question."""
    programs, calls = tmp_path / "bin", tmp_path / "calls"
    programs.mkdir()
    (programs / "ssh").write_text(f'#!/bin/sh\necho >> {shlex.quote(str(calls))}\nexec /usr/bin/ssh "$@"\n')
    (programs / "ssh").chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")

    def ask() -> int:
        found = len(calls.read_text()) if calls.exists() else 0
        calls.unlink(missing_ok=True)
        return found

    yield ask


def test_each_verb_is_one_round_trip(host: SshHost, far_directory: str, count: Callable[[], int]) -> None:
    places = [f"{number}/a1" for number in range(1000)]
    host.run(["true"], timeout=90)
    count()
    host.put(far_directory, {f"{place}/log": b"x" for place in places}, places)
    assert count() == 1
    assert len(host.scan(far_directory, [KnownFiles(directory=place, offsets={"log": 0}) for place in places])) == 1000
    assert count() == 1
    assert len(host.fetch_many([f"{far_directory}/{place}/log" for place in places])) == 1000
    assert len(host.filled([f"{far_directory}/{place}" for place in places])) == 1000
    assert count() == 2
    searches = [OutputSearch(directory=f"{far_directory}/{place}", pattern=".*") for place in places]
    found = [listing.files[0] for listing in host.find(searches)]
    assert (len(found), count()) == (1000, 1)
    sources = [SourceFile(path=f"{far_directory}/1/a1/log", size=1, digest=output.digest) for output in found]
    with host.borrow(sources):
        assert count() == 1


# --- no way in ------------------------------------------------------------------------------------------------------


def trouble(host: SshHost) -> str:
    """As a command's result, and in the same words as an error about files."""
    result = host.run(["true"], timeout=90)
    assert (result.code, result.stdout) == (None, b"")
    with pytest.raises(Unreachable) as caught:
        host.fetch("/etc/hostname")
    assert str(caught.value) == result.stderr.decode()
    return str(caught.value)


def test_a_changed_host_key_names_the_host_and_the_fix(lab: SshLab, make_host: MakeHost) -> None:
    lab.change_host_key("login2")
    told = trouble(make_host("login2"))
    assert told.startswith("the host key of login2 has changed")
    [fix] = [part for part in told.split(": ") if part.startswith("ssh-keygen")]
    subprocess.run(["sh", "-c", fix.removesuffix(" and then")], check=True, capture_output=True)
    assert trouble(make_host("login2")).startswith("the host key of login2 is not known here; connect once by hand")


def test_an_unknown_host(make_host: MakeHost) -> None:
    told = trouble(make_host("nosuch.invalid"))
    assert told.startswith("there is no host 'nosuch.invalid'")
    assert "--ssh" in told


def test_a_login_that_refuses(lab: SshLab, make_host: MakeHost) -> None:
    lab.kill_sshd("login2")
    assert trouble(make_host("login2")).startswith("login2 refuses connections")


def test_a_login_that_would_ask(make_host: MakeHost, config: Path) -> None:
    first(config, PubkeyAuthentication="no")
    told = trouble(make_host("login1"))
    assert told.startswith("login1 does not let us in without a question")
    assert told.endswith(f"ssh -F {config} login1")


def test_a_configuration_that_is_not_there(make_host: MakeHost, config: Path) -> None:
    config.unlink()
    assert str(config) in trouble(make_host("login1"))


def test_no_ssh_here(make_host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert "install OpenSSH" in trouble(make_host("login1", "login2"))


def test_an_interpreter_that_is_missing(make_host: MakeHost) -> None:
    told = trouble(make_host("login1", python="python3.99"))
    assert told == "login1 has no interpreter 'python3.99' that can be started; name another one with --python PATH"


def test_an_interpreter_that_is_too_old(make_host: MakeHost, far_directory: str) -> None:
    old = Path(far_directory, "python3")
    lie = "import sys; sys.version_info = (3, 5, 3); sys.version = '3.5.3 (default)'; exec(sys.argv[1])"
    old.write_text(f'#!/bin/sh\nexec /usr/bin/python3 -c "{lie}" "$5"\n')
    old.chmod(0o755)
    told = trouble(make_host("login1", python=str(old)))
    assert told.startswith(f"{str(old)!r} on login1 is version 3.5.3, and 3.6 is needed")


def test_a_login_that_hangs_is_given_up(lab: SshLab, make_host: MakeHost, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ssh, "TRANSFER_S", 1.0)
    host = make_host("login1", "login2")
    assert node(host) == "login1"
    lab.freeze("login1")
    try:
        result = host.run(["true"], timeout=1)
        assert (result.code, result.stderr) == (None, b"login1: no answer within 2 seconds")
        assert node(host) == "login2"
    finally:
        lab.thaw("login1")
