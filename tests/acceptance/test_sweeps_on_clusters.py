"""The runs of a sweep go to a cluster as arrays of the scheduler's own."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from tests.acceptance.cluster_yard import SITE, ClusterYard

COUNT = 12
BODY = 'echo "task $RUNYARD_INDEX with $1 and seed $RUNYARD_SEED"'


@pytest.mark.component("slurm")
def test_many_runs_are_one_array(cluster_yard: Callable[..., ClusterYard]) -> None:
    yard = cluster_yard("slurm", accounting=True)
    space = f"lr={','.join(str(number) for number in range(1, COUNT + 1))}"
    command = ["sh", "-c", BODY, "train", "{lr}"]
    done = yard.cli("sweep", "--site", SITE, "--param", space, "--json", "--wait", "--", *command, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(yard.cli("sweep", "table", f"S{json.loads(done.stdout)['id']}", "--runs", "--json").stdout)
    logs = [yard.log(row["run"]).split() for row in rows]
    assert [int(words[1]) for words in logs] == list(range(1, COUNT + 1))
    assert [int(words[3]) for words in logs] == [row["lr"] for row in rows]
    assert [int(words[6]) for words in logs] == [row["seed"] for row in rows]
    natives = [yard.show(row["run"])["attempts"][-1]["native_id"] for row in rows]
    assert len({native.partition("_")[0] for native in natives}) < COUNT / 2, f"{COUNT} runs were {natives}"
