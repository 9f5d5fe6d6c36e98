"""Somebody with a jailed SFTP account and nothing else hands in runs, sees how they are doing and has the results."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance import doomed
from tests.acceptance.pool import SITE, Pool
from tests.acceptance.witness import Witness, until
from tests.labs import commands
from tests.labs.jail import JailLab
from tests.labs.yard import Yard

pytestmark = [pytest.mark.component("sshd"), pytest.mark.component("root"), pytest.mark.component("git")]

SPOOL = "runyard.agent.spool"
STEPS = [
    f"{SPOOL}.taking:Taking._has_settled:before",
    f"{SPOOL}.link:HttpSpoolLink.missing_blobs:after",
    f"{SPOOL}.link:HttpSpoolLink.put_blob:after",
    f"{SPOOL}.notes:Notes.keep:after",
    f"{SPOOL}.link:HttpSpoolLink.hand_in:before",
    f"{SPOOL}.link:HttpSpoolLink.hand_in:after",
    f"{SPOOL}.link:HttpSpoolLink.look:after",
    f"{SPOOL}.shelf:Shelf.add_to_log:after",
    f"{SPOOL}.shelf:Shelf.write_state:after",
    f"{SPOOL}.following:Following.bring_outputs:before",
    f"{SPOOL}.shelf:Outputs.write:after",
    f"{SPOOL}.following:Following.bring_outputs:after",
]
ODD = 'a "b" [c]* \\ ü.txt'  # what means something to sftp
TRAIN = """
import os, pathlib, sys
print("reading", open("corpora/a.txt").read().strip(), flush=True)
out = pathlib.Path(os.environ["OUTPUT_DIR"], "models")
out.mkdir()
(out / "best.txt").write_text("42")
(out / sys.argv[1]).write_text(pathlib.Path("corpora", sys.argv[1]).read_text())
"""


class Person:
    """Who has the jailed account, and runyard's client on an own machine: no home of a yard, no token."""

    def __init__(self, lab: JailLab, directory: Path) -> None:
        self.lab, self.project = lab, directory / "project"
        self.project.mkdir()
        found = {name: value for name, value in os.environ.items() if not name.startswith("RUNYARD_")}
        self.env = found | {
            "RUNYARD_HOME": str(directory / "no-home"),
            "XDG_CACHE_HOME": str(directory / "cache"),
            "PATH": f"{lab.programs}{os.pathsep}{os.environ['PATH']}",
        }

    def cli(self, *words: str, via: str | None = None) -> subprocess.CompletedProcess[str]:
        verb, *rest = words
        asked = [verb, "--via", via or self.lab.url, *rest]
        return commands.run(asked, env=self.env, cwd=self.project, timeout=240)

    def said(self, *words: str) -> str:
        done = self.cli(*words)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def submit(self, *words: str) -> str:
        return self.said("submit", "-q", *words).strip()

    def state(self, bundle: str) -> dict[str, Any]:
        (found,) = [state for state in json.loads(self.said("ls", "--json")) if state["bundle"] == bundle]
        return dict(found)

    def wait(self, bundle: str, *states: str) -> dict[str, Any]:
        until(lambda: self.state(bundle)["state"] in states, timeout=240, what=f"{bundle}: {states}")
        return self.state(bundle)

    def git(self, *words: str) -> None:
        own = ["git", "-c", "user.name=P", "-c", "user.email=p@example.org", *words]
        subprocess.run(own, cwd=self.project, check=True, capture_output=True)


@pytest.fixture
def jail(borrow: Callable[..., JailLab]) -> JailLab:
    return borrow("jail", JailLab)


@pytest.fixture
def person(jail: JailLab, tmp_path: Path) -> Person:
    return Person(jail, tmp_path)


@pytest.fixture
def yard(make_yard: Callable[..., Yard]) -> Yard:
    return make_yard(local_site="off", spool_sites=SITE)


@pytest.fixture
def pool(yard: Yard) -> Pool:
    return Pool(yard)


@pytest.fixture
def agent(pool: Pool, jail: JailLab) -> Iterator[None]:
    with pool.agent("box", "--spool", str(jail.incoming)):
        yield


