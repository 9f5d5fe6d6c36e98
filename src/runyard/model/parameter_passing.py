"""Ways to pass parameters to programs, beside `{name}` in the command.

flags  --lr 0.1 --layers 64 128 --model.depth 2 --verbose     true is the flag alone; false and null are left out
hydra  lr=0.1 layers=[64,128] model.depth=2 verbose=true
json   one argument, {"lr": 0.1, "layers": [64, 128], …}
env    PARAM_LR=0.1 PARAM_MODEL_DEPTH=2                       a prefix, because `path` or `home` would change the run
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from runyard import errors
from runyard.model import template

FLAGS, HYDRA, JSON, ENV = "flags", "hydra", "json", "env"
WAYS = (FLAGS, HYDRA, JSON, ENV)
PREFIX = "PARAM_"

_UNFIT = re.compile(r"[^A-Za-z0-9_]")
_PLAIN = re.compile(r"(?!(?:true|false|null|nan|inf)$)[a-z_/][\w/.@%+-]*", re.IGNORECASE | re.ASCII)
_BEFORE_QUOTE = re.compile(r"(\\*)('|$)")


def words(way: str, params: Mapping[str, Any], named: Iterable[str] = ()) -> list[str]:
    """Words to add to the command. `named`: parameters that it uses already, not repeated except in JSON."""
    if way == JSON:
        return [json.dumps(params, ensure_ascii=False)]
    if way == ENV:
        variables(params)  # raises if two have the same name
        return []
    known = tuple(named)
    leaves = {name: value for name, value in template.flat(params).items() if not _is_named(name, known)}
    return [word for name, value in leaves.items() for word in _WRITERS[way](name, value)]


def variables(params: Mapping[str, Any]) -> dict[str, str]:
    """Environment variables; there is none for null."""
    found: dict[str, str] = {}
    for name, value in template.flat(params).items():
        variable = PREFIX + _UNFIT.sub("_", name).upper()
        if variable in found:
            raise errors.InvalidInput(f"params: two of them would be ${variable}", "rename one of them")
        if value is not None:
            found[variable] = template.show_value(value)
    return found


def _is_named(name: str, named: tuple[str, ...]) -> bool:
    return any(name == other or name.startswith(other + ".") for other in named)


def _flag(name: str, value: Any) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return [f"--{name}"]
    if isinstance(value, list):
        return [f"--{name}", *map(template.show_value, value)]
    text = template.show_value(value)
    return [f"--{name}={text}"] if text.startswith("-") else [f"--{name}", text]


def _override(name: str, value: Any) -> list[str]:
    return [f"{name}={_hydra(value)}"]


def _hydra(value: Any) -> str:
    """In the grammar of Hydra's overrides, where a string that looks like another value is quoted."""
    if isinstance(value, str):
        return value if _PLAIN.fullmatch(value) else _quoted(value)
    if isinstance(value, (list, tuple)):
        return f"[{','.join(map(_hydra, value))}]"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}:{_hydra(item)}' for key, item in value.items())}}}"
    return str(value) if isinstance(value, float) and not math.isfinite(value) else json.dumps(value)


def _quoted(text: str) -> str:
    """A backslash means itself, except before a quote."""
    escaped = _BEFORE_QUOTE.sub(lambda found: found[1] * 2 + ("\\'" if found[2] else ""), text)
    return f"'{escaped}'"


_WRITERS: dict[str, Callable[[str, Any], list[str]]] = {FLAGS: _flag, HYDRA: _override}
