"""The real components that tests need, and the account of which of them ran.

A test names what it needs with `@pytest.mark.component("tmux")`, a fixture with `component("postgresql")`. What is
missing is skipped on a laptop; as root, where `make test` can install it, and with CI=true a skip is a failure, but for
those that nothing can install: `everywhere=False`, listed in CONTRIBUTING.md.
"""

from __future__ import annotations

import ctypes
import glob
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from runyard.agent.spool import looking, place
from tests.labs import cgroups

_ROOT = Path(__file__).resolve().parents[2]
TRAINER_PYTHON = _ROOT / ".venv-examples" / "bin" / "python"
TRAINER_PACKAGES = TRAINER_PYTHON.parents[1] / "lib" / "python{}.{}".format(*sys.version_info) / "site-packages"
KERAS2_PYTHON = _ROOT / ".venv-keras2" / "bin" / "python"
BENCH_PYTHON = _ROOT / ".venv-bench" / "bin" / "python"
RAY_PYTHON = _ROOT / ".venv-ray" / "bin" / "python"


class Missing(Exception):
    """This machine does not have the component; the text says why."""


@dataclass(frozen=True, kw_only=True)
class Component:
    name: str
    find: Callable[[], str]  # returns the version; raises Missing
    everywhere: bool = True  # False: neither apt-get nor root can bring it, so its absence is no failure


def strict() -> bool:
    return os.geteuid() == 0 or os.environ.get("CI") == "true"


def postgres_bin() -> Path:
    """The directory with initdb and postgres: Debian keeps them off PATH, one directory per version."""
    homes = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]), reverse=True)
    on_path = shutil.which("initdb")
    if homes or on_path:
        return (homes[0] if homes else Path(str(on_path)).resolve()).parent
    raise Missing("initdb is neither in /usr/lib/postgresql nor on PATH")


def python(version: str) -> Path:
    """An interpreter of that version, on PATH or from pyenv."""
    on_path = shutil.which(f"python{version}")
    if on_path and "shims" not in on_path:
        return Path(on_path)
    root = os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv"))
    found = sorted(glob.glob(f"{root}/versions/{version}.*/bin/python{version}"))
    if not found:
        raise Missing(f"no python{version} on PATH or in pyenv")
    return Path(found[-1])


def _answer(*command: str) -> str:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    except FileNotFoundError:
        raise Missing(f"{command[0]} is not installed") from None
    except (subprocess.SubprocessError, OSError) as error:
        raise Missing(f"{' '.join(command)}: {error}") from None
    return answer.stdout.strip() or answer.stderr.strip()


def _number(text: str) -> str:
    match = re.search(r"\d[\w.]*", text)
    return match[0] if match else text.splitlines()[0]


def _postgresql() -> str:
    return _number(_answer(str(postgres_bin() / "postgres"), "--version"))


def _parallel() -> str:
    first = _answer("parallel", "--version").splitlines()[0]
    if not first.startswith("GNU parallel"):
        raise Missing("parallel is installed, but not GNU's")
    return _number(first)


def _root() -> str:
    if os.geteuid() != 0:
        raise Missing("not root")
    return "uid 0"


def _cgroup_memory() -> str:
    try:
        return cgroups.memory_version()
    except OSError as error:
        raise Missing(str(error)) from None


def _cgroup_v1() -> str:
    if (version := _cgroup_memory()) != "v1":
        raise Missing(f"control groups {version}")
    return version


def _slurm() -> str:
    """The version, when everything that a cluster consists of is there."""
    for program in ("slurmd", "munged", "sbatch"):
        _program(program)
    return _number(_answer(_program("slurmctld"), "-V"))


def _slurmdbd() -> str:
    """slurmdbd tells its version only where it is configured; it is built with the rest of Slurm."""
    _program("slurmdbd")
    return f"MariaDB {_number(_answer(_program('mariadbd'), '-V'))}"


def _gridengine() -> str:
    """Its daemons and its real client programs lie together, off PATH. Most tell nothing without a cell."""
    for name in ("sge_qmaster", "qsub"):
        _program(name, "/usr/lib/gridengine")
    return _number(_answer(_program("sge_shepherd", "/usr/lib/gridengine"), "-help"))


