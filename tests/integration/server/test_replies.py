"""Requests that came through the broker as people see them, and links for those who have no token."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from urllib.parse import urlsplit

import pytest

from runyard.model.intake import Intake
from runyard.model.recipe import Recipe
from runyard.model.request import Asked, Sender
from runyard.model.roles import Role
from tests.integration.server.api import Api, Served
from tests.integration.server.shapes import check_answer

INTAKE = Intake.parse_table("jobs", {"recipe": "train"})


@pytest.fixture(scope="module")
def asked(served: Served) -> int:
    """A request whose run waits; returns its number."""
    served.yard.recipes.put(served.yard.owner(), "train", Recipe.parse({"command": ["true"]}), default=False).result()
    sender = Sender(identity="c1", correlation_id="c1", reply_to="answers")
    accepted = served.yard.requests.accept(INTAKE, Asked(sender=sender, digest="d"), [{"lr": 1}], is_group=False)
    return int(accepted.result().id)


def test_requests_are_listed(api: Api, asked: int) -> None:
    (row,) = api.get("/replies?queue=jobs").json["replies"]
    check_answer(row, "Reply")
    assert (row["id"], row["state"], row["correlation_id"]) == (asked, "running", "c1")
    assert api.get("/replies?queue=others").json == {"replies": [], "next": None}


def test_a_reply_is_sent_again_when_an_admin_says_so(api: Api, roles: dict[Role, Api], asked: int) -> None:
    assert api.post("/replies/resend", {"ids": [asked]}).json == {"ids": [asked]}
    assert api.post("/replies/resend", {"queue": "jobs"}).json == {"ids": [asked]}
    assert api.post("/replies/resend", {"queue": "others"}).json == {"ids": []}
    assert api.post("/replies/resend", {"ids": [999]}).status == 404
    assert api.post("/replies/resend", {}).error["message"] == "name either the requests or their queue"
    assert roles[Role.MEMBER].post("/replies/resend", {"ids": [asked]}).status == 403


def link(served: Served, data: bytes, name: str, seconds: float = 60) -> str:
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    served.yard.blobs.put(digest, [data])
    made = urlsplit(served.yard.links.make(digest, name, seconds)["url"])
    return f"{made.path.removeprefix('/api/v1')}?{made.query}"


@pytest.mark.parametrize("name", ["model.bin", "a b?#&=ü.bin", "%2F..%2F", "tab\there"])
def test_a_link_is_good_without_a_token(served: Served, name: str) -> None:
    reply = served.api.as_(None).get(link(served, b"weights", name))
    assert (reply.status, reply.body) == (200, b"weights")
    part = served.api.as_(None).get(link(served, b"weights", name), Range="bytes=0-2")
    assert (part.status, part.body) == (206, b"wei")


@pytest.mark.parametrize(
    "spoil",
    [
        lambda url: url.replace("model.bin", "other.bin"),
        lambda url: url.replace("expires=", "expires=9"),
        lambda url: url[:-1] + ("0" if url[-1] != "0" else "1"),
        lambda url: url.replace(hashlib.sha256(b"weights").hexdigest(), hashlib.sha256(b"other").hexdigest()),
    ],
    ids=["name", "time", "signature", "file"],
)
def test_a_link_is_good_for_nothing_else(served: Served, spoil: Callable[[str], str]) -> None:
    link(served, b"other", "other.bin")
    reply = served.api.as_(None).get(spoil(link(served, b"weights", "model.bin")))
    assert (reply.status, reply.error["message"]) == (403, "this link was not made by this yard")


def test_a_link_ends(served: Served) -> None:
    reply = served.api.as_(None).get(link(served, b"weights", "model.bin", seconds=-5))
    assert reply.status == 403
    assert reply.error["message"].startswith("this link was good until ")


def test_the_key_is_the_same_for_all_servers_of_a_store(served: Served) -> None:
    from runyard.yard.outgoing.signed_links import SignedLinks

    url = link(served, b"weights", "model.bin")
    query = dict(pair.split("=") for pair in urlsplit(url).query.split("&"))
    digest = f"sha256:{hashlib.sha256(b'weights').hexdigest()}"
    other = SignedLinks(served.yard.store, served.yard.settings)
    other.check(digest, "model.bin", int(query["expires"]), query["signature"])
