"""What every host promises, on this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard.hosts.local import LocalHost
from runyard.testing.host_contract import HostContract


class TestLocal(HostContract):
    @pytest.fixture
    def host(self) -> LocalHost:
        return LocalHost()

    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path)
