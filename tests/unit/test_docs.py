"""What the pages say about the code is true: links lead somewhere, settings and commands are the real ones."""

from __future__ import annotations

import ast
import json
import math
import re
import runpy
import tomllib
from collections.abc import Callable
from pathlib import Path

import click
import pytest
import yaml

import runyard
from runyard import settings
from runyard.cli.main import COMMANDS, cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])

_LINK = re.compile(r"(?<!!)\[[^\]]+\]\(([^)\s]+)\)")
_COMMAND = re.compile(r"^\s*\$?\s*(?:RUNYARD_\w+=\S+ )*runyard ([a-z]+)", re.MULTILINE)
_FENCE = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
_EXAMPLE = re.compile(r"^```(json|python|toml|yaml)\n(.*?)^```", re.MULTILINE | re.DOTALL)
_LINE = re.compile(r"^(?:\$ )?runyard ([^\n#|;>]+)", re.MULTILINE)
_OPTION = re.compile(r"(?<!\S)--[a-z][a-z-]*")
READERS: dict[str, Callable[[str], object]] = {
    "json": json.loads, "python": ast.parse, "toml": tomllib.loads, "yaml": yaml.safe_load,
}  # fmt: skip


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        target, _, anchor = link.partition("#")
        if "://" in target:
            continue
        path = (page.parent / target).resolve() if target else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            broken.append(link)
    assert not broken


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / link).resolve() for link in _LINK.findall(index.read_text(encoding="utf-8"))}
    pages = {page for page in PAGES if page.is_relative_to(index.parent) and page != index}
    assert pages <= linked


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_commands_in_the_pages_exist(page: Path) -> None:
    shown = {word for block in _FENCE.findall(page.read_text(encoding="utf-8")) for word in _COMMAND.findall(block)}
    assert shown <= set(COMMANDS)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_options_in_the_pages_exist(page: Path) -> None:
    blocks = _FENCE.findall(page.read_text(encoding="utf-8").replace("\\\n", " "))
    lines = [line.partition(" -- ")[0] for block in blocks for line in _LINE.findall(block)]
    assert [line for line in lines if not set(_OPTION.findall(line)) <= known_options(line.split())] == []


def known_options(typed: list[str]) -> set[str]:
    found: click.Command | None = cli
    for word in typed:
        if not isinstance(found, click.Group):
            break
        found = found.get_command(click.Context(found), word)
    assert found is not None, typed
    return {option for parameter in found.params for option in (*parameter.opts, *parameter.secondary_opts)} | {
        "--help"
    }


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_examples_in_the_pages_can_be_read(page: Path) -> None:
    for language, text in _EXAMPLE.findall(page.read_text(encoding="utf-8")):
        READERS[language](text)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_settings_in_the_pages_are_good(page: Path, tmp_path: Path) -> None:
    for language, text in _EXAMPLE.findall(page.read_text(encoding="utf-8")):
        if language == "toml":
            (tmp_path / "config.toml").write_text(text, encoding="utf-8")
            settings.load(str(tmp_path), {})


def test_the_settings_page_is_up_to_date() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "write_settings_page.py"))
    assert (ROOT / "docs" / "reference" / "settings.md").read_text(encoding="utf-8") == script["page"](), (
        "run: make docs"
    )


def test_the_changelog_tells_of_this_version() -> None:
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert newest[1] == runyard.__version__


def test_the_script_is_named_in_pyproject() -> None:
    from importlib import import_module

    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, function = project["scripts"]["runyard"].partition(":")
    assert callable(getattr(import_module(module), function))


def test_the_quickstart_says_what_the_demo_does() -> None:
    demo = runpy.run_path(str(ROOT / "examples" / "demo.py"))
    count = math.prod(len(values) for values in demo["SPACE"].values())
    number, often = {4: "four", 6: "six", 8: "eight"}[count], {1: "once", 2: "twice"}[demo["REPS"]]
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    assert f"with {number} configurations, each {often}" in page