def _rabbitmq() -> str:
    """Every way to ask for the version starts an Erlang machine; the directory of its parts has it in its name."""
    _program("rabbitmq-server", "/usr/lib/rabbitmq/bin")
    _program("openssl")
    found = sorted(Path("/usr/lib/rabbitmq/lib").glob("rabbitmq_server-*"))
    return _number(found[-1].name) if found else "unknown"


def _openssl() -> str:
    return _number(_answer(_program("openssl"), "version"))


def _s3() -> str:
    """moto's server; to import it takes a second."""
    _program("openssl")
    try:
        metadata.version("flask-cors")
        return f"moto {metadata.version('moto')}"
    except metadata.PackageNotFoundError as error:
        raise Missing(f"{error.name} is not installed: make install") from None


def _trainer() -> str:
    """What `make example-deps` installs for examples/patchwise."""
    return "Keras {}, PyTorch {}".format(*_versions(TRAINER_PYTHON, "keras", "torch"))


def _torch_writer() -> str:
    """PyTorch's own writer of event files is a part of TensorBoard."""
    return "PyTorch {}, TensorBoard {}".format(*_versions(TRAINER_PYTHON, "torch", "tensorboard"))


def _gaussian_processes() -> str:
    """What optuna needs for them, for a yard of this very Python to import."""
    found = "SciPy {}, PyTorch {}".format(*_versions(TRAINER_PYTHON, "scipy", "torch"))
    if not TRAINER_PACKAGES.is_dir():
        raise Missing(f"{TRAINER_PYTHON.parents[1].name} is of another Python: make example-deps with this one")
    return found


def _pytables() -> str:
    """What `make example-deps` installs for the table of examples/ic-train."""
    return "pandas {}, PyTables {}".format(*_versions(TRAINER_PYTHON, "pandas", "tables"))


def _keras2() -> str:
    return "Keras {}, TensorFlow {}".format(*_versions(KERAS2_PYTHON, "keras", "tensorflow"))


def _flask_and_celery() -> str:
    return "Flask {}, Celery {}".format(*_versions(BENCH_PYTHON, "flask", "celery", target="bench-deps"))


def _ray() -> str:
    return _versions(RAY_PYTHON, "ray", target="ray-deps")[0]


def _versions(interpreter: Path, *packages: str, target: str = "example-deps") -> list[str]:
    """From the records of what is installed: to import these takes seconds. `target` of make installs them."""
    environment = interpreter.parents[1]
    if not (environment / ".installed").exists():
        raise Missing(f"{environment.name} is not there: make {target}")
    records = environment.glob("lib/python*/site-packages/*.dist-info")
    found = dict(record.stem.lower().split("-", 1) for record in records)
    if missing := [package for package in packages if package not in found]:
        raise Missing(f"{environment.name} has no {missing[0]}: make {target}")
    return [found[package] for package in packages]


def _sshd() -> str:
    """Its own way to tell the version came late and is an error of usage before: the client is built with it."""
    _program("sshd")
    if os.geteuid() != 0 and pwd.getpwuid(os.geteuid()).pw_shell.endswith(("/nologin", "/false")):
        raise Missing("this account may not log in")
    return _number(_answer("ssh", "-V").removeprefix("OpenSSH_"))


_LIKE_DOCKER = """mount -t tmpfs tmpfs /mnt; cd /mnt; mkdir a b c d
mount -t overlay -o lowerdir=a,upperdir=b,workdir=c overlay d
iptables -t nat -S"""


def _docker() -> str:
    """What a Docker of our own consists of, what makes an image without a registry, and a kernel that lends itself."""
    _root()
    for name in ("containerd", "runc", "iptables", "mmdebstrap"):
        _program(name)
    _answer("unshare", "-mn", "sh", "-ec", _LIKE_DOCKER)
    return _number(_answer(_program("dockerd"), "--version"))


