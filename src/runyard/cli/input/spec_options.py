"""Options derived from declared fields: those of a run and of a sweep; and the document they make."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import click

from runyard import errors
from runyard.cli.input import key_values, option_groups
from runyard.model import rerun
from runyard.model.declaration import Declared, Field, Option, Reads, declared, own_words
from runyard.model.spec import RunSpec
from runyard.model.sweep import SweepSpec, text
from runyard.model.values import Choice, Grace, Part, Switch, Whole

BESIDE = {  # options without a field of their own
    "env": click.option("--env-file", multiple=True, metavar="FILE", help="Set the variables of a file. Repeatable."),
    "code": click.option("--no-code", is_flag=True, help="Send no code; run in the current directory."),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """An option, and the field that it sets."""

    field: Field
    option: Option
    within: str = ""  # the field of the run that contains it; empty for a field of the run itself

    @property
    def parameter(self) -> str:
        flag = self.option.flags.split()[-1]
        return flag.removeprefix("--").replace("-", "_") if self.within else self.field.name

    def click(self) -> Callable[[Any], Any]:
        words, reads = self.option.flags.split(), self.option.reads
        kind: dict[str, Any] = {"metavar": self.option.metavar or None, "type": _click_type(self.field)}
        if reads is Reads.FLAG:
            kind = {"is_flag": True, "default": None}
        elif reads not in (Reads.ONE, Reads.RULE):
            kind |= {"multiple": True}
        return click.option(*words, self.parameter, **kind, help=self.option.text(self.field))


def _click_type(field: Field) -> Any:
    if isinstance(field.value, Choice):
        return click.Choice([str(word) for word in field.value.known])
    return int if isinstance(field.value, Whole) else None


def _settings(kind: type[Declared], within: str = "") -> Iterator[Setting]:
    for name, one in own_words(kind).items():
        if one.option is not None:
            yield Setting(one, one.option, within)
        if isinstance(one.value, (Part, Switch)):
            yield from _settings(one.value.kind, name)


def _of_rerun() -> Iterator[Setting]:
    """What may be other in a run that is started again; its parameters are changed one by one."""
    for name, value in rerun.VALUES.items():
        one = declared(RunSpec)[name]
        if one.option is not None and one.option.reads is not Reads.PAIRS:
            metavar = "" if isinstance(value, Choice) else one.option.metavar
            field = dataclasses.replace(one, value=value, help=one.rerun)
            yield Setting(field, Option(one.option.flags, metavar))


def _options(chosen: Callable[[Setting], bool]) -> Iterator[Callable[[Any], Any]]:
    for setting in filter(chosen, SETTINGS):
        yield setting.click()
        if setting.parameter in BESIDE:
            yield BESIDE[setting.parameter]


SETTINGS = tuple(_settings(RunSpec))
spec_options = option_groups.together(*_options(lambda _: True))  # all options of a run
shared_options = option_groups.together(*_options(lambda one: not one.option.alone))  # what all runs of a sweep share
OF_SWEEP = tuple(_settings(SweepSpec))
rerun_options = option_groups.together(*(one.click() for one in _of_rerun()))
sweep_options = option_groups.together(*(one.click() for one in OF_SWEEP))


def override(spec: Mapping[str, Any], given: Mapping[str, Any], command: Sequence[str]) -> dict[str, Any]:
    """The spec (from a file, or empty), overridden by the command line."""
    whole = dict(spec)
    if command:
        whole["command"] = list(command)
    _put_all(whole, SETTINGS, given)
    if files := _from_files(given):
        whole["env"] = {**_mapping(spec, "env"), **files, **key_values.variables(given["env"])}
    if given["no_code"]:
        whole["code"] = _no_code(given)
    return whole


def override_sweep(document: Mapping[str, Any], given: Mapping[str, Any], command: Sequence[str]) -> dict[str, Any]:
    """The sweep (from a file, or empty) with what the command line says put over it."""
    whole = dict(document)
    if isinstance(whole.get("stop"), str):
        whole["stop"] = {"rule": whole["stop"]}
    shared = {name: said for name, said in given.items() if name not in {one.parameter for one in OF_SWEEP}}
    whole = override(whole, shared, command)
    _put_all(whole, OF_SWEEP, given)
    return whole


def _put_all(whole: dict[str, Any], settings: Iterable[Setting], given: Mapping[str, Any]) -> None:
    for setting in settings:
        said = given.get(setting.parameter)
        if said is not None and said != ():
            _put(whole, setting, said)


def _put(whole: dict[str, Any], setting: Setting, said: Any) -> None:
    name, outer = setting.field.name, setting.within
    inside = _mapping(whole, outer) if outer else whole
    if isinstance(setting.field.value, Grace) and said in ("0", "0s"):
        said = 0  # the field's own type takes no duration of 0
    value = _READERS[setting.option.reads](name, said, inside)
    if outer:
        whole[outer] = {**inside, name: value}
    else:
        whole[name] = value


def _one(name: str, said: Any, spec: Mapping[str, Any]) -> Any:
    return said


def _list(name: str, said: Sequence[str], spec: Mapping[str, Any]) -> list[str]:
    return list(said)


def _commas(name: str, said: Sequence[str], spec: Mapping[str, Any]) -> list[str]:
    return key_values.listed(said)


def _flag(name: str, said: bool, spec: Mapping[str, Any]) -> Any:
    """A mapping from the file stays."""
    before = spec.get(name)
    return before if isinstance(before, Mapping) else said


def _pairs(name: str, said: Sequence[str], spec: Mapping[str, Any]) -> dict[str, Any]:
    known = _mapping(spec, name)
    if name == "params":  # names may be nested
        return key_values.parameters(said, known)
    return {**known, **(key_values.variables(said) if name == "env" else key_values.options(said))}


def _space(name: str, said: Sequence[str], spec: Mapping[str, Any]) -> dict[str, Any]:
    return {**_mapping(spec, name), **text.parse_words(said)}


def _rule(name: str, said: str, spec: Mapping[str, Any]) -> dict[str, Any]:
    rule, *values = said.split(",")
    return {**(spec.get(name) or {}), "rule": rule, **key_values.parameters(values, {})}


def _files(name: str, said: Sequence[str], spec: Mapping[str, Any]) -> list[Any]:
    return [*(spec.get(name) or ()), *map(key_values.input_file, said)]


_READERS: dict[Reads, Callable[[str, Any, Mapping[str, Any]], Any]] = {
    Reads.ONE: _one,
    Reads.LIST: _list,
    Reads.COMMAS: _commas,
    Reads.FLAG: _flag,
    Reads.PAIRS: _pairs,
    Reads.FILES: _files,
    Reads.SPACE: _space,
    Reads.RULE: _rule,
}


def _from_files(given: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    for path in given["env_file"]:
        found.update(key_values.variables_from_file(path))
    return found


def _no_code(given: Mapping[str, Any]) -> bool:
    if given["code"]:
        raise errors.InvalidInput("--code and --no-code exclude each other", "give one of them")
    return False


def _mapping(spec: Mapping[str, Any], field: str) -> dict[str, Any]:
    """The file's value of a field that options add to: its parts, a bare value for one of them, or a boolean."""
    said, known = spec.get(field) or {}, declared(RunSpec).get(field)
    value = known.value if known is not None else None
    if isinstance(value, Switch) and said is True:
        return {}
    if isinstance(value, Part) and value.kind.short and isinstance(said, (str, int)):
        return {value.kind.short: said}
    if not isinstance(said, dict):
        raise errors.InvalidInput(f"{field}: must be a mapping of names to values")
    return said
