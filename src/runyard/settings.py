"""Settings of a yard and its embedded site: the defaults, `<home>/config.toml`, then RUNYARD_* variables.

Read once at start. docs/reference/settings.md is made from the descriptions of the fields.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

from runyard import errors
from runyard.model import disk_reserve, fields, nodes, spec, units
from runyard.model.bridge import RodanBridge
from runyard.model.intake import Intake
from runyard.model.mirror import Mirror
from runyard.model.secret import Secret
from runyard.model.webhook import Webhook

SHORTEST_PERMIT_S = 30


def _setting(default: Any, description: str, *, shown: bool = True) -> Any:
    """`shown` is for the text that a debugger or a log makes of the settings: what may hold a password is not in it."""
    metadata = {"description": description}
    if isinstance(default, (list, dict)):
        return field(default_factory=lambda: type(default)(default), metadata=metadata)
    return field(default=default, metadata=metadata, repr=shown)


@dataclass(frozen=True, kw_only=True)
class Settings:
    home: Path = field(metadata={"description": "The directory that holds everything of this yard"})
    host: str = _setting("127.0.0.1", "Address to listen on")
    port: int = _setting(9090, "Port to listen on; 0 takes any free one")
    allowed_hosts: list[str] = _setting([], "Further values of the Host header to accept, besides the loopback names")
    trusted_networks: list[str] = _setting(
        [], "Networks whose machines may call recipes without a token: 192.168.1.0/24"
    )
    public_url: str = _setting("", "Address at which other machines reach this yard: https://yard.lab.example")
    url: str = _setting("", "Address of a yard elsewhere, whose token is the file `token` here; empty: its own yard")
    ca_file: str = _setting("", "File with the certificates to trust at that address; empty means the system's")
    store: str = _setting(
        "", "postgresql:// address of the store; empty means the SQLite file in the home directory", shown=False
    )
    store_password_file: str = _setting("", "A file with the store's password, for an address without one")
    blobs: str = _setting("", "Directory or s3://bucket/prefix for files and logs; empty means in the home directory")
    s3_key_id: str = _setting("", "Name of the access key of the bucket")
    s3_secret: str = _setting("", "Its secret; better as the variable than in the file", shown=False)
    s3_secret_file: str = _setting("", "A file with its secret, such as a secret of Docker or systemd")
    s3_region: str = _setting("us-east-1", "Region of the bucket; stores other than Amazon's take the usual one")
    s3_endpoint: str = _setting("", "host:port of an S3 store other than Amazon's, reached by https")
    s3_ca_file: str = _setting("", "A file with the authority of its certificate; empty means those of the system")
    broker: str = _setting(
        "",
        "amqps:// address of a RabbitMQ that wakes agents elsewhere, user@host/vhost; empty means without",
        shown=False,
    )
    broker_password: str = _setting("", "Its password; better as the variable than in the file", shown=False)
    broker_password_file: str = _setting("", "A file with its password, such as a secret of Docker or systemd")
    broker_ca_file: str = _setting("", "A file with the authority of its certificate; empty means those of the system")
    event_exchange: str = _setting("runyard.events", "Topic exchange of the broker that is told of states; empty: none")
    intake: dict[str, Intake] = _setting({}, "Tables, one for each queue of requests: see [requests](requests.md)")
    webhook: dict[str, Webhook] = _setting({}, "Tables, one for each address to tell: see [requests](requests.md)")
    bridge: dict[str, RodanBridge] = _setting({}, "The table [bridge.rodan]: see [from Rodan](../howto/from-rodan.md)")
    mirror: Mirror | None = _setting(
        None, "The table [mirror]: a shared directory for results, see [results](../howto/results.md)"
    )
    agent_tokens: dict[str, str] = _setting(
        {}, "For each site that agents serve, a file with their token; site and token are made at the start"
    )
    local_site: str = _setting(
        "auto", "auto: the yard's own machine takes runs; named: only those with --site local; off: none"
    )
    cpus: int = _setting(0, "CPU slots of the site 'local'; 0 means as many as this machine lets us use")
    memory: int = _setting(
        0, "Memory slots of the site 'local' in bytes (or like \"64G\"); 0 means all of this machine's"
    )
    gpus: list[str] = _setting([], "GPU UUIDs of the site 'local'; empty means those that NVML finds")
    node: str = _setting("", "Name of this node for `--node`; empty means the machine's own name")
    labels: list[str] = _setting([], 'Labels of this node for `--label`, such as "fast" or "rack=a"')
    only_projects: list[str] = _setting([], "The agent here takes only runs of these projects; empty: of all")
    only_users: list[str] = _setting([], "The agent here takes only runs of these people; empty: of all")
    scratch: str = _setting(
        "", "Directory in which runs get scratch space (TMPDIR); empty: see [nodes](../howto/nodes.md)"
    )
    disk_reserve: str = _setting(
        "", 'Free space below which nothing new starts, like "5G" or "10%"; empty: 5 %, and 2G at most; 0: none'
    )
    spool: list[str] = _setting([], "Drop boxes to look into: see [drop boxes](../howto/drop-box.md)")
    spool_sites: list[str] = _setting([], "Sites whose agents may hand in runs of people from drop boxes")
    spool_limit: int = _setting(20 << 30, 'Most bytes of one bundle in a drop box (or like "20G")')
    spool_files: int = _setting(100_000, "Most files of one bundle in a drop box")
    python: str = _setting("", "Interpreter for runners; empty means the one that runs the yard")
    network_home: str = _setting("auto", "Whether the home is on a network file system: auto, yes or no")
    daemon: str = _setting("auto", "auto: a yard stays running unless the home is on a network file system; no: never")
    lease: int = _setting(60, "Seconds after which a silent agent counts as unreachable")
    lost_after: int = _setting(86400, "Seconds after which runs of an unreachable agent end as lost")
    permit: int = _setting(
        300, "Seconds after which runs that are retried when lost end themselves if their agent is cut off; 0: never"
    )
    checkpoint_days: int = _setting(
        30, "Days for which the checkpoints of a run that did not succeed stay at its site after its end"
    )
    body_limit: int = _setting(64 << 20, 'Largest JSON body in bytes (or like "64M")')
    code_limit: int = _setting(200 << 20, 'Most bytes of code that a submit from here sends (or like "200M")')
    code_files: int = _setting(20_000, "Most files of code that a submit from here sends")
    data_limit: int = _setting(
        20 << 30, 'Most bytes of one folder of data that a submit from here sends (or like "20G")'
    )
    input_limit: int = _setting(
        20 << 30, 'Most bytes of one file that an agent here fetches for a run with `--input` (or like "20G")'
    )
    secrets: dict[str, Secret] = _setting(
        {}, "Tables, one for each secret that `--input` may name: see [code and data](../howto/code-and-data.md)"
    )
    log_level: str = _setting("info", "debug, info, warning or error")

    @property
    def database(self) -> Path:
        return self.home / "yard.db"

    @property
    def store_url(self) -> str:
        """With its password: for whoever opens the store, and for nobody to read."""
        if not self.store:
            return f"sqlite:///{self.database}"
        secret = read_secret(self.store_password_file, "the store's password", "check `store_password_file`")
        return _with_password(self.store, secret) if secret else self.store

    @property
    def has_visitors(self) -> bool:
        """Whether anybody outside has to do with this yard, besides over HTTP."""
        told = self.webhook or self.mirror or (self.broker and self.event_exchange)
        return bool(self.intake or self.bridge or told)

    @property
    def token_file(self) -> Path:
        return self.home / "token"

    @property
    def address_file(self) -> Path:
        """Where a running yard leaves its url, pid and version for clients of the same home."""
        return self.home / "yard.json"

    def site_dir(self, site: str) -> Path:
        return self.home / "sites" / site


def load(home: Path | str | None = None, environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of one home; raises ConfigError with the file and the fix."""
    place = find_home(home, environ)
    given = {**_from_file(place / "config.toml"), **_from_environ(environ)}
    return Settings(home=place, **{**_old_broker(environ), **given})


