"""The bridge to Rodan with a real broker, TLS on both ways, and real runs on this machine."""

from __future__ import annotations

import json
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.bridges.rodan_side import MODELS, PAGE, Side, both_sides
from tests.labs.rabbitmq import RabbitLab
from tests.labs.rabbitmq.refusal import Refusal
from tests.labs.rodan.job import REQUESTS, models
from tests.labs.waiting import until


@pytest.fixture
def side(rabbitmq_lab: Callable[..., RabbitLab]) -> Iterator[Side]:
    with both_sides(rabbitmq_lab()) as made:
        yield made


@pytest.fixture
def bridge(side: Side) -> Side:
    side.yard.start()
    side.yard.add_recipe()
    return side


def error(side: Side, *, inputs: dict[str, str] | None = None, **settings: Any) -> str:
    """What Rodan shows for a job that did not work."""
    reply = side.jobs.wait(side.jobs.ask(inputs or side.upload(), **settings))
    assert list(reply) == ["error"], list(reply)
    return str(reply["error"])


def test_a_page_goes_in_and_models_come_back(bridge: Side) -> None:
    reply = bridge.jobs.wait(bridge.jobs.ask(bridge.upload()))
    assert models(reply) == MODELS
    assert bridge.jobs.waiting() == 0
    assert [one.token for one in bridge.api.downloads()] == [f"Token {bridge.api.token}"] * len(PAGE)


def test_two_jobs_that_wait_on_one_queue_get_their_own(bridge: Side) -> None:
    first = bridge.jobs.ask(bridge.upload())
    second = bridge.jobs.ask(bridge.upload({**PAGE, "image": b"OTHER"}))
    assert models(bridge.jobs.wait(second))["Model 0"] == b"OTHER0"
    assert models(bridge.jobs.wait(first))["Model 0"] == b"IMAGE0"


def test_no_secret_is_left_where_others_could_see_it(bridge: Side) -> None:
    bridge.jobs.wait(bridge.jobs.ask(bridge.upload()))
    error(bridge, inputs={**bridge.upload(), "Image": "/uploads/none"})
    bridge.yard.credentials.unlink()
    for secret in map(str.encode, bridge.secrets()):
        for path in _files(bridge.yard.home):
            assert secret not in _read(path), f"{path} holds a secret"
        for pid in filter(str.isdigit, os.listdir("/proc")):
            assert secret not in _read(Path(f"/proc/{pid}/cmdline")), "the process list shows a secret"


def _files(home: Path) -> Iterator[Path]:
    """Of a living yard: what goes meanwhile is passed over."""
    for folder, _, names in os.walk(home):
        yield from (path for path in (Path(folder, name) for name in names) if path.is_file())


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def test_what_a_run_inherits_has_no_password(side: Side) -> None:
    """Neither from the file nor from the environment of the bridge."""
    lines = side.yard.credentials.read_text().replace("export ", "").replace("'", "")
    side.yard.env |= dict(line.split("=", 1) for line in lines.splitlines())
    side.write_credentials()
    side.yard.start()
    side.yard.add_recipe(command="env > '$OUTPUT_DIR/env'; env; exit 3".replace("'", ""))
    told = error(side)
    assert "failed: error: exited with 3" in told
    log = side.yard.cli("logs", "1").stdout
    assert "RUNYARD_RUN_ID=1" in log and not any(secret in log for secret in side.secrets())


# --- every ending is answered ---------------------------------------------------------------------------------------


def test_an_exception_is_told_by_its_last_words(bridge: Side) -> None:
    bridge.yard.add_recipe(command="echo Traceback >&2; echo 'ValueError: the page is too small' >&2; exit 1")
    told = error(bridge)
    assert "failed: error: exited with 1; its last words: ValueError: the page is too small" in told


def test_a_time_limit_is_told_with_the_setting(bridge: Side) -> None:
    bridge.yard.add_recipe(command="sleep 600", stop={"grace": 1})
    told = error(bridge, **{"Maximum time (D-HH:MM)": "0:02"})
    assert "failed: timeout: reached its time limit of 2 seconds" in told
    assert "raise 'Maximum time (D-HH:MM)' (it was 0:02)" in told


def test_a_cancel_is_told(bridge: Side) -> None:
    bridge.yard.add_recipe(command="sleep 600", stop={"grace": 1})
    asked = bridge.jobs.ask(bridge.upload())
    until(lambda: "running" in bridge.yard.cli("ls").stdout, "the run", timeout_s=60)
    bridge.yard.cli("cancel", "1")
    assert "cancelled: user" in bridge.jobs.wait(asked)["error"]


