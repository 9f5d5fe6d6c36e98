"""`--input URL[=NAME][,secret=S]`: addresses have '=' in them, too."""

from __future__ import annotations

import pytest

from runyard.cli.input import key_values


@pytest.mark.parametrize(
    ("text", "url", "to", "secret"),
    [
        ("https://h/a.csv", "https://h/a.csv", None, None),
        ("https://h/a.csv=b.csv", "https://h/a.csv", "b.csv", None),
        ("https://h/a.csv=b.csv,secret=s", "https://h/a.csv", "b.csv", "s"),
        ("https://h/a.csv,secret=s", "https://h/a.csv", None, "s"),
        ("https://h/a=1/b.csv", "https://h/a=1/b.csv", None, None),
        ("https://h/a=1/b.csv=c", "https://h/a=1/b.csv", "c", None),
        ("https://h/get?id=5", "https://h/get?id=5", None, None),
        ("https://h/get?id=5=data.csv", "https://h/get?id=5", "data.csv", None),
        ("https://h/get?id=5&v=2", "https://h/get?id=5&v=2", None, None),
        ("https://h/get?id=5&v=2=x", "https://h/get?id=5&v=2", "x", None),
        ("https://h/get?sig=ab==", "https://h/get?sig=ab==", None, None),
        ("https://h/get?path=/a/b.csv", "https://h/get?path=/a/b.csv", None, None),
        ("https://h/get?id=5,secret=s", "https://h/get?id=5", None, "s"),
        ("https://h/get?id=5=x,secret=s", "https://h/get?id=5", "x", "s"),
    ],
)
def test_what_is_the_address_and_what_the_name(text: str, url: str, to: str | None, secret: str | None) -> None:
    expected = {"url": url, "to": to, "secret": secret}
    assert key_values.input_file(text) == {name: value for name, value in expected.items() if value is not None}
