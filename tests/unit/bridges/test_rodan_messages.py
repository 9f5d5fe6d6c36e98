"""Rodan's requests in both vocabularies, and its replies to the letter."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from runyard import errors
from runyard.bridges.rodan import ports
from runyard.bridges.rodan.messages import Rodan
from runyard.model.request import LeftFile, Outcome, RunOutcome
from tests.labs.rodan.job import SETTINGS

PATH = "/uploads/projects/0123/resources/4567/original_file"
COMMON = ("Image", "Background", "Selected Regions")
V1 = dict.fromkeys((*COMMON, "Music Layer", "Staff Layer", "Text"), PATH)
V2 = dict.fromkeys((*COMMON, "rgba PNG - Layer 0", "rgba PNG - Layer 1"), PATH)


@dataclass(frozen=True)
class Message:
    body: bytes
    content_type: str = ""  # pika sends none unless it is told to
    headers: Mapping[str, Any] = field(default_factory=dict)
    correlation_id: str | None = "c1"
    reply_to: str | None = "hpc-results"
    message_id: str = ""


def read(inputs: Any = V2, settings: Any = SETTINGS, **more: Any) -> dict[str, Any]:
    body = json.dumps({"inputs": inputs, "settings": settings, **more}).encode()
    [params], is_group = Rodan().read(Message(body), 1 << 20)
    assert not is_group
    return params


def test_who_waits_is_known() -> None:
    sender = Rodan().identify(Message(b""))
    assert (sender.correlation_id, sender.reply_to) == ("c1", "hpc-results")


def test_both_vocabularies_are_understood() -> None:
    assert read(V2) == {"inputs": V2, "settings": SETTINGS}
    assert {one.port: one.file for one in ports.inputs(V2)} == {
        "Image": "image.png", "Background": "background.png", "Selected Regions": "regions.png",
        "rgba PNG - Layer 0": "layer_0.png", "rgba PNG - Layer 1": "layer_1.png",
    }  # fmt: skip
    assert read(V1)["inputs"] == V1
    assert [one.file for one in ports.inputs(V1)][3:] == ["music.png", "staff.png", "text.png"]
    assert [model.port for model in ports.models(V1)] == [
        "Background Model", "Music Symbol Model", "Staff Lines Model", "Text Model",
    ]  # fmt: skip
    assert [model.port for model in ports.models(V2)] == ["Background Model", "Model 0", "Model 1"]


def test_settings_of_older_jobs_are_enough() -> None:
    old = {label: value for label, value in SETTINGS.items() if label != "Maximum number of samples per label"}
    assert read(settings={**old, "token": "t0ken"})["settings"] == old, "nobody keeps a token"
    assert read(settings={})["settings"] == {}


def test_an_address_is_for_mail_and_nothing_else() -> None:
    asked = {**SETTINGS, "Slurm Notification Email": " me@lab.example.org "}
    assert read(settings=asked)["mail"] == {"user": "me@lab.example.org", "type": "ALL"}
    for bad in ("me@lab --wrap=x", "me", "a@b.c,d@e.f", "-me@lab.org", "me@lab.org\n--x"):
        with pytest.raises(errors.InvalidInput, match="'Slurm Notification Email' is no mail address"):
            read(settings={**SETTINGS, "Slurm Notification Email": bad})


def without(given: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in names}


@pytest.mark.parametrize(
    ("inputs", "sentence"),
    [
        (None, "inputs: must be an object"),
        ([], "inputs: must be an object"),
        ({}, "inputs: no layer; add 'rgba PNG - Layer 0', or 'Music Layer'"),
        (without(V2, "Image"), "inputs: 'Image' is missing"),
        (without(V2, "rgba PNG - Layer 0"), "inputs: 'rgba PNG - Layer 0' is missing, and there is a layer 1"),
        (without(V1, "Text"), "inputs: 'Text' is missing"),
        ({**V2, "Text": PATH}, "'rgba PNG - Layer 0' and 'Text' are ports of two jobs"),
        ({**V2, "rgba PNG - Layer 10": PATH}, "inputs: 'rgba PNG - Layer 10' is no port of this job; it has Image"),
        ({**V2, "Image": "http://elsewhere/x"}, "inputs: 'Image' is no path on Rodan"),
        ({**V2, "Image": "//elsewhere/x"}, "inputs: 'Image' is no path on Rodan"),
        ({**V2, "Image": "/uploads/../api/users"}, "inputs: 'Image' leads upwards"),
        ({**V2, "Image": "/x\r\nHost: y"}, "inputs: 'Image' is no path on Rodan"),
        ({**V2, "Image": "/uploads/\ud800"}, "inputs: 'Image' is no path on Rodan"),
        ({**V2, "Image": 3}, "inputs: 'Image' is no path on Rodan"),
    ],
)
def test_bad_inputs_are_one_sentence(inputs: Any, sentence: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        read(inputs)
    assert caught.value.message.startswith(sentence) or sentence in caught.value.message


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (None, "settings: must be an object"),
        ({"CPUs": "2"}, "settings: 'CPUs' must be a whole number, not '2'"),
        ({"CPUs": True}, "settings: 'CPUs' must be a whole number, not True"),
        ({"CPUs": 0}, "settings: 'CPUs' must be at least 1, not 0"),
        ({"Maximum memory (MB)": 512}, "settings: 'Maximum memory (MB)' must be at least 1024, not 512"),
        ({"Patch height": 63}, "settings: 'Patch height' must be at least 64, not 63"),
        ({"Maximum time (D-HH:MM)": "soon"}, "settings: 'Maximum time (D-HH:MM)' must be a time such as 0-06:00"),
        ({"Maximum time (D-HH:MM)": "unlimited"}, "settings: 'Maximum time (D-HH:MM)' must be a time such as 0-06:00"),
        ({"Maximum time (D-HH:MM)": 360}, "settings: 'Maximum time (D-HH:MM)' must be a time such as 0-06:00"),
        ({"CPU": 2}, "settings: 'CPU' is no setting of this job; did you mean 'CPUs'?"),
    ],
)
def test_bad_settings_are_one_sentence(settings: Any, sentence: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        read(settings=settings)
    assert caught.value.message.startswith(sentence)


def test_anything_beside_inputs_and_settings_is_refused() -> None:
    with pytest.raises(errors.InvalidInput, match="the request has 'command'"):
        read(command="rm -rf /")


# --- replies --------------------------------------------------------------------------------------------------------

BIG = 1 << 30


def left(**files: bytes) -> list[LeftFile]:
    return [
        LeftFile(path=path, size=len(data), digest="", read=lambda data=data: data, link=dict)  # type: ignore[misc]
        for path, data in files.items()
    ]


def outcome(
    files: Mapping[str, bytes] = {}, *, state: str = "succeeded", reason: str | None = None, detail: str = "",
    inputs: Mapping[str, str] = V2, settings: Mapping[str, Any] = SETTINGS, log: str = "", error: str = "",
) -> Outcome:  # fmt: skip
    params = {"inputs": inputs, "settings": settings}
    view = {"id": 7, "state": state, "reason": reason, "detail": detail, "params": params}
    run = RunOutcome(view=view, files=left(**files), log_end=lambda: log)
    runs = [] if error else [run]
    return Outcome(id=1, queue="rodan", correlation_id="c1", reply_to="hpc-results", error=error, runs=runs)


def write(told: Outcome, room: int = BIG) -> dict[str, str]:
    return dict(json.loads(Rodan().write(told, room)))


MODELS = {"Background Model": bytes(range(256)) * 3, "Model 0": b"x" * 57, "Model 1": b""}


def test_models_are_base64_in_lines_by_port() -> None:
    files = {f"{port}.hdf5": data for port, data in MODELS.items()}
    reply = write(outcome({**files, "metrics.jsonl": b"{}", "result.json": b"{}"}))
    assert reply == {port: base64.encodebytes(data).decode() for port, data in MODELS.items()}
    assert reply["Background Model"].splitlines()[0] == base64.encodebytes(MODELS["Background Model"])[:76].decode()


def test_a_lab_s_own_trainer_may_use_the_old_names() -> None:
    named = {"background.hdf5": b"b", "music.hdf5": b"m", "staff.hdf5": b"s", "text.hdf5": b"t"}
    assert list(write(outcome(named, inputs=V1))) == [
        "Background Model", "Music Symbol Model", "Staff Lines Model", "Text Model",
    ]  # fmt: skip
    numbered = {"background.hdf5": b"b", "model_0.png": b"0", "model_1.hdf5": b"1"}
    assert write(outcome(numbered))["Model 0"] == "MA==\n"


def test_the_room_is_known_before_a_byte_is_read() -> None:
    told = outcome({f"{port}.hdf5": data for port, data in MODELS.items()})
    size = len(Rodan().write(told, BIG))
    assert "error" not in write(told, size)
    error = write(told, size - 1)["error"]
    assert f"({size} bytes)" in error and f"({size - 1} bytes)" in error
    assert "max_message_size" in error and "reply_limit of [bridge.rodan]" in error and "runyard fetch 7" in error


def test_a_model_that_is_missing_is_an_error_and_no_half_answer() -> None:
    error = write(outcome({"Background Model.hdf5": b"b", "notes.txt": b""}))["error"]
    assert "left no 'Model 0.hdf5', 'Model 1.hdf5'" in error and "notes.txt" in error


@pytest.mark.parametrize(
    ("state", "reason", "detail", "parts"),
    [
        ("failed", "timeout", "reached its limit of 60 seconds", ["raise 'Maximum time (D-HH:MM)' (it was 0-06:00)"]),
        ("failed", "oom", "used 2 GiB of 1 GiB", ["2 GiB", "raise 'Maximum memory (MB)' (it was 1024)"]),
        ("cancelled", "external", "CANCELLED by 1000", ["it was ended on the cluster"]),
        ("cancelled", "user", "stopped after 3 s", ["it was cancelled in runyard"]),
        ("failed", "node_lost", "node n3 failed", ["n3", "the node it ran on failed: run the job again"]),
        ("failed", "rejected", "invalid partition", ["invalid partition"]),
    ],
)  # fmt: skip
def test_an_error_names_cause_numbers_and_what_to_change(
    state: str, reason: str, detail: str, parts: list[str]
) -> None:
    error = write(outcome(state=state, reason=reason, detail=detail))["error"]
    assert error.startswith(f"run 7 {state}: {reason}: {detail}")
    assert all(part in error for part in parts), error


def test_an_exception_is_told_by_its_own_words() -> None:
    log = "epoch 1\nTraceback (most recent call last):\n  File x\nValueError: the page is too small\n\n"
    error = write(outcome(state="failed", reason="error", detail="exited with 1", log=log))["error"]
    assert error == "run 7 failed: error: exited with 1; its last words: ValueError: the page is too small"


def test_a_refused_request_is_told_in_the_words_of_the_form() -> None:
    told = outcome(error="params.settings.CPUs: 99 cpus is more than the 32 cpus that recipe 'rodan' allows")
    assert write(told)["error"] == "CPUs: 99 cpus is more than the 32 cpus that recipe 'rodan' allows"
