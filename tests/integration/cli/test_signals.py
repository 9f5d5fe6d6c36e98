"""Ctrl-C, also pressed again and again, ends what waits for it."""

from __future__ import annotations

import subprocess
import sys

# Signals from another process, which waits for no lock of ours, until it is told that it is enough.
PRESS = "import os, sys\nwhile True: os.kill(int(sys.argv[1]), 2)"
PROGRAM = f"""
import os, signal, subprocess, sys
from runyard.app.agent import stopped_by_signals

signal.signal(signal.SIGINT, lambda number, frame: None)
pressing = subprocess.Popen([sys.executable, "-c", {PRESS!r}, str(os.getpid())])
with stopped_by_signals() as stop:
    while not stop.is_set():
        stop.wait(0.00001)
    for _ in range(100_000):
        stop.wait(0.00001)
    assert stop.is_set()
pressing.kill()
pressing.wait()
print("stopped")
"""


def test_signals_that_come_again_and_again_block_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "stopped\n"), done.stderr
