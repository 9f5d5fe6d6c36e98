"""Times, commands and resources, formatted for users."""

from __future__ import annotations

import datetime
import posixpath
import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runyard.model import command as commands
from runyard.model import template, units
from runyard.model.nodes import NodeChoice

ONE_LINE = str.maketrans({"\n": "⏎", "\r": "", "\t": " ", "\x1b": "␛"})


def now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def moment(text: str | None) -> datetime.datetime | None:
    return datetime.datetime.fromisoformat(text) if text else None


def number(value: float | str | None) -> str:
    """`0.123457`, `1e-06`, `nan`."""
    return f"{value:.6g}" if isinstance(value, float) else "-" if value is None else str(value)


def ago(text: str | None) -> str:
    """`3m`, `2h`, `5d`: how long ago, in one unit."""
    then = moment(text)
    if then is None:
        return "-"
    seconds = max(0.0, (now() - then).total_seconds())
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{int(seconds)}s"


def local_time(text: str | None) -> str:
    then = moment(text)
    return then.astimezone().strftime("%Y-%m-%d %H:%M:%S") if then else "-"


def elapsed(run: Mapping[str, Any]) -> str:
    """How long it ran, or has been running."""
    started, ended = moment(run.get("started_at")), moment(run.get("ended_at"))
    if started is None:
        return "-"
    if ended is not None and run.get("wall_time") is not None:
        return units.show_duration(run["wall_time"])
    return units.show_duration(max(0.0, ((ended or now()) - started).total_seconds()))


def command_line(command: Iterable[str] | str) -> str:
    """The command as typed in a shell."""
    return command if isinstance(command, str) else shlex.join(command)


def one_line(text: str) -> str:
    """Safe to put into a table: no line breaks, and nothing that moves the cursor."""
    shown = text.translate(ONE_LINE)
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in shown)


def filled_command(run: Mapping[str, Any]) -> str:
    """The command that is executed, with the parameters filled in."""
    return one_line(command_line(commands.with_params(run)))


def script(spec: Mapping[str, Any]) -> str:
    """A script that was uploaded with the run: number of lines and the first of them."""
    lines = spec.get("script", "").splitlines()
    return f"{len(lines)} lines, {one_line(lines[0])}" if lines else ""


def title(run: Mapping[str, Any]) -> str:
    """Its name, or else its command."""
    return one_line(run["name"]) if run["name"] else filled_command(run)


def detail(thing: Mapping[str, Any]) -> str:
    return one_line(thing.get("detail") or "")


def note(run: Mapping[str, Any]) -> str:
    """The reason of its state, and the detail."""
    reason, detail = run.get("reason"), run.get("detail")
    if reason and detail:
        return f"{reason}: {one_line(detail)}"
    return one_line(str(reason or detail or ""))


def parameters(params: Mapping[str, Any]) -> str:
    """As passed to the command, so that they can be typed again."""
    return one_line(" ".join(f"{name}={template.show_value(value)}" for name, value in params.items()))


def asked(resources: Mapping[str, Any]) -> str:
    """`2 cpus, 4.0 GB memory, 1 gpu, at most 2h00m`; `2 nodes, on each 8 cpus`."""
    nodes = resources.get("nodes", 1)
    cpus = count(resources.get("cpus", 1), "cpu")
    parts = [cpus if nodes == 1 else f"{nodes} nodes, on each {cpus}"]
    if resources.get("memory"):
        parts.append(f"{units.show_size(resources['memory'])} memory")
    if resources.get("gpus"):
        parts.append(_gpus(resources))
    if resources.get("time"):
        parts.append(f"at most {units.show_duration(resources['time'])}")
    return ", ".join(parts)


def choice(spec: Mapping[str, Any]) -> str:
    """`on hoff or norman, not on lecun`; empty if any node will do."""
    return NodeChoice.from_json(spec).describe()


def granted(slots: Mapping[str, Any] | None) -> str:
    if not slots:
        return "-"
    parts = [count(slots.get("cpus", 0), "cpu")]
    if slots.get("memory"):
        parts.append(f"{units.show_size(slots['memory'])} memory")
    if slots.get("gpus"):
        parts.append(", ".join(slots["gpus"]))
    return ", ".join(parts)


def code(spec: Mapping[str, Any]) -> str:
    """`3f2a91c04b of main, changed: 14 files, 120 KB`."""
    brought = spec.get("code")
    if not brought:
        return ""
    extent = f"{count(brought['files'], 'file')}, {units.show_size(brought['size'])}"
    git = brought.get("git")
    if not git:
        return extent
    commit = git["head"][:10] if git["head"] else "no commit yet"
    branch = f" of {one_line(git['branch'])}" if git["branch"] else ""
    return f"{commit}{branch}{', changed' if git['dirty'] else ''}: {extent}"


def data(spec: Mapping[str, Any]) -> str:
    """`corpora, mnist at /scratch/mnist`."""
    folders = spec.get("data") or ()
    return ", ".join(one_line(item["to"] + (f" at {item['path']}" if "path" in item else "")) for item in folders)


def python(spec: Mapping[str, Any]) -> str:
    """`3.11.7 in /home/ada/nets/.venv, 57 packages; nets==0.1 was installed from /home/ada/nets`."""
    told = spec.get("python_env") or {}
    record = told.get("record") if isinstance(told, Mapping) else None
    if not record:
        return ""
    notes = record["notes"]
    if not record["python"]:
        return one_line("; ".join(notes))
    known = f"{record['python']} in {record['prefix']}, {count(record['packages'], 'package')}"
    if len(notes) > 1:
        return one_line(f"{known}, {len(notes)} of them only here: {_some([note.split()[0] for note in notes])}")
    return one_line("; ".join([known, *map(_with_short_path, notes)]))


def _some(names: Sequence[str], most: int = 3) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _with_short_path(note: str, most: int = 60) -> str:
    """A note with the path of a wheel shortened."""
    said, _, path = note.rpartition(" ")
    return f"{said} …/{posixpath.basename(path)}" if len(path) > most and "/" in path else note


def python_env(spec: Mapping[str, Any]) -> str:
    """The Python environment of the run; empty if it is the site's own."""
    told = spec.get("python_env") or "record"
    use, name = (told, "") if isinstance(told, str) else (told["use"], told.get("name", ""))
    if use == "file":
        return one_line(f"built at the site from {name or 'a file'}")
    return {"record": "", "none": "", "sync": "the same, built at the site"}.get(use, use)


def _gpus(resources: Mapping[str, Any]) -> str:
    kind = " ".join(word for word in (resources.get("gpu_type"), "gpu") if word)
    size = f" of {units.show_size(resources['gpu_memory'])}" if resources.get("gpu_memory") else ""
    return count(resources["gpus"], kind) + size


def count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("s" if number != 1 else "")


def checkpoint(saved: Mapping[str, Any] | None) -> str:
    """`3, of attempt 2, 12 MB in 4 files, 5m ago`."""
    if saved is None:
        return ""
    age = f"{ago(saved['at'])} ago"
    if saved["tree"] is None:
        return f"of attempt {saved['attempt']}, at site {saved['site']} only, {age}"
    files = f"{saved['files']} file{'s' if saved['files'] != 1 else ''}"
    return f"{saved['number']}, of attempt {saved['attempt']}, {units.show_size(saved['size'])} in {files}, {age}"
