"""The host of a site that is reached by ssh, as the site's description says."""

from __future__ import annotations

import os
from pathlib import Path

from runyard import errors
from runyard.hosts.base import Host
from runyard.hosts.ssh import SshHost
from runyard.model.site import SiteSpec

CONFIG = "ssh_config"
OPTIONS = frozenset({CONFIG})  # of a site; they are no options for its scheduler


def of_site(described: SiteSpec, spool: Path) -> Host | None:
    """None for a site whose commands run where its agent runs. Raises ConfigError."""
    config = described.options.get(CONFIG)
    if not described.ssh:
        return None
    if described.dir is None:
        raise errors.ConfigError("a site behind ssh needs a directory there", "name one with --dir")
    if config and not os.path.isabs(os.path.expanduser(config)):
        raise errors.ConfigError(f"{CONFIG}: {config!r} is not an absolute path", "start it with / or ~")
    return SshHost(
        described.ssh,
        spool,
        python=described.python or "python3",
        config=os.path.expanduser(config) if config else None,
    )
