from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from runyard import errors, home, settings


def test_defaults_file_and_variables(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('port = 1234\nmemory = "2G"\ngpus = ["GPU-1"]\n')
    loaded = settings.load(tmp_path, {"RUNYARD_PORT": "0"})
    assert (loaded.port, loaded.memory, loaded.gpus, loaded.host) == (0, 2 << 30, ["GPU-1"], "127.0.0.1")
    assert settings.load(None, {"RUNYARD_HOME": str(tmp_path)}).port == 1234


@pytest.mark.parametrize("name", ["body_limit", "code_limit", "data_limit", "input_limit", "spool_limit"])
def test_a_size_may_have_a_unit(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.toml").write_text(f'{name} = "3G"\n')
    assert getattr(settings.load(tmp_path, {}), name) == 3 << 30


def test_a_password_of_digits_stays_a_text(tmp_path: Path) -> None:
    assert settings.load(tmp_path, {"RUNYARD_BROKER_PASSWORD": "12345"}).broker_password == "12345"


def test_lists_and_tables_in_variables(tmp_path: Path) -> None:
    given = {
        "RUNYARD_ALLOWED_HOSTS": "yard, yard.lab.example,",
        "RUNYARD_AGENT_TOKENS": "workers=/run/secrets/a,big.ones=/run/secrets/b=c",
        "RUNYARD_LOCAL_SITE": "named",
    }
    loaded = settings.load(tmp_path, given)
    assert loaded.allowed_hosts == ["yard", "yard.lab.example"]
    assert loaded.agent_tokens == {"workers": "/run/secrets/a", "big.ones": "/run/secrets/b=c"}
    assert loaded.local_site == "named"


@pytest.mark.parametrize(
    ("variable", "value", "sentence"),
    [
        ("RUNYARD_AGENT_TOKENS", "local=/x", "the site 'local' is served by the yard itself"),
        ("RUNYARD_AGENT_TOKENS", "workers", "agent_tokens.workers"),
        ("RUNYARD_AGENT_TOKENS", "a b=/x", "'a b' is not a valid name"),
        ("RUNYARD_TRUSTED_NETWORKS", "10.0.0.0/8,lab", "'lab' is not a network"),
        ("RUNYARD_LOCAL_SITE", "never", "'never' is not known"),
    ],
)
def test_a_bad_variable_is_named(tmp_path: Path, variable: str, value: str, sentence: str) -> None:
    with pytest.raises(errors.ConfigError) as caught:
        settings.load(tmp_path, {variable: value})
    assert sentence in caught.value.message
    assert variable in caught.value.message


@pytest.mark.parametrize(
    ("environ", "broker"),
    [
        ({"RABBITMQ_HOST": "rabbitmq"}, "amqp://guest@rabbitmq//"),
        ({"RABBITMQ_HOST": "rabbitmq", "RUNYARD_BROKER": "amqps://ann@mq/lab"}, "amqps://ann@mq/lab"),
        ({"RABBITMQ_HOST": "rabbitmq", "RABBITMQ_USER": "rodan"}, ""),
    ],
)
def test_the_broker_of_training_runs_is_not_the_one_of_rodan(
    tmp_path: Path, environ: dict[str, str], broker: str
) -> None:
    assert settings.load(tmp_path, environ).broker == broker


@pytest.mark.parametrize(
    ("store", "whole"),
    [
        ("postgresql://ann@db/yard", "postgresql://ann:p%40ss%2Fword@db/yard"),
        ("postgresql://ann:own@db/yard", "postgresql://ann:own@db/yard"),
        ("postgresql://db/yard?user=a@b", "postgresql://db/yard?user=a@b"),
    ],
)
def test_the_password_of_the_store_comes_from_its_file(tmp_path: Path, store: str, whole: str) -> None:
    (tmp_path / "secret").write_text("p@ss/word\n")
    made = settings.Settings(home=tmp_path, store=store, store_password_file=str(tmp_path / "secret"))
    assert made.store_url == whole
    assert "own" not in repr(made)


def test_a_password_file_that_is_not_there(tmp_path: Path) -> None:
    made = settings.Settings(home=tmp_path, store="postgresql://ann@db/yard", store_password_file="/nonexistent")
    with pytest.raises(errors.ConfigError, match="the store's password cannot be read from /nonexistent: No such file"):
        made.store_url  # noqa: B018


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("port = ", "config.toml cannot be read"),
        ("prot = 1", "'prot' is not known"),
        ("port = 70000", "port: 70000 is not between 0 and 65535"),
        ('cpus = "many"', "cpus: 'many' is not a whole number"),
        ('log_level = "loud"', "log_level: 'loud' is not known"),
        ("gpus = 3", "gpus: must be a list"),
        ('only_projects = "digits"', "only_projects: must be a list"),
        ('trusted_networks = ["192.168.1.1/24"]', "trusted_networks: '192.168.1.1/24' is not a network"),
        ('trusted_networks = ["lab"]', "trusted_networks: 'lab' is not a network"),
    ],
)
def test_a_bad_file_is_named_with_the_fix(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(errors.ConfigError) as caught:
        settings.load(tmp_path, {})
    assert sentence in caught.value.message
    assert "config.toml" in caught.value.message


def test_trusted_networks_are_offered_as_they_should_be_written(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text('trusted_networks = ["192.168.1.17/24"]')
    with pytest.raises(errors.ConfigError) as caught:
        settings.load(tmp_path, {})
    assert caught.value.fix == "write 192.168.1.0/24"
    (tmp_path / "config.toml").write_text('trusted_networks = ["192.168.1.0/24", "::1", "10.0.0.1"]')
    assert settings.load(tmp_path, {}).trusted_networks == ["192.168.1.0/24", "::1/128", "10.0.0.1/32"]


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(errors.ConfigError, match="cannot be read"):
        settings.load(tmp_path, {})


def test_a_home_has_one_owner_at_a_time(tmp_path: Path) -> None:
    mine = settings.Settings(home=tmp_path / "home")
    with home.lock(mine), pytest.raises(errors.HomeInUse, match=f"process {os.getpid()} on "), home.lock(mine):
        pass
    with home.lock(mine):
        assert (tmp_path / "home").stat().st_mode & 0o777 == 0o700


def test_the_first_token_is_for_the_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    secret = home.first_token(path)
    assert path.stat().st_mode & 0o777 == 0o600
    assert home.first_token(path) == secret
    assert len(secret) > 40


def test_a_network_home_is_refused_for_a_daemon(tmp_path: Path) -> None:
    with pytest.raises(errors.ConfigError, match="network file system"):
        home.refuse_daemon(settings.Settings(home=tmp_path, network_home="yes"))
    with pytest.raises(errors.ConfigError, match="without a daemon"):
        home.refuse_daemon(settings.Settings(home=tmp_path, daemon="no"))
    home.refuse_daemon(settings.Settings(home=tmp_path, network_home="yes", store="postgresql://x/y"))
    home.refuse_daemon(settings.Settings(home=tmp_path, network_home="no"))


@pytest.mark.parametrize(("network_home", "free"), [("yes", False), ("no", True)])
def test_a_holder_on_another_machine_counts_where_the_home_is_shared(
    tmp_path: Path, network_home: str, free: bool
) -> None:
    """Its process cannot be asked from here, and the kernel's lock may not reach so far."""
    mine = settings.Settings(home=tmp_path, network_home=network_home)
    (tmp_path / "lock.holder").write_text('{"pid": 7, "host": "login2.elsewhere", "boot_id": "x"}')
    if free:
        with home.lock(mine):
            pass
    else:
        with pytest.raises(errors.HomeInUse, match=r"process 7 on login2.elsewhere") as caught, home.lock(mine):
            pass
        assert "login2.elsewhere" in caught.value.fix


def test_a_holder_of_this_machine_that_died_leaves_the_home_free(tmp_path: Path) -> None:
    mine = settings.Settings(home=tmp_path, network_home="yes")
    (tmp_path / "lock.holder").write_text(f'{{"pid": 1, "host": "{socket.gethostname()}", "boot_id": "before"}}')
    with home.lock(mine):
        pass
    assert not (tmp_path / "lock.holder").exists()
