"""Secrets are for hosts that are named."""

from __future__ import annotations

from typing import Any

import pytest

from runyard import errors
from runyard.model.secret import Secret


def test_a_secret() -> None:
    made = Secret.parse_table(
        "store", {"file": "/run/secrets/store", "hosts": ["Data.example", "h:8443"], "scheme": "Token"}
    )
    assert (made.hosts, made.scheme) == (("data.example", "h:8443"), "Token")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("/run/secrets/store", "must be a mapping"),
        ({"file": "/x"}, "secrets.store: no hosts"),
        ({"hosts": ["h"]}, "secrets.store: no file"),
        ({"file": "/x", "hosts": ["https://h/"]}, "is no host"),
        ({"file": "/x", "hosts": ["*"]}, "is no host"),
        ({"file": "/x", "hosts": ["h"], "scheme": "Bearer x"}, "is no word"),
    ],
)
def test_bad_ones_are_refused(given: Any, told: str) -> None:
    with pytest.raises(errors.InvalidInput, match=told):
        Secret.parse_table("store", given)
