from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

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


MOUNTS = r"""22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 22 0:40 / /home rw,relatime shared:5 - nfs4 server:/home rw
31 22 0:41 / /home/local\040disk rw,relatime - xfs /dev/sdb rw
32 22 0:42 / /mnt/share rw - fuse.sshfs me@there: rw
33 22 0:43 / /mnt/late rw - nfs server:/a rw
34 22 0:44 / /mnt/late rw - ext4 /dev/sdc rw
"""


@pytest.mark.parametrize(
    ("path", "network"),
    [
        ("/var/lib", False),
        ("/home/me/.local/share/runyard", True),
        ("/home", True),
        ("/homes", False),
        ("/home/local disk/x", False),
        ("/mnt/share/x", True),
        ("/mnt/late", False),
    ],
)
def test_network_file_systems_are_known(tmp_path: Path, path: str, network: bool) -> None:
    mountinfo = tmp_path / "mountinfo"
    mountinfo.write_text(MOUNTS)
    assert machine.is_network_filesystem(path, mountinfo) is network
