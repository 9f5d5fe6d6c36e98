"""Inputs of runs: each a digest and a place that stays below the inputs directory."""

from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.model import input_file
from runyard.model.spec import RunSpec

A, B = f"sha256:{'a' * 64}", f"sha256:{'b' * 64}"


def parse(*inputs: Any) -> RunSpec:
    return RunSpec.parse({"command": ["true"], "inputs": list(inputs)})


def test_inputs_come_back_as_they_were_given() -> None:
    given = [{"digest": A, "to": "data/a b.csv"}, {"digest": A, "to": "same"}, {"digest": B, "to": "ü"}]
    spec = parse(*given)
    assert spec.to_json()["inputs"] == given
    assert RunSpec.parse(spec.to_json()) == spec
    assert "inputs" not in RunSpec.parse({"command": ["true"]}).to_json()


def test_a_place_is_written_in_one_way() -> None:
    assert parse({"digest": A, "to": "./x//y/"}).inputs[0].to == "x/y"


@pytest.mark.parametrize("to", ["/etc/passwd", "..", "../x", "a/../../x", "a/..", "", ".", "./", None, 3, "a\0b"])
def test_a_place_outside_is_refused(to: object) -> None:
    with pytest.raises(errors.InvalidInput, match=r"inputs\[0\].to: "):
        parse({"digest": A, "to": to})


@pytest.mark.parametrize("digest", ["", None, "a" * 64, "sha256:" + "A" * 64, "sha256:../../x", A + "\n"])
def test_what_is_no_digest_is_refused(digest: object) -> None:
    with pytest.raises(errors.InvalidInput, match=r"inputs\[0\].digest: .* is not a digest"):
        parse({"digest": digest, "to": "x"})


@pytest.mark.parametrize("second", ["x", "./x", "x/y"])
def test_two_inputs_cannot_have_one_place(second: str) -> None:
    with pytest.raises(errors.InvalidInput, match=r"two files have the path|is below it"):
        parse({"digest": A, "to": "x"}, {"digest": B, "to": second})


def test_a_name_that_no_file_system_takes_is_refused() -> None:
    with pytest.raises(errors.InvalidInput, match="longer than 255 bytes"):
        parse({"digest": A, "to": "ü" * 128})


@pytest.mark.parametrize("inputs", ["x", {"digest": A, "to": "x"}])
def test_inputs_are_a_list(inputs: object) -> None:
    with pytest.raises(errors.InvalidInput, match="inputs: must be a list"):
        RunSpec.parse({"command": ["true"], "inputs": inputs})


# --- from the web -----------------------------------------------------------------------------------------------


def test_an_address_is_kept_with_its_name_and_the_name_of_a_secret() -> None:
    asked = [{"url": "https://h.example/a%20b.csv?key=1"}, {"url": "http://h/x", "to": "d/y", "secret": "store"}]
    found = input_file.parse(asked)
    assert [item.to for item in found] == ["a b.csv", "d/y"]
    assert [item.to_json() for item in found] == [{**asked[0], "to": "a b.csv"}, asked[1]]
    assert input_file.parse([item.to_json() for item in found]) == found


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"url": "file:///etc/passwd"}, "not a URL"),
        ({"url": "ftp://h/x"}, "not a URL"),
        ({"url": "/etc/passwd"}, "not a URL"),
        ({"url": "https://"}, "not a URL"),
        ({"url": "https://h:port/x"}, "not a URL"),
        ({"url": "https://ada:secret@h/x"}, "contains a user or a password"),
        ({"url": "https://h/a b"}, "blanks"),
        ({"url": "https://h/x\r\nHost: other"}, "blanks"),
        ({"url": "https://h/"}, "no name for the file"),
        ({"url": "https://h/x", "to": "../x"}, "leads out"),
        ({"url": "https://h/x", "secret": "a secret!"}, "not a name of a secret"),
        ({"url": "https://h/x", "digest": A}, "either a digest or a url"),
        ({"digest": A, "to": "x", "secret": "s"}, "a secret needs a url"),
        ({"to": "x"}, "either a digest or a url"),
    ],
)
def test_bad_addresses_are_refused(given: dict[str, str], told: str) -> None:
    with pytest.raises(errors.InvalidInput, match=told):
        input_file.parse([given])
