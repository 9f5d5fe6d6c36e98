"""`runyard site test` for a node that is reached by OpenSSH: from the login to a run of its own."""

from __future__ import annotations

import json
import secrets
import time
from typing import Any

from runyard import errors
from runyard.backends.base import Batch, Check, Job, StopRequest
from runyard.backends.ssh import NodeFacts, SshBackend, directory_trouble
from runyard.hosts.base import Unreachable
from runyard.model import units
from runyard.model.resources import Resources
from runyard.model.wire import AttemptKey

PROBE_S = 60.0
LOOK_S = 0.2


def examine(backend: SshBackend, *, probe: bool = True) -> list[Check]:
    """In order; checks that depend on a failed one are skipped."""
    node, directory = backend.node, backend.directory
    login = _login(backend, node)
    if not login.ok:
        return [login]
    written = _directory(backend, node, directory)
    if not written.ok:
        return [login, written]
    facts = backend.facts()
    found = [login, _interpreter(node, facts), written, _slots(node, facts), *_sessions(node, facts)]
    return [*found, _probe(backend, node, directory)] if probe else found


def _login(backend: SshBackend, node: str) -> Check:
    """It starts the remote interpreter, so that a missing or old one is reported here."""
    try:
        backend.host.filled(["/"])
    except Unreachable as error:
        return Check(name=node, ok=False, text=str(error))
    return Check(name=node, ok=True, text="lets us in, and answers")


def _directory(backend: SshBackend, node: str, directory: str) -> Check:
    token = secrets.token_hex(8).encode()
    try:
        backend.host.put(directory, {"site-test": token})
        is_kept = backend.host.fetch(f"{directory}/site-test") == token
    except OSError as error:
        text, fix = directory_trouble(node, directory, error)
        return Check(name=node, ok=False, text=text, fix=fix)
    text = f"{directory} is writable" if is_kept else f"{directory} does not keep what is written to it"
    return Check(name=node, ok=is_kept, text=text)


def _interpreter(node: str, facts: NodeFacts) -> Check:
    return Check(name=node, ok=True, text=f"its interpreter is version {facts.python}; it calls itself {facts.node}")


def _slots(node: str, facts: NodeFacts) -> Check:
    types = ", ".join(gpu["type"] for gpu in facts.gpus)
    gpus = f"{len(facts.gpus)} gpus" + (f" ({types})" if types else "")
    return Check(name=node, ok=True, text=f"it has {facts.cpus} cpus, {units.show_size(facts.memory)} memory, {gpus}")


def _sessions(node: str, facts: NodeFacts) -> list[Check]:
    if facts.survives_sessions:
        return []
    text = "systemd would end runs with the last connection (KillUserProcesses), because the account may not linger"
    return [Check(name=node, ok=False, text=text, fix="on the node, as root: loginctl enable-linger ACCOUNT")]


def _probe(backend: SshBackend, node: str, directory: str) -> Check:
    """A run of the very kind that will be started there."""
    place, token = f"{directory}/probe-{secrets.token_hex(4)}", secrets.token_hex(8)
    job = Job(key=AttemptKey(run=1, attempt=1), directory=place, tag=token, batch="probe", index=1)
    try:
        backend.host.put(place, {"spec.json": json.dumps(_probe_spec(place, token)).encode()})
        refusals = backend.submit(Batch(name="probe", resources=Resources(), jobs=(job,)))
    except (OSError, errors.RunyardError) as error:
        return Check(name=node, ok=False, text=f"no probe could be started: {error}")
    if refusals:
        return Check(name=node, ok=False, text=refusals[0].text)
    try:
        return _outcome(backend, node, job, token)
    finally:
        backend.host.run(["rm", "-rf", place], timeout=PROBE_S)


def _probe_spec(place: str, token: str) -> dict[str, Any]:
    return {
        "key": "1.1", "tag": token, "argv": ["sh", "-c", f"echo {token}"], "cwd": place, "env": {}, "inherit_env": True,
        "time_limit": PROBE_S, "memory_limit": None, "split_output": False, "stop": {"signal": "TERM", "grace": 1},
        "cpus": 1, "gpus": [],
    }  # fmt: skip


def _outcome(backend: SshBackend, node: str, job: Job, token: str) -> Check:
    deadline = time.monotonic() + PROBE_S
    while time.monotonic() < deadline:
        found = backend.host.fetch_many([f"{job.directory}/status.json", f"{job.directory}/log"])
        status = _document(found.get(f"{job.directory}/status.json", b""))
        if status.get("state") == "ended":
            is_well = status.get("exit_code") == 0 and token.encode() in found.get(f"{job.directory}/log", b"")
            told = "a probe ran" if is_well else f"a probe ended badly: {status.get('message') or status}"
            return Check(name=node, ok=is_well, text=told)
        time.sleep(LOOK_S)
    backend.cancel([StopRequest(job=job, reason="user", grace=1)])
    return Check(name=node, ok=False, text=f"a probe did not end within a minute: {backend.explain(job)}")


def _document(data: bytes) -> dict[str, Any]:
    try:
        return dict(json.loads(data))
    except ValueError:
        return {}
