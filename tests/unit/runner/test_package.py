"""The copy that travels to compute nodes."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from runyard import runner


def test_a_copy_is_complete_and_named_by_its_content(tmp_path: Path) -> None:
    copy = runner.install(str(tmp_path))
    assert copy == str(tmp_path / f"runner-{runner.digest()}")
    found = {str(path.relative_to(copy)): path.read_bytes() for path in Path(copy).rglob("*") if path.is_file()}
    assert found == runner.files()
    assert "metrics/__init__.py" in found
    assert runner.install(str(tmp_path)) == copy


def test_a_copy_knows_its_own_digest(tmp_path: Path) -> None:
    copy = runner.install(str(tmp_path))
    code = "import importlib.util, sys; spec = importlib.util.spec_from_file_location('copy', sys.argv[1]);"
    code += "copy = importlib.util.module_from_spec(spec); spec.loader.exec_module(copy); print(copy.digest())"
    command = [sys.executable, "-c", code, os.path.join(copy, "__init__.py")]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == runner.digest()


def test_many_may_install_at_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        copies = set(pool.map(lambda _: runner.install(str(tmp_path)), range(32)))
    assert [path.name for path in tmp_path.iterdir()] == [f"runner-{runner.digest()}"]
    assert len(copies) == 1


def test_module_names_in_a_copy_do_not_stand_in_for_others(tmp_path: Path) -> None:
    """An executed directory is on Python's path; `import process` in there must not find ours."""
    copy = runner.install(str(tmp_path))
    probe = "import runpy, sys; sys.argv = [sys.argv[1], 'x', 'y', 'z']\n"
    probe += "try: runpy.run_path(sys.argv[0], run_name='__main__')\nexcept SystemExit: pass\n"
    probe += "print('process' in sys.modules, 'runyard_runner.commands' in sys.modules)"
    command = [sys.executable, "-c", probe, copy]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    assert told.stdout == "False True\n"
