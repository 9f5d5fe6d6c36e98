from __future__ import annotations

from pathlib import Path

import pytest

from runyard import errors
from runyard.broker.address import BrokerAddress
from runyard.settings import Settings

SECRET = "s3cret/with@odd:signs"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("amqps://ann:pw@mq.example/lab", "amqps://ann@mq.example:5671/lab"),
        ("amqp://ann:pw@mq.example/lab", "amqp://ann@mq.example:5672/lab"),
        ("amqp://ann:pw@mq.example:1234/lab", "amqp://ann@mq.example:1234/lab"),
        ("ann:pw@mq.example/lab", "amqps://ann@mq.example:5671/lab"),
        ("amqps://mq.example", "amqps://guest@mq.example:5671/%2F"),
        ("amqp://guest@mq.example//", "amqp://guest@mq.example:5672/%2F"),
        ("amqp://ann:pw@mq.example/%2Fa%2Fb", "amqp://ann@mq.example:5672/%2Fa%2Fb"),
        ("amqps://a%40b:pw@[::1]:7/v", "amqps://a%40b@[::1]:7/v"),
    ],
)
def test_what_an_address_means(text: str, shown: str) -> None:
    assert str(BrokerAddress.parse(text)) == shown


def test_the_password_is_nowhere_to_be_seen() -> None:
    address = BrokerAddress.parse("amqps://ann:s3cret%2Fwith%40odd%3Asigns@mq.example/lab")
    assert address.password == SECRET
    assert "s3cret" not in f"{address} {address!r}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("http://mq.example", "begins with amqps:// or amqp://, not http://"),
        ("amqps://", "names no host"),
        ("amqps://ann:s3cret@mq.example:many/lab", "its port is no number"),
        ("amqps://ann:s3cret/x@mq.example/lab", "a slash, a ? or a # before its @"),
        ("amqps://ann:99/s3cret@mq.example/lab", "a slash, a ? or a # before its @"),
        ("amqps://ann:s3cret#x@mq.example/lab", "a slash, a ? or a # before its @"),
        ("amqps://ann:s3cret@mq.example/a/b", "'a/b' has a slash"),
        ("amqps://ann:s3cret@mq.example/lab?heartbeat=5", "something after its vhost"),
        ("amqps://ann@mq.example/lab", "no password for user 'ann'"),
    ],
)
def test_a_bad_address_is_told_without_its_password(text: str, sentence: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        BrokerAddress.parse(text)
    assert sentence in caught.value.message
    assert caught.value.fix
    assert "s3cret" not in caught.value.message + caught.value.fix


def test_where_the_password_comes_from(tmp_path: Path) -> None:
    secret = tmp_path / "password"
    secret.write_text("from the file\n")

    def password(url: str = "amqps://ann@mq.example/lab", **given: str) -> str:
        return BrokerAddress.of(Settings(home=tmp_path, broker=url, **given)).password

    assert password(broker_password="given") == "given"
    assert password(broker_password_file=str(secret)) == "from the file"
    assert password("amqps://ann:written@mq.example/lab", broker_password="given") == "written"
    with pytest.raises(errors.ConfigError, match=r"password cannot be read from .*: No such file"):
        password(broker_password_file=str(tmp_path / "none"))


def test_settings_do_not_show_it(tmp_path: Path) -> None:
    made = Settings(home=tmp_path, broker="amqps://ann:s3cret@mq.example/lab", broker_password="s3cret")
    assert "s3cret" not in repr(made)


def test_an_authority_that_cannot_be_used(tmp_path: Path) -> None:
    for name in ("none", "empty"):
        (tmp_path / "empty").write_text("")
        with pytest.raises(errors.ConfigError, match="cannot be used") as caught:
            BrokerAddress.parse("amqps://mq.example", authority=str(tmp_path / name)).tls_context()
        assert "broker_ca_file" in caught.value.fix
    assert BrokerAddress.parse("amqp://mq.example").tls_context() is None
