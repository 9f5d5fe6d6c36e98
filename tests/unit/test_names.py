"""A class has a name of its own: who searches for it finds one."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import runyard

SOURCE = Path(runyard.__file__).parent
SHARED = {  # the reason why a name is that of several classes
    "Client": "projects for LudwigCluster import a class of this name, and programs that use runyard do, too",
    "Part": "a part of the agent, and a field that has declared fields of its own: each is the word of its package",
}


def public_classes() -> Iterator[tuple[str, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, str(path.relative_to(SOURCE))


def test_a_public_class_has_a_name_of_its_own() -> None:
    homes = defaultdict(list)
    for name, file in public_classes():
        homes[name].append(file)
    shared = {name: files for name, files in homes.items() if len(files) > 1}
    assert {name: files for name, files in shared.items() if name not in SHARED} == {}
    assert SHARED.keys() <= shared.keys(), "a name that one class has alone needs no reason any more"
