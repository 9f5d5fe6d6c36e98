"""The Prometheus text format, version 0.0.4."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from runyard.model.resources import Capacity
from runyard.server.service import Service
from runyard.version import __version__

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[Mapping[str, str], float]


def render(service: Service) -> bytes:
    yard = service.yard
    agents = yard.sites.agents()
    lines = [
        *_family("runyard_info", "gauge", "Version of the yard", [({"version": __version__}, 1)]),
        *_family("runyard_runs", "gauge", "Runs by state", [({"state": s}, n) for s, n in yard.counts().items()]),
        *_family("runyard_agents", "gauge", "Agents by site and state", _agents(agents)),
        *_family("runyard_slots_total", "gauge", "Slots of live agents", _slots(agents, "total")),
        *_family("runyard_slots_free", "gauge", "Free slots of live agents", _slots(agents, "free")),
        *_family("runyard_http_requests_total", "counter", "Requests answered", _requests(service)),
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def _family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        shown = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
        yield f"{name}{{{shown}}} {value:g}" if value < 1e6 else f"{name}{{{shown}}} {int(value)}"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _agents(agents: Iterable[dict[str, Any]]) -> list[Sample]:
    found: dict[tuple[str, str], int] = {}
    for agent in agents:
        place = (agent["site"], agent["state"])
        found[place] = found.get(place, 0) + 1
    return [({"site": site, "state": state}, number) for (site, state), number in found.items()]


def _slots(agents: Iterable[dict[str, Any]], which: str) -> list[Sample]:
    found: dict[tuple[str, str], int] = {}
    for agent in agents:
        if agent["state"] == "alive":
            for kind, number in Capacity.from_json(agent[which]).counts().items():
                found[agent["site"], kind] = found.get((agent["site"], kind), 0) + number
    return [({"site": site, "kind": kind}, number) for (site, kind), number in found.items()]


def _requests(service: Service) -> list[Sample]:
    return [
        ({"method": method, "path": path, "status": str(status)}, number)
        for (method, path, status), number in service.counts
    ]
