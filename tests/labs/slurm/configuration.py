"""What a lab's Slurm can be told, and the files that tell it. Text only: nothing here starts anything."""

from __future__ import annotations

import pwd
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

CLUSTER = "lab"
ACCOUNT = "lab"

# Jobs start within a second; Slurm's own defaults let them wait for three.
_SCHEDULER = (
    "batch_sched_delay=0,sched_interval=1,sched_min_interval=0,"
    "bf_interval=1,bf_max_job_test=500,default_queue_depth=2000"
)


@dataclass(frozen=True, kw_only=True)
class Options:
    nodes: int = 3
    cpus: int = 4  # that each node claims, whatever this machine has
    memory_mb: int = 4000
    accounting: bool = False  # slurmdbd on a MariaDB; without it Slurm forgets a job after `min_job_age_s`
    isolate: bool = False  # every node a machine of its own that can lose power; needs root
    gpus: int = 0  # of type `a100` on each node, which are copies of /dev/null; needs root
    cgroup_memory: bool = False  # memory limits are enforced by control groups (v1); needs root
    preempt: Literal["", "cancel", "requeue"] = ""  # jobs of partition `urgent` displace those of `scavenge`
    max_array_size: int = 1001  # Slurm's own default
    max_submit_jobs: int | None = None  # of the user; needs accounting
    min_job_age_s: int = 300
    # With 4 or 15, slurmd sometimes purges a script that it has just been given ("vestigial"): short values are for
    # tests that lose a node.
    slurmd_timeout_s: int = 300
    kill_wait_s: int = 3
    overrides: tuple[tuple[str, str], ...] = ()  # lines of slurm.conf

    def __post_init__(self) -> None:
        if self.max_submit_jobs is not None and not self.accounting:
            raise ValueError("max_submit_jobs is a limit of an association, and only slurmdbd has those")


@dataclass(frozen=True, kw_only=True)
class Node:
    name: str
    host: str
    address: str
    port: int


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where everything of one lab is."""

    root: Path
    user: str  # who runs the daemons
    controller_address: str
    controller_port: int
    database_port: int
    nodes: tuple[Node, ...] = field(default=())

    @property
    def configuration(self) -> Path:
        return self.root / "slurm.conf"

    @property
    def munge_socket(self) -> Path:
        return self.root / "munge" / "socket"

    @property
    def logs(self) -> Path:
        return self.root / "log"


def write(layout: Layout, options: Options) -> None:
    layout.configuration.write_text(slurm_conf(layout, options))
    (layout.root / "cgroup.conf").write_text(cgroup_conf(options))
    if options.gpus:
        (layout.root / "gres.conf").write_text(gres_conf(layout, options))
    if options.accounting:
        path = layout.root / "slurmdbd.conf"
        path.write_text(slurmdbd_conf(layout))
        path.chmod(0o600)  # slurmdbd insists


def slurm_conf(layout: Layout, options: Options) -> str:
    settings = {
        **_identity(layout),
        **_files(layout),
        **_behaviour(options),
        **_communication(options),
        **_optional(layout, options),
        **dict(options.overrides),
    }
    return _lines(settings) + "".join(_node_lines(layout, options)) + "".join(_partition_lines(options))


def gres_conf(layout: Layout, options: Options) -> str:
    """Only with device files does Slurm set CUDA_VISIBLE_DEVICES; `File=/dev/null` twice is fatal to it."""
    last = options.gpus - 1
    files = f"{layout.root}/devices/gpu{f'[0-{last}]' if last else '0'}"
    return "".join(f"NodeName={node.name} Name=gpu Type=a100 File={files}\n" for node in layout.nodes)


def cgroup_conf(options: Options) -> str:
    if not options.cgroup_memory:
        return "CgroupAutomount=no\n"
    return _lines({
        "CgroupPlugin": "cgroup/v1",
        "CgroupMountpoint": "/sys/fs/cgroup",
        "ConstrainRAMSpace": "yes",
        "ConstrainSwapSpace": "no",
        "ConstrainCores": "no",
        "ConstrainDevices": "no",
        "MinRAMSpace": "1",
    })  # fmt: skip


def slurmdbd_conf(layout: Layout) -> str:
    return _lines({
        "AuthType": "auth/munge",
        "AuthInfo": f"socket={layout.munge_socket}",
        "DbdHost": "localhost",
        "DbdAddr": "127.0.0.1",
        "DbdPort": layout.database_port,
        "SlurmUser": layout.user,
        "LogFile": layout.logs / "slurmdbd.log",
        "PidFile": layout.root / "run" / "slurmdbd.pid",
        "StorageType": "accounting_storage/mysql",
        "StorageHost": "localhost",  # by the Unix socket that MYSQL_UNIX_PORT names
        "StorageUser": "root",
        "StorageLoc": "slurm_acct",
    })  # fmt: skip


def _identity(layout: Layout) -> dict[str, object]:
    return {
        "ClusterName": CLUSTER,
        "SlurmctldHost": f"{host_name()}({layout.controller_address})",
        "SlurmctldPort": layout.controller_port,
        "SlurmUser": layout.user,
        "SlurmdUser": layout.user,
        "AuthType": "auth/munge",
        "CredType": "cred/munge",
        "AuthInfo": f"socket={layout.munge_socket}",
    }


def _files(layout: Layout) -> dict[str, object]:
    run = layout.root / "run"
    return {
        "StateSaveLocation": layout.root / "state",
        "SlurmdSpoolDir": layout.root / "spool" / "%n",
        "SlurmctldPidFile": run / "slurmctld.pid",
        "SlurmdPidFile": run / "slurmd-%n.pid",
        "SlurmctldLogFile": layout.logs / "slurmctld.log",
        "SlurmdLogFile": layout.logs / "slurmd-%n.log",
        "LogTimeFormat": "iso8601_ms",
    }


def _behaviour(options: Options) -> dict[str, object]:
    return {
        "SchedulerType": "sched/backfill",
        "SchedulerParameters": _SCHEDULER,
        "DependencyParameters": "kill_invalid_depend",
        "SelectType": "select/cons_tres",
        "SelectTypeParameters": "CR_CPU_Memory",
        "DefMemPerCPU": 100,  # or a job that asks for no memory takes the whole node's
        "SlurmdParameters": "config_overrides",  # nodes may claim more CPUs than there are
        "ProctrackType": "proctrack/cgroup" if options.cgroup_memory else "proctrack/linuxproc",
        "TaskPlugin": "task/cgroup" if options.cgroup_memory else "task/none",
        "JobAcctGatherType": "jobacct_gather/linux",
        "JobAcctGatherFrequency": "task=1",
        "MpiDefault": "none",
        "ReturnToService": 2,
        "MaxArraySize": options.max_array_size,
        "MinJobAge": options.min_job_age_s,
        "KillWait": options.kill_wait_s,
        "SlurmdTimeout": options.slurmd_timeout_s,
        "UnkillableStepTimeout": 30,
    }


def _communication(options: Options) -> dict[str, object]:
    """Slurm listens on every address unless told otherwise. With machines it must: the controller has to be reached
    through the switch, and a step's nodes have to reach the srun that waits for them."""
    return {} if options.isolate else {"CommunicationParameters": "NoInAddrAny,NoCtldInAddrAny"}