def changed(loaded: Settings, given: Mapping[str, Any]) -> Settings:
    """With what a command line says, checked as in the file."""
    clean = {name: _clean(name, value, f"--{name.replace('_', '-')}") for name, value in given.items()}
    return dataclasses.replace(loaded, **clean)


def read_secret(path: str, what: str, fix: str) -> str:
    """The text of a file such as a secret of Docker or systemd; empty without a path."""
    if not path:
        return ""
    try:
        return Path(path).expanduser().read_text(encoding="utf-8").rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise errors.ConfigError(f"{what} cannot be read from {path}: {reason}", fix) from None


def find_home(home: Path | str | None = None, environ: Mapping[str, str] = os.environ) -> Path:
    chosen = home or environ.get("RUNYARD_HOME")
    if chosen:
        return Path(chosen).expanduser().absolute()
    import platformdirs

    return Path(platformdirs.user_data_dir("runyard", appauthor=False))


def find_cache() -> Path:
    """Where this user keeps what can be made again."""
    import platformdirs

    return Path(platformdirs.user_cache_dir("runyard", appauthor=False))


def _from_file(path: Path) -> dict[str, Any]:
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise errors.ConfigError(
            f"{path} cannot be read: {error}", "correct that line, or move the file away"
        ) from None
    except OSError as error:
        raise errors.ConfigError(f"{path} cannot be read: {error.strerror}", "check who owns it") from None
    return {name: _clean(name, value, str(path)) for name, value in given.items()}


