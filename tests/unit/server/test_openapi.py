"""The document is complete, and its schemas have the fields that the code has."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from runyard.model import recipe, resources, spec, wire
from runyard.model.declaration import document
from runyard.server.auth import Access
from runyard.server.openapi import build_document
from runyard.server.route import PREFIX, Route
from runyard.server.routes import ROUTES
from runyard.server.schemas import COMPONENTS

DOCUMENT = build_document(ROUTES)


def fields_of(name: str) -> set[str]:
    return set(COMPONENTS[name]["properties"])


def names_of(kind: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


def plain(row: Route) -> str:
    return re.sub(r":\w+}", "}", row.place)


def test_every_route_is_in_it_once() -> None:
    shown = {(method.upper(), path) for path, methods in DOCUMENT["paths"].items() for method in methods}
    declared = [(row.method, plain(row)) for row in ROUTES]
    assert shown == set(declared) and len(declared) == len(shown)


def test_operation_ids_are_unique() -> None:
    ids = [operation["operationId"] for methods in DOCUMENT["paths"].values() for operation in methods.values()]
    assert len(ids) == len(set(ids))


def test_every_reference_leads_somewhere_and_every_schema_is_used() -> None:
    named = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(DOCUMENT)))
    assert named == COMPONENTS.keys()


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: f"{row.method} {row.place}")
def test_path_parameters_are_declared(row: Route) -> None:
    in_path = set(re.findall(r"{(\w+)", row.path))
    assert in_path == {parameter.name for parameter in row.parameters if parameter.place == "path"}


@pytest.mark.parametrize("row", ROUTES, ids=lambda row: f"{row.method} {row.place}")
def test_every_route_tells_its_errors(row: Route) -> None:
    operation = DOCUMENT["paths"][plain(row)][row.method.lower()]
    assert {"400", "403", "500"} <= operation["responses"].keys()
    assert ("401" in operation["responses"]) == (row.access is not Access.PUBLIC or 401 in row.errors)
    assert ("503" in operation["responses"]) == ("401" in operation["responses"])
    assert row.summary and not row.summary.endswith(".")


def test_run_spec_has_the_fields_that_are_parsed() -> None:
    assert fields_of("RunSpec") == set(spec.FIELDS) == names_of(spec.RunSpec)
    assert fields_of("Resources") == names_of(resources.Resources)
    assert fields_of("Retry") == names_of(spec.Retry)
    assert fields_of("Stop") == names_of(spec.Stop)


def test_recipe_spec_has_the_fields_that_are_parsed() -> None:
    assert fields_of("RecipeSpec") == set(document(recipe.Recipe))
    assert "params" not in fields_of("RecipeSpec")


def test_wire_bodies_have_the_fields_of_the_model() -> None:
    assert fields_of("Hello") == names_of(wire.Hello)
    assert fields_of("SyncRequest") == names_of(wire.SyncRequest)
    assert fields_of("SyncResponse") == names_of(wire.SyncResponse)
    assert fields_of("Report") == names_of(wire.Report)
    assert fields_of("Claim") == names_of(wire.Claim)
    assert fields_of("Capacity") == names_of(resources.Capacity)
    assert fields_of("Gpu") == names_of(resources.Gpu)


def test_the_reference_page_has_every_route_with_its_role() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "http-api.md"
    rows = re.findall(
        r"^\| (GET|POST|PUT|PATCH|DELETE) (\S+) \| ([a-z ]+) \|", page.read_text(encoding="utf-8"), re.MULTILINE
    )
    declared = [(row.method, plain(row).removeprefix(PREFIX), row.access.value) for row in ROUTES]
    assert sorted(rows) == sorted(declared)


def test_the_addresses_of_the_training_runs_server_are_described() -> None:
    starting = {(path, method) for path in ("/", "/request", "/request/{name}") for method in ("post", "put")}
    for path, method in {*starting, ("/", "get"), ("/status", "get")}:
        operation = DOCUMENT["paths"][path][method]
        assert operation["responses"]["200"]["content"]["application/json"]["schema"]["properties"]
