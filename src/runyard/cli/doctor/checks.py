"""The checks of `runyard doctor`: each gives a verdict, a sentence and, if something is wrong, a fix."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from runyard import errors, home, kinds, settings
from runyard.app import background, diagnosis
from runyard.cli.doctor import broker_checks, gpu_checks
from runyard.cli.doctor.verdicts import FAIL, OK, WARN, Finding, Said, failed, finding
from runyard.client import Client
from runyard.model import units
from runyard.model.declaration import Field, declared
from runyard.model.mirror import Mirror
from runyard.settings import Settings

LITTLE_SPACE = 5 << 30
NO_SPACE = 200 << 20


def draw(console: Any, findings: Iterable[Finding]) -> list[Finding]:
    """Print each finding at once, so that a slow check can be seen."""
    from rich.text import Text

    from runyard.cli.show import tables

    seen = []
    for one in findings:
        line = Text(f"{one.verdict:4}", style=tables.COLOURS[one.verdict])
        line.append(f"  {one.check:11}  ", style="bold")
        line.append(one.message, style="default")
        console.print(line, soft_wrap=True)
        if one.fix:
            console.print(Text(f"      {'':11}  fix: {one.fix}"), soft_wrap=True)
        seen.append(one)
    return seen


def examine() -> Iterator[Finding]:
    """All findings in order; a check that raises is a finding too."""
    yield finding("python", lambda: (OK, f"{sys.version.split()[0]} at {sys.executable}"))
    try:
        loaded = settings.load()
    except errors.ConfigError as error:
        yield failed("settings", error)
        return
    yield finding("settings", lambda: _settings(loaded))
    yard = background.answering(loaded.home)
    for name, look in CHECKS.items():
        yield finding(name, lambda look=look: look(loaded))  # type: ignore[misc]
    yield finding("port", lambda: _port(loaded, yard.url if yard else None))
    yield finding("agent", lambda: _agent(loaded, yard is not None))
    if loaded.mirror is not None:
        yield finding("mirror", lambda: _mirror(loaded, yard is not None))
    yield from broker_checks.examine(loaded)


def _settings(loaded: Settings) -> Said:
    path = loaded.home / "config.toml"
    return OK, str(path) if path.exists() else f"the defaults; {path} does not exist"


def _home(loaded: Settings) -> Said:
    if not loaded.home.exists():
        return OK, f"{loaded.home} will be created at the first start"
    found = loaded.home.stat()
    if found.st_uid != os.getuid():
        return FAIL, f"{loaded.home} belongs to another user", "set RUNYARD_HOME to a directory of yours"
    if stat.S_IMODE(found.st_mode) & 0o077:
        return WARN, f"{loaded.home} is accessible to other users", f"chmod 700 {loaded.home}"
    if not os.access(loaded.home, os.W_OK | os.X_OK):
        return FAIL, f"{loaded.home} is not writable", f"chmod 700 {loaded.home}"
    return OK, f"{loaded.home}, accessible to its owner only"


def _file_system(loaded: Settings) -> Said:
    network = home.is_on_network(loaded)
    if not network:
        return OK, "a local file system"
    if loaded.store or loaded.network_home == "no":
        return OK, "a network file system; the store is elsewhere or declared safe on it"
    return FAIL, "a network file system, on which no yard can run as a daemon", "set RUNYARD_HOME to a local disk"


def _disk(loaded: Settings) -> Said:
    free = shutil.disk_usage(_existing(loaded.home)).free
    said = f"{units.show_size(free)} free"
    if free < NO_SPACE:
        return FAIL, said, "free disk space: logs and outputs could not be stored"
    return (WARN, said, "free disk space soon") if free < LITTLE_SPACE else (OK, said)


def _token(loaded: Settings) -> Said:
    try:
        mode = stat.S_IMODE(loaded.token_file.stat().st_mode)
    except FileNotFoundError:
        return OK, "will be created at the first start"
    if mode & 0o077:
        return FAIL, f"{loaded.token_file} is readable by other users", f"chmod 600 {loaded.token_file}"
    return OK, f"{loaded.token_file}, accessible to its owner only"


def _store(loaded: Settings) -> Said:
    if loaded.store:
        return _postgres(loaded)
    if not loaded.database.exists():
        return OK, "will be created at the first start"
    try:
        said, runs = diagnosis.examine_store(loaded.database)
    except diagnosis.Unreadable as error:  # a problem of the file or its disk, not of its contents
        return FAIL, f"{loaded.database} cannot be read: {error}", "check its owner, its permissions and its disk"
    if said != "ok":
        return FAIL, f"{loaded.database} is damaged: {said}", "stop the yard and restore the file from a backup"
    return OK, f"{runs} run{'s' if runs != 1 else ''} in {units.show_size(_size(loaded.database))}, undamaged"


def _postgres(loaded: Settings) -> Said:
    try:
        version = diagnosis.postgres_version(loaded)
    except errors.YardUnreachable as error:
        fix = "start it, or correct `store`; the yard reconnects by itself"
        return FAIL, f"PostgreSQL does not answer: {error.message}", fix
    return OK, f"PostgreSQL {version.split()[0]} answers; its own tools check it"


def _size(database: Path) -> int:
    """With its write-ahead log."""
    return sum(path.stat().st_size for path in (database, Path(f"{database}-wal")) if path.exists())


def _gpus(loaded: Settings) -> Said:
    if loaded.gpus:
        return OK, f"{len(loaded.gpus)} set in the settings"
    found = [f"{gpu['name']} ({units.show_size(gpu['memory'])})" for gpu in diagnosis.gpus()]
    return OK, ", ".join(found) or "none reported by an NVIDIA driver"


def _zygote(loaded: Settings) -> Said:
    """The pre-warmed process that starts runners; it starts on demand."""
    path = loaded.site_dir("local") / "zygote.sock"
    if not path.exists():
        return OK, "not running; it starts with the first run"
    with socket.socket(socket.AF_UNIX) as line:
        line.settimeout(5)
        try:
            line.connect(str(path))
            line.sendall(b'{"ping": 1}\n')
            said = json.loads(line.makefile("rb").readline())
        except (OSError, ValueError):
            return OK, "not running; it starts with the next run"
    return OK, f"process {said.get('pid')}, {said.get('runners', 0)} runners"


def _scheduler(loaded: Settings) -> Said:
    found = diagnosis.scheduler()
    if found is None:
        return OK, "no batch scheduler answers here; runs execute on this machine"
    return WARN, f"{found} answers here: this is a login node", "runs execute here only with --site local"


def _backends(loaded: Settings) -> Said:
    broken = diagnosis.broken_plugins()
    if broken:
        name, why = next(iter(broken.items()))
        return FAIL, why, f"reinstall or remove the plug-in {name}"
    return OK, ", ".join(kinds.names())


def _port(loaded: Settings, url: str | None) -> Said:
    if url:
        return OK, f"the yard answers at {url}"
    try:
        diagnosis.try_port(loaded)
    except errors.RunyardError as error:
        return WARN, error.message, error.fix
    return OK, f"{loaded.host}:{loaded.port} is free; no yard is running"


def _agent(loaded: Settings, running: bool) -> Said:
    if not running:
        return OK, "starts with the yard: runyard up -d"
    agents = Client(home=loaded.home, start=False).agents()
    silent = [agent["name"] for agent in agents if agent["state"] == "unreachable"]
    troubles = [agent["trouble"] for agent in agents if agent["trouble"]]
    if not agents:
        return FAIL, "no agent serves this yard, so nothing can run", f"look into {loaded.home / 'yard.log'}"
    if silent:
        return WARN, f"{', '.join(silent)} does not answer", "its runs continue; start the agent again on its machine"
    if troubles:
        told, _, fix = troubles[0].partition("; ")
        return WARN, told, fix
    return OK, ", ".join(f"{agent['name']} serves {agent['site']}" for agent in agents)


def _mirror(loaded: Settings, running: bool) -> Said:
    assert loaded.mirror is not None
    place = Path(loaded.mirror.dir)
    told = Client(home=loaded.home, start=False).health()["mirror"] if running else None
    if told and told["trouble"]:
        return WARN, f"results are not copied: {told['trouble']}", "mount it, free space, make it writable"
    if not place.is_dir():
        return WARN, f"{place} does not exist, so results are not copied", "mount the share, or create the directory"
    if not os.access(place, os.W_OK | os.X_OK):
        return WARN, f"{place} is not writable, so results are not copied", "let the yard's user write there"
    return OK, f"results are copied to {place}, {units.show_size(shutil.disk_usage(place).free)} free"


def _existing(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


CHECKS: dict[str, Callable[[Settings], Said]] = {
    "home": _home,
    "file system": _file_system,
    "disk": _disk,
    "token": _token,
    "store": _store,
    "gpus": _gpus,
    "driver": lambda _: gpu_checks.Machine().driver(),
    "toolkit": lambda _: gpu_checks.Machine().toolkit(),
    "runtime": lambda _: gpu_checks.Machine().runtime(),
    "zygote": _zygote,
    "scheduler": _scheduler,
    "backends": _backends,
}


def shown_settings(loaded: Settings) -> list[dict[str, Any]]:
    home = {"name": "home", "value": str(loaded.home), "meaning": "The directory that holds everything of this yard"}
    known = declared(Settings).items()
    values = ((name, _shown(one, getattr(loaded, name)), one.help) for name, one in known)
    return [home, *({"name": name, "value": value, "meaning": meaning} for name, value, meaning in values)]


def _shown(setting: Field, value: Any) -> Any:
    """An address without its password; a password not at all."""
    if isinstance(value, Mirror):
        return value.to_json()
    if not setting.secret or not value:
        return value
    return re.sub(r"(://[^:@/]*):.*@", r"\1:…@", value) if "://" in value else "…"
