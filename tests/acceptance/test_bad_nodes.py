"""A run that one node cannot run goes to another one, on real clusters."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.cluster_yard import SITE, ClusterYard
from tests.labs.accounts import NODE_PYTHON


@pytest.fixture(params=["slurm", "gridengine"])
def yard(request: pytest.FixtureRequest) -> Iterator[ClusterYard]:
    lab = request.getfixturevalue(f"{request.param}_lab")()
    python = lab.directory / "moody-python"
    made = ClusterYard(lab, request.param, "--python", str(python))
    write_moody_python(python, made.home)
    made.start()
    made.add_site()
    yield made
    made.stop()


def write_moody_python(path: Path, home: Path) -> None:
    """It runs no runner on the node that was the first to try."""
    text = f"""\
        #!/bin/sh
        node=${{SLURMD_NODENAME:-$(uname -n)}}
        case " $* " in *" run "*)
            mkdir {home}/tried 2>/dev/null && echo "$node" >{home}/bad
            if [ "$node" = "$(cat {home}/bad)" ]; then echo "python: bad day on $node" >&2; exit 1; fi
        esac
        exec {NODE_PYTHON} "$@"
        """
    path.write_text(textwrap.dedent(text))
    path.chmod(0o755)


def test_a_retry_avoids_the_node_that_failed_it(yard: ClusterYard) -> None:
    spec = yard.home / "run.json"
    rule = {"max": 1, "on": ["launch"]}
    spec.write_text(json.dumps({"command": ["true"], "site": SITE, "retry": rule, "resources": {"memory": "50M"}}))
    spec.chmod(0o644)
    shown = yard.ended(int(yard.cli("submit", "--quiet", "-f", str(spec)).stdout))
    first, second = shown["attempts"]
    bad = (yard.home / "bad").read_text().strip()
    assert (first["node"], first["reason"]) == (bad, "launch"), shown
    assert f"bad day on {bad}" in first["detail"]
    assert (shown["state"], second["node"] != bad) == ("succeeded", True), shown
