"""Identity of this machine. The client and the agent compute the same values, so that a run can find its submitter."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path

NETWORK_FILE_SYSTEMS = re.compile(
    r"(nfs\d?|cifs|smb\d?|smbfs|lustre|gpfs|beegfs|ceph|afs|9p|panfs|pvfs2|orangefs|wekafs|glusterfs|ncpfs|coda|ocfs2|gfs2)"
    r"|fuse\.(sshfs|glusterfs\S*|ceph\S*|s3fs|rclone|gcsfuse|juicefs|beegfs\S*|moosefs|mfs|cvmfs2|goofys|lustre\S*)"
)
_MACHINE_IDS = ("/etc/machine-id", "/var/lib/dbus/machine-id")


def node_name() -> str:
    return os.uname().nodename


@functools.cache
def host_id() -> str:
    """A stable name of this machine and this Unix user, by which an agent recognizes the submitter's environment.

    The node's name is a part of it because containers of one image share their machine-id.
    """
    parts = (_first_text(_MACHINE_IDS), node_name(), str(os.getuid()))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


@functools.cache
def boot_id() -> str:
    """Changes with each start of the machine; a process of another boot id is gone."""
    return _first_text(("/proc/sys/kernel/random/boot_id",)) or _boot_session()


def _boot_session() -> str:
    """macOS has it in a sysctl."""
    try:
        command = ["sysctl", "-n", "kern.bootsessionuuid"]
        return subprocess.run(command, capture_output=True, text=True, timeout=5, check=False).stdout.strip()
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _first_text(paths: tuple[str, ...]) -> str:
    for path in paths:
        try:
            with open(path, encoding="ascii") as file:
                text = file.read().strip()
        except (OSError, UnicodeDecodeError):
            continue
        if text:
            return text
    return ""


def is_network_filesystem(path: Path | str, mountinfo: Path = Path("/proc/self/mountinfo")) -> bool:
    """Whether this path (or the nearest existing parent) is on a network file system."""
    return NETWORK_FILE_SYSTEMS.fullmatch(_filesystem_type(os.path.realpath(path), _mounts(mountinfo))) is not None


def _mounts(mountinfo: Path) -> Iterator[tuple[str, str]]:
    """Mount point and type; proc(5): optional fields end with a lone dash, blanks are octal escapes."""
    try:
        lines = mountinfo.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return
    for line in lines:
        before, _, after = line.partition(" - ")
        point = re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), before.split(" ")[4])
        yield point, after.split(" ")[0]


def _filesystem_type(path: str, mounts: Iterable[tuple[str, str]]) -> str:
    longest, found = -1, ""
    for point, kind in mounts:
        inside = path == point or path.startswith(point.rstrip("/") + "/")
        # A later mount on the same point hides the earlier one.
        if inside and len(point) >= longest:
            longest, found = len(point), kind
    return found