def _from_environ(environ: Mapping[str, str]) -> dict[str, Any]:
    """What a person sets for one command, or a container at its start: the rest belongs into the file."""
    found = {}
    for name in _VARIABLES:
        variable = f"RUNYARD_{name.upper()}"
        if environ.get(variable):
            found[name] = _clean(name, _read_variable(name, environ[variable]), variable)
    return found


def _read_variable(name: str, value: str) -> Any:
    """Lists have commas between their items, tables too: `name=value,name=value`."""
    if _TYPES[name] == "int" and value.isdigit():
        return int(value)
    items = [item.strip() for item in value.split(",") if item.strip()]
    if _TYPES[name] == "list[str]":
        return items
    if _TYPES[name] == "dict[str, str]":
        return {key: item for key, _, item in (item.partition("=") for item in items)}
    return value


def _old_broker(environ: Mapping[str, str]) -> dict[str, str]:
    """RABBITMQ_HOST as the workers of Training Runs read it. With a user beside it, it is the bridge's to Rodan."""
    host = environ.get("RABBITMQ_HOST")
    return {"broker": f"amqp://guest@{host}//"} if host and not environ.get("RABBITMQ_USER") else {}


_VARIABLES = (
    "port", "host", "allowed_hosts", "trusted_networks", "public_url", "store", "store_password_file", "blobs",
    "s3_key_id", "s3_secret", "s3_secret_file", "s3_region", "s3_endpoint", "s3_ca_file", "broker",
    "broker_password", "broker_password_file", "broker_ca_file", "agent_tokens", "local_site", "cpus", "memory",
    "python", "network_home", "daemon", "code_limit", "code_files", "data_limit", "log_level",
    "node", "labels", "only_projects", "only_users", "scratch", "disk_reserve",
    "spool", "spool_sites",
)  # fmt: skip
_TYPES = {item.name: str(item.type) for item in dataclasses.fields(Settings) if item.name != "home"}


def _clean(name: str, value: Any, where: str) -> Any:
    try:
        fields.one_of(name, "setting", _TYPES)
        return _checked(name, value)
    except errors.InvalidInput as error:
        raise errors.ConfigError(f"{where}: {error.message}", error.fix) from None


