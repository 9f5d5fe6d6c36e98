"""Settings of a yard and its embedded site: the defaults, `<home>/config.toml`, then RUNYARD_* variables.

Read once at start. docs/reference/settings.md is made from the declarations.
"""

from __future__ import annotations

import dataclasses
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from runyard import errors
from runyard.model import fields, setting_values
from runyard.model.bridge import RodanBridge
from runyard.model.declaration import Declared, declared, field
from runyard.model.intake import Intake
from runyard.model.mirror import Mirror
from runyard.model.secret import Secret
from runyard.model.setting_values import COUNT, NAMES, TEXT, TEXTS
from runyard.model.values import Choice, Duration, Part, Size, Tables, Whole
from runyard.model.webhook import Webhook


@dataclass(frozen=True, kw_only=True)
class Settings(Declared):
    home: Path  # the directory that holds everything of this yard
    host: str = field(TEXT, default="127.0.0.1", variable=True, help="Address to listen on")
    port: int = field(Whole(0, 65535), default=9090, variable=True, help="Port to listen on; 0 takes any free one")
    allowed_hosts: list[str] = field(
        TEXTS, make=list, variable=True,
        help="Further values of the Host header to accept, besides the loopback names",
    )  # fmt: skip
    trusted_networks: list[str] = field(
        setting_values.NETWORKS, make=list, variable=True,
        help="Networks whose machines may call recipes without a token: 192.168.1.0/24",
    )  # fmt: skip
    public_url: str = field(
        setting_values.WEB_ADDRESS, default="", variable=True,
        help="Address at which other machines reach this yard: https://yard.lab.example",
    )  # fmt: skip
    url: str = field(
        TEXT, default="",
        help="Address of a yard elsewhere, whose token is the file `token` here; empty: its own yard",
    )  # fmt: skip
    ca_file: str = field(
        TEXT, default="",
        help="File with the certificates to trust at that address; empty means the system's",
    )  # fmt: skip
    store: str = field(
        TEXT, default="", variable=True, secret=True,
        help="postgresql:// address of the store; empty means the SQLite file in the home directory",
    )  # fmt: skip
    store_password_file: str = field(
        TEXT, default="", variable=True,
        help="A file with the store's password, for an address without one",
    )  # fmt: skip
    blobs: str = field(
        TEXT, default="", variable=True,
        help="Directory or s3://bucket/prefix for files and logs; empty means in the home directory",
    )  # fmt: skip
    s3_key_id: str = field(
        TEXT, default="", variable=True,
        help="Id of the bucket's access key; empty means AWS variables, a profile or a role",
    )  # fmt: skip
    s3_secret: str = field(
        TEXT, default="", variable=True, secret=True,
        help="Its secret; better as the variable than in the file",
    )  # fmt: skip
    s3_secret_file: str = field(
        TEXT, default="", variable=True,
        help="A file with its secret, such as a secret of Docker or systemd",
    )  # fmt: skip
    s3_region: str = field(
        TEXT, default="us-east-1", variable=True,
        help="Region of the bucket; stores other than Amazon's take the usual one",
    )  # fmt: skip
    s3_endpoint: str = field(
        TEXT, default="", variable=True,
        help="host:port of an S3 store other than Amazon's, reached by https",
    )  # fmt: skip
    s3_ca_file: str = field(
        TEXT, default="", variable=True,
        help="A file with the authority of its certificate; empty means those of the system",
    )  # fmt: skip
    broker: str = field(
        TEXT, default="", variable=True, secret=True,
        help="amqps:// address of a RabbitMQ that wakes agents elsewhere, user@host/vhost; empty means without",
    )  # fmt: skip
    broker_password: str = field(
        TEXT, default="", variable=True, secret=True,
        help="Its password; better as the variable than in the file",
    )  # fmt: skip
    broker_password_file: str = field(
        TEXT, default="", variable=True,
        help="A file with its password, such as a secret of Docker or systemd",
    )  # fmt: skip
    broker_ca_file: str = field(
        TEXT, default="", variable=True,
        help="A file with the authority of its certificate; empty means those of the system",
    )  # fmt: skip
    event_exchange: str = field(
        TEXT, default="runyard.events",
        help="Topic exchange of the broker to which changes of state are published; empty: none",
    )  # fmt: skip
    intake: dict[str, Intake] = field(
        Tables(Intake.parse_table), make=dict,
        help="Tables, one for each queue of requests: see [requests](requests.md)",
    )  # fmt: skip
    webhook: dict[str, Webhook] = field(
        Tables(Webhook.parse_table), make=dict,
        help="Tables, one for each address to tell: see [requests](requests.md)",
    )  # fmt: skip
    bridge: dict[str, RodanBridge] = field(
        Tables(RodanBridge.parse_table), make=dict,
        help="The table [bridge.rodan]: see [from Rodan](../howto/from-rodan.md)",
    )  # fmt: skip
    mirror: Mirror | None = field(
        Part(Mirror), default=None,
        help="The table [mirror]: a shared directory for results, see [results](../howto/results.md)",
    )  # fmt: skip
    agent_tokens: dict[str, str] = field(
        setting_values.TOKEN_FILES, make=dict, variable=True,
        help="For each site that agents serve, a file with their token; site and token are made at the start",
    )  # fmt: skip
    local_site: str = field(
        Choice(("auto", "named", "off")), default="auto", variable=True,
        help="auto: the yard's own machine takes runs; named: only those with --site local; off: none",
    )  # fmt: skip
    cpus: int = field(
        COUNT, default=0, variable=True,
        help="CPU slots of the site 'local'; 0 means as many as this machine lets us use",
    )  # fmt: skip
    memory: int = field(
        Size(zero=True), default=0, variable=True,
        help='Memory slots of the site \'local\' in bytes (or like "64G"); 0 means all of this machine\'s',
    )  # fmt: skip
    gpus: list[str] = field(TEXTS, make=list, help="GPU UUIDs of the site 'local'; empty means those that NVML finds")
    node: str = field(
        setting_values.NODE, default="", variable=True,
        help="Name of this node for `--node`; empty means the machine's own name",
    )  # fmt: skip
    labels: list[str] = field(
        setting_values.LABELS, make=list, variable=True,
        help='Labels of this node for `--label`, such as "fast" or "rack=a"',
    )  # fmt: skip
    only_projects: list[str] = field(
        NAMES, make=list, variable=True,
        help="The agent here takes only runs of these projects; empty: of all",
    )  # fmt: skip
    only_users: list[str] = field(
        NAMES, make=list, variable=True,
        help="The agent here takes only runs of these people; empty: of all",
    )  # fmt: skip
    scratch: str = field(
        setting_values.SCRATCH, default="", variable=True,
        help="Directory in which runs get scratch space (TMPDIR); empty: see [nodes](../howto/nodes.md)",
    )  # fmt: skip
    disk_reserve: str = field(
        setting_values.DISK_RESERVE, default="", variable=True,
        help='Free space below which nothing new starts, like "5G" or "10%"; empty: 5 %, and 2G at most; 0: none',
    )  # fmt: skip
    spool: list[str] = field(
        TEXTS, make=list, variable=True,
        help="Drop boxes to look into: see [drop boxes](../howto/drop-box.md)",
    )  # fmt: skip
    spool_sites: list[str] = field(
        TEXTS, make=list, variable=True,
        help="Sites whose agents may submit runs from drop boxes in the name of their owners",
    )  # fmt: skip
    spool_limit: int = field(
        Size(zero=True), default=20 << 30,
        help='Most bytes of one bundle in a drop box (or like "20G")',
    )  # fmt: skip
    spool_files: int = field(COUNT, default=100_000, help="Most files of one bundle in a drop box")
    python: str = field(
        TEXT, default="", variable=True,
        help="Interpreter for runners; empty means the one that runs the yard",
    )  # fmt: skip
    network_home: str = field(
        Choice(("auto", "yes", "no")), default="auto", variable=True,
        help="Whether the home is on a network file system: auto, yes or no",
    )  # fmt: skip
    daemon: str = field(
        Choice(("auto", "no")), default="auto", variable=True,
        help="auto: a yard stays running unless the home is on a network file system; no: never",
    )  # fmt: skip
    lease: int = field(Duration(), default=60, help="Seconds after which a silent agent counts as unreachable")
    lost_after: int = field(
        Duration(), default=86400,
        help="Seconds after which runs of an unreachable agent end as lost",
    )  # fmt: skip
    permit: int = field(
        setting_values.PERMIT, default=300,
        help="Seconds after which runs that are retried when lost end themselves if their agent is cut off; 0: never",
    )  # fmt: skip
    checkpoint_days: int = field(
        COUNT, default=30,
        help="Days for which the checkpoints of a run that did not succeed stay at its site after its end",
    )  # fmt: skip
    body_limit: int = field(Size(zero=True), default=64 << 20, help='Largest JSON body in bytes (or like "64M")')
    code_limit: int = field(
        Size(zero=True), default=200 << 20, variable=True,
        help='Most bytes of code that a submit from here sends (or like "200M")',
    )  # fmt: skip
    code_files: int = field(
        COUNT, default=20_000, variable=True,
        help="Most files of code that a submit from here sends",
    )  # fmt: skip
    data_limit: int = field(
        Size(zero=True), default=20 << 30, variable=True,
        help='Most bytes of one folder of data that a submit from here sends (or like "20G")',
    )  # fmt: skip
    input_limit: int = field(
        Size(zero=True), default=20 << 30,
        help='Most bytes of one file that an agent here fetches for a run with `--input` (or like "20G")',
    )  # fmt: skip
    secrets: dict[str, Secret] = field(
        Tables(Secret.parse_table), make=dict,
        help="Tables, one for each secret that `--input` may name: see [code and data](../howto/code-and-data.md)",
    )  # fmt: skip
    log_level: str = field(
        Choice(("debug", "info", "warning", "error")), default="info", variable=True,
        help="debug, info, warning or error",
    )  # fmt: skip

    @property
    def database(self) -> Path:
        return self.home / "yard.db"

    @property
    def store_url(self) -> str:
        """With its password: only for opening the store, never shown."""
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
    for name, one in declared(Settings).items():
        variable = variable_of(name)
        if one.variable and environ.get(variable):
            found[name] = _clean(name, _read_variable(one.default, environ[variable]), variable)
    return found


