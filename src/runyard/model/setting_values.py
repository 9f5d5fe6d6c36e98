"""Values of settings that have rules of their own."""

from __future__ import annotations

from collections.abc import Mapping

from runyard import errors
from runyard.model import disk_reserve, fields, nodes, spec_values, units
from runyard.model.json_schema import ANYTHING, duration, text
from runyard.model.json_schema import TEXTS as LIST
from runyard.model.values import Checked, Many, Text, Whole

SHORTEST_PERMIT_S = 30


def _permit(value: object, where: str) -> int:
    seconds = units.parse_duration(value, where) if value != 0 else 0
    if 0 < seconds < SHORTEST_PERMIT_S:
        raise errors.InvalidInput(
            f"{where}: agents report every few seconds, so {SHORTEST_PERMIT_S} s are the minimum", "or 0, for none"
        )
    return seconds


def _node(value: object, where: str) -> str:
    return nodes.parse_name(value, where) if value else ""


def _scratch(value: object, where: str) -> str:
    path = fields.text(value, where, 4096, empty=True)
    if path and not path.startswith(("/", "$")):
        raise errors.InvalidInput(f"{where}: {path!r} is not an absolute path", "start it with / or a variable")
    return path


def _disk_reserve(value: object, where: str) -> str:
    said = str(value)
    disk_reserve.parse(said)
    return said


def _token_files(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise errors.InvalidInput(f"{where}: must be tables", f"write them as [{where}.NAME]")
    return {_site(site, where): fields.text(path, f"{where}.{site}", 4096) for site, path in value.items()}


def _site(name: object, where: str) -> str:
    if spec_values.name_text(name, where) == "local":
        raise errors.InvalidInput(f"{where}: the site 'local' is served by the yard itself", "choose another name")
    return str(name)


def _web_address(value: object, where: str) -> str:
    url = fields.text(value, where, 1000, empty=True)
    if url and not url.startswith(("http://", "https://")):
        raise errors.InvalidInput(f"{where}: begins with neither http:// nor https://", "write it out")
    return url


def _networks(value: object, where: str) -> list[str]:
    return [_network(item, where) for item in fields.texts(value, where, 100)]


def _network(text: str, where: str) -> str:
    import ipaddress

    try:
        return str(ipaddress.ip_network(text))
    except ValueError as error:
        loose = ipaddress.ip_network(text, strict=False) if "host bits" in str(error) else None
        fix = f"write {loose}" if loose else "write it like 192.168.1.0/24"
        raise errors.InvalidInput(f"{where}: {text!r} is not a network", fix) from None


TEXT = Text(4096, empty=True)
TEXTS = Many(Text(1000, empty=True), make=list)
COUNT = Whole(0, 1 << 60)
NAMES = Many(spec_values.NAME, make=list)
PERMIT = Checked(_permit, {"anyOf": [{"const": 0}, duration("")]})
NODE = Checked(_node, text())
LABELS = Checked(lambda value, where: list(nodes.parse_labels(value, where)), nodes.LABELS_SCHEMA)
SCRATCH = Checked(_scratch, text())
DISK_RESERVE = Checked(_disk_reserve, text())
TOKEN_FILES = Checked(_token_files, ANYTHING)
WEB_ADDRESS = Checked(_web_address, text())
NETWORKS = Checked(_networks, LIST)
