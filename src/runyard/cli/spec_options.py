"""The options of `submit`, and the spec they make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from runyard import errors
from runyard.cli import options, pairs
from runyard.model import passing

RESOURCES = ("nodes", "cpus", "memory", "gpus", "gpu_type", "gpu_memory", "time")
PLAIN = ("name", "project", "python_env", "cwd", "site", "priority", "seed", "keep", "idempotency_key", "params_as")

SINGLE = (  # what a sweep says in another way, see cli.sweep
    click.option("--name", metavar="TEXT", help="What to call the run."),
    click.option("-p", "--param", "params", multiple=True, metavar="K=V",
                 help="A parameter for {K} in the command; JSON or text, a.b=1 nests. Repeatable."),
    click.option("--params-as", type=click.Choice(passing.WAYS), metavar="HOW",
                 help="Add the parameters that the command does not name: flags (--lr 0.1), hydra (lr=0.1), json (one "
                      "argument), env (PARAM_LR)."),
    click.option("--seed", type=int, metavar="N", help="Its random seed, as RUNYARD_SEED."),
    click.option("--idempotency-key", metavar="TEXT", help="Submitting again with this key returns the first run."),
)  # fmt: skip
OPTIONS = (
    click.option("--cpus", type=int, metavar="N", help="CPU cores (default 1); thread variables follow them."),
    click.option("--memory", metavar="SIZE", help="Memory limit, such as 4G."),
    click.option("--time", metavar="DURATION", help="Time limit, such as 90s, 2h or 1:30:00."),
    click.option("--gpus", type=int, metavar="N", help="GPUs, pinned to this run alone."),
    click.option("--gpu-type", metavar="TEXT", help="A part of the GPU's name, such as a100."),
    click.option("--gpu-memory", metavar="SIZE", help="Memory that each GPU must have."),
    click.option("--nodes", type=int, metavar="N",
                 help="Nodes of a cluster (default 1), each with all of the above; the command starts on the first."),
    click.option("--project", metavar="NAME", help="The project it belongs to."),
    click.option("-e", "--env", multiple=True, metavar="K[=V]", help="Set a variable, or pass on mine. Repeatable."),
    click.option("--env-file", multiple=True, metavar="FILE", help="Set the variables in a file. Repeatable."),
    click.option("--code", multiple=True, metavar="PATH",
                 help="Run in a snapshot of it, taken now (default in a git checkout: this folder). Repeatable."),
    click.option("--no-code", is_flag=True, help="Bring no code along; run in this very folder."),
    click.option("--data", multiple=True, metavar="[NAME=]DIR",
                 help="Send a folder along, or name one that is there already: /path/at/the/site. Repeatable."),
    click.option("--input", "inputs", multiple=True, metavar="URL[=NAME][,secret=S]",
                 help="Have a file fetched into $RUNYARD_INPUTS, with a secret that the site has. Repeatable."),
    click.option("--python-env", metavar="WHICH",
                 help="record (default) what I have, sync it to the site, none, conda:NAME or conda:/path there, or "
                      "build a requirements.txt or environment.yml there."),
    click.option("--cwd", metavar="DIR", help="Working directory (default: the code, or this one)."),
    click.option("--site", metavar="NAME", help="Run at this site only."),
    click.option("--node", multiple=True, metavar="NAME", help="On this node of the site, or any of several."),
    click.option("--exclude", multiple=True, metavar="NAME", help="Not on this node. Repeatable, or with commas."),
    click.option("--label", "labels", multiple=True, metavar="K[=V]",
                 help="Only on nodes with this label, such as fast or rack=a. Repeatable."),
    click.option("--priority", type=int, metavar="N", help="Higher goes first (default 0)."),
    click.option("--after", multiple=True, metavar="RUN", help="Start when these runs have succeeded. Repeatable."),
    click.option("--retry", type=int, metavar="N", help="Try again up to N times when the machine fails it."),
    click.option("--tag", "tags", multiple=True, metavar="TAG", help="A tag to find it by. Repeatable."),
    click.option("--output", "outputs", multiple=True, metavar="GLOB",
                 help="Which files of OUTPUT_DIR to keep (default: all). Repeatable."),
    click.option("--metric-pattern", "metric_patterns", multiple=True, metavar="REGEX",
                 help=r"Read metrics from what it prints, such as 'loss=(?P<loss>\S+)'. Repeatable."),
    click.option("--keep", metavar="WHAT[:TIME]",
                 help="What stays at the site afterwards: none, unsaved (default), outputs, failed:3d, all:7d."),
    click.option("--split-output", is_flag=True, default=None, help="Keep stdout and stderr apart as well."),
    click.option("--stop-signal", metavar="SIG", help="What asks it to stop (default TERM)."),
    click.option("--grace", metavar="DURATION", help="How long it gets before it is killed (default 10s)."),
    click.option("--checkpoint", is_flag=True, default=None,
                 help="Warn it (SIGUSR1) a minute before its time limit, and go on in another attempt, then and after "
                      "a preemption or the loss of its node."),
    click.option("--checkpoint-every", metavar="WHEN",
                 help="As --checkpoint, and send what it saved to the yard so often: 10m, end (of an attempt), never."),
    click.option("--checkpoint-keep", type=int, metavar="N",
                 help="As --checkpoint, and keep the N newest in the yard (default 3)."),
    click.option("--option", "options", multiple=True, metavar="K=V", help="For the site's scheduler. Repeatable."),
)  # fmt: skip
spec_options = options.together(*SINGLE, *OPTIONS)  # all that one run can have
shared_options = options.together(*OPTIONS)  # what many runs of one description have in common


def override(spec: Mapping[str, Any], given: Mapping[str, Any], command: Sequence[str]) -> dict[str, Any]:
    """The spec (from a file, or empty) with what the command line says put over it."""
    whole = dict(spec)
    if command:
        whole["command"] = list(command)
    whole.update({name: given[name] for name in PLAIN if given[name] is not None})
    whole.update({name: list(given[name]) for name in ("tags", "outputs", "after", "code", "data") if given[name]})
    if given["no_code"]:
        whole["code"] = _no_code(given)
    whole.update({name: pairs.listed(given[name]) for name in ("node", "exclude", "labels") if given[name]})
    if given["inputs"]:
        whole["inputs"] = [*(whole.get("inputs") or ()), *map(pairs.input_file, given["inputs"])]
    if given["split_output"]:
        whole["split_output"] = True
    whole.update(_checkpoint(whole, given))
    if given["options"]:
        whole["options"] = {**whole.get("options", {}), **pairs.options(given["options"])}
    _merge(whole, "resources", {name: given[name] for name in RESOURCES if given[name] is not None})
    _merge(whole, "stop", _stop(given))
    _merge(whole, "env", environment(given))
    if given["metric_patterns"]:
        _merge(whole, "metrics", {"stdout": list(given["metric_patterns"])})
    if given["retry"] is not None:
        _merge(whole, "retry", {"max": given["retry"]})
    if given["params"]:
        whole["params"] = pairs.parameters(given["params"], _mapping(whole, "params"))
    return whole


def _no_code(given: Mapping[str, Any]) -> bool:
    if given["code"]:
        raise errors.InvalidInput("--code and --no-code say opposite things", "keep one of them")
    return False


def _checkpoint(spec: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What a file says of it stays."""
    further = {"every": given["checkpoint_every"], "keep": given["checkpoint_keep"]}
    said = {name: item for name, item in further.items() if item is not None}
    if not said and not given["checkpoint"]:
        return {}
    before = spec.get("checkpoint")
    whole = {**(before if isinstance(before, dict) else {}), **said}
    return {"checkpoint": whole or True}


def environment(given: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in given["env_file"]:
        found.update(pairs.variables_from_file(path))
    return {**found, **pairs.variables(given["env"])}


def _stop(given: Mapping[str, Any]) -> dict[str, Any]:
    said = {"signal": given["stop_signal"], "grace": given["grace"]}
    if said["grace"] in ("0", "0s"):
        said["grace"] = 0
    return {name: item for name, item in said.items() if item is not None}


def _merge(spec: dict[str, Any], field: str, further: Mapping[str, Any]) -> None:
    if further:
        spec[field] = {**_mapping(spec, field), **further}


def _mapping(spec: Mapping[str, Any], field: str) -> dict[str, Any]:
    """What the file says for a field that options add to. A retry may be a bare number there."""
    said = spec.get(field) or {}
    if field == "retry" and isinstance(said, int):
        return {"max": said}
    if not isinstance(said, dict):
        raise errors.InvalidInput(f"{field}: must be a mapping of names to values")
    return said