def variable_of(name: str) -> str:
    return f"RUNYARD_{name.upper()}"


def _read_variable(default: Any, value: str) -> Any:
    """Lists have commas between their items, tables too: `name=value,name=value`."""
    if isinstance(default, int) and value.isdigit():
        return int(value)
    items = [item.strip() for item in value.split(",") if item.strip()]
    if isinstance(default, list):
        return items
    if isinstance(default, dict):
        return {key: item for key, _, item in (item.partition("=") for item in items)}
    return value


def _old_broker(environ: Mapping[str, str]) -> dict[str, str]:
    """RABBITMQ_HOST as the workers of Training Runs read it. With a user beside it, it is the bridge's to Rodan."""
    host = environ.get("RABBITMQ_HOST")
    return {"broker": f"amqp://guest@{host}//"} if host and not environ.get("RABBITMQ_USER") else {}


def _clean(name: str, value: Any, where: str) -> Any:
    try:
        fields.one_of(name, "setting", declared(Settings))
        return declared(Settings)[name].value.parse(value, name)
    except errors.InvalidInput as error:
        raise errors.ConfigError(f"{where}: {error.message}", error.fix) from None


def _with_password(url: str, password: str) -> str:
    """An address that has a password keeps it."""
    scheme, _, rest = url.partition("://")
    login, at, place = rest.partition("@")
    if not at or ":" in login or "/" in login:
        return url
    return f"{scheme}://{login}:{quote(password, safe='')}@{place}"
