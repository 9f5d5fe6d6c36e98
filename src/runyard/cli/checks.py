"""What `runyard doctor` looks at: each check gives a verdict, a sentence and, when something is wrong, the fix."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import shutil
import socket
import sqlite3
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from runyard import errors, home, kinds, settings
from runyard.cli import broker_checks, detached, gpu_checks
from runyard.cli.verdicts import FAIL, OK, WARN, Finding, Said, failed, finding
from runyard.client import Client
from runyard.hosts import local
from runyard.model import units
from runyard.model.mirror import Mirror
from runyard.settings import Settings

LITTLE_SPACE = 5 << 30
NO_SPACE = 200 << 20


def draw(console: Any, findings: Iterable[Finding]) -> list[Finding]:
    """Line by line, as each is found: a slow check is seen to be the slow one."""
    from rich.text import Text

    from runyard.cli import tables

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
    """All findings, one after the other; a check that breaks is a finding too."""
    yield finding("python", lambda: (OK, f"{sys.version.split()[0]} at {sys.executable}"))
    try:
        loaded = settings.load()
    except errors.ConfigError as error:
        yield failed("settings", error)
        return
    yield finding("settings", lambda: _settings(loaded))
    yard = detached.answering(loaded.home)
    for name, look in CHECKS.items():
        yield finding(name, lambda look=look: look(loaded))  # type: ignore[misc]
    yield finding("port", lambda: _port(loaded, yard.url if yard else None))
    yield finding("agent", lambda: _agent(loaded, yard is not None))
    if loaded.mirror is not None:
        yield finding("mirror", lambda: _mirror(loaded, yard is not None))
    yield from broker_checks.examine(loaded)


def _settings(loaded: Settings) -> Said:
    path = loaded.home / "config.toml"
    return OK, str(path) if path.exists() else f"the defaults; {path} would change them"


def _home(loaded: Settings) -> Said:
    if not loaded.home.exists():
        return OK, f"{loaded.home} will be made at the first start"
    found = loaded.home.stat()
    if found.st_uid != os.getuid():
        return FAIL, f"{loaded.home} belongs to another user", "set RUNYARD_HOME to a directory of yours"
    if stat.S_IMODE(found.st_mode) & 0o077:
        return WARN, f"{loaded.home} is open to others", f"chmod 700 {loaded.home}"
    if not os.access(loaded.home, os.W_OK | os.X_OK):
        return FAIL, f"{loaded.home} cannot be written", f"chmod 700 {loaded.home}"
    return OK, f"{loaded.home}, for its owner alone"


def _file_system(loaded: Settings) -> Said:
    network = home.is_on_network(loaded)
    if not network:
        return OK, "a local file system"
    if loaded.store or loaded.network_home == "no":
        return OK, "a network file system, and the store is elsewhere or said to be safe there"
    return FAIL, "a network file system, where a yard cannot run as a daemon", "set RUNYARD_HOME to a local disk"


def _disk(loaded: Settings) -> Said:
    free = shutil.disk_usage(_existing(loaded.home)).free
    said = f"{units.show_size(free)} free"
    if free < NO_SPACE:
        return FAIL, said, "make room: logs and outputs could not be kept"
    return (WARN, said, "make room soon") if free < LITTLE_SPACE else (OK, said)


def _token(loaded: Settings) -> Said:
    try:
        mode = stat.S_IMODE(loaded.token_file.stat().st_mode)
    except FileNotFoundError:
        return OK, "will be made at the first start"
    if mode & 0o077:
        return FAIL, f"{loaded.token_file} can be read by others", f"chmod 600 {loaded.token_file}"
    return OK, f"{loaded.token_file}, for its owner alone"


def _store(loaded: Settings) -> Said:
    if loaded.store:
        return _postgres(loaded)
    if not loaded.database.exists():
        return OK, "will be made at the first start"
    try:
        with contextlib.closing(_opened(loaded.database)) as connection:
            (said,) = connection.execute("PRAGMA quick_check(1)").fetchone()
            (runs,) = connection.execute("SELECT count(*) FROM runs").fetchone()
    except sqlite3.OperationalError as error:  # of the file and its disk, not of what is in it
        return FAIL, f"{loaded.database} cannot be read: {error}", "look at its owner, its rights and its disk"
    except sqlite3.DatabaseError as error:
        said, runs = str(error), 0
    if said != "ok":
        return FAIL, f"{loaded.database} is damaged: {said}", "stop the yard and restore it from a copy"
    return OK, f"{runs} run{'s' if runs != 1 else ''} in {units.show_size(_size(loaded.database))}, undamaged"


def _opened(database: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{database.as_uri()}?mode=ro", uri=True, timeout=10)


def _postgres(loaded: Settings) -> Said:
    from sqlalchemy import exc

    from runyard.store import engine

    try:
        with engine.lasting_engine(engine.parse_url(loaded.store_url), "runyard doctor").connect() as connection:
            version = str(connection.exec_driver_sql("SHOW server_version").scalar_one())
    except exc.DBAPIError as error:
        why = str(error.orig).partition("\n")[0]
        return FAIL, f"PostgreSQL does not answer: {why}", "start it, or correct `store`: the yard goes on by itself"
    return OK, f"PostgreSQL {version.split()[0]} answers; its own tools check it"


def _size(database: Path) -> int:
    """With what is written beside it until it is moved in."""
    return sum(path.stat().st_size for path in (database, Path(f"{database}-wal")) if path.exists())


def _gpus(loaded: Settings) -> Said:
    from runyard.runner import nvml

    if loaded.gpus:
        return OK, f"{len(loaded.gpus)} named in the settings"
    found = [f"{gpu['name']} ({units.show_size(gpu['memory'])})" for gpu in nvml.gpus()]
    return OK, ", ".join(found) or "none that an NVIDIA driver knows of"


def _zygote(loaded: Settings) -> Said:
    """The pre-warmed process that starts runners; it need not run."""
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
    found = local.detect_scheduler()
    if found is None:
        return OK, "no batch scheduler answers here; runs execute on this machine"
    return WARN, f"{found} answers here: this is a login node", "runs execute here only with --site local"


def _backends(loaded: Settings) -> Said:
    from runyard.backends import registry

    broken = registry.broken()
    if broken:
        name, why = next(iter(broken.items()))
        return FAIL, why, f"reinstall or remove the plug-in {name}"
    return OK, ", ".join(kinds.names())


def _port(loaded: Settings, url: str | None) -> Said:
    if url:
        return OK, f"the yard answers at {url}"
    from runyard.server import address

    try:
        address.bind(loaded).close()
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
        return WARN, f"{', '.join(silent)} is silent", "its runs go on; start it again where it was"
    if troubles:
        told, _, fix = troubles[0].partition("; ")
        return WARN, told, fix
    return OK, ", ".join(f"{agent['name']} serves {agent['site']}" for agent in agents)


def _mirror(loaded: Settings, running: bool) -> Said:
    assert loaded.mirror is not None
    place = Path(loaded.mirror.dir)
    told = Client(home=loaded.home, start=False).health()["mirror"] if running else None
    if told and told["trouble"]:
        return WARN, f"results wait: {told['trouble']}", "mount it, make room, and let the yard's user write there"
    if not place.is_dir():
        return WARN, f"{place} is not there, so results wait", "mount the share, or make the directory"
    if not os.access(place, os.W_OK | os.X_OK):
        return WARN, f"{place} cannot be written, so results wait", "let the yard's user write there"
    return OK, f"results go to {place}, {units.show_size(shutil.disk_usage(place).free)} free"


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
    return [
        {"name": item.name, "value": _shown(item, getattr(loaded, item.name)), "meaning": item.metadata["description"]}
        for item in dataclasses.fields(loaded)
    ]


def _shown(item: dataclasses.Field[Any], value: Any) -> Any:
    """An address without the password that may be in it, and a password not at all."""
    if isinstance(value, Mirror):
        return value.to_json()
    if item.repr or not value:
        return str(value) if isinstance(value, Path) else value
    return re.sub(r"(://[^:@/]*):.*@", r"\1:…@", value) if "://" in value else "…"
