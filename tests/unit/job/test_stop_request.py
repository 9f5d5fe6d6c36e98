"""Whether a run is asked to end, and what it saves then."""

from __future__ import annotations

import os
import signal
import subprocess

import pytest

from tests.unit.job.conftest import Place

HEAD = "import os, signal, sys, time\nfrom runyard import job\nfrom pathlib import Path\n"
WAIT = """
def wait_until(wanted):
    deadline = time.monotonic() + 60
    while not wanted():
        assert time.monotonic() < deadline, "it did not come"
        time.sleep(0.01)
"""
LOOP = "print('ready', flush=True)\nwait_until(job.should_stop)\nprint('asked')\n"


def begun(place: Place, code: str, **env: str) -> subprocess.Popen[str]:
    """A program that has said that it is ready."""
    process = place.start(HEAD + WAIT + code, **env)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n", process.communicate()[1]
    return process


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    said, complained = process.communicate(timeout=120)
    return process.returncode, said, complained


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1])
def test_the_stop_and_the_warning_signal_ask(place: Place, number: signal.Signals) -> None:
    process = begun(place, "job.should_stop()\n" + LOOP)
    process.send_signal(number)
    assert ended(process) == (0, "asked\n", "")


def test_other_signals_do_what_they_always_do(place: Place) -> None:
    process = begun(place, "job.should_stop()\n" + LOOP)
    process.send_signal(signal.SIGUSR2)
    assert ended(process)[0] == -signal.SIGUSR2


def test_a_handler_of_the_program_stays(place: Place) -> None:
    code = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(7))\njob.should_stop()\n" + LOOP
    process = begun(place, code)
    process.send_signal(signal.SIGTERM)
    assert ended(process)[:2] == (7, "")


def test_signals_that_were_ignored_for_a_runner_are_heard(place: Place) -> None:
    code = "signal.signal(signal.SIGUSR1, signal.SIG_IGN)\njob.should_stop()\n" + LOOP
    process = begun(place, code)
    process.send_signal(signal.SIGUSR1)
    assert ended(process)[:2] == (0, "asked\n")


@pytest.mark.parametrize(
    ("name", "text"),
    [("control.json", '{"stop": {"reason": "early_stop", "grace": 10}}'), ("status.json", '{"ending": "timeout"}')],
)
def test_the_files_ask_too_in_any_thread(place: Place, name: str, text: str) -> None:
    """No signal reaches a thread, or the processes that a launcher started."""
    threaded = (
        "import threading\nthread = threading.Thread(target=lambda: (wait_until(job.should_stop), print('asked')))\n"
    )
    process = begun(place, threaded + "thread.start()\nprint('ready', flush=True)\nthread.join()\n")
    (place.directory / name).write_text('{"permit": {"until": 1}, "ending": null}')
    (place.directory / "draft").write_text(text)
    (place.directory / "draft").replace(place.directory / name)
    assert ended(process) == (0, "asked\n", "")


@pytest.mark.parametrize("text", ["", "[]", '{"stop"', '{"stop": null, "ending": null}', "\udcff"])
def test_half_a_file_asks_nothing(place: Place, text: str) -> None:
    for name in ("control.json", "status.json"):
        (place.directory / name).write_text(text, errors="surrogateescape")
    said, _ = place.run(HEAD + "print(job.should_stop())")
    assert said == "False\n"


def test_looking_is_rare(place: Place) -> None:
    """A loop of a million steps would else spend its time in the file system."""
    code = "looks = []\nreal = os.stat\nos.stat = lambda *given, **more: looks.append(1) or real(*given, **more)\n"
    code += "for _ in range(1000): job.should_stop()\nprint(len(looks) < 100)"
    assert place.run(HEAD + code)[0] == "True\n"


def test_children_die_of_signals_as_ever(place: Place) -> None:
    """Pools end their workers by SIGTERM, and wait for that."""
    code = """
job.should_stop()
child = os.fork()
if child == 0:
    time.sleep(60)
os.kill(child, signal.SIGTERM)
print(os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM)
"""
    assert place.run(HEAD + code)[0] == "True\n"


SAVE = """
steps = 0
def save(directory):
    (directory / "last").write_text("%d" % steps)
    print("saved", flush=True)
"""


def test_a_loop_that_asks_is_saved_where_it_asks(place: Place) -> None:
    """The state is whole there: here it is not, between two steps."""
    code = (
        SAVE
        + """
with job.checkpointing(save) as ckpt:
    job.should_stop()
    steps = -1
    print("ready", flush=True)
    wait_until(lambda: Path("sent").exists())
    for _ in range(10): time.sleep(0.01)  # the handler has run by now
    steps = 5
    assert job.should_stop()
    assert job.should_stop()
print(ckpt.resume_from, ckpt.directory.name)
"""
    )
    process = begun(place, code)
    process.send_signal(signal.SIGUSR1)
    (place.directory / "sent").touch()
    assert ended(process) == (0, "saved\nNone kept\n", "")
    assert (place.directory / "kept" / "last").read_text() == "5"


def test_a_program_that_never_asks_is_saved_at_once_and_ends(place: Place) -> None:
    code = SAVE + "with job.checkpointing(save):\n    print('ready', flush=True)\n    time.sleep(60)\n    print('no')\n"
    process = begun(place, code)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (128 + signal.SIGTERM, "saved\n", "")
    assert (place.directory / "kept" / "last").exists()


def test_a_handler_of_the_program_hears_it_after_the_save(place: Place) -> None:
    code = (
        SAVE
        + """
signal.signal(signal.SIGUSR1, lambda *_: print("mine", flush=True))
with job.checkpointing(save):
    print("ready", flush=True)
    wait_until(lambda: Path("kept/last").exists())
print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL)
"""
    )
    process = begun(place, code)
    process.send_signal(signal.SIGUSR1)
    assert ended(process) == (0, "saved\nmine\nTrue\n", "")


def test_a_warning_between_the_last_step_and_the_end_is_met(place: Place) -> None:
    code = (
        SAVE
        + """
job.should_stop()
with job.checkpointing(save):
    os.kill(os.getpid(), signal.SIGUSR1)
"""
    )
    assert place.run(HEAD + code)[0] == "saved\n"


def test_nothing_is_saved_after_an_error(place: Place) -> None:
    code = (
        SAVE + "job.should_stop()\nwith job.checkpointing(save):\n    os.kill(os.getpid(), signal.SIGUSR1)\n    1 / 0\n"
    )
    assert "ZeroDivisionError" in place.run(HEAD + code, code_wanted=1)[1]
    assert not (place.directory / "kept" / "last").exists()


@pytest.mark.parametrize("save", ["lambda: print('saved')", "lambda kept=3: print('saved' if kept == 3 else kept)"])
def test_a_save_that_takes_nothing_is_given_nothing(place: Place, save: str) -> None:
    assert place.run(HEAD + f"with job.checkpointing({save}) as ckpt: ckpt.save()")[0] == "saved\n"


def test_what_to_go_on_from_is_a_path(place: Place) -> None:
    code = "with job.checkpointing(print) as ckpt: print(repr(ckpt.resume_from))"
    assert place.run(HEAD + code, RUNYARD_RESUME="/kept")[0] == "PosixPath('/kept')\n"


def test_outside_of_a_run_signals_are_left_alone(place: Place) -> None:
    code = "with job.checkpointing(print) as ckpt:\n    job.should_stop()\n"
    code += "    print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, ckpt.directory, ckpt.resume_from)"
    assert place.outside(HEAD + code) == "True checkpoints None\n"
    assert os.listdir(place.directory) == ["checkpoints"]
