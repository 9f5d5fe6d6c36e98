"""slurmdbd on a MariaDB of its own. The prepared data directory is kept, because making one takes seconds."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import platformdirs

from tests.labs import waiting
from tests.labs.daemons import ENV, Daemons, LabError
from tests.labs.slurm.configuration import ACCOUNT, CLUSTER, Layout


class Accounting:
    def __init__(self, layout: Layout, daemons: Daemons) -> None:
        self._layout = layout
        self._daemons = daemons
        self._data = layout.root / "database"
        self._socket = layout.root / "run" / "mariadb.socket"
        self._env = {"SLURM_CONF": str(layout.configuration), "MYSQL_UNIX_PORT": str(self._socket)}

    def start(self, user: str, max_submit_jobs: int | None) -> None:
        prepared = _prepared(user)
        if prepared.is_dir():
            shutil.copytree(prepared, self._data)
        else:
            self._prepare(user)
            _keep(self._data, prepared)
        self._start_mariadb()
        self.start_slurmdbd()
        if max_submit_jobs is not None:
            self._manage("modify", "user", user, "set", f"MaxSubmitJobs={max_submit_jobs}")

    def start_slurmdbd(self) -> None:
        """It has no option for its file: it reads slurmdbd.conf beside the one that SLURM_CONF names."""
        self._daemons.spawn("slurmdbd", ["/usr/sbin/slurmdbd", "-D"], self._env)
        port = self._layout.database_port
        waiting.until(lambda: waiting.accepts("127.0.0.1", port), "slurmdbd listening")

    def _prepare(self, user: str) -> None:
        """An empty database, Slurm's tables in it, and the user's association with the cluster."""
        self._install()
        self._start_mariadb()
        self.start_slurmdbd()
        self._manage("add", "cluster", CLUSTER)
        self._manage("add", "account", ACCOUNT, f"cluster={CLUSTER}")
        self._manage("add", "user", user, f"account={ACCOUNT}")
        self._daemons.stop("slurmdbd")
        self._daemons.stop("mariadbd")

    def _install(self) -> None:
        words = ["--no-defaults", f"--datadir={self._data}", "--skip-test-db", "--innodb-log-file-size=4M"]
        words += ["--auth-root-authentication-method=normal", f"--user={self._layout.user}"]
        done = subprocess.run(["mariadb-install-db", *words], capture_output=True, text=True, env=ENV)
        if done.returncode:
            raise LabError(f"mariadb-install-db: {done.stderr.strip() or done.stdout.strip()}")

    def _start_mariadb(self) -> None:
        words = [
            "--no-defaults", f"--user={self._layout.user}", f"--datadir={self._data}", f"--socket={self._socket}",
            f"--pid-file={self._layout.root}/run/mariadb.pid", f"--log-error={self._layout.logs}/mariadb.log",
            "--skip-networking", "--skip-grant-tables", "--skip-log-bin", "--performance-schema=0",
            "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=4M", "--innodb-lock-wait-timeout=900",
            "--innodb-flush-log-at-trx-commit=0",
        ]  # fmt: skip
        self._daemons.spawn("mariadbd", ["/usr/sbin/mariadbd", *words])
        waiting.until(self._socket.exists, "mariadbd listening")

    def _manage(self, *words: str) -> None:
        done = subprocess.run(
            ["sacctmgr", "--immediate", *words], env={**ENV, **self._env}, capture_output=True, text=True, timeout=180
        )
        if done.returncode:
            raise LabError(f"sacctmgr {' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")


def _prepared(user: str) -> Path:
    """Other versions of the programs may want other tables."""
    versions = [_version("/usr/sbin/mariadbd"), _version("/usr/sbin/slurmctld")]
    return Path(platformdirs.user_cache_dir("runyard"), "labs", "-".join(["accounting", *versions, user]))


def _version(program: str) -> str:
    answer = subprocess.run([program, "-V"], capture_output=True, text=True, check=True).stdout
    return next(word for word in answer.split() if word[0].isdigit())


def _keep(data: Path, prepared: Path) -> None:
    """Whole or not at all: another worker may be doing it, or there is no place to keep anything."""
    with contextlib.suppress(OSError):
        prepared.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix="new-", dir=prepared.parent) as new:
            shutil.copytree(data, Path(new, prepared.name))
            os.rename(Path(new, prepared.name), prepared)
