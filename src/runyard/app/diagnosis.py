"""Facts about this machine and this yard for `runyard doctor`. cli/ interprets them."""

from __future__ import annotations

from typing import Any

from runyard.hosts import local
from runyard.runner import nvml
from runyard.settings import Settings
from runyard.store import file_queries

NVML_LIBRARY = nvml.LIBRARY

Unreadable = file_queries.Unreadable
examine_store = file_queries.examine


def postgres_version(loaded: Settings) -> str:
    """Raises YardUnreachable if PostgreSQL does not answer, ConfigError."""
    from runyard.store import engine

    return engine.server_version(engine.parse_url(loaded.store_url), "runyard doctor")


def gpus() -> list[dict[str, Any]]:
    """`[{"uuid", "name", "memory"}]` of the GPUs that the NVIDIA driver reports."""
    return nvml.gpus()


def scheduler() -> str | None:
    """The kind of batch scheduler that answers on this machine."""
    return local.detect_scheduler()


def broken_plugins() -> dict[str, str]:
    """For each kind of site whose plug-in cannot be loaded: why."""
    from runyard.backends import registry

    return dict(registry.broken())


def try_port(loaded: Settings) -> None:
    """Raises Conflict, ConfigError if a yard could not listen."""
    from runyard.server import address

    address.bind(loaded).close()