def _checked(name: str, value: Any) -> Any:
    if name in _READERS:
        return _READERS[name](value)
    if name in _CHOICES:
        return fields.one_of(value, name, _CHOICES[name])
    if name in _TABLES:
        return {key: _TABLES[name](key, item) for key, item in _table(value, name).items()}
    if name in _SIZES and value != 0:
        return units.parse_size(value, name)
    if _TYPES[name] == "int":
        return fields.integer(value, name, 0, 1 << 60)
    if _TYPES[name] == "list[str]":
        return fields.texts(value, name, 1000)
    return fields.text(value, name, 4096, empty=True)


def _permit(value: object) -> int:
    seconds = units.parse_duration(value, "permit") if value != 0 else 0
    if 0 < seconds < SHORTEST_PERMIT_S:
        raise errors.InvalidInput(
            f"permit: agents speak every few seconds, so {SHORTEST_PERMIT_S} s are the least", "or 0, for none"
        )
    return seconds


def _node(value: object) -> str:
    return nodes.parse_name(value, "node") if value else ""


def _names(value: object, where: str) -> list[str]:
    return [spec.name_text(item, where) for item in fields.texts(value, where, 100)]


def _scratch(value: object) -> str:
    path = fields.text(value, "scratch", 4096, empty=True)
    if path and not path.startswith(("/", "$")):
        raise errors.InvalidInput(f"scratch: {path!r} is not an absolute path", "start it with / or a variable")
    return path


def _disk_reserve(value: object) -> str:
    text = str(value)
    disk_reserve.parse(text)
    return text


def _table(value: object, name: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise errors.InvalidInput(f"{name}: must be tables", f"write them as [{name}.NAME]")
    return value


def _token_file(item: tuple[str, object]) -> tuple[str, str]:
    site, path = item
    if spec.name_text(site, "agent_tokens") == "local":
        raise errors.InvalidInput("agent_tokens: the site 'local' is served by the yard itself", "choose another name")
    return site, fields.text(path, f"agent_tokens.{site}", 4096)


def _with_password(url: str, password: str) -> str:
    """An address that has a password keeps it."""
    scheme, _, rest = url.partition("://")
    login, at, place = rest.partition("@")
    if not at or ":" in login or "/" in login:
        return url
    return f"{scheme}://{login}:{quote(password, safe='')}@{place}"


def _public_url(value: object) -> str:
    text = fields.text(value, "public_url", 1000, empty=True)
    if text and not text.startswith(("http://", "https://")):
        raise errors.InvalidInput("public_url: begins with neither http:// nor https://", "write it out")
    return text


def _network(text: str) -> str:
    import ipaddress

    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        loose = ipaddress.ip_network(text, strict=False) if "host bits" in str(error) else None
        fix = f"write {loose}" if loose else "write it like 192.168.1.0/24"
        raise errors.InvalidInput(f"trusted_networks: {text!r} is not a network", fix) from None


_CHOICES = {
    "network_home": ("auto", "yes", "no"),
    "daemon": ("auto", "no"),
    "local_site": ("auto", "named", "off"),
    "log_level": ("debug", "info", "warning", "error"),
}
_TABLES: dict[str, Callable[[str, object], Any]] = {
    "intake": Intake.parse,
    "webhook": Webhook.parse,
    "bridge": RodanBridge.parse,
    "secrets": Secret.parse,
}
_SIZES = ("memory", "body_limit", "code_limit", "data_limit", "input_limit", "spool_limit")
_READERS: dict[str, Callable[[Any], Any]] = {
    "port": lambda value: fields.integer(value, "port", 0, 65535),
    "lease": lambda value: units.parse_duration(value, "lease"),
    "lost_after": lambda value: units.parse_duration(value, "lost_after"),
    "permit": _permit,
    "node": _node,
    "labels": lambda value: list(nodes.parse_labels(value, "labels")),
    "only_projects": lambda value: _names(value, "only_projects"),
    "only_users": lambda value: _names(value, "only_users"),
    "scratch": _scratch,
    "disk_reserve": _disk_reserve,
    "agent_tokens": lambda value: dict(map(_token_file, _table(value, "agent_tokens").items())),
    "public_url": _public_url,
    "mirror": Mirror.parse,
    "trusted_networks": lambda value: [_network(item) for item in fields.texts(value, "trusted_networks", 100)],
}