@pytest.mark.parametrize("missing", ["Image", "rgba PNG - Layer 1"])
def test_a_broken_url_is_told_with_its_port_and_starts_nothing(bridge: Side, missing: str) -> None:
    path = "/uploads/projects/none/original_file"
    told = error(bridge, inputs={**bridge.upload(), missing: path})
    assert told.startswith(f"the input '{missing}' cannot be had: {path}: Rodan at localhost")
    assert told.endswith("answers 404 Not Found")
    assert bridge.yard.client().runs() == []


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"CPUs": 3}, "CPUs: 3 cpus is more than the 2 cpus that recipe 'rodan' allows"),
        ({"Maximum memory (MB)": 257000}, "Maximum memory (MB): 251 GB is more than the 8.0 GB"),
        ({"CPUs": "many"}, "settings: 'CPUs' must be a whole number, not 'many'"),
        ({"Patch depth": 3}, "settings: 'Patch depth' is no setting of this job"),
    ],
)  # fmt: skip
def test_what_is_refused_is_told_and_starts_nothing(bridge: Side, settings: dict[str, Any], sentence: str) -> None:
    assert error(bridge, **settings).startswith(sentence)
    assert bridge.yard.client().runs() == []
    assert bridge.jobs.waiting() == 0, "it does not hold up the requests behind it"


def test_a_body_that_is_no_request_is_told(bridge: Side) -> None:
    for body, sentence in ((b"train!", "the body is not JSON"), ({"inputs": {}}, "inputs: no layer")):
        assert bridge.jobs.wait(bridge.jobs.send(body))["error"].startswith(sentence)


def test_models_that_are_missing_are_told(bridge: Side) -> None:
    bridge.yard.add_recipe(command='touch "$OUTPUT_DIR/Background Model.hdf5"')
    assert "succeeded and left no 'Model 0.hdf5', 'Model 1.hdf5'" in error(bridge)


def test_a_reply_over_the_brokers_limit_names_size_limit_and_setting(rabbitmq_lab: Callable[..., RabbitLab]) -> None:
    with both_sides(rabbitmq_lab(max_message_size=10_000, quorum=False)) as side:
        side.yard.start()
        side.yard.add_recipe()
        told = error(side)
        assert "make a reply of" in told and "at most 9.8 KB (10000 bytes) get through" in told, told
        assert "raise max_message_size in the broker's rabbitmq.conf" in told


# --- bad days -------------------------------------------------------------------------------------------------------


def test_the_same_request_again_starts_nothing_and_is_answered_again(bridge: Side) -> None:
    body = {"inputs": bridge.upload(), "settings": {}}
    asked = bridge.jobs.send(body)
    assert models(bridge.jobs.wait(asked)) == MODELS
    bridge.jobs.send(body, asked)
    assert models(bridge.jobs.wait(asked)) == MODELS
    assert len(bridge.yard.client().runs()) == 1


def test_a_rodan_that_is_down_is_waited_for(bridge: Side) -> None:
    bridge.api.answers["/api/auth/token/"] = 503
    asked = bridge.jobs.ask(bridge.upload())
    until(lambda: "answers the login with 503" in bridge.yard.log, "the first try", timeout_s=60)
    assert bridge.jobs.waiting() == 0, "it is ours since it was stored"
    assert bridge.yard.client().replies()[0]["state"] == "waiting"
    del bridge.api.answers["/api/auth/token/"]
    assert models(bridge.jobs.wait(asked)) == MODELS


def test_a_rodan_that_stays_down_is_told(side: Side) -> None:
    (side.yard.home / "config.toml").write_text("[bridge.rodan]\npatience = '3s'\n")
    side.yard.start()
    side.yard.add_recipe()
    side.api.password = "changed"
    told = error(side)
    assert "refuses user 'trainer@example.org' (401): correct RODAN_USER or RODAN_PASSWORD; it was tried for" in told


def test_a_kill_in_the_middle_of_a_download_loses_and_doubles_nothing(bridge: Side) -> None:
    page = bridge.upload()
    bridge.api.slow[page["rgba PNG - Layer 1"]] = 3
    asked = bridge.jobs.ask(page)
    until(lambda: any(one.path == page["rgba PNG - Layer 1"] for one in bridge.api.asked), "the download", timeout_s=60)
    bridge.yard.kill9()
    bridge.api.slow.clear()
    bridge.yard.start()
    assert models(bridge.jobs.wait(asked)) == MODELS
    assert len(bridge.yard.client().runs()) == 1


