"""What a person sees in a terminal of 80 and of 120 columns."""

from __future__ import annotations

import shlex
import subprocess
import time
import uuid
from collections.abc import Callable, Iterator

import pytest

from tests.labs.waiting import until

pytestmark = pytest.mark.component("tmux")


class Terminal:
    def __init__(self, width: int, env: dict[str, str]) -> None:
        self._socket = f"runyard-{uuid.uuid4().hex[:8]}"
        settings = [
            word for name in env if name.startswith(("RUNYARD_", "NO_COLOR")) for word in ("-e", f"{name}={env[name]}")
        ]
        self._tmux("new-session", "-d", "-x", str(width), "-y", "60", *settings, "sh")

    def run(self, command: list[str], *, colours: bool = False) -> list[str]:
        """The lines on the screen after the command."""
        self._tmux("send-keys", f"clear; {shlex.join(command)}; echo exit-$?", "Enter")
        deadline = time.monotonic() + 90
        while not any(line.startswith("exit-") for line in self.screen()):
            assert time.monotonic() < deadline, "\n".join(self.screen())
            time.sleep(0.05)
        return [line for line in self.screen(colours) if line and not line.startswith(("exit-", "$", "#"))]

    def keys(self, *keys: str) -> None:
        self._tmux("send-keys", *keys)

    def screen(self, colours: bool = False) -> list[str]:
        return self._tmux("capture-pane", "-p", *(["-e"] if colours else [])).splitlines()

    def close(self) -> None:
        self._tmux("kill-server")

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-L", self._socket, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=90, check=True).stdout


@pytest.fixture
def terminal(shared) -> Iterator[Callable[..., Terminal]]:
    opened: list[Terminal] = []

    def make(width: int, **env: str) -> Terminal:
        opened.append(Terminal(width, {**shared.env, **env}))
        return opened[-1]

    yield make
    for one in opened:
        one.close()


@pytest.mark.parametrize("width", [80, 120])
def test_a_run_is_one_line_of_the_table(shared, submit, cli, terminal, width: int) -> None:
    submit("--", "true")
    ids = [
        submit("--name", "a name that is rather long for a table " * 2, "--project", "digits", "--", "true"),
        submit("--", "sh", "-c", "echo a command that is long as well; exit 3"),
    ]
    cli("wait", *map(str, ids), code=3)
    lines = terminal(width).run(shared.command("ls", "--limit", "2"))
    assert lines[0].split() == ["ID", "STATE", "NAME", "PROJECT", "AGE", "TIME", "NOTE"]
    assert [line.split()[0] for line in lines[1:3]] == [str(ids[1]), str(ids[0])]
    assert all("…" in line for line in lines[1:3])
    assert lines[3].startswith("more: runyard ls --limit 2 --before")


def test_colours_are_there_and_can_be_switched_off(shared, submit, cli, terminal) -> None:
    number = submit("--", "true")
    cli("wait", str(number))
    command = shared.command("ls", "--limit", "1")
    assert any("\x1b[32m" in line for line in terminal(80).run(command, colours=True))
    assert not any("\x1b[32m" in line for line in terminal(80, NO_COLOR="1").run(command, colours=True))


@pytest.mark.parametrize("width", [80, 120])
def test_the_help_fits(shared, terminal, width: int) -> None:
    lines = terminal(width).run(shared.command("--help"))
    assert any("submit" in line and "Submit a run" in line for line in lines)


def test_top_redraws_until_ctrl_c(shared, submit, cli, terminal) -> None:
    number = submit("--name", "busy", "--", "sleep", "600")
    screen = terminal(80)
    screen.keys(shlex.join(shared.command("top")), "Enter")
    deadline = time.monotonic() + 90
    while not any("busy" in line and " of 1" in line for line in screen.screen()):
        assert time.monotonic() < deadline, "\n".join(screen.screen())
        time.sleep(0.1)
    screen.keys("C-c")
    assert screen.run(["echo", "left"]) == ["left"]
    cli("cancel", str(number))


@pytest.mark.parametrize(
    ("optimizer", "titles"),
    [
        ("a-name-that-is-rather-long-for-a-table" * 2, ["TRIAL", "STATE", "RUNS", "PARAMETERS"]),
        ("adam", ["TRIAL", "lr", "optimizer", "STATE", "RUNS"]),
    ],
)
def test_a_sweep_fills_while_it_is_watched(shared, cli, terminal, tmp_path, optimizer: str, titles: list[str]) -> None:
    release = tmp_path / "go"
    values = f"optimizer={optimizer},sgd"
    command = ["sh", "-c", f"until [ -e {release} ]; do sleep 0.1; done"]
    label = cli(
        "sweep", "--quiet", "--fresh", "--param", "lr=0.1,0.01,0.001", "--param", values, "--", *command
    ).stdout.strip()
    screen = terminal(80)
    screen.keys(shlex.join(shared.command("sweep", "watch", label)), "Enter")
    wait_for(screen, "░ 0 of 6 configurations")
    wait_for(screen, "2 running")
    until(lambda: table(screen) == (titles, list("123456")), "a table with one line for each")
    release.touch()
    wait_for(screen, f"sweep {label} succeeded: 6 of 6 configurations; 6 succeeded")


def table(screen: Terminal) -> tuple[list[str], list[str]]:
    """Its titles and the numbers of its trials; between two drawings it may not be there."""
    lines = screen.screen()
    header = next((index for index, line in enumerate(lines) if line.startswith("TRIAL")), len(lines))
    below = [line.split()[:1] for line in lines[header + 1 : header + 7]]
    return " ".join(lines[header : header + 1]).split(), [word for words in below for word in words]


def wait_for(screen: Terminal, text: str) -> None:
    deadline = time.monotonic() + 60
    while text not in " ".join(screen.screen()):
        assert time.monotonic() < deadline, "\n".join(screen.screen())
        time.sleep(0.1)
