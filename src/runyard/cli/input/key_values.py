"""`name=value` words and files of them: parameters and environment variables."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NoReturn

from runyard import errors

_QUOTED = re.compile(r"""(?P<quote>['"])(?P<inside>.*)(?P=quote)\s*(?:#.*)?""")
_ESCAPE = re.compile(r'\\([\\"$n])')


def parameters(words: Iterable[str], known: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters from `lr=0.1`, `name=resnet`, `model.depth=3`, added to existing ones.

    A value that parses as JSON is that value, any other is a string; a dotted name goes into a nested mapping.
    """
    params = json.loads(json.dumps(known))
    for word in words:
        name, equals, text = word.partition("=")
        if not name or not equals:
            raise errors.InvalidInput(f"--param: {word!r} is not a parameter", "write it like lr=0.1")
        _put(params, name, value(text))
    return dict(params)


def value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_not_json)
    except ValueError:
        return text


def _not_json(word: str) -> NoReturn:
    """Python's parser accepts NaN and Infinity, which are not JSON and would be rejected by the yard."""
    raise ValueError(word)


def _put(params: dict[str, Any], name: str, item: Any) -> None:
    *path, last = name.split(".")
    place = params
    for part in path:
        place = place.setdefault(part, {})
        if not isinstance(place, dict):
            raise errors.InvalidInput(f"--param: {part!r} in {name!r} already has a value", "use another name")
    place[last] = item


def options(words: Iterable[str]) -> dict[str, str]:
    """Options for a scheduler from `account=lab`, or `exclusive` alone for one without a value."""
    found = {}
    for word in words:
        name, _, text = word.partition("=")
        if not name:
            raise errors.InvalidInput(f"--option: {word!r} is not an option", "write it like partition=gpu")
        found[name.lstrip("-")] = text
    return found


def listed(words: Iterable[str]) -> list[str]:
    """The values of an option that was repeated or has a list with commas."""
    return [item for word in words for item in word.split(",") if item]


def variables(words: Iterable[str], environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Environment variables from `KEY=VALUE`, or `KEY` alone for the one set here."""
    found = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals and name not in environ:
            raise errors.InvalidInput(f"--env: {name} is not set here", f"write {name}=VALUE")
        found[name] = text if equals else environ[name]
    return found


def variables_from_file(path: str) -> dict[str, str]:
    """Lines of KEY=VALUE; blank lines, `#` comments, a leading `export` and quotes as shells write them."""
    try:
        lines = Path(path).read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        raise errors.InvalidInput(f"{path} is not UTF-8 text") from None
    except OSError as error:
        raise errors.InvalidInput(f"{path} cannot be read: {(error.strerror or '').lower()}") from None
    found = {}
    for number, line in enumerate(lines, 1):
        entry = line.strip().removeprefix("export ").strip()
        if not entry or entry.startswith("#"):
            continue
        name, equals, text = entry.partition("=")
        if not equals or not name.strip():
            raise errors.InvalidInput(f"{path}, line {number}: {line.strip()!r} is not KEY=VALUE")
        found[name.strip()] = _unquoted(text.strip())
    return found


def _unquoted(text: str) -> str:
    match = _QUOTED.fullmatch(text)
    if match is None:
        return re.sub(r"\s+#.*$", "", text)
    if match["quote"] == "'":
        return match["inside"]
    return _ESCAPE.sub(lambda escape: "\n" if escape[1] == "n" else escape[1], match["inside"])


def input_file(text: str) -> dict[str, str]:
    """`URL`, `URL=name`, and either with `,secret=S` after it.

    A URL may contain '=' itself. The last one starts a name if no '/' follows; in a query, only if it is the second one
    of its parameter: `…?id=5` has no name, and `…?id=5=data.csv` has one.
    """
    address, comma, secret = text.rpartition(",secret=")
    found = {"url": address, "secret": secret} if comma else {"url": text}
    url, equals, name = found["url"].rpartition("=")
    parameter = url.rpartition("?")[2].rpartition("&")[2]
    if equals and name and not set(name) & set("/?&#") and ("?" not in url or "=" in parameter):
        found |= {"url": url, "to": name}
    return found
