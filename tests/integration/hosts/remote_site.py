"""A site on a lab's cluster that is seen through its login nodes only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from runyard.hosts.ssh import SshHost
from tests.integration.batch.site import Site
from tests.labs.cluster import Cluster
from tests.labs.sshd import SshLab


class RemoteSite(Site):
    def __init__(self, cluster: Cluster, kind: str, logins: SshLab, spool: Path) -> None:
        super().__init__(cluster, kind)
        self.logins = logins
        config = str(logins.configuration)
        self.host: Any = SshHost(logins.names, spool, python="/usr/bin/python3", config=config)
