"""A cluster somewhere else: the yard knows nothing of it but its login nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.cluster_yard import ClusterYard
from tests.acceptance.witness import until
from tests.labs.gridengine import GridEngineLab
from tests.labs.slurm import SlurmLab
from tests.labs.sshd import SshLab


class FarYard(ClusterYard):
    def __init__(self, lab: SlurmLab | GridEngineLab, kind: str, logins: SshLab) -> None:
        ways = [word for name in logins.names for word in ("--ssh", name)]
        super().__init__(lab, kind, *ways, "--option", f"ssh_config={logins.configuration}")
        self.logins = logins

    @property
    def env(self) -> dict[str, str]:
        """Without what the cluster's own programs need: they are not to be used from here."""
        return {name: value for name, value in super().env.items() if name not in self.lab.env}


@pytest.fixture(params=["slurm", "gridengine"])
def yard(request: pytest.FixtureRequest, ssh_lab: Callable[..., SshLab]) -> Iterator[FarYard]:
    lab = request.getfixturevalue(f"{request.param}_lab")()
    made = FarYard(lab, request.param, ssh_lab(env=lab.env))
    made.start()
    made.add_site()
    yield made
    made.stop()


def test_a_run_goes_there_and_comes_back_though_connections_are_cut(yard: FarYard) -> None:
    go = yard.home / "go"
    lines = f"i=0; until [ -e {go} ]; do i=$((i + 1)); echo line $i; sleep 0.02; done; echo $i > $OUTPUT_DIR/lines"
    run = yard.submit("--", "bash", "-c", f"{lines}; seq 100000 > $OUTPUT_DIR/numbers; exit 3")
    until(lambda: yard.log(run), timeout=240, what="the first lines")
    for _ in range(3):
        before = yard.log(run)
        for name in yard.logins.names:
            yard.logins.drop_connections(name)
        until(lambda before=before: yard.log(run) != before, timeout=240, what="more lines")
    go.touch()
    shown = yard.ended(run)
    assert (shown["state"], shown["exit_code"], shown["attempt"]) == ("failed", 3, 1), shown
    assert yard.cli("fetch", str(run), "-o", str(yard.home / "out")).returncode == 0
    count = int((yard.home / "out" / "lines").read_text())
    assert yard.log(run) == "".join(f"line {number}\n" for number in range(1, count + 1))
    assert (yard.home / "out" / "numbers").read_text() == "".join(f"{number}\n" for number in range(1, 100_001))


def test_a_login_node_that_is_down_is_not_missed(yard: FarYard) -> None:
    yard.logins.drop_connections("login1")
    yard.logins.kill_sshd("login1")
    assert yard.ended(yard.submit("--", "true"))["state"] == "succeeded"


def test_a_host_key_that_changed_is_told_with_the_fix(yard: FarYard) -> None:
    for name in yard.logins.names:
        yard.logins.change_host_key(name)
    answer = yard.cli("site", "test", "cedar")
    assert answer.returncode != 0
    told = " ".join(answer.stdout.split())
    assert "the host key of login1 has changed" in told
    assert "ssh-keygen" in told
    run = yard.submit("--", "true")
    until(lambda: "has changed" in (yard.show(run)["detail"] or ""), timeout=240, what="the run says what it waits for")
    assert "ssh-keygen" in yard.show(run)["detail"]
    yard.logins.tidy()
    assert yard.ended(run, 300)["state"] == "succeeded", "once the key is known again"
