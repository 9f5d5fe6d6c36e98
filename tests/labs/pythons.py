"""Parameters of tests that run under other Pythons: the oldest always, those in between in `make test-long`."""

from __future__ import annotations

import pytest

from tests.labs.components import OLD_PYTHONS

OLDEST = OLD_PYTHONS[0]
OTHER_PYTHONS = [
    pytest.param(
        version,
        marks=[pytest.mark.component(f"python{version}"), *([] if version == OLDEST else [pytest.mark.long])],
    )
    for version in OLD_PYTHONS
]
