"""What the pages say about the code is true: links lead somewhere, settings and commands are the real ones."""

from __future__ import annotations

import ast
import inspect
import json
import math
import re
import runpy
import tomllib
from collections.abc import Callable
from importlib import import_module
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
_REFERENCE = re.compile(r"`([\w/]+)\.py:([\w.]+)`")
_FILE = re.compile(r"(\*?)`([\w/.]+\.\w+)`")
MOST_FILES = 5  # that one change touches
READERS: dict[str, Callable[[str], object]] = {
    "json": json.loads, "python": ast.parse, "toml": tomllib.loads, "yaml": yaml.safe_load,
}  # fmt: skip


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of the table in a section, without its head."""
    section = page.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


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
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, function = project["scripts"]["runyard"].partition(":")
    assert callable(getattr(import_module(module), function))


def test_the_quickstart_says_what_the_demo_does() -> None:
    demo = runpy.run_path(str(ROOT / "examples" / "demo.py"))
    count = math.prod(len(values) for values in demo["SPACE"].values())
    number, often = {4: "four", 6: "six", 8: "eight"}[count], {1: "once", 2: "twice"}[demo["REPS"]]
    page = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
    assert f"with {number} configurations, each {often}" in page


def test_the_hops_of_a_run_are_in_the_code() -> None:
    hops = rows(ROOT / "docs" / "internals" / "architecture.md", "From a command to its result")
    assert [number for number, *_ in hops] == [str(number) for number in range(1, len(hops) + 1)]
    assert 8 <= len(hops) <= 12
    for _, what, where in hops:
        references = _REFERENCE.findall(where)
        assert len(references) == len(where.split(", ")), f"{what}: not a list of `file.py:function`: {where}"
        for file, function in references:
            assert_defined(f"runyard.{file.replace('/', '.')}", function)


def assert_defined(module: str, function: str) -> None:
    """In that very module: neither imported into it nor inherited from elsewhere."""
    found: object = import_module(module)
    for part in function.split("."):
        found = getattr(found, part, None)
        assert found is not None, f"{module} has no {function}"
    defined = found.callback if isinstance(found, click.Command) else found
    assert inspect.getmodule(defined) is import_module(module), f"{function} is not defined in {module}"


def test_the_table_of_changes_names_real_files() -> None:
    changes = rows(ROOT / "CONTRIBUTING.md", "Where a change goes")
    assert len({change for change, _, _ in changes}) == len(changes) == 15
    for change, listed, how in changes:
        files, others = _FILE.findall(listed), [found for found in _FILE.findall(how) if "/" in found[1]]
        assert len(files) == len(listed.split(", ")), f"{change}: not a list of files: {listed}"
        assert len(files) <= MOST_FILES, f"{change}: {len(files)} files"
        assert [path for emphasis, path in files + others if not is_told(path, new=bool(emphasis))] == [], change


def is_told(path: str, *, new: bool) -> bool:
    """A new file is not there yet, but its directory is."""
    place = ROOT / "src" / "runyard" / path
    return place.parent.is_dir() and place.is_file() is not new
