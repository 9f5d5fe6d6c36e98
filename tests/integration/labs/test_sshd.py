"""The login nodes of the SSH lab, and what goes wrong with them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable

import pytest

from tests.integration.labs.processes import alive
from tests.labs.gridengine import GridEngineLab
from tests.labs.slurm import SlurmLab
from tests.labs.sshd import SshLab
from tests.labs.waiting import until

pytestmark = pytest.mark.long


@pytest.fixture
def lab(ssh_lab: Callable[..., SshLab]) -> SshLab:
    return ssh_lab()


def test_two_login_nodes(lab: SshLab) -> None:
    for name in lab.names:
        done = lab.run(name, "sh", "-c", "echo $RUNYARD_LAB_NODE; id --user; exit 3")
        assert (done.stdout, done.returncode) == (f"{name}\n{lab.user.uid}\n", 3)


def test_root_may_use_the_same_files(lab: SshLab) -> None:
    done = subprocess.run(lab.command("login1", "id", "--user"), capture_output=True, text=True, timeout=90)
    assert done.stdout == f"{lab.user.uid}\n"


def test_slurm_commands_through_ssh(slurm_lab: Callable[..., SlurmLab], ssh_lab: Callable[..., SshLab]) -> None:
    cluster = slurm_lab()
    said = ssh_lab(env=cluster.env).run("login1", "sinfo", "-h", "-o", "%D").stdout
    assert said == "3\n"


def test_gridengine_commands_through_ssh(
    gridengine_lab: Callable[..., GridEngineLab], ssh_lab: Callable[..., SshLab]
) -> None:
    cluster = gridengine_lab()
    done = ssh_lab(env=cluster.env).run("login2", "qsub", "-terse", "-h", "-b", "y", "true")
    assert done.stdout.strip().isdigit()


def test_a_dead_sshd_refuses_and_comes_back(lab: SshLab) -> None:
    lab.kill_sshd("login1")
    assert "Connection refused" in lab.run("login1", "true").stderr
    assert lab.run("login2", "true").returncode == 0
    lab.start_sshd("login1")
    assert lab.run("login1", "true").returncode == 0


def test_a_changed_host_key_is_noticed(lab: SshLab) -> None:
    lab.change_host_key("login1")
    done = lab.run("login1", "true")
    assert (done.returncode, "REMOTE HOST IDENTIFICATION HAS CHANGED" in done.stderr) == (255, True)
    lab.tidy()
    assert lab.run("login1", "true").returncode == 0


def test_a_dropped_connection_leaves_the_remote_command(lab: SshLab) -> None:
    command = lab.command("login2", "sh", "-c", "echo $$; exec sleep 600")
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as client:
        assert client.stdout
        pid = int(client.stdout.readline())
        assert lab.drop_connections("login2")
        assert client.wait(90) == 255
    assert alive(pid)
    until(lambda: lab.run("login2", "kill", str(pid)).returncode == 0, "the remote command ended")
