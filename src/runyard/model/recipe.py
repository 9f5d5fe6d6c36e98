"""A recipe: a run that an administrator describes once and that other programs start with parameters, never with a
command."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from runyard import errors
from runyard.model import fields, native_units, schema, spec, template, units
from runyard.model.native_units import Writing
from runyard.model.reply import Reply
from runyard.model.resources import MAX_COUNT, Resources
from runyard.model.roles import Caller, Role
from runyard.model.spec import RunSpec

RUN_FIELDS = (
    "command", "name", "project", "params_as", "env", "cwd", "code", "data", "python_env", "resources", "inputs",
    "outputs", "metrics", "keep", "split_output", "site", "node", "exclude", "labels", "options", "priority", "retry",
    "stop", "checkpoint", "tags",
)  # fmt: skip
OWN_FIELDS = ("description", "schema", "bounds", "resources_from", "options_from", "callers", "reply")
COUNTED = ("nodes", "cpus", "gpus")
SIZES = ("memory", "gpu_memory")
BOUNDED = (*COUNTED, *SIZES, "time")
# What may become a part of a scheduler's line: no blank, quote or sign that a shell or another line would begin with.
OPTION_VALUE = re.compile(r"[\w.][\w.@+:/,=%-]{0,199}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """Where a request says how much of a resource it wants, and in whose way of writing."""

    param: str
    writing: Writing = Writing.RUNYARD

    @classmethod
    def parse(cls, value: object, where: str) -> Wanted:
        given = {"param": value} if isinstance(value, str) else fields.mapping(value, where, ("param", "writing"))
        return cls(
            param=fields.text(given.get("param"), f"{where}.param", 200),
            writing=Writing(fields.one_of(given.get("writing", Writing.RUNYARD), f"{where}.writing", list(Writing))),
        )

    def to_json(self) -> dict[str, str]:
        return {"param": self.param, "writing": self.writing.value}


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe:
    """Build it with `parse`, which checks everything that came from outside."""

    run: RunSpec  # what is started; `{name}` in its command is a parameter of the request
    description: str = ""
    schema: dict[str, Any] = field(default_factory=dict)  # JSON Schema of the parameters
    bounds: dict[str, int] = field(default_factory=dict)  # the most of each resource that a request may ask for
    resources_from: dict[str, Wanted] = field(default_factory=dict)
    options_from: dict[str, str] = field(default_factory=dict)  # for the site's scheduler, by parameter
    callers: tuple[str, ...] = ()  # names of tokens that may call it; none: every member
    reply: Reply = field(default_factory=Reply)  # what a program that asked through the broker is told

    @classmethod
    def parse(cls, value: object) -> Recipe:
        given = fields.mapping(value, "recipe", (*OWN_FIELDS, *RUN_FIELDS))
        own = {name: given.pop(name) for name in OWN_FIELDS if given.get(name) is not None}
        recipe = cls(
            run=RunSpec.parse({name: item for name, item in given.items() if name in RUN_FIELDS}),
            description=fields.text(own.get("description", ""), "description", 2000, empty=True),
            schema=schema.parse(own.get("schema", {})),
            bounds=_bounds(own.get("bounds", {})),
            resources_from=_resources_from(own.get("resources_from", {})),
            options_from=_options_from(own.get("options_from", {})),
            callers=_callers(own.get("callers", [])),
            reply=Reply.parse(own.get("reply", {})),
        )
        recipe._check()
        return recipe

    def to_json(self) -> dict[str, Any]:
        """The shortest mapping that parses to the same recipe."""
        own = {
            "description": self.description,
            "schema": self.schema,
            "bounds": self.bounds,
            "resources_from": {name: wanted.to_json() for name, wanted in self.resources_from.items()},
            "options_from": self.options_from,
            "callers": list(self.callers),
            "reply": self.reply.to_json(),
        }
        return {**{name: item for name, item in own.items() if item}, **self.run.to_json()}

    def prepare(self, name: str, given: Mapping[str, Any]) -> RunSpec:
        """The run that these parameters mean; raises InvalidInput when the recipe does not allow them."""
        params = spec.params_mapping(schema.with_defaults(dict(given), self.schema))
        schema.check(params, self.schema, "params")
        # A run without parameters keeps its braces, so they are resolved here, where a recipe has none to keep.
        command = self.run.command if params else template.fill(self.run.command, params)
        run = self.run.evolve(
            name=self.run.name or name, command=command, params=params, resources=self._resources(name, params),
            options=self._options(params),
        )  # fmt: skip
        run.argv()
        return run

    def may_be_called_by(self, caller: Caller, name: str) -> bool:
        if caller.role == Role.ADMIN or caller.name in self.callers:
            return caller.role in (Role.ADMIN, Role.MEMBER, Role.CALLER)
        if caller.role == Role.CALLER:
            return name in caller.recipes or (caller.any_recipe and not self.callers)
        return caller.role == Role.MEMBER and not self.callers

    def _resources(self, name: str, params: Mapping[str, Any]) -> Resources:
        asked: dict[str, Any] = {}
        for resource, wanted in self.resources_from.items():
            amount = _amount(resource, wanted, params)
            if amount is not None:
                self._check_bound(name, resource, amount, f"params.{wanted.param}")
                asked[resource] = amount
        return dataclasses.replace(self.run.resources, **asked) if asked else self.run.resources

    def _options(self, params: Mapping[str, Any]) -> dict[str, str]:
        found = dict(self.run.options)
        for option, param in self.options_from.items():
            value = _given(param, params)
            if value is not None:
                found[option] = _option_value(value, f"params.{param}")
        return found

    def _check_bound(self, name: str, resource: str, amount: float, where: str) -> None:
        if amount > self.bounds[resource]:
            most = show_amount(resource, self.bounds[resource])
            raise errors.InvalidInput(
                f"{where}: {show_amount(resource, amount)} is more than the {most} that recipe {name!r} allows",
                f"ask for at most {most}",
            )

    def _check(self) -> None:
        """What the fields have to do with each other."""
        for resource in self.resources_from:
            if resource not in self.bounds:
                raise errors.InvalidInput(
                    f"bounds: {resource} may be asked for and has no bound", f"add the most, as bounds.{resource}"
                )
        for resource, most in self.bounds.items():
            if (getattr(self.run.resources, resource) or 0) > most:
                raise errors.InvalidInput(
                    f"resources.{resource}: is more than bounds.{resource}", "raise the bound or lower the default"
                )
        for name in template.placeholders(self.run.command):
            if not _is_possible(name, self.schema):
                raise errors.InvalidInput(
                    f"command: the schema has no parameter {name!r}", "add it to the schema's properties"
                )


def show_amount(resource: str, amount: float) -> str:
    if resource in SIZES:
        return units.show_size(int(amount))
    return units.show_duration(amount) if resource == "time" else f"{amount:g} {resource}"


def _amount(resource: str, wanted: Wanted, params: Mapping[str, Any]) -> int | None:
    value, where = _given(wanted.param, params), f"params.{wanted.param}"
    if value is None:
        return None
    if isinstance(value, (bool, list, dict)):
        raise errors.InvalidInput(f"{where}: {template.show_value(value)} is no amount of {resource}")
    if isinstance(value, float) and value.is_integer():  # to JSON 2.0 is a whole number
        value = int(value)
    return _read(resource, str(value), wanted.writing, where)


def _given(param: str, params: Mapping[str, Any]) -> Any:
    """What a request says; None where it says nothing."""
    value = template.find(param, params)
    return None if value == "" else value


def _option_value(value: Any, where: str) -> str:
    text = template.show_value(value)
    if isinstance(value, (list, dict)) or not OPTION_VALUE.fullmatch(text):
        raise errors.InvalidInput(f"{where}: {text[:80]!r} cannot be an option of a scheduler", "use one plain word")
    return text


def _read(resource: str, text: str, writing: Writing, where: str) -> int:
    if resource in COUNTED:
        if not (text.isascii() and text.strip().isdigit()):
            raise errors.InvalidInput(f"{where}: {text!r} is not a whole number")
        return fields.integer(int(text), where, 0 if resource == "gpus" else 1, MAX_COUNT)
    parse = native_units.parse_time if resource == "time" else native_units.parse_size
    amount = parse(text, writing, where)
    if amount is None:
        raise errors.InvalidInput(f"{where}: {text!r} means no limit, which a recipe does not give", "name an amount")
    return amount


def _bounds(value: object) -> dict[str, int]:
    given = fields.mapping(value, "bounds", BOUNDED)
    try:
        checked = Resources.parse(given)
    except errors.InvalidInput as error:
        raise errors.InvalidInput(error.message.replace("resources", "bounds", 1), error.fix) from None
    return {name: getattr(checked, name) for name, item in given.items() if item is not None}


def _resources_from(value: object) -> dict[str, Wanted]:
    given = fields.mapping(value, "resources_from", BOUNDED)
    return {name: Wanted.parse(item, f"resources_from.{name}") for name, item in given.items()}


def _options_from(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise errors.InvalidInput("options_from: must be a mapping of options to parameters")
    return {
        fields.text(name, "options_from", 100): fields.text(param, f"options_from.{name}", 200)
        for name, param in value.items()
    }


def _callers(value: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else fields.texts(value, "callers", 100)
    return tuple(dict.fromkeys(spec.name_text(name, "callers") for name in names))


def _is_possible(name: str, rules: schema.Schema) -> bool:
    """Whether the schema leaves room for a parameter: one that it forbids would never be there."""
    root, here = rules, rules
    if isinstance(rules, dict) and name in rules.get("properties", {}):
        return True
    for part in name.split("."):
        here = schema.resolved(here, root)
        if not isinstance(here, dict):
            return here
        known = here.get("properties", {})
        if part not in known:
            return here.get("additionalProperties", True) is not False or "patternProperties" in here
        here = known[part]
    return True