def test_from_cron_it_does_the_same(side: Side) -> None:
    """A home on a network file system, where nothing stays running."""
    config = f"network_home = 'yes'\n[bridge.rodan]\ncredentials = '{side.yard.credentials}'\n"
    (side.yard.home / "config.toml").write_text(config)
    side.yard.add_recipe()
    asked = side.jobs.ask(side.upload())
    deadline = time.monotonic() + 120
    while side.yard.cli("reply", "list", "--unanswered", "-q").stdout or not side.yard.cli("ls", "-q").stdout:
        assert time.monotonic() < deadline, side.yard.cli("ls").stdout
        done = side.yard.cli("check")
        assert done.returncode == 0, done.stderr
    assert models(side.jobs.wait(asked)) == MODELS


# --- what works, and what does not ------------------------------------------------------------------------------------


def check(side: Side, **changes: str) -> dict[str, tuple[str, str, str]]:
    side.write_credentials(**changes)
    done = side.yard.cli(*side.yard.serving, "--check", "--json")
    assert not any(secret in done.stdout + done.stderr for secret in side.secrets())
    found = {one["check"]: (one["verdict"], one["message"], one["fix"]) for one in json.loads(done.stdout)}
    assert done.returncode == int(any(verdict == "fail" for verdict, _, _ in found.values()))
    return found


def test_everything_works(bridge: Side) -> None:
    taken = "0 requests waiting; 1 bridges consume them"
    until(lambda: check(bridge)["hpc-jobs"][1] == taken, "a bridge at its queue", every_s=0.5)
    found = check(bridge)
    verdicts = {name: verdict for name, (verdict, _, _) in found.items()}
    assert verdicts == {
        "credentials": "ok", "broker": "ok", "queues": "ok", "hpc-jobs": "ok", "hpc-results": "ok", "rodan": "ok",
        "recipe": "ok", "site": "warn",
    }  # fmt: skip
    assert "RabbitMQ 3." in found["broker"][1] and "128 MiB" in found["broker"][1]
    assert found["hpc-jobs"][1] == taken


@pytest.mark.parametrize(
    ("changes", "name", "sentence"),
    [
        ({"RABBITMQ_PASSWORD": "wrong"}, "broker", "refuses user"),
        ({"RABBITMQ_HOST": "localhost:1"}, "broker", "cannot be reached"),
        ({"SSL_CERT_FILE": "/etc/ssl/certs/ca-certificates.crt"}, "broker", "is not trusted"),
        ({"RODAN_PASSWORD": "wrong"}, "rodan", "correct RODAN_USER or RODAN_PASSWORD"),
        ({"RODAN_HOST": "localhost:1"}, "rodan", "cannot be reached: Connection refused"),
        ({"RODAN_USER": ""}, "credentials", "empty in"),
    ],
)
def test_what_does_not_work_is_one_sentence(bridge: Side, changes: dict[str, str], name: str, sentence: str) -> None:
    verdict, message, _ = check(bridge, **changes)[name]
    assert verdict == "fail" and sentence in message


def test_a_queue_with_other_flags_a_missing_recipe_and_an_open_file_are_told(side: Side) -> None:
    side.lab.admin("DELETE", "queues", "/", REQUESTS)
    side.lab.admin("PUT", "queues", "/", REQUESTS, body={"durable": True})
    try:
        found = check(side)
    finally:
        side.lab.admin("DELETE", "queues", "/", REQUESTS)
    assert found["hpc-jobs"][:2] == (
        "fail",
        "queue hpc-jobs exists with other flags: durable is true there and false here",
    )
    assert found["recipe"][0] == "fail"
    side.yard.credentials.chmod(stat.S_IRUSR | stat.S_IWUSR | stat.S_IRGRP)
    done = side.yard.cli(*side.yard.serving)
    assert done.returncode == 2 and "others may read it (640)" in done.stderr and "chmod 600" in done.stderr


def test_a_second_bridge_of_the_same_home_is_refused(bridge: Side) -> None:
    done = bridge.yard.cli(*bridge.yard.serving)
    assert done.returncode == 1
    assert "is in use by" in done.stderr and "write [bridge.rodan] into" in done.stderr


def test_a_broker_that_refuses_transient_queues_is_told(bridge: Side) -> None:
    with Refusal(bridge.lab.layout.nodes[0].port) as way:
        found = check(bridge, RABBITMQ_HOST=f"amqp://localhost:{way.port}")
    assert found["broker"][0] == "ok", "without encryption, because that is written out"
    assert found["queues"] == (
        "fail",
        "the broker refuses queues that are neither durable nor exclusive",
        "in its rabbitmq.conf: deprecated_features.permit.transient_nonexcl_queues = true",
    )
