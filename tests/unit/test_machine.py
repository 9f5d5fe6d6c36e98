from __future__ import annotations

import os
import subprocess
import sys

from runyard import machine


def test_every_process_of_a_user_on_a_machine_computes_the_same() -> None:
    program = "from runyard import machine; print(machine.host_id(), machine.boot_id())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [machine.host_id(), machine.boot_id()]
    assert machine.boot_id()


def test_another_user_is_another_host_id() -> None:
    program = "import os; os.getuid = lambda: 4242; from runyard import machine; print(machine.host_id())"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() != machine.host_id()
    assert os.getuid() != 4242
