"""A recipe: a run that an administrator describes once and that other programs start with parameters, never with a
command."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from runyard import errors
from runyard.model import fields, native_units, schema, spec_values, template, units
from runyard.model.declaration import Beside, Declared, declared, field, names, plain, read
from runyard.model.json_schema import ANYTHING, or_null, record
from runyard.model.native_units import Writing
from runyard.model.reply import Reply
from runyard.model.resources import Resources
from runyard.model.roles import Caller, Role
from runyard.model.spec import RunSpec
from runyard.model.values import Checked, Choice, Duration, Part, Size, Text, Whole

COUNTED = names(Resources, lambda one: isinstance(one.value, Whole))
SIZES = names(Resources, lambda one: isinstance(one.value, Size))
TIMES = names(Resources, lambda one: isinstance(one.value, Duration))
BOUNDED = (*COUNTED, *SIZES, *TIMES)
# What may become a part of a scheduler's line: no blank, quote or sign that a shell or another line would begin with.
OPTION_VALUE = re.compile(r"[\w.][\w.@+:/,=%-]{0,199}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted(Declared):
    """Where a request says how much of a resource it wants, and in whose way of writing."""

    place: ClassVar[str] = "resources_from"
    short: ClassVar[str] = "param"

    param: str = field(Text(200), help="The parameter, as name or a.b")
    writing: Writing = field(Choice(Writing), default=Writing.RUNYARD, help="Whose units a bare number has")


def _bounds(value: object, where: str) -> dict[str, int]:
    found = read(Resources, fields.mapping(value, where, BOUNDED), where)
    return {name: int(amount) for name, amount in found.items()}


def _resources_from(value: object, where: str) -> dict[str, Wanted]:
    given = fields.mapping(value, where, BOUNDED)
    return {name: Wanted.parse(item, f"{where}.{name}") for name, item in given.items()}


def _options_from(value: object, where: str) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise errors.InvalidInput(f"{where}: must be a mapping of options to parameters")
    return {fields.text(name, where, 100): fields.text(param, f"{where}.{name}", 200) for name, param in value.items()}


BOUNDS = record({name: or_null(declared(Resources)[name].value.schema("The most")) for name in BOUNDED}, required=[])
RESOURCES_FROM = record(dict.fromkeys(BOUNDED, Part(Wanted, inline=True).schema("")), required=[])


@dataclass(frozen=True, kw_only=True, slots=True)
class Recipe(Declared):
    """Build it with `parse`, which checks everything that came from outside."""

    place: ClassVar[str] = "recipe"
    root: ClassVar[bool] = True
    brief: ClassVar[bool] = True
    about: ClassVar[str] = "A run that other programs start with parameters. The further fields are those of a run."

    description: str = field(Text(2000, empty=True), default="", help="For people")
    schema: dict[str, Any] = field(
        Checked(schema.parse, ANYTHING), make=dict,
        help="JSON Schema of the parameters; references inside it alone",
    )  # fmt: skip
    bounds: dict[str, int] = field(Checked(_bounds, BOUNDS), make=dict, help="The most that a request may ask for")
    resources_from: dict[str, Wanted] = field(
        Checked(_resources_from, RESOURCES_FROM), make=dict,
        help="Which parameter of a request says how much of a resource it wants",
    )  # fmt: skip
    options_from: dict[str, str] = field(
        Checked(_options_from, spec_values.OPTIONS.schema("")), make=dict,
        help="Which parameter of a request is which option of the scheduler",
    )  # fmt: skip
    callers: tuple[str, ...] = field(spec_values.NAMES, default=(), help="Tokens that may call it; none: every member")
    reply: Reply = field(Part(Reply, inline=True), make=Reply)
    # What is started; `{name}` in its command is a parameter of the request.
    run: RunSpec = field(Beside(RunSpec, lambda one: one.recipe))

    @classmethod
    def parse(cls, value: object, where: str = "") -> Recipe:
        recipe = cls(**read(cls, value, where))
        recipe._check()
        return recipe

    def to_json(self) -> dict[str, Any]:
        """The shortest mapping that parses to the same recipe."""
        wanted = {name: wanted.to_json() for name, wanted in self.resources_from.items()}
        return {**plain(self), **({"resources_from": wanted} if wanted else {})}

    def prepare(self, name: str, given: Mapping[str, Any]) -> RunSpec:
        """The run that these parameters mean; raises InvalidInput when the recipe does not allow them."""
        params = spec_values.params_mapping(schema.with_defaults(dict(given), self.schema))
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
    return units.show_duration(amount) if resource in TIMES else f"{amount:g} {resource}"


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
        return int(declared(Resources)[resource].value.parse(int(text), where))
    parse = native_units.parse_time if resource in TIMES else native_units.parse_size
    amount = parse(text, writing, where)
    if amount is None:
        raise errors.InvalidInput(f"{where}: {text!r} means no limit, which a recipe does not give", "name an amount")
    return amount


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
