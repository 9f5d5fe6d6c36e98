"""`runyard show`: everything about one run on a page."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from runyard.cli.show import formats, tables
from runyard.model import ranges, units
from runyard.model.states import Reason, RunState

if TYPE_CHECKING:
    from rich.console import Console

MOST_METRICS = 6
JUDGES = {
    "cgroup": "enforced by the kernel (cgroup)",
    "pss": "measured: RSS as the trigger, PSS as the judge",
}

Run = Mapping[str, Any]
Advice = list[tuple[str, str]]


def draw(console: Console, run: Run) -> None:
    console.print(_heading(run))
    console.print(tables.pairs(_facts(run)))
    if len(run["attempts"]) > 1:
        console.print()
        console.print(tables.build(ATTEMPT_COLUMNS, run["attempts"]))
    console.print()
    console.print(tables.commands(next_steps(run)))


def _heading(run: Run) -> Text:
    word = tables.state(run)
    text = Text(f"run {run['id']}", style="bold")
    if run["name"]:
        text.append(f"  {formats.one_line(run['name'])}", style="default")
    text.append("  ")
    text.append(word, style=tables.COLOURS.get(word, ""))
    if formats.note(run):
        text.append(f"  {formats.note(run)}", style="default")
    return text


def _facts(run: Run) -> Iterator[tuple[str, str]]:
    """Only fields that have a value."""
    for name, value in _all_facts(run):
        if value and value != "-":
            yield name, value


def _all_facts(run: Run) -> Iterator[tuple[str, str]]:
    spec = run["spec"]
    yield "script", formats.script(spec)
    yield "command", formats.filled_command(run)
    yield "parameters", formats.parameters(run["params"])
    yield "directory", spec.get("cwd") or ""
    yield "code", formats.code(spec)
    yield "remote", formats.one_line(((spec.get("code") or {}).get("git") or {}).get("remote") or "")
    yield "data", formats.data(spec)
    yield "submitter's python", formats.python(spec)
    yield "its python", formats.python_env(spec)
    yield "environment", " ".join(sorted(spec.get("env", {})))
    yield "project", run["project"]
    yield "owner", run["owner"]
    yield "recipe", run["recipe"] or ""
    yield "sweep", _sweep(run)
    yield "copy of", f"run {run['rerun_of']}" if run["rerun_of"] else ""
    yield "tags", " ".join(run["tags"])
    yield "after", ranges.show(run["after"])
    yield "site", " on ".join(word for word in (run["site"], run["node"]) if word)
    yield "nodes", formats.choice(spec)
    yield "requested", formats.asked(run["resources"])
    yield "granted", formats.granted(run["granted"])
    yield "created", _when(run["created_at"])
    yield "started", _when(run["started_at"])
    yield "ended", _when(run["ended_at"])
    yield "ran for", formats.elapsed(run)
    yield "exit code", "" if run["exit_code"] is None else str(run["exit_code"])
    yield "log", units.show_size(sum(attempt["log_size"] for attempt in run["attempts"]))
    yield "checkpoint", formats.checkpoint(run.get("checkpoint"))
    yield "metrics", _metrics(run)
    yield "cpu time", _cpu_time(run)
    yield "peak memory", _memory(run)


def _sweep(run: Run) -> str:
    place = run["sweep"]
    return f"S{place['id']}, trial {place['trial']}, repetition {place['rep']}" if place else ""


def _when(text: str | None) -> str:
    return f"{formats.local_time(text)} ({formats.ago(text)} ago)" if text else ""


def _cpu_time(run: Run) -> str:
    if run["cpu_time"] is None:
        return ""
    wall = run["wall_time"] or 0
    cores = f", {run['cpu_time'] / wall:.1f} cores on average" if wall >= 1 else ""
    return units.show_duration(run["cpu_time"]) + cores


def _metrics(run: Run) -> str:
    """The last values of some metrics."""
    told = [
        f"{formats.one_line(metric['name'])} {formats.number(metric['last'])}"
        for metric in run["metrics"][:MOST_METRICS]
    ]
    steps = {metric["last_step"] for metric in run["metrics"] if metric["last_step"] is not None}
    more = len(run["metrics"]) - len(told)
    about = [f"at step {max(steps)}"] if steps else []
    about += [f"{more} more: runyard metrics {run['id']}"] if more else []
    return "  ".join(told) + (f"  ({'; '.join(about)})" if about and told else "")


def _memory(run: Run) -> str:
    """The peak, the limit, and how it is enforced."""
    limit = (run["granted"] or run["resources"]).get("memory")
    peak = units.show_size(run["peak_memory"]) if run["peak_memory"] is not None else ""
    of = f" of {units.show_size(limit)}" if limit and peak else ""
    record = (run["attempts"][-1]["record"] or {}) if run["attempts"] else {}
    judge = JUDGES.get(str(record.get("memory_judge")), "") if limit else ""
    return f"{peak}{of}" + (f", {judge}" if judge and peak else "")


def _ending(attempt: Run) -> str:
    if attempt["state"] != "ended":
        return str(attempt["state"])
    return ": ".join(word for word in (attempt["outcome"], attempt["reason"]) if word)


def _exit(attempt: Run) -> str:
    if attempt["signal"]:
        try:
            return signal.Signals(attempt["signal"]).name
        except ValueError:
            return f"signal {attempt['signal']}"
    return "-" if attempt["exit_code"] is None else str(attempt["exit_code"])


ATTEMPT_COLUMNS = (
    tables.Column(title="ATTEMPT", value=lambda attempt: str(attempt["number"]), right=True),
    tables.Column(title="ENDING", value=_ending, coloured=True),
    tables.Column(title="EXIT", value=_exit, right=True),
    tables.Column(title="NODE", value=lambda attempt: attempt["node"] or "-"),
    tables.Column(title="TIME", value=formats.elapsed, right=True),
    tables.Column(title="LOG", value=lambda attempt: units.show_size(attempt["log_size"]), right=True),
    tables.Column(title="DETAIL", value=lambda attempt: formats.detail(attempt), flexible=True, boring=("",)),
)


# --- what to do next --------------------------------------------------------------------------------------------------


def next_steps(run: Run) -> Advice:
    """Commands, each with its purpose, most useful first."""
    number, state = run["id"], run["state"]
    if run.get("cancel_requested"):
        return [(f"runyard wait {number}", "wait until all its processes have ended")]
    if state == RunState.QUEUED:
        return [("runyard site list", "see what is free"), (f"runyard cancel {number}", "cancel it")]
    if state in (RunState.STARTING, RunState.RUNNING):
        return [(f"runyard logs {number} -f", "follow its log"), (f"runyard top {number}", "see what it uses")]
    if state == RunState.SUCCEEDED:
        return [(f"runyard fetch {number}", "download its outputs"), (f"runyard logs {number}", "read its log")]
    return _after_failure(run)


def _after_failure(run: Run) -> Advice:
    number, reason = run["id"], run.get("reason")
    again = (f"runyard retry {number}", "retry it unchanged")
    log = (f"runyard logs {number} --tail 50", "read how it ended")
    if reason == Reason.OOM:
        return [(f"runyard submit --memory {_more_memory(run)} … -- COMMAND", "give it more memory"), log]
    if reason == Reason.TIMEOUT:
        return [(f"runyard submit --time {_more_time(run)} … -- COMMAND", "give it more time"), log]
    if reason == Reason.DEPENDENCY:
        return [(f"runyard show {parent}", "see why that run failed") for parent in run.get("after", ())] + [again]
    if reason in (Reason.LAUNCH, Reason.STAGING):
        return [(f"runyard events {number}", "see what happened"), again]
    return [log, again]


def _more_memory(run: Run) -> str:
    asked = (run.get("resources") or {}).get("memory") or run.get("peak_memory") or 1 << 30
    return f"{max(1, -(-2 * asked // (1 << 30)))}G" if 2 * asked >= 1 << 30 else f"{-(-2 * asked // (1 << 20))}M"


def _more_time(run: Run) -> str:
    asked = (run.get("resources") or {}).get("time") or 3600
    return units.show_duration(2 * asked) if asked >= 5 else f"{2 * asked}s"
