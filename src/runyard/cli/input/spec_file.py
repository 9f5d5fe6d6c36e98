"""Runs from a YAML or JSON file: one run, a list of runs, or `runs:` with a list."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from runyard import errors
from runyard.model import json_text

_TYPES = (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
)


def load(path: str) -> tuple[list[dict[str, Any]], bool]:
    """The runs in the file, and whether it is a list (even of one)."""
    document = read(path)
    if isinstance(document, dict) and "runs" in document:
        further = sorted(set(document) - {"runs"})
        if further:
            raise errors.InvalidInput(f"{path}: {further[0]!r} beside 'runs'", "put it into each run")
        document = document["runs"]
    runs = document if isinstance(document, list) else [document]
    if not runs or not all(isinstance(run, dict) for run in runs):
        raise errors.InvalidInput(f"{path} contains no run", "write a mapping with a command, or a list of them")
    for name in (name for run in runs for name in run if not isinstance(name, str)):
        raise errors.InvalidInput(f"{path}: {name!r} is not the name of a field", "write names as strings")
    return runs, isinstance(document, list)


def read(path: str) -> Any:
    """The single document of a YAML or JSON file; - is standard input."""
    return _parse(path, _read(path))


def read_mapping(path: str, what: str) -> dict[str, Any]:
    document = read(path)
    if not isinstance(document, dict):
        raise errors.InvalidInput(f"{path} contains no {what}", "write a mapping of names to values")
    return document


def _read(path: str) -> str:
    try:
        data = sys.stdin.buffer.read() if path == "-" else Path(path).read_bytes()
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise errors.InvalidInput(f"{path} is not UTF-8 text: invalid byte at offset {error.start}") from None
    except OSError as error:
        raise errors.InvalidInput(f"{path} cannot be read: {(error.strerror or '').lower()}") from None


def _parse(path: str, text: str) -> Any:
    if path.endswith(".json"):
        try:
            return json_text.parse(text.encode())
        except errors.InvalidInput as error:
            raise errors.InvalidInput(f"{path}: {error.message}", error.fix) from None
    return _parse_yaml(path, text)


def _parse_yaml(path: str, text: str) -> Any:
    import yaml

    try:
        return yaml.load(text, Loader=_loader())
    except (yaml.YAMLError, RecursionError, ValueError) as error:  # also too deep, or a number of thousands of digits
        mark = getattr(error, "problem_mark", None)
        where = f", line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "it cannot be parsed"
        raise errors.InvalidInput(f"{path}{where}: not YAML: {problem}") from None


def _loader() -> Any:
    """YAML 1.2's types. PyYAML's own are those of 1.1, where `on` is true, `1e-3` a string and `1:30` ninety."""
    import yaml

    class Loader(yaml.SafeLoader):
        yaml_implicit_resolvers: dict[Any, Any] = {}  # noqa: RUF012

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            mapping = super().construct_mapping(node, deep)
            if len(mapping) < len(node.value):
                raise yaml.MarkedYAMLError(problem="a key is given twice in one mapping", problem_mark=node.start_mark)
            return mapping

    for kind, pattern, first in _TYPES:
        firsts = [character if character != "\0" else "" for character in first]
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{kind}", re.compile(f"^(?:{pattern})$"), firsts)
    Loader.add_constructor("tag:yaml.org,2002:int", _integer)
    Loader.add_constructor("tag:yaml.org,2002:float", _float)
    return Loader


def _float(loader: Any, node: Any) -> float:
    return float(loader.construct_scalar(node))


def _integer(loader: Any, node: Any) -> int:
    text = loader.construct_scalar(node)
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text, 10)
