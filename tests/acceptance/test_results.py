"""Results from nodes on which nothing is installed: while their runs go on, and after a cut."""

from __future__ import annotations

from pathlib import Path

from tests.acceptance.test_ssh_nodes import NodeYard


def test_outputs_of_a_node_come_while_its_run_goes_on(nodes: NodeYard, tmp_path: Path) -> None:
    script = "cd $OUTPUT_DIR; echo one >grows; echo ready; while :; do echo more >>busy; sleep 0.05; done"
    run = nodes.running_on("hoff", script)
    fetched = nodes.yard.cli("fetch", str(run.id), "-o", str(tmp_path), timeout=180)
    assert fetched.returncode == 0, fetched.stderr
    assert (tmp_path / "grows").read_text() == "one\n"
    assert nodes.show(run)["state"] == "running"
    run.cancel()