@pytest.mark.usefixtures("agent")
def test_code_data_log_and_results_through_the_jail(person: Person, yard: Yard) -> None:
    project = person.project
    (project / "corpora").mkdir()
    (project / "corpora" / "a.txt").write_text("words")
    (project / "corpora" / ODD).write_text("more")
    (project / "train.py").write_text("raise SystemExit('the older one')")
    person.git("init")
    person.git("add", ".")
    person.git("commit", "-m", "one")
    (project / "train.py").write_text(TRAIN)
    (project / "train.py").chmod(0o600)
    (project / "latest").symlink_to("train.py")
    bundle = person.submit("--name", "first try", "--data", "corpora", "--", "python3", "latest", ODD)
    (project / "train.py").write_text("raise SystemExit('edited later')")

    state = person.wait(bundle, "succeeded", "failed", "refused")

    sent = person.lab.incoming / f"{bundle}.run" / "code" / "train.py"
    assert sent.stat().st_mode & 0o777 == 0o644, "an agent with an account of its own could not read it"
    assert (state["state"], state["exit_code"], state["site"]) == ("succeeded", 0, SITE), state
    assert state["owner"] == person.lab.user.name
    assert person.said("logs", bundle) == "reading words\n"
    assert person.said("logs", bundle, "-f") == "reading words\n"
    person.said("fetch", bundle, "-o", "results")
    person.said("fetch", bundle, "-o", "results")
    assert (project / "results" / "models" / "best.txt").read_text() == "42"
    assert (project / "results" / "models" / ODD).read_text() == "more"
    run = yard.client().run(state["id"])
    assert run.owner == person.lab.user.name
    assert run.spec["code"]["git"]["dirty"]


@pytest.mark.usefixtures("agent")
def test_a_bundle_made_by_hand(person: Person, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    (bundle / "code").mkdir(parents=True)
    (bundle / "code" / "hello.sh").write_text("echo hello; sleep 600\n")
    (bundle / "run.json").write_text(json.dumps({"command": ["sh", "hello.sh"]}))
    (tmp_path / "empty").touch()
    person.lab.sftp(f"put -r {bundle} incoming/.mine.part", "rename incoming/.mine.part incoming/mine.run")
    person.wait("mine", "running")
    until(lambda: person.said("logs", "mine") == "hello\n", what="the live log")
    early = person.cli("fetch", "mine")
    assert (early.returncode, "mine is running" in early.stderr) == (1, True), early.stderr
    person.lab.sftp(f"put {tmp_path}/empty incoming/mine.cancel")
    state = person.wait("mine", "cancelled")
    assert state["reason"] == "user"
    person.lab.sftp("rm incoming/mine.run/code/*", "rmdir incoming/mine.run/code", "rm incoming/mine.run/run.json")
    person.lab.sftp("rmdir incoming/mine.run")
    until(lambda: json.loads(person.said("ls", "--json")) == [], what="its state removed")


@pytest.mark.usefixtures("agent")
def test_cancel_from_the_client_and_two_at_once(person: Person) -> None:
    first = person.submit("--no-code", "--", "sleep", "600")
    second = person.submit("--no-code", "--", "true")
    person.wait(first, "running")
    person.said("cancel", first)
    person.wait(first, "cancelled")
    assert person.wait(second, "succeeded")["id"] == person.state(first)["id"] + 1
    assert first in person.said("ls")


@pytest.mark.usefixtures("agent")
def test_what_is_refused_is_told_once_and_others_go_on(person: Person, yard: Yard) -> None:
    box = person.lab.incoming
    for name, make in {
        "link": lambda place: (place / "code").symlink_to("/etc"),
        "device": lambda place: os.mknod(place / "code", 0o600 | 0o020000, os.makedev(1, 8)),
        "half": lambda place: (place / "run.json").unlink(),
        "absolute": lambda place: (place / "run.json").write_text('{"command": ["true"], "cwd": "/etc"}'),
    }.items():
        place = box / f".{name}.part"
        place.mkdir()
        (place / "run.json").write_text('{"command": ["true"]}')
        make(place)
        for path in (place, *place.iterdir()):
            os.chown(path, person.lab.user.uid, person.lab.user.gid, follow_symlinks=False)
        place.rename(box / f"{name}.run")
    good = person.submit("--no-code", "--", "true")
    person.wait(good, "succeeded")
    told = {name: person.wait(name, "refused")["detail"] for name in ("link", "device", "half", "absolute")}
    assert "code is a symbolic link" in told["link"]
    assert "code is a device" in told["device"]
    assert "it has no run.json" in told["half"]
    assert "cwd cannot be set from a drop box" in told["absolute"]
    assert [run.id for run in yard.client().runs()] == [person.state(good)["id"]]


def test_a_folder_that_the_yard_itself_looks_into(
    make_yard: Callable[..., Yard], person: Person, tmp_path: Path
) -> None:
    """As with a shared drive, or a disk that is carried over."""
    box = tmp_path / "box"
    box.mkdir()
    yard = make_yard(spool=box)
    (person.project / "train.sh").write_text("echo $1; echo $1 > $OUTPUT_DIR/said\n")
    done = person.cli("submit", "-q", "--code", ".", "--", "sh", "train.sh", "hello", via=str(box))
    assert done.returncode == 0, done.stderr
    bundle = done.stdout.strip()
    until(lambda: '"succeeded"' in person.cli("ls", "--json", via=str(box)).stdout, timeout=120, what="its end")
    assert person.cli("logs", bundle, via=f"file://{box}").stdout == "hello\n"
    fetched = person.cli("fetch", "-q", bundle, via=str(box))
    assert (person.project / fetched.stdout.strip()).read_text() == "hello\n", fetched.stderr
    assert [run.site for run in yard.client().runs()] == ["local"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["submit", "--wait", "--", "true"], "--wait needs a yard"),
        (["submit", "--cwd", "/etc", "--", "true"], "cwd cannot be set from a drop box"),
        (["submit", "--data", "/etc", "--", "true"], "'/etc' is a path of the site"),
        (["logs"], "no bundle was named"),
        (["logs", "none"], "has no bundle none"),
        (["fetch", "../x"], "is not a valid name"),
        (["cancel", "none"], "has no bundle none"),
        (["ls", "--state", "queued"], "--state needs a yard"),
    ],
)
def test_what_the_client_refuses(person: Person, words: list[str], sentence: str) -> None:
    done = person.cli(*words)
    assert done.returncode != 0
    assert sentence in done.stderr
    assert list(person.lab.incoming.iterdir()) == []


