"""spec.json, checked. What the user's process gets is bytes already, so that little can fail between fork and exec."""

import os
import re
import signal
from typing import Any, Dict, List, Optional

from . import HERE, PACKAGES, json_files, kernel

DEFAULT_PATH = b"/usr/local/bin:/usr/bin:/bin"
_PACKAGES = os.fsencode(os.path.join(HERE, PACKAGES)) if os.path.isdir(os.path.join(HERE, PACKAGES)) else None


class BadSpec(Exception):
    """spec.json cannot be carried out; the text says why."""


class CheckpointSpec:
    """How a run that is longer than its limit is warned, and where it saves."""

    def __init__(self, value: Dict[str, Any]) -> None:
        self.signal = _signal(str(value["signal"]))
        self.grace = float(value["grace"])
        self.directory = json_files.to_bytes(value["directory"])
        self.prune = str(value.get("prune") or "")  # a regular expression: of such files only the newest stay
        self.keep = int(value.get("keep") or 0)


class Spec:
    def __init__(self, value: Dict[str, Any]) -> None:
        self.key = str(value.get("key", ""))
        self.tag = str(value["tag"])
        self.argv: List[bytes] = [json_files.to_bytes(word) for word in value["argv"]]
        self.env: Dict[bytes, bytes] = _environment(value.get("env") or {}, self.tag, bool(value.get("inherit_env")))
        self.programs = json_files.to_bytes(value.get("programs") or "")  # a directory that comes first in PATH
        if self.programs:
            self.env[b"PATH"] = self.programs + b":" + self.env.get(b"PATH", DEFAULT_PATH)
        self.setup = [json_files.to_bytes(line) for line in value.get("setup") or []]
        self.cwd = json_files.to_bytes(value["cwd"])
        self.time_limit = _number(value.get("time_limit"))
        self.memory_limit = _number(value.get("memory_limit"))
        stop = value.get("stop") or {}
        self.stop_signal = _signal(str(stop.get("signal", "TERM")))
        self.grace = float(stop.get("grace", 10))
        permit = value.get("permit")
        self.permit = float(permit["seconds"]) if permit is not None else None
        checkpoint = value.get("checkpoint")
        self.checkpoint = CheckpointSpec(checkpoint) if checkpoint is not None else None
        self.signals = _signals(value)  # what its scheduler sends, see `scheduler_signals`; None without a scheduler
        # The helpers of a run that is warned would die of these, and its first process before the runner can warn it.
        to_all = (self.signals or {}).get("to_all") if self.checkpoint is not None else None
        self.ignored = tuple(_signal(name) for name in to_all["signals"]) if to_all else ()
        self.ends_itself = self.time_limit is not None or self.permit is not None
        self.split_output = bool(value.get("split_output"))
        self.stdout = _file(value.get("stdout"))
        self.stderr = _file(value.get("stderr")) if value.get("stderr") != value.get("stdout") else None
        self.shares_files = value.get("open_mode") == "append"
        self.empties_files = value.get("open_mode") == "truncate"
        self.metric_patterns = [str(pattern) for pattern in (value.get("metrics") or {}).get("stdout") or []]
        self.gpus: List[str] = list(value.get("gpus") or [])
        self.scratch = json_files.to_bytes(value.get("scratch") or "")  # the place that the site names for it
        self.keeps_tmpdir = bool(value.get("keeps_tmpdir"))  # the user has set TMPDIR
        self.scratch_names = [json_files.to_bytes(name) for name in value.get("scratch_names") or []]
        self.beat = float(value.get("beat") or 5)
        self.sample = float(value.get("sample") or 1)
        self.may_use_cgroup = value.get("memory_judge") != "pss"
        if not self.argv or not self.argv[0]:
            raise BadSpec("spec.json names no command")


def saving_time(grace: float, limit: float) -> float:
    """Before a time limit: saving may take its time, but most of the limit is for the work."""
    return min(grace, limit / 4)


def load(path: str = "spec.json") -> Spec:
    value = json_files.read(path)
    if not isinstance(value, dict):
        raise BadSpec("spec.json is missing or damaged")
    try:
        return Spec(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise BadSpec("spec.json is not valid: %s: %s" % (type(error).__name__, error)) from error


def _environment(given: Dict[str, str], tag: str, inherit: bool) -> Dict[bytes, bytes]:
    """Complete as it is given, or laid over what a scheduler's job has."""
    env = _of_this_job() if inherit else {}
    env.update({json_files.to_bytes(name): json_files.to_bytes(value) for name, value in given.items()})
    env[b"RUNYARD_TAG"] = json_files.to_bytes(tag)
    if _PACKAGES is not None:  # last: whatever the user has comes first
        known = env.get(b"PYTHONPATH")
        env[b"PYTHONPATH"] = known + b":" + _PACKAGES if known else _PACKAGES
    return env


def _of_this_job() -> Dict[bytes, bytes]:
    """With what a login would set, where the submitter had nothing to pass on: in cron, under `env -i`."""
    env = dict(os.environb)
    if b"HOME" in env and b"USER" in env:
        return env
    import pwd  # here, because the account is looked up far away on some clusters, and is rarely needed

    try:
        account = pwd.getpwuid(os.getuid())
    except KeyError:
        return env
    login = {"HOME": account.pw_dir, "USER": account.pw_name, "LOGNAME": account.pw_name, "SHELL": account.pw_shell}
    found = {name.encode(): os.fsencode(value) for name, value in login.items()}
    found.update(env)
    return found


def _signals(value: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    if "signals" in value or not value.get("scheduler"):
        return value.get("signals")
    from . import scheduler_signals  # here: see `attempt`

    return scheduler_signals.by_name(str(value["scheduler"]))


def _file(pattern: Optional[str]) -> Optional[bytes]:
    """The agent has left what only the node knows: its name."""
    if pattern is None:
        return None
    symbols = {"%N": kernel.node().partition(".")[0], "%%": "%"}
    return json_files.to_bytes(re.sub("%[N%]", lambda match: symbols[match.group()], pattern))


def _number(value: Any) -> Optional[float]:
    return float(value) if value is not None else None


def _signal(name: str) -> int:
    try:
        return int(signal.Signals["SIG" + name])
    except KeyError:
        raise BadSpec("spec.json: no signal named %r" % name) from None
