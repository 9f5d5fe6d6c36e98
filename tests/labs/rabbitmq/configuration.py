"""What a lab's RabbitMQ can be told, and the files and variables that tell it. Text only: nothing here starts anything.

Debian's /usr/sbin/rabbitmq-server insists on an account and on log files of its own; the program behind it does not.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path("/usr/lib/rabbitmq/bin")
ADMIN = "lab"
USUAL_MESSAGE_SIZE = 128 << 20

_LOOPBACK = "-kernel inet_dist_use_interface {127,0,0,1}"
# Small, and without the busy waiting by which the Erlang machine buys latency.
_ERLANG = f"{_LOOPBACK} +S 2:2 +sbwt none +sbwtdcpu none +sbwtdio none"


@dataclass(frozen=True, kw_only=True)
class Options:
    nodes: int = 1
    consumer_timeout_s: int | None = None  # how long a message may stay unacknowledged; RabbitMQ's default is 30 min
    max_message_size: int | None = None  # bytes; RabbitMQ's default is USUAL_MESSAGE_SIZE, and 16 MiB since 4.0
    quorum: bool = True  # without: as a broker that knows no quorum queues
    overrides: tuple[tuple[str, str], ...] = ()  # lines of rabbitmq.conf


@dataclass(frozen=True, kw_only=True)
class Node:
    name: str  # n1, n2, …
    directory: Path
    port: int
    tls_port: int
    http_port: int
    distribution_port: int

    @property
    def erlang_name(self) -> str:
        """`localhost` resolves everywhere."""
        return f"{self.name}@localhost"

    @property
    def data(self) -> Path:
        return self.directory / "data"


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where everything of one lab is."""

    root: Path
    password: str  # of the administrator
    epmd_port: int
    nodes: tuple[Node, ...]

    @property
    def certificates(self) -> Path:
        return self.root / "certificates"

    @property
    def cookie(self) -> Path:
        """Erlang looks for it in the home directory, which is the lab's root."""
        return self.root / ".erlang.cookie"


def write(layout: Layout, options: Options) -> None:
    for node in layout.nodes:
        node.directory.mkdir()
        (node.directory / "rabbitmq.conf").write_text(rabbitmq_conf(layout, node, options))
        (node.directory / "advanced.config").write_text(advanced_config(options))
        (node.directory / "plugins").write_text("[rabbitmq_management].\n")


def rabbitmq_conf(layout: Layout, node: Node, options: Options) -> str:
    settings = {
        "listeners.tcp.1": f"127.0.0.1:{node.port}",
        "listeners.ssl.1": f"127.0.0.1:{node.tls_port}",
        "ssl_options.cacertfile": layout.certificates / "authority.pem",
        "ssl_options.certfile": layout.certificates / "server.pem",
        "ssl_options.keyfile": layout.certificates / "server.key",
        "ssl_options.verify": "verify_none",
        "management.tcp.ip": "127.0.0.1",
        "management.tcp.port": node.http_port,
        "collect_statistics_interval": 1000,  # ms: so old is what the management API says of queues
        "default_user": ADMIN,
        "default_pass": layout.password,
        "loopback_users": "none",
        "log.console": "false",
        "log.file.level": "info",
        "vm_memory_high_watermark.absolute": "1GB",
        "disk_free_limit.absolute": "50MB",
        **_cluster(layout),
    }
    if options.consumer_timeout_s is not None:
        settings["consumer_timeout"] = options.consumer_timeout_s * 1000
    if options.max_message_size is not None:
        settings["max_message_size"] = options.max_message_size
    settings |= dict(options.overrides)
    return "".join(f"{name} = {value}\n" for name, value in settings.items())


def _cluster(layout: Layout) -> dict[str, object]:
    if len(layout.nodes) == 1:
        return {}
    formation = "cluster_formation."
    members = {
        f"{formation}classic_config.nodes.{number}": node.erlang_name for number, node in enumerate(layout.nodes, 1)
    }
    return {
        f"{formation}peer_discovery_backend": "classic_config",
        f"{formation}randomized_startup_delay_range.min": 0,
        f"{formation}randomized_startup_delay_range.max": 1,
        "cluster_partition_handling": "pause_minority",
        **members,
    }


def advanced_config(options: Options) -> str:
    """A consumer's timeout is looked at once a minute unless this says otherwise; rabbitmq.conf cannot say it."""
    tick = "{channel_tick_interval, 1000}" if options.consumer_timeout_s is not None else ""
    return f"[{{rabbit, [{tick}]}}].\n"


def environment(layout: Layout, node: Node, options: Options) -> dict[str, str]:
    """For the node itself, and for rabbitmqctl that speaks to it."""
    features = {} if options.quorum else {"RABBITMQ_FEATURE_FLAGS": "implicit_default_bindings"}
    return {
        **features,
        "HOME": str(layout.root),
        "ERL_EPMD_PORT": str(layout.epmd_port),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        "RUNNING_UNDER_SYSTEMD": "true",  # the script becomes the Erlang machine, so its pid is the node's
        "RABBITMQ_NODENAME": node.erlang_name,
        "RABBITMQ_NODE_PORT": str(node.port),
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_DIST_PORT": str(node.distribution_port),
        "RABBITMQ_MNESIA_BASE": str(node.data),
        "RABBITMQ_LOG_BASE": str(layout.root / "log"),
        "RABBITMQ_PID_FILE": str(node.directory / "pid"),
        "RABBITMQ_CONFIG_FILE": str(node.directory / "rabbitmq"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(node.directory / "advanced.config"),
        "RABBITMQ_GENERATED_CONFIG_DIR": str(node.directory / "generated"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(node.directory / "plugins"),
        "RABBITMQ_CONF_ENV_FILE": str(node.directory / "no-such-file"),
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": _ERLANG,
        "RABBITMQ_CTL_ERL_ARGS": _LOOPBACK,
    }
