from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.model.intake import Intake
from runyard.model.request import plain
from runyard.model.webhook import Webhook


def test_names_that_are_formats_speak_them() -> None:
    names = ("tasks", "celery", "hpc-jobs")
    assert [Intake.parse_table(name, {}).format for name in names] == ["tasks", "celery", "tasks"]
    assert [Intake.parse_table(name, {}).keep_trying for name in ("tasks", "celery")] == [True, False]
    assert Intake.parse_table("celery", {"keep_trying": True}).keep_trying


def test_everything_can_be_said() -> None:
    intake = Intake.parse_table(
        "web",
        {
            "queue": "hpc-jobs",
            "durable": False,
            "arguments": {"x-max-length": 5},
            "reply_limit": "2M",
            "link_time": "1h",
        },
    )
    assert (intake.queue, intake.durable, intake.arguments) == ("hpc-jobs", False, {"x-max-length": 5})
    assert (intake.reply_limit, intake.link_time, intake.caller) == (2 << 20, 3600, "intake-web")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"queue": "amq.x"}, "intake.q.queue: names that begin with amq. belong to the broker"),
        ({"queue": ""}, "intake.q.queue: must be a text"),
        ({"queue": "é" * 126}, "intake.q.queue: longer than 250 bytes"),
        ({"prefetch": 0}, "intake.q.prefetch: 0 is not between 1 and 1000"),
        ({"params": "lr"}, "intake.q.params: must be a table of parameters and where in the body they are"),
        ({"arguments": {"x": [1]}}, "intake.q.arguments: must be a table of texts, numbers and yes or no"),
        ({"durable": 1}, "intake.q.durable: must be true or false"),
        ({"recipe": "../x"}, "intake.q.recipe: '../x' is not a valid name"),
        (3, "intake.q: must be a mapping of names to values"),
    ],
)
def test_what_is_wrong_is_named(given: Any, sentence: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        Intake.parse_table("q", given)
    assert caught.value.message == sentence


def test_an_intake_does_not_show_its_password() -> None:
    assert "hush" not in repr(Intake.parse_table("q", {"broker": "amqp://me:hush@host"}))


def test_parameters_are_picked_from_the_body() -> None:
    intake = Intake.parse_table("q", {"params": {"lr": "settings.Learning rate", "all": "inputs"}})
    assert intake.pick({"settings": {"Learning rate": 1}, "inputs": {"a": 2}}) == {"lr": 1, "all": {"a": 2}}
    with pytest.raises(errors.InvalidInput, match=r"^the body has no 'settings.Learning rate'$"):
        intake.pick({"settings": {}})


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host/path",
        "ftp://host/",
        "http://",
        "http://u:p@host/",
        "http://host:x/",
        "http://host/a b",
        "http://host/läufe",
        "http://h#x",
    ],
)
def test_what_is_no_address_of_a_webhook(url: str) -> None:
    with pytest.raises(errors.InvalidInput, match=r"^webhook.lab.url: ") as caught:
        Webhook.parse_table("lab", {"url": url})
    assert "p@" not in str(caught.value)


@pytest.mark.parametrize("name", [b"\xff", "", "a\0b", "é" * 128, None, 7])
def test_what_cannot_name_a_request(name: object) -> None:
    """Also since a reply has to carry it, in 255 bytes."""
    assert plain(name) is None
    assert plain("é" * 127) == "é" * 127


def test_a_webhook_wants_what_it_names() -> None:
    lab = Webhook.parse_table("lab", {"url": "https://host/", "states": ["failed"], "recipes": ["train"]})
    assert lab.wants({"state": "failed", "project": "x", "recipe": "train"})
    assert not lab.wants({"state": "failed", "project": "x", "recipe": None})
    assert not lab.wants({"state": "queued", "project": "x", "recipe": "train"})
