"""Ways in which a run ends on a real cluster: what is done, when the scheduler knows it, and what is told of it.

One table for yards that run all the time (test_cluster_endings.py) and for those that only cron drives
(test_cron_endings.py). Here is what both schedulers have; what only one of them has is in endings_on_slurm.py and
endings_on_gridengine.py.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.acceptance.cluster_yard import ClusterYard, OnCluster
from tests.acceptance.witness import until
from tests.labs.accounts import NODE_PYTHON
from tests.labs.gridengine import GridEngineLab
from tests.labs.slurm import SlurmLab

LONG = 15  # seconds: longer than the time between two looks at the queue
ALLOCATES = "import time; x = bytearray(300 << 20); time.sleep(60)"
SLURM_LIVES = ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED")

Cause = Callable[[int, str], object]
Known = Callable[[str], bool]
Outcome = tuple[str, str | None]


def nothing(run: int, native: str) -> None:
    """It ends by itself."""


@dataclass(frozen=True, kw_only=True)
class Ending:
    """
    spec      of the run
    outcome   of its first attempt: state and reason
    code      its exit code, where the process has one to tell
    told      what the detail is like; None: nothing is told
    cause     brings it about, once the run has begun; gets its number and its native id
    known     whether the scheduler knows it
    begins    False: it is held in the queue; None: nobody waits for its begin
    outlives  what the scheduler knows is not its end yet: that comes with this
    site      words for `site edit` while it is handed over, and those that undo them
    """

    spec: dict[str, Any]
    outcome: Outcome
    told: str | None
    known: Known
    code: int | None = None
    cause: Cause = nothing
    begins: bool | None = True
    outlives: Callable[[], None] | None = None
    site: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    def complaint(self, shown: dict[str, Any]) -> object:
        """Of a run as `show` has it: what is not as it should be, if anything."""
        first = shown["attempts"][0]
        found, whole = (first["outcome"], first["reason"]), (shown["state"], shown["reason"])
        is_told = not first["detail"] if self.told is None else re.search(self.told, first["detail"] or "")
        is_right = found == self.outcome and self.code in (None, first["exit_code"])
        if is_told and is_right and (len(shown["attempts"]) > 1 or whole == found):
            return None
        wanted = (self.outcome, self.code, self.told)
        return {"wanted": wanted, "attempt": (found, first["exit_code"], first["detail"]), "run": whole}


Build = Callable[[OnCluster], Ending]
Table = dict[str, Build]
BOTH: Table = {}


def called(name: str, table: Table) -> Callable[[Build], Build]:
    def enter(build: Build) -> Build:
        table[name] = build
        return build

    return enter


# --- by a yard that runs ----------------------------------------------------------------------------------------------


def told(yard: ClusterYard, ending: Ending) -> dict[str, Any]:
    """The run, as it is shown within a minute of the scheduler knowing its end."""
    run = _hand_over(yard, ending)
    if ending.begins is None:
        return yard.ended(run)
    native = yard.started(run) if ending.begins else yard.queued(run)
    ending.cause(run, native)
    if ending.outlives is None:
        return yard.told(run, lambda: ending.known(native))
    until(lambda: ending.known(native), timeout=150, what="what it outlives")
    ending.outlives()
    return yard.ended(run)


def check(yard: ClusterYard, ending: Ending) -> dict[str, Any]:
    shown = told(yard, ending)
    assert ending.complaint(shown) is None
    return shown


def _hand_over(yard: ClusterYard, ending: Ending) -> int:
    before, after = ending.site
    if not before:
        return yard.hand_in(ending.spec)[0]
    yard.edit_site(*before)
    try:
        [run] = yard.hand_in(ending.spec)
        yard.queued(run)
    finally:
        yard.edit_site(*after)
    return run


# --- what both schedulers are asked -----------------------------------------------------------------------------------


def slurm(yard: OnCluster) -> SlurmLab:
    assert isinstance(yard.lab, SlurmLab)
    return yard.lab


def engine(yard: OnCluster) -> GridEngineLab:
    assert isinstance(yard.lab, GridEngineLab)
    return yard.lab


def on_slurm(yard: OnCluster) -> bool:
    return isinstance(yard.lab, SlurmLab)


def is_over(yard: OnCluster) -> Known:
    """Whether the scheduler itself knows that the job has ended."""
    if on_slurm(yard):
        return lambda native: slurm(yard).job(native).get("JobState") not in SLURM_LIVES
    return lambda native: not engine(yard).state(native)


def held(yard: OnCluster) -> dict[str, str]:
    return {"hold": ""} if on_slurm(yard) else {"h": ""}


def release(yard: OnCluster, native: str) -> None:
    yard.lab.ask(*(["scontrol", "release"] if on_slurm(yard) else ["qrls"]), native)


def delete(yard: OnCluster, native: str) -> None:
    yard.lab.ask("scancel" if on_slurm(yard) else "qdel", native)


def cancel(yard: OnCluster) -> Cause:
    def ask(run: int, native: str) -> None:
        answer = yard.cli("cancel", "--no-wait", str(run))
        assert answer.returncode == 0, answer.stderr

    return ask


def shell(body: str) -> dict[str, Any]:
    return {"command": ["sh", "-c", body]}


def begin_nowhere(yard: OnCluster, native: str, known: Known) -> None:
    """The directory of its batch is away when it is to begin."""
    place, away = yard.batch_directory(native), yard.home / f"away-{secrets.token_hex(4)}"
    place.rename(away)
    release(yard, native)
    until(lambda: known(native), timeout=120, what="the scheduler knows that it cannot begin")
    away.rename(place)


class Gate:
    """What a run waits for before it goes on."""

    def __init__(self, yard: OnCluster) -> None:
        self._path = yard.home / f"go-{secrets.token_hex(4)}"
        self.wait = f"until [ -e {self._path} ]; do sleep 0.2; done"

    def open(self, *_: object) -> None:
        self._path.touch()


# --- both -------------------------------------------------------------------------------------------------------------


def _by_itself(yard: OnCluster, last: str, outcome: Outcome, code: int, told: str | None) -> Ending:
    gate = Gate(yard)
    spec = shell(f"{gate.wait}; {last}")
    return Ending(spec=spec, outcome=outcome, code=code, told=told, known=is_over(yard), cause=gate.open)


@called("success", BOTH)
def success(yard: OnCluster) -> Ending:
    return _by_itself(yard, f"sleep {LONG}; exit 0", ("succeeded", None), 0, None)


@called("an exit code", BOTH)
def exit_code(yard: OnCluster) -> Ending:
    return _by_itself(yard, f"sleep {LONG}; exit 3", ("failed", "error"), 3, "^exited with 3$")


@called("a signal", BOTH)
def a_signal(yard: OnCluster) -> Ending:
    return _by_itself(yard, "kill -SEGV $$", ("failed", "error"), 139, "^killed by SIGSEGV$")


@called("too much memory", BOTH)
def too_much_memory(yard: OnCluster) -> Ending:
    spec = {"command": [NODE_PYTHON, "-c", ALLOCATES], "resources": {"memory": "60M"}}
    told = r"used [\d.]+ MB of the 60.0 MB granted"
    return Ending(spec=spec, outcome=("failed", "oom"), told=told, known=is_over(yard), begins=None)


@called("too much time", BOTH)
def too_much_time(yard: OnCluster) -> Ending:
    """Of a process that does not want to end."""
    spec = {**shell("trap '' TERM; while :; do sleep 1; done"), "resources": {"time": "20s"}}
    told = "its time limit of 20 seconds"
    return Ending(spec=spec, outcome=("failed", "timeout"), told=told, known=is_over(yard))


@called("cancelled by runyard", BOTH)
def cancelled(yard: OnCluster) -> Ending:
    return Ending(
        spec={"command": ["sleep", "300"]}, outcome=("cancelled", "user"), told=r"^stopped after [\dms.]+$",
        known=is_over(yard), cause=cancel(yard),
    )  # fmt: skip


@called("cancelled by runyard while it waits", BOTH)
def cancelled_while_it_waits(yard: OnCluster) -> Ending:
    return Ending(
        spec={"command": ["sleep", "300"], "options": held(yard)}, outcome=("cancelled", "user"),
        told="^it was stopped before it began$", known=is_over(yard), cause=cancel(yard), begins=False,
    )  # fmt: skip


@called("deleted by somebody else", BOTH)
def deleted(yard: OnCluster) -> Ending:
    """qdel kills at once, and the runner with it."""
    return Ending(
        spec={"command": ["sleep", "300"]}, outcome=("cancelled", "external"),
        told=r"(Slurm: CANCELLED|exit status 137).*(after|ran for) [\dms.]+", known=is_over(yard),
        cause=lambda run, native: delete(yard, native),
    )  # fmt: skip


@called("deleted by somebody else while it waits", BOTH)
def deleted_while_it_waits(yard: OnCluster) -> Ending:
    return Ending(
        spec={"command": ["sleep", "300"], "options": held(yard)}, outcome=("cancelled", "external"),
        told="Slurm: CANCELLED|deleted from Grid Engine's queue before it began", known=is_over(yard),
        cause=lambda run, native: delete(yard, native), begins=False,
    )  # fmt: skip


@called("no interpreter", BOTH)
def no_interpreter(yard: OnCluster) -> Ending:
    """It goes while the job waits; the site has another one by then."""
    python = yard.home / f"python-{secrets.token_hex(4)}"
    python.symlink_to(NODE_PYTHON)

    def lose(run: int, native: str) -> None:
        python.unlink()
        release(yard, native)

    return Ending(
        spec={"command": ["true"], "options": held(yard)}, outcome=("failed", "launch"),
        told=re.escape(f"has no interpreter {python}; name one with: runyard site edit --python PATH"),
        known=is_over(yard), cause=lose, begins=False,
        site=(("--python", str(python)), ("--python", NODE_PYTHON)),
    )  # fmt: skip


@called("no such program", BOTH)
def no_such_program(yard: OnCluster) -> Ending:
    return Ending(
        spec={"command": ["/no/such/program"]}, outcome=("failed", "launch"),
        told="^no such program: /no/such/program$", known=is_over(yard), begins=None,
    )  # fmt: skip


@called("no such working directory", BOTH)
def no_such_place(yard: OnCluster) -> Ending:
    return Ending(
        spec={"command": ["true"], "cwd": "/no/such/place"}, outcome=("failed", "launch"),
        told="^no such working directory: /no/such/place$", known=is_over(yard), begins=None,
    )  # fmt: skip


@called("a runner that is killed", BOTH)
def killed_runner(yard: OnCluster) -> Ending:
    """Nobody is left to say why: what the scheduler knows is all there is. Slurm tells a cancel from a script that
    died; the accounts of Grid Engine have the same words for this as for a qdel, and so it is taken for one."""
    gate = Gate(yard)
    outcome, told = ("failed", "lost"), r"^Slurm: FAILED.*\d"
    if not on_slurm(yard):
        outcome, told = ("cancelled", "external"), r"^Grid Engine: failed 100: .*exit status 137"
    spec = shell(f"{gate.wait}; kill -9 $PPID; sleep 300")
    return Ending(spec=spec, outcome=outcome, told=told, known=is_over(yard), cause=gate.open)


def restarted(yard: OnCluster) -> Ending:
    """A scheduler that is killed and comes back disturbs no run."""
    gate = Gate(yard)

    def restart(run: int, native: str) -> None:
        if on_slurm(yard):
            slurm(yard).until_saved(native)
            slurm(yard).restart_controller(kill9=True)
        else:
            engine(yard).restart_qmaster(kill9=True)

    return Ending(
        spec=shell(f"{gate.wait}; exit 4"), outcome=("failed", "error"), code=4, told="^exited with 4$",
        known=lambda native: True, cause=restart, outlives=gate.open,
    )  # fmt: skip


def deaf(yard: OnCluster) -> Ending:
    """Cancelled by runyard, and its runner sleeps: after half a minute the scheduler is asked to end it."""
    return Ending(
        spec=shell("kill -STOP $PPID; sleep 600"), outcome=("cancelled", "user"), told=r"\d", known=is_over(yard),
        cause=cancel(yard),
    )  # fmt: skip


@called("refused", BOTH)
def refused(yard: OnCluster) -> Ending:
    """Its end is known when it is handed over."""
    options, told = {"partition": "nosuch"}, "Invalid partition name specified"
    if not on_slurm(yard):
        options, told = {"queue": "nosuch"}, 'unknown queue "nosuch"'
    spec = {"command": ["true"], "options": options, "retry": 2}
    return Ending(spec=spec, outcome=("failed", "rejected"), told=told, known=lambda native: True, begins=None)
