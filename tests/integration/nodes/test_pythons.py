"""Python environments on a node that is reached by ssh only."""

from __future__ import annotations

from typing import Any

from runyard import pythons
from runyard.backends.ssh import SshBackend
from runyard.hosts.ssh import SshHost
from runyard.testing.backend_contract import until
from tests.labs.accounts import NODE_PYTHON
from tests.labs.nodes import NodeLab


def asking(host: SshHost, site: str, ask: dict[str, Any], build: str) -> dict[str, Any]:
    package = f"{site}/pythons"
    host.install(package, pythons.files())
    asked = {"attempts": ["1-a1"], "build": build, "inherit": True, "explicit": False, **ask}
    told = {"program": package, "root": f"{site}/envs", "agent": "hoff", "living": [], "limit": 0, "asked": [asked]}
    [found] = host.call(package, "environments.look", told)
    return dict(found)


def look(host: SshHost, site: str, ask: dict[str, Any]) -> dict[str, Any]:
    """What comes of it, however long it takes."""
    found: dict[str, Any] = {"build": ""}

    def is_over() -> bool:
        found.update(asking(host, site, ask, found.pop("build")))
        return "build" not in found

    until(is_over, "the end of the build")
    found.pop("told", None)
    return found


def make_conda(host: SshHost, site: str) -> str:
    """A program with conda's words, at the node: it waits for leave, and makes the directory."""
    root = f"{site}/conda"
    script = f"""#!/bin/sh
echo solving; touch {root}/begun
while [ ! -e {root}/go ]; do sleep 0.1; done
grep -q nets "$6" || {{ echo "CondaError: no such package" >&2; exit 1; }}
mkdir -p "$4/bin" && ln -s {NODE_PYTHON} "$4/bin/python"
"""
    host.put(root, {"bin/conda": script.encode()}, ["bin"])
    assert host.run(["chmod", "700", f"{root}/bin/conda"], timeout=60).ok
    return root


def test_a_build_outlives_the_connections_that_ask_for_it(backend: SshBackend, lab: NodeLab) -> None:
    host = backend.host
    assert isinstance(host, SshHost)
    root = make_conda(host, lab.directory)
    env = {"PATH": "/usr/bin:/bin", "CONDA_EXE": "", "MAMBA_EXE": "", "HOME": lab.directory}
    ask = {"kind": "conda", "text": "dependencies: [nets]\n", "python": "", "env": env, "conda_root": root}
    first = asking(host, lab.directory, ask, "")
    until(lambda: host.run(["test", "-e", f"{root}/begun"], timeout=60).ok, "the middle of the build")
    host.close()
    second = asking(host, lab.directory, ask, "")
    assert (second["build"], second["told"]) == (first["build"], "solving")
    host.put(root, {"go": b""})
    found = look(host, lab.directory, ask)
    assert host.run([f"{found['prefix']}/bin/python", "-c", "print(1)"], timeout=60).stdout == b"1\n"
    failed = look(host, lab.directory, {**ask, "text": "dependencies: [words]\n"})
    assert failed == {"failed": "CondaError: no such package"}
    there = look(host, lab.directory, {**ask, "kind": "there", "named": "/no/such"})
    assert "there is no conda environment /no/such" in there["failed"]
