"""The page that tries the API, in a real browser that reaches nothing but the yard."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.labs.yard import Yard


@pytest.mark.component("chromium")
def test_the_page_works_without_anything_from_outside(yard: Yard, tmp_path: Path) -> None:
    answer = subprocess.run(
        [
            "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
            "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-quic",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", f"--user-data-dir={tmp_path}",
            "--virtual-time-budget=5000", "--dump-dom", f"{yard.url}/api/v1/docs",
        ],
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    page = answer.stdout
    for operation in ("/runs/{id}/cancel", "/agents/sync", "/metrics", "Submit one run, or many in one commit"):
        assert operation in page, "the document was read and drawn"
