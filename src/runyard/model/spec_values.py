"""Values of a run with their own rules: names, commands, parameters, variables, options."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from runyard import errors
from runyard.model import fields
from runyard.model.json_schema import ANYTHING, Schema, integer, listed, or_null, record, text
from runyard.model.values import Checked, OneOrMany, Whole

LONGEST_TEXT = 1 << 20  # bytes of one argument or value; Linux allows 128 KiB for one argument of execve
NAME_PATTERN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
NO_COMMAND = "give a command, such as: -- python train.py"
RUN_NUMBER = Whole(1, 1 << 62)


def name_text(value: object, where: str) -> str:
    """A name that may become a part of a path or a label: letters, digits, dot, dash, underscore."""
    if not isinstance(value, str) or not NAME_PATTERN.fullmatch(value):
        raise errors.InvalidInput(
            f"{where}: {value!r} is not a valid name",
            "use up to 100 letters, digits, '.', '_', '-', starting with a letter or digit",
        )
    return value


def command(value: object, where: str) -> list[str] | str:
    if isinstance(value, str):
        return fields.text(value, where, LONGEST_TEXT, empty=True, raw=True)
    return fields.texts(value, where, LONGEST_TEXT, raw=True)


def check_program(given: list[str] | str) -> None:
    if not given:
        raise errors.InvalidInput("run: no command", NO_COMMAND)
    if not given[0]:
        raise errors.InvalidInput("command: the first word is empty", "name the program to run")


def check_arguments(given: list[str] | str) -> None:
    if isinstance(given, str):
        raise errors.InvalidInput("command: with a script it is the list of its arguments", "use [] for none")


def params_mapping(value: object, where: str = "params") -> dict[str, Any]:
    """Parameters: any JSON values by name, of bounded size."""
    if not isinstance(value, Mapping):
        raise errors.InvalidInput(f"{where}: must be a mapping of names to values")
    for key in value:
        fields.text(key, where, 200, raw=True)
    try:
        text = json.dumps(value, allow_nan=True)
    except (TypeError, ValueError) as error:
        raise errors.InvalidInput(
            f"{where}: {error}", "use texts, numbers, true, false, null, lists and mappings"
        ) from None
    fields.at_most(len(text), where, LONGEST_TEXT)
    return dict(value)


def env_mapping(value: object, where: str = "env") -> dict[str, str]:
    """Environment variables: good names, any text."""
    if not isinstance(value, Mapping):
        raise errors.InvalidInput(f"{where}: must be a mapping of names to texts")
    for key, item in value.items():
        if not isinstance(key, str) or not VARIABLE.fullmatch(key):
            raise errors.InvalidInput(f"{where}: {key!r} is not a variable name", "use letters, digits and '_'")
        fields.text(item, f"{where}.{key}", LONGEST_TEXT, empty=True, raw=True)
    return dict(value)


def options_mapping(value: object, where: str = "options") -> dict[str, str]:
    """Options for a scheduler: its own names, and texts."""
    if not isinstance(value, Mapping):
        raise errors.InvalidInput(f"{where}: must be a mapping of names to texts")
    return {
        fields.text(name, where, 100): fields.text(str(item), f"{where}.{name}", 4096, empty=True)
        for name, item in value.items()
    }


def origin(value: object, where: str) -> dict[str, Any]:
    given = fields.mapping(value, where, ("host", "env", "run"))
    again = {} if given.get("run") is None else {"run": RUN_NUMBER.parse(given["run"], f"{where}.run")}
    return {
        "host": fields.text(given.get("host", ""), f"{where}.host", 300, empty=True),
        "env": env_mapping(given.get("env", {})),
        **again,
    }


NAME = Checked(name_text, text(pattern=f"^{NAME_PATTERN.pattern}$"))
NAMES = OneOrMany(NAME)
RUN_NUMBERS = OneOrMany(Checked(RUN_NUMBER.parse, RUN_NUMBER.schema("The run's number")), bare=(int, str))
COMMAND = Checked(command, {"anyOf": [text(minLength=1), listed({"type": "string"})]})
PARAMS = Checked(params_mapping, ANYTHING)
ENVIRONMENT: Schema = {
    "type": "object",
    "propertyNames": {"pattern": f"^{VARIABLE.pattern}$"},
    "additionalProperties": {"type": "string"},
}
ENV = Checked(env_mapping, ENVIRONMENT)
OPTIONS = Checked(
    options_mapping,
    {
        "type": "object",
        "propertyNames": {"minLength": 1, "maxLength": 100},
        "additionalProperties": {"type": "string"},
    },
)
ORIGIN = Checked(
    origin,
    record(
        {
            "host": text("Where it was submitted", maxLength=300),
            "env": ENVIRONMENT,
            "run": or_null(integer("The run that it is a copy of", 1, 1 << 62)),
        },
        required=[],
    ),
)