def _optional(layout: Layout, options: Options) -> dict[str, object]:
    settings: dict[str, object] = {}
    if options.gpus:
        settings["GresTypes"] = "gpu"
    if options.preempt:
        settings |= {"PreemptType": "preempt/partition_prio", "PreemptMode": options.preempt.upper()}
    if options.accounting:
        settings |= {
            "AccountingStorageType": "accounting_storage/slurmdbd",
            "AccountingStorageHost": "127.0.0.1",
            "AccountingStoragePort": layout.database_port,
            "AccountingStoragePass": layout.munge_socket,  # this connection does not read AuthInfo
            "AccountingStorageEnforce": "associations,limits",
            "AccountingStoreFlags": "job_comment",
        }
    return settings


def _node_lines(layout: Layout, options: Options) -> list[str]:
    resources = f"CPUs={options.cpus} RealMemory={options.memory_mb}"
    resources += f" Gres=gpu:a100:{options.gpus}" if options.gpus else ""
    return [
        f"NodeName={node.name} NodeHostname={node.host} NodeAddr={node.address} Port={node.port} {resources}\n"
        for node in layout.nodes
    ]


def _partition_lines(options: Options) -> list[str]:
    lines = ["PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE PriorityTier=1 PreemptMode=OFF\n"]
    if options.preempt:
        mode = options.preempt.upper()
        lines.append(f"PartitionName=scavenge Nodes=ALL MaxTime=INFINITE PriorityTier=1 PreemptMode={mode}\n")
        lines.append("PartitionName=urgent Nodes=ALL MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF\n")
    return lines


def _lines(settings: Mapping[str, object]) -> str:
    return "".join(f"{name}={value}\n" for name, value in settings.items())


def host_name() -> str:
    return socket.gethostname().partition(".")[0]


def user_name(uid: int) -> str:
    return pwd.getpwuid(uid).pw_name