@pytest.mark.parametrize("via", ["sftp://", "sftp://-oProxyCommand=x/y", "sftp://box:port/x", "ftp://x/y", "/none"])
def test_places_that_are_none(person: Person, via: str) -> None:
    done = person.cli("ls", via=via)
    assert (done.returncode, "--via: " in done.stderr) == (2, True), done.stderr


def test_a_drop_box_that_is_not_there(person: Person) -> None:
    done = person.cli("submit", "--no-code", "--", "true", via="sftp://box/elsewhere")
    assert done.returncode == 1
    assert "sftp://box/elsewhere" in done.stderr


def test_a_site_that_nobody_allowed_waits_and_says_so(make_yard: Callable[..., Yard], person: Person) -> None:
    pool = Pool(make_yard(local_site="off"))
    with pool.agent("box", "--spool", str(person.lab.incoming)):
        bundle = person.submit("--no-code", "--", "true")
        until(lambda: "spool_sites" in (person.state(bundle)["detail"] or ""), timeout=120, what="the reason")
        assert person.state(bundle)["state"] == "waiting"


def test_a_drop_box_in_which_everybody_can_rename_is_refused(pool: Pool, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pool.agent("box", "--spool", str(tmp_path)) as process:
        assert process.wait(240) != 0
    assert f"every user can rename bundles of others in {tmp_path}" in pool.log("box")


@pytest.mark.long
def test_kill_9_of_the_agent_at_each_step(person: Person, pool: Pool, yard: Yard, tmp_path: Path) -> None:
    """Each time one more bundle is handed in; each becomes one run, and all of them end with log and results."""
    witness, box = Witness(tmp_path), str(person.lab.incoming)
    body = witness.command("echo one; echo $RUNYARD_RUN_ID > $OUTPUT_DIR/number")
    (person.project / "code.txt").write_text("code")
    bundles = []
    for number, step in enumerate(STEPS):
        bundles.append(person.submit("--code", "code.txt", "-e", f"NUMBER={number}", "--", *body))
        (person.project / "code.txt").write_text(f"code {number}")
        _until_killed_at(pool, step, box)
    with pool.agent("box", "--spool", box):
        states = [person.wait(bundle, "succeeded", "failed", "refused") for bundle in bundles]
    ids = [state["id"] for state in states]
    assert [state["state"] for state in states] == ["succeeded"] * len(STEPS), states
    assert sorted(run.id for run in yard.client().runs()) == sorted(set(ids)) == sorted(ids)
    assert witness.count("start") == witness.count("end") == dict.fromkeys(ids, 1)
    for bundle, run in zip(bundles, ids, strict=True):
        assert person.said("logs", bundle) == "one\n"
        person.said("fetch", bundle, "-o", f"results-{run}")
        assert (person.project / f"results-{run}" / "number").read_text() == f"{run}\n"


def _until_killed_at(pool: Pool, step: str, box: str) -> None:
    note = pool.home("box") / "died"
    note.unlink(missing_ok=True)
    program = ["-c", Path(doomed.__file__).read_text(), step, str(note)]
    with contextlib.suppress(subprocess.TimeoutExpired), pool.agent("box", "--spool", box, program=program) as process:
        process.wait(240)
    assert note.exists(), f"it ended before it came to {step}:\n{pool.log('box')}"
