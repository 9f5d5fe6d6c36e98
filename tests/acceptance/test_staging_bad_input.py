"""What goes wrong with code and data, played by the real command against a real yard, with real agents and nodes.

| what is wrong | where it is played (sending: tests/integration/server/test_sending.py) |
|---|---|
| a path outside of the project | tests/integration/cli/test_code_and_data.py: test_bad_words |
| 50,000 files without ignore rules | here |
| a file that changes while it is read | here; between reading and sending: sending, test_a_file_that_changed |
| a file that cannot be read | here |
| a named pipe | here |
| a name with a line break | here |
| bytes damaged on their way to the yard | sending: test_bytes_that_were_damaged, test_a_line_that_always_damages |
| bytes damaged on their way to the site | tests/integration/agent/test_staging.py: test_bytes_that |
| a full volume of the cache | tests/integration/agent/test_staging.py: test_a_full_volume, test_copies_of_runs |
| clocks that differ | here |
| a node that restarts in the middle of a transfer | here; of a run: tests/acceptance/test_ssh_nodes.py |
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.pool import SITE, Pool
from tests.acceptance.test_ssh_nodes import NodeYard
from tests.acceptance.witness import until
from tests.labs import accounts, waiting
from tests.labs.nodes import NodeLab
from tests.labs.yard import Yard

DAY_S = 86400
OTHER_CLOCK = """
import time
now, now_ns = time.time, time.time_ns
time.time, time.time_ns = lambda: now() + {seconds}, lambda: now_ns() + {seconds} * 10**9
from runyard.cli.main import main
main()
"""


@pytest.fixture
def project() -> Iterator[Path]:
    """A folder that everybody may enter, with a program."""
    with tempfile.TemporaryDirectory(prefix="ry-project-") as place:
        os.chmod(place, 0o755)
        folder = Path(place)
        (folder / "train.py").write_text("print('trained')\n")
        yield folder


@pytest.fixture
def checkout(project: Path) -> Path:
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    return project


def refused(yard: Yard, folder: Path, *words: str) -> str:
    """The sentence, after which no run is there."""
    done = yard.cli("submit", *words, "--", "python3", "train.py", cwd=folder, timeout=180)
    assert done.returncode == 2, done
    assert yard.client().runs() == []
    return " ".join(done.stderr.split())


def succeeds(yard: Yard, folder: Path, *words: str) -> str:
    """What the run said."""
    done = yard.cli("submit", "--quiet", *words, "--", "python3", "train.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    ended = yard.client().run(int(done.stdout)).wait(timeout=180)
    assert ended.state == "succeeded", ended.data
    return str(ended.logs())


@pytest.mark.long
@pytest.mark.component("git")
def test_fifty_thousand_files_without_ignore_rules(yard: Yard, checkout: Path) -> None:
    for folder in ("checkpoints", "lib"):
        (checkout / folder).mkdir()
    for number in range(50_000):
        os.close(os.open(checkout / f"checkpoints/{number}", os.O_CREAT | os.O_WRONLY))
    (checkout / "lib/nets.py").touch()
    said = refused(yard, checkout)
    assert "50002 files" in said.replace(",", "") and "20000" in said.replace(",", "")
    assert "checkpoints" in said and ".gitignore" in said
    (checkout / ".gitignore").write_text("/checkpoints\n")
    assert succeeds(yard, checkout) == "trained\n"


@contextlib.contextmanager
def written_all_the_time(path: Path) -> Iterator[None]:
    over = threading.Event()
    path.write_bytes(bytes(64 << 20))

    def write() -> None:
        with path.open("r+b", buffering=0) as file:
            while not over.wait(0.0005):
                os.pwrite(file.fileno(), os.urandom(8), 0)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        over.set()
        writer.join()


@pytest.mark.parametrize("words", [("--code", "."), ("--no-code", "--data", ".")])
def test_a_file_that_somebody_writes_to(yard: Yard, project: Path, words: tuple[str, ...]) -> None:
    with written_all_the_time(project / "model.bin"):
        said = refused(yard, project, *words)
    assert "model.bin changed while it was read; nothing was submitted" in said


def test_a_file_and_a_folder_that_cannot_be_read(yard: Yard, project: Path) -> None:
    """By somebody who is not root, who may read everything."""
    person = accounts.submitter()
    for name in ("secret.txt", "private"):
        path = project / name
        path.mkdir() if name == "private" else path.write_text("x")
        path.chmod(0)
        command, env = person.runyard("submit", "--code", ".", "--", "true")
        env |= {"RUNYARD_URL": yard.url, "RUNYARD_TOKEN": yard.token}
        done = subprocess.run(
            command, cwd=project, env=env, capture_output=True, text=True, timeout=120, check=False,
            **person.popen_options(),
        )  # fmt: skip
        assert done.returncode == 2, done
        said = " ".join(done.stderr.split())
        assert f"{name} cannot be read: permission denied" in said
        path.chmod(0o700)
        path.rmdir() if name == "private" else path.unlink()
    assert yard.client().runs() == []


@pytest.mark.parametrize("words", [("--code", "."), ("--no-code", "--data", ".")])
def test_a_named_pipe_in_a_folder(yard: Yard, project: Path, words: tuple[str, ...]) -> None:
    os.mkfifo(project / "commands")
    assert "commands is a named pipe" in refused(yard, project, *words)


@pytest.mark.component("git")
def test_a_named_pipe_in_a_checkout_is_no_code_until_it_is_named(yard: Yard, checkout: Path) -> None:
    """What belongs to the code of a checkout is for git to say, and git knows of no pipes: a program may have one
    open while its author submits."""
    os.mkfifo(checkout / "commands")
    assert "commands is a named pipe" in refused(yard, checkout, "--code", "train.py", "--code", "commands")
    (checkout / "train.py").write_text("import os\nprint(sorted(os.listdir('.')))\n")
    assert succeeds(yard, checkout) == "['train.py']\n"


@pytest.mark.component("git")
@pytest.mark.parametrize("words", [(), ("--no-code", "--data", ".")])
def test_a_name_with_a_line_break(yard: Yard, checkout: Path, words: tuple[str, ...]) -> None:
    (checkout / "two\nlines.py").touch()
    said = refused(yard, checkout, *words)
    assert r"two\nlines.py" in said


@pytest.mark.parametrize("seconds", [DAY_S, -DAY_S])
def test_clocks_that_differ_by_a_day(yard: Yard, project: Path, seconds: int) -> None:
    """The agent's machine has another time than the yard's: what is staged, kept and removed depends on no clock."""
    (project / "train.py").write_text("print(open('corpora/words').read())\n")
    (project / "corpora").mkdir()
    pool = Pool(yard)
    with pool.agent("skewed", program=("-c", OTHER_CLOCK.format(seconds=seconds))):
        until(lambda: yard.client().site(SITE)["agents"], what="the agent", timeout=120)
        for words in ("one", "two", "two", "three"):
            (project / "corpora/words").write_text(words)
            assert succeeds(yard, project, "--site", SITE, "--code", ".", "--data", "corpora") == f"{words}\n"
        assert [run.attempt for run in yard.client().runs()] == [1, 1, 1, 1]
        copies = pool.home("skewed") / "site"
        until(lambda: not list(copies.glob("runs/*/a1/code")), what="the copies are gone", timeout=120)


@pytest.fixture
def boxes(node_lab: Callable[..., NodeLab]) -> Iterator[NodeYard]:
    yard = Yard(local_site="named")
    try:
        made = NodeYard(node_lab(), yard)
        made.add_site()
        made.until_up("hoff")
        yield made
    finally:
        yard.remove()


def test_a_node_that_restarts_while_data_travels_to_it(boxes: NodeYard, project: Path) -> None:
    """The run had begun nowhere: it is given back, and brought again when the node is there."""
    (project / "corpora").mkdir()
    for number in range(12):
        (project / f"corpora/{number}.bin").write_bytes(os.urandom(20 << 20))
    (project / "train.py").write_text("import os\nprint(len(os.listdir('corpora')))\n")
    asked = ["--quiet", "--site", "boxes", "--node", "hoff", "--code", "train.py", "--data", "corpora"]
    done = boxes.yard.cli("submit", *asked, "--", "python3", "train.py", cwd=project, timeout=180)
    assert done.returncode == 0, done.stderr
    run = boxes.yard.client().run(int(done.stdout))
    waiting.until(lambda: _arrived(boxes), "some of it there")
    boxes.lab.freeze("hoff")  # what is yet to come does not come while its disk is kept
    boxes.lab.reboot("hoff")
    shown: dict[str, Any] = boxes.ended(run, timeout=400)
    assert (shown["state"], "12\n" in boxes.log(run)) == ("succeeded", True), shown
    first, *_, last = shown["attempts"]
    assert (first["started_at"], first["reason"]) == (None, "node_lost"), "it was in the middle"
    assert last["node"] == "hoff"


def _arrived(boxes: NodeYard) -> bool:
    """Asked on the node itself: all of it may be there before ssh has an answer."""
    found = boxes.lab.ask("hoff", "sh", "-c", f"find {boxes.lab.directory}/cache -size +1M 2>/dev/null || true")
    return bool(found.strip())
