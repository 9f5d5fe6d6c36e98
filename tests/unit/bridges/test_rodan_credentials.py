"""Six variables, from wherever they come; what is wrong with them is told by name, and never with a password."""

from __future__ import annotations

from pathlib import Path

import pytest

from runyard import errors
from runyard.bridges.rodan import credentials
from runyard.bridges.rodan.credentials import Credentials

GOOD = {
    "RABBITMQ_HOST": "rabbit.example.org",
    "RABBITMQ_USER": "hpc",
    "RABBITMQ_PASSWORD": "s3cret-rabbit",
    "RODAN_HOST": "rodan.example.org",
    "RODAN_USER": "trainer",
    "RODAN_PASSWORD": "s3cret-rodan",
}


def load(**changes: str) -> Credentials:
    return credentials.load("", {**GOOD, **changes})


def written(tmp_path: Path, text: str, mode: int = 0o600) -> str:
    path = tmp_path / "credentials.env"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def from_file(tmp_path: Path, text: str, environ: dict[str, str] | None = None) -> Credentials:
    return credentials.load(written(tmp_path, text), environ or {})


def test_hosts_alone_are_encrypted() -> None:
    found = load()
    assert (found.broker, found.rodan) == ("amqps://hpc@rabbit.example.org/", "https://rodan.example.org")
    assert (found.broker_password, found.user, found.password) == ("s3cret-rabbit", "trainer", "s3cret-rodan")
    assert "s3cret" not in repr(found)


def test_hosts_may_carry_scheme_and_port() -> None:
    found = load(RABBITMQ_HOST="amqp://10.0.0.1:5672", RODAN_HOST="http://[::1]:8000/", RABBITMQ_USER="a@b/c")
    assert (found.broker, found.rodan) == ("amqp://a%40b%2Fc@10.0.0.1:5672/", "http://[::1]:8000")
    assert load(RABBITMQ_HOST="rabbit:5672").broker == "amqps://hpc@rabbit:5672/", "plaintext only when written out"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RABBITMQ_HOST", "http://rabbit"),
        ("RABBITMQ_HOST", "rabbit:port"),
        ("RABBITMQ_HOST", "amqps://user:pa55word@rabbit"),
        ("RABBITMQ_HOST", "rabbit/vhost"),
        ("RODAN_HOST", "ftp://rodan"),
        ("RODAN_HOST", "https://rodan/api?x=1"),
        ("RODAN_HOST", "https://"),
    ],
)
def test_what_is_no_host_is_refused_without_being_quoted(name: str, value: str) -> None:
    with pytest.raises(errors.ConfigError, match=name) as caught:
        load(**{name: value})
    assert "pa55word" not in f"{caught.value} {caught.value.fix}"


def test_empty_variables_are_named() -> None:
    with pytest.raises(errors.ConfigError, match=r"empty in the environment: RABBITMQ_PASSWORD, RODAN_HOST$"):
        load(RABBITMQ_PASSWORD="", RODAN_HOST="  ")
    with pytest.raises(errors.ConfigError, match=", ".join(credentials.VARIABLES)):
        credentials.load("", {})


@pytest.mark.parametrize("prefix", ["export ", "", "  export  "])
def test_the_old_file_is_read_with_and_without_export(tmp_path: Path, prefix: str) -> None:
    lines = [f"{prefix}{name}={value}" for name, value in GOOD.items()]
    found = from_file(tmp_path, "#!/bin/sh\n# ours\n\n" + "\n".join(lines) + "\nexport PATH=/usr/bin:$PATH\n")
    assert found == load()


def test_values_are_read_as_a_shell_reads_them(tmp_path: Path) -> None:
    lines = [f"{name}={value}" for name, value in GOOD.items() if "PASSWORD" not in name]
    lines += ["RABBITMQ_PASSWORD='a $b \"c\" #d'", 'RODAN_PASSWORD="it\'s \\"this\\""  # a remark']
    found = from_file(tmp_path, "\n".join(lines))
    assert (found.broker_password, found.password) == ('a $b "c" #d', 'it\'s "this"')
    line = "RABBITMQ_PASSWORD=#pa#ss\\ wo'r d'  # it's a remark, and costs $5"
    assert from_file(tmp_path, line, GOOD).broker_password == "#pa#ss wor d"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("pa$word", r"line 1: RODAN_PASSWORD: a shell would replace the \$ or ` in it"),
        ('"pa`word`"', "a shell would replace"),
        ("'open", "a quote is not closed"),
        ("two words", "there is something after the value"),
        ("pa55;", "there is something after the value"),
        ("pa55 && true", "there is something after the value"),
        ("\"it's $5 o'clock\"", "a shell would replace"),
    ],
)
def test_what_a_shell_would_read_otherwise_is_refused(tmp_path: Path, value: str, sentence: str) -> None:
    with pytest.raises(errors.ConfigError, match=sentence) as caught:
        from_file(tmp_path, f"RODAN_PASSWORD={value}", GOOD)
    assert "word`" not in str(caught.value) and "pa$" not in str(caught.value)


def test_the_file_counts_more_than_the_environment_and_may_leave_some_to_it(tmp_path: Path) -> None:
    found = from_file(tmp_path, "export RODAN_USER=other\nSSL_CERT_FILE=/etc/ca.pem\n", GOOD)
    assert (found.user, found.password, found.authorities) == ("other", "s3cret-rodan", "/etc/ca.pem")


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o666])
def test_a_file_that_others_can_read_is_refused(tmp_path: Path, mode: int) -> None:
    path = written(tmp_path, "RODAN_USER=x", mode)
    with pytest.raises(errors.ConfigError, match=f"others may read it \\({mode:o}\\)") as caught:
        credentials.load(path, GOOD)
    assert caught.value.fix == f"chmod 600 {path}"


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match="No such file"):
        credentials.load(str(tmp_path / "none"), GOOD)


def test_passwords_are_not_handed_on() -> None:
    environ = {**GOOD, "PATH": "/bin"}
    credentials.hide(environ)
    assert set(environ) == {"PATH", *GOOD} - {"RABBITMQ_PASSWORD", "RODAN_PASSWORD"}
