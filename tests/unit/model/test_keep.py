"""What stays of a run at its site, as people write it."""

from __future__ import annotations

import pytest

from runyard import errors
from runyard.model import keep
from runyard.model.keep import Keep
from runyard.model.site import SiteSpec
from runyard.model.spec import RunSpec


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", Keep("unsaved", None)),
        ("none", Keep("none", None)),
        ("all", Keep("all", None)),
        ("all:7d", Keep("all", 7 * 86400)),
        ("outputs:1h", Keep("outputs", 3600)),
        ("failed:3d", Keep("failed", 3 * 86400)),
    ],
)
def test_words_and_times(text: str, expected: Keep) -> None:
    assert keep.parse(text) == expected


@pytest.mark.parametrize("text", ["some", "all:", "all:soon", "none:3d", ":3d", 7, None, ["all"]])
def test_what_cannot_be_read_is_refused(text: object) -> None:
    with pytest.raises(errors.InvalidInput, match="keep"):
        keep.parse(text)
    if text is not None:
        with pytest.raises(errors.InvalidInput, match="keep"):
            RunSpec.parse({"command": ["true"], "keep": text})


def test_failed_depends_on_how_it_ended() -> None:
    assert keep.parse("failed:3d").after(succeeded=False) == Keep("all", 3 * 86400)
    assert keep.parse("failed:3d").after(succeeded=True) == Keep()
    assert keep.parse("outputs").after(succeeded=False) == Keep("outputs")


def test_a_site_has_a_word_of_its_own() -> None:
    assert SiteSpec.parse({"options": {"keep": "all:1d"}}).node_option("hoff", "keep") == "all:1d"
    with pytest.raises(errors.InvalidInput, match=r"options\.keep"):
        SiteSpec.parse({"options": {"keep": "some"}})
