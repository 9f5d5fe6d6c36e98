"""What would run, as it is printed."""

from __future__ import annotations

from typing import Any

from runyard.cli.show import output, plan_page

PLAN: dict[str, Any] = {
    "argv": ["python", "train.py"], "cwd": "/work", "spec": {}, "site": "cedar", "sites": ["cedar"], "waiting": 0,
    "resources": {"cpus": 1}, "env": {},
    "native": {"commands": ["sbatch job.sh"], "script": "#!/bin/sh\nexec [bold]\n"},
}  # fmt: skip


def test_what_would_run_comes_first_and_then_what_a_scheduler_is_told(capsys) -> None:
    output.writer(False).write(PLAN, lambda console: plan_page.draw(console, PLAN))
    said = capsys.readouterr().out.splitlines()
    assert said[0] == "would run"
    assert said[1].split() == ["command", "python", "train.py"]
    assert said[-5:] == ["", "sbatch job.sh", "", "#!/bin/sh", "exec [bold]"]
