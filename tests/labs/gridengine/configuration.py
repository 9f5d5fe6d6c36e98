"""What a lab's Grid Engine can be told, and the texts that tell it. Nothing here starts anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path("/usr/lib/gridengine")
"""The programs themselves: what Debian has in /usr/bin are shell scripts that take twenty times as long."""

QUEUE = "cpu"
SPREAD = "spread"  # a parallel environment that takes two slots of each host
_DEFAULTS = Path("/usr/share/gridengine/default-configuration")
_COMPLEXES = {"gpu": "INT", "memory": "MEMORY"}
_LABELS = {"fast": "BOOL == YES NO 0 0", "rack": "STRING == YES NO NONE 0"}  # what hosts may be said to have


@dataclass(frozen=True, kw_only=True)
class Options:
    hosts: int = 2
    slots: int = 4  # of each host
    notify_s: int = 5  # from the warning of a job that is deleted to its end; Debian's own is a minute
    memory: str = "8G"  # of each host, as the consumable `memory`
    gpus: int = 0  # of each host, as the consumable `gpu`
    shell_start_mode: str = "unix_behavior"  # Debian's own is posix_compliant, which ignores `#!`
    max_aj_tasks: int = 75000
    max_u_jobs: int = 0  # no limit
    # With short values a restarted qmaster reschedules jobs that have long ended: for tests that lose a host.
    max_unheard_s: int = 300
    reschedule_unknown_s: int = 0  # never


def bootstrap(root: Path) -> str:
    return _lines({
        "admin_user": "sgeadmin",
        "default_domain": "none",
        "ignore_fqdn": "true",
        "spooling_method": "classic",
        "spooling_lib": "libspoolc",
        "spooling_params": spooling(root),
        "binary_path": root / "bin",
        "qmaster_spool_dir": root / "spool" / "qmaster",
        "security_mode": "none",
        "listener_threads": 2,
        "worker_threads": 2,
        "scheduler_threads": 1,
    })  # fmt: skip


def spooling(root: Path) -> str:
    return f"{root}/default/common;{root}/spool/qmaster"


def settings_sh(env: Mapping[str, str]) -> str:
    """What people source on a real site."""
    return "".join(f"export {name}='{value}'\n" for name, value in env.items())


def cell(root: Path, options: Options) -> str:
    """The cell's own configuration: Debian's, with these lines changed."""
    return replaced(_DEFAULTS.read_text(), {
        "execd_spool_dir": root / "spool" / "execd",
        "min_uid": 0,  # root may submit too
        "min_gid": 0,
        "load_report_time": "00:00:02",
        "max_unheard": _clock(options.max_unheard_s),
        "reschedule_unknown": _clock(options.reschedule_unknown_s),
        "max_aj_tasks": options.max_aj_tasks,
        "max_u_jobs": options.max_u_jobs,
        "reporting_params": "accounting=true reporting=false flush_time=00:00:01 joblog=false sharelog=00:00:00",
        "mailer": "/bin/true",
    })  # fmt: skip


def scheduler(current: str) -> str:
    """Jobs start within a second; Debian's defaults let them wait for fifteen."""
    return replaced(current, {
        "schedule_interval": "0:0:1",
        "flush_submit_sec": 1,
        "flush_finish_sec": 1,
        "schedd_job_info": "true",  # `qstat -j` says why a job waits
        "load_formula": "slots",
        "job_load_adjustments": "NONE",
    })  # fmt: skip


def complexes(current: str) -> str:
    """h_vmem stays as it is: as a consumable without a default it gives every job 10 MB of address space."""
    known = "".join(f"{line}\n" for line in current.splitlines() if not line.startswith("#"))
    counted = "".join(f"{name} {name} {kind} <= YES YES 0 0\n" for name, kind in _COMPLEXES.items())
    return known + counted + "".join(f"{name} {name} {rest}\n" for name, rest in _LABELS.items())


def host(name: str, options: Options) -> str:
    nothing = ("user_lists", "xuser_lists", "projects", "xprojects", "usage_scaling", "report_variables")
    return _lines({
        "hostname": name,
        "load_scaling": "NONE",
        "complex_values": f"gpu={options.gpus},memory={options.memory}",
        **dict.fromkeys(nothing, "NONE"),
    })  # fmt: skip


def host_group(names: Sequence[str]) -> str:
    return _lines({"group_name": "@allhosts", "hostlist": " ".join(names)})


def spread() -> str:
    return _lines({
        "pe_name": SPREAD,
        "slots": 999,
        "user_lists": "NONE",
        "xuser_lists": "NONE",
        "start_proc_args": "NONE",
        "stop_proc_args": "NONE",
        "allocation_rule": 2,
        "control_slaves": "TRUE",
        "job_is_first_task": "TRUE",
        "urgency_slots": "min",
        "accounting_summary": "TRUE",
        "qsort_args": "NONE",
    })  # fmt: skip


def queue(options: Options, temporary: Path) -> str:
    """`temporary` must be each host's own: job 1 of every cell has its directory `1.1.cpu` there."""
    nothing = (
        "load_thresholds", "suspend_thresholds", "ckpt_list", "prolog", "epilog", "starter_method", "suspend_method",
        "resume_method", "terminate_method", "owner_list", "user_lists", "xuser_lists", "subordinate_list",
        "complex_values", "projects", "xprojects", "calendar",
    )  # fmt: skip
    limits = ("rt", "cpu", "fsize", "data", "stack", "core", "rss", "vmem")
    return _lines({
        "qname": QUEUE,
        "hostlist": "@allhosts",
        "seq_no": 0,
        "nsuspend": 1,
        "suspend_interval": "00:05:00",
        "priority": 0,
        "min_cpu_interval": "00:05:00",
        "processors": "UNDEFINED",
        "qtype": "BATCH INTERACTIVE",
        "pe_list": f"smp {SPREAD}",
        "rerun": "FALSE",
        "slots": options.slots,
        "tmpdir": temporary,
        "shell": "/bin/bash",
        "shell_start_mode": options.shell_start_mode,
        "notify": _clock(options.notify_s),
        "initial_state": "default",
        **dict.fromkeys(nothing, "NONE"),
        **{f"{strength}_{limit}": "INFINITY" for strength in "sh" for limit in limits},
    })  # fmt: skip


def replaced(text: str, values: Mapping[str, object]) -> str:
    """The text of `name value` lines with these values in place of its own."""
    lines = [line.split(None, 1) for line in text.splitlines() if line and not line.startswith("#")]
    return _lines({**{name: value for name, value in lines}, **values})


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"


def _lines(values: Mapping[str, object]) -> str:
    return "".join(f"{name} {value}\n" for name, value in values.items())
