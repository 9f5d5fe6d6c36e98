"""Replies to Rodan: the models by their ports, or an error that says what to change."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

from runyard.bridges.rodan import ports, settings
from runyard.model import units
from runyard.model.request import LeftFile, Outcome, RunOutcome

LINE = 57  # bytes that become one line of 76 characters
_LINE_IN_JSON = 76 + len(r"\n")

Found = list[tuple[str, LeftFile]]


def write(outcome: Outcome, room: int) -> bytes:
    """Never links: Rodan accepts only the bytes themselves."""
    if outcome.error:
        return _error(outcome.error.replace("params.settings.", ""))
    (run,) = outcome.runs
    if run.error:
        return _error(_failure(run))
    found, missing = _models(run)
    if missing:
        return _error(_incomplete(run, missing))
    size = _size(found)
    if size > room:
        return _error(_too_large(run, size, room))
    return json.dumps({port: base64.encodebytes(file.read()).decode("ascii") for port, file in found}).encode()


def _error(text: str) -> bytes:
    return json.dumps({"error": text}).encode()


def _models(run: RunOutcome) -> tuple[Found, list[str]]:
    """Existing models, and the ports of missing ones."""
    left = {file.path: file for file in run.files}
    found: Found = []
    missing = []
    for model in ports.models(run.view["params"]["inputs"]):
        file = next((left[name] for name in model.files if name in left), None)
        if file is None:
            missing.append(model.port)
        else:
            found.append((model.port, file))
    return found, missing


def _size(found: Found) -> int:
    """The size of the reply, before any file is read."""
    entries = [len(json.dumps(port)) + len(': ""') + _encoded(file.size) for port, file in found]
    return len("{}") + sum(entries) + len(", ") * (len(entries) - 1)


def _encoded(size: int) -> int:
    lines, rest = divmod(size, LINE)
    return lines * _LINE_IN_JSON + (4 * ((rest + 2) // 3) + len(r"\n") if rest else 0)


# --- words --------------------------------------------------------------------------------------------------------


def _failure(run: RunOutcome) -> str:
    """The cause with its numbers, and what to change in the form."""
    asked, reason = run.view["params"]["settings"], str(run.view["reason"])
    parts = [run.error, _last_words(run) if reason in ("error", "disk") else "", _advice(reason, asked)]
    return "; ".join(part for part in parts if part)


def _advice(reason: str, asked: Mapping[str, Any]) -> str:
    if reason == "timeout":
        return _raise(settings.TIME, asked)
    if reason == "oom":
        return _raise(settings.MEMORY, asked)
    return _ADVICE.get(reason, "")


_RUN_AGAIN = "run the job again"
_ADVICE = {
    "user": f"it was cancelled in runyard: {_RUN_AGAIN} if that was a mistake",
    "external": f"it was ended on the cluster: {_RUN_AGAIN} if that was a mistake",
    "preempted": f"the cluster needed its place for others: {_RUN_AGAIN}",
    "node_lost": f"the node it ran on failed: {_RUN_AGAIN}",
    "lost": f"it ended without a record: {_RUN_AGAIN}",
    "rejected": "change what the cluster objects to",
}


def _raise(label: str, asked: Mapping[str, Any]) -> str:
    before = f" (it was {asked[label]})" if label in asked else ""
    return f"raise '{label}'{before} and {_RUN_AGAIN}"


def _last_words(run: RunOutcome) -> str:
    """An exception's own line comes last."""
    lines = [line.strip() for line in run.log_end().splitlines() if line.strip()]
    return f"its last words: {lines[-1][:500]}" if lines else ""


def _incomplete(run: RunOutcome, missing: Sequence[str]) -> str:
    wanted = ", ".join(f"'{port}.hdf5'" for port in missing)
    left = ", ".join(file.path for file in run.files)[:500] or "nothing"
    return (
        f"run {run.view['id']} succeeded and left no {wanted} in its output directory, only {left}; "
        "the recipe's command must write one model for each port"
    )


def _too_large(run: RunOutcome, size: int, room: int) -> str:
    run_id = run.view["id"]
    return (
        f"the models of run {run_id} make a reply of {units.show_size(size)} ({size} bytes), and at most "
        f"{units.show_size(room)} ({room} bytes) get through: raise max_message_size in the broker's rabbitmq.conf "
        f"(and reply_limit of [bridge.rodan], where it is lower), then `runyard reply resend`; until then the models "
        f"are there with `runyard fetch {run_id}`"
    )