def _exfat() -> str:
    """A file system without links and mode bits that root can mount; not every machine lends it the devices."""
    _program("mount.exfat-fuse")
    for device in ("/dev/fuse", "/dev/loop-control"):
        if not os.access(device, os.R_OK | os.W_OK):
            raise Missing(f"{device} cannot be used")
    _program("mkfs.exfat")
    return _number(_answer("dpkg-query", "--show", "--showformat=${Version}", "exfat-fuse"))


def _fuse() -> str:
    """Root may mount a file system of its own making; not every machine lends the device for it."""
    _root()
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        raise Missing("/dev/fuse cannot be used")
    return "/dev/fuse"


def _generations() -> str:
    """Not every file system tells one use of an inode from the next; the tests' own directories lie on some."""
    with tempfile.TemporaryDirectory() as outer, place.opened(Path(outer)) as opened:
        os.mkdir("one", dir_fd=opened)
        if not looking.generation("one", opened):
            raise Missing(f"the file system of {outer} does not tell them")
    return "FS_IOC_GETVERSION"


def _program(name: str, where: str = "/usr/sbin:/sbin") -> str:
    """Daemons are not on everybody's PATH."""
    path = shutil.which(name) or shutil.which(name, path=where)
    if path is None:
        raise Missing(f"{name} is not installed")
    return path


def _nvml() -> str:
    """The driver's version, when there is a driver and a GPU behind it."""
    try:
        nvml = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        raise Missing("no NVIDIA driver") from None
    count, version = ctypes.c_uint(), ctypes.create_string_buffer(80)
    if nvml.nvmlInit_v2() or nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) or not count.value:
        raise Missing("no NVIDIA GPU")
    nvml.nvmlSystemGetDriverVersion(version, 80)
    return f"driver {version.value.decode()}, {count.value} GPUs"


def _python(version: str) -> Component:
    def find() -> str:
        return _number(_answer(str(python(version)), "--version"))

    return Component(name=f"python{version}", find=find, everywhere=False)


OLD_PYTHONS = ("3.6", "3.7", "3.8", "3.9", "3.10", "3.12", "3.13")

KNOWN = {
    component.name: component
    for component in (
        Component(name="postgresql", find=_postgresql),
        Component(name="root", find=_root),
        Component(name="openssl", find=_openssl),
        Component(name="cgroup memory", find=_cgroup_memory),
        Component(name="cgroup v1", find=_cgroup_v1, everywhere=False),
        Component(name="slurm", find=_slurm),
        Component(name="slurmdbd", find=_slurmdbd),
        Component(name="gridengine", find=_gridengine),
        Component(name="rabbitmq", find=_rabbitmq),
        Component(name="s3", find=_s3),
        Component(name="sshd", find=_sshd),
        Component(name="rsync", find=lambda: _number(_answer("rsync", "--version"))),
        Component(name="exfat", find=_exfat, everywhere=False),
        Component(name="fuse", find=_fuse, everywhere=False),
        Component(name="inode generations", find=_generations, everywhere=False),
        Component(name="git", find=lambda: _number(_answer("git", "--version"))),
        Component(name="trainer", find=_trainer),
        Component(name="keras 2", find=_keras2, everywhere=False),
        Component(name="scipy, torch", find=_gaussian_processes),
        Component(name="pytables", find=_pytables),
        Component(name="torch writer", find=_torch_writer),
        Component(name="flask, celery", find=_flask_and_celery),
        Component(name="ray", find=_ray, everywhere=False),
        Component(name="curl", find=lambda: _number(_answer("curl", "--version"))),
        Component(name="tmux", find=lambda: _number(_answer("tmux", "-V"))),
        Component(name="docker", find=_docker, everywhere=False),
        Component(name="systemd", find=lambda: _number(_answer("systemd-analyze", "--version"))),
        Component(name="GNU parallel", find=_parallel),
        Component(name="chromium", find=lambda: _number(_answer("chromium", "--version"))),
        Component(name="nvidia gpu", find=_nvml, everywhere=False),
        *map(_python, OLD_PYTHONS),
    )
}
