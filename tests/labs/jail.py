"""A machine on which somebody has nothing but a jailed SFTP account: no shell, no other directory."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from tests.labs.sshd import SshLab
from tests.labs.supervise import remove

SFTP = """\
#!/bin/sh
exec /usr/bin/sftp -F {configuration} "$@"
"""


class JailLab(SshLab):
    """
    jail      what the account sees as `/`; as sshd demands, nobody else than root can write on the way to it
    incoming  the account's own directory in it
    programs  a directory with an `sftp` that knows this machine as `box`
    """

    def __init__(self) -> None:
        super().__init__(("box",))
        self.jail = Path(tempfile.mkdtemp(prefix="ry-jail-", dir="/srv"))
        self.jail.chmod(0o755)
        self.incoming = self.jail / "incoming"
        self.incoming.mkdir()
        self.user.own(self.incoming)
        self.programs = self.root / "programs"
        self.programs.mkdir()
        (self.programs / "sftp").write_text(SFTP.format(configuration=self.configuration))
        (self.programs / "sftp").chmod(0o755)

    @property
    def url(self) -> str:
        return "sftp://box/incoming"

    def tidy(self) -> None:
        """Sshd alive, and nothing left in the drop box."""
        super().tidy()
        remove(self.incoming)
        self.incoming.mkdir()
        self.user.own(self.incoming)

    def stop(self) -> None:
        super().stop()
        remove(self.jail)

    def sftp(self, *lines: str) -> str:
        """What a person types at sftp's prompt; the first line that fails ends it."""
        batch = "".join(f"{line}\n" for line in lines)
        command = [str(self.programs / "sftp"), "-q", "-b", "-", "box"]
        done = subprocess.run(command, input=batch, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def _sshd_text(self, name: str) -> str:
        jailed = f"ChrootDirectory {self.jail}\nForceCommand internal-sftp\nAllowTcpForwarding no\n"
        return super()._sshd_text(name) + jailed if os.geteuid() == 0 else super()._sshd_text(name)
