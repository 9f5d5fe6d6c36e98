from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard import errors
from runyard.model import reply_document
from runyard.model.recipe import Recipe
from runyard.model.reply import Reply
from runyard.model.request import LeftFile, Outcome, RunOutcome

VIEW = {"id": 7, "state": "succeeded", "reason": None, "detail": None, "exit_code": 0, "params": {"lr": 1}}


def left(path: str, data: bytes, url: str = "https://yard/links/x") -> LeftFile:
    return LeftFile(
        path=path, size=len(data), digest="sha256:0", read=lambda: data, link=lambda: {"url": url} if url else {}
    )


def outcome(*files: LeftFile, runs: int = 1, reply: Reply | None = None, **view: Any) -> Outcome:
    found = [RunOutcome(view={**VIEW, **view, "id": 7 + number}, files=files) for number in range(runs)]
    return Outcome(
        id=1, queue="q", correlation_id="c", reply_to="r", is_group=runs > 1, runs=found, reply=reply or Reply()
    )


def paths(document: dict[str, Any], kind: str) -> list[str]:
    return [entry["path"] for entry in document["outputs"] if kind in entry]


def test_small_files_are_inside_and_large_ones_are_links() -> None:
    told = outcome(left("a", b"12345"), left("b", b"x" * 2000), left("c", b"1"), reply=Reply(inline=1000))
    document = reply_document.compose(told, 1 << 20)
    assert (paths(document, "content"), paths(document, "url")) == (["a", "c"], ["b"])
    assert base64.b64decode(document["outputs"][0]["content"]) == b"12345"


def test_the_smallest_are_inside_first() -> None:
    told = outcome(left("large", b"x" * 900), left("small", b"x" * 300))
    bare = reply_document.size_of(reply_document.compose(outcome(*told.runs[0].files, reply=Reply(inline=0)), 1 << 20))
    document = reply_document.compose(told, bare + 600)
    assert (paths(document, "content"), paths(document, "url")) == (["small"], ["large"])


def test_a_yard_without_an_address_makes_no_links() -> None:
    document = reply_document.compose(outcome(left("a", b"x" * 10, url=""), reply=Reply(inline=0)), 1 << 20)
    assert document["outputs"] == [{"path": "a", "size": 10, "digest": "sha256:0"}]


@given(
    sizes=st.lists(st.integers(0, 3000), max_size=8), runs=st.integers(1, 4), room=st.integers(400, 20_000),
    name=st.text(min_size=1, max_size=20),
)  # fmt: skip
def test_no_reply_is_larger_than_the_room(sizes: list[int], runs: int, room: int, name: str) -> None:
    files = [left(f"{name}{number}", b"x" * size) for number, size in enumerate(sizes)]
    assert reply_document.size_of(reply_document.compose(outcome(*files, runs=runs), room)) <= room


def test_values_come_from_json_files() -> None:
    files = [left("m.json", b'{"scores": {"auc": 0.5}}'), left("bad.json", b"{")]
    places = {"all": "m.json", "auc": "m.json:scores.auc", "none": "m.json:x", "bad": "bad.json", "gone": "gone.json"}
    document = reply_document.compose(outcome(*files, reply=Reply(fields=("id",), values=places, files=())), 1 << 20)
    assert document == {
        "id": 7, "all": {"scores": {"auc": 0.5}}, "auc": 0.5, "none": None, "bad": None, "gone": None, "outputs": [],
    }  # fmt: skip


def test_a_run_that_did_not_succeed_has_an_error() -> None:
    document = reply_document.compose(outcome(state="failed", reason="oom", detail="it needed 3 GB of 2 GB"), 1 << 20)
    assert document["error"] == "run 7 failed: oom: it needed 3 GB of 2 GB"


@pytest.mark.parametrize(
    ("given_reply", "sentence"),
    [
        ({"fields": ["command"]}, "reply.fields[0]: 'command' is not known"),
        ({"values": {"error": "m.json"}}, "reply.values: 'error' is a name of runyard's own"),
        ({"values": ["m.json"]}, "reply.values: must be a mapping of names to files"),
        ({"files": ["../x"]}, "reply.files: '../x' leads out of the output directory"),
        ({"inline": "much"}, "reply.inline: 'much' is not a size"),
        ({"inlin": 1}, "reply: unknown field 'inlin'"),
    ],
)
def test_what_is_wrong_is_named(given_reply: Any, sentence: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        Recipe.parse({"command": ["true"], "reply": given_reply})
    assert caught.value.message == sentence


def test_a_recipe_keeps_what_it_says_about_replies() -> None:
    said = {"command": ["true"], "reply": {"fields": ["id"], "values": {"a": "b"}, "files": ["*.pt"], "inline": 5}}
    assert Recipe.parse(said).to_json()["reply"] == said["reply"]
    assert "reply" not in Recipe.parse({"command": ["true"], "reply": {"inline": "1M"}}).to_json()
    assert json.loads(json.dumps(Recipe.parse(said).to_json())) == Recipe.parse(said).to_json()
