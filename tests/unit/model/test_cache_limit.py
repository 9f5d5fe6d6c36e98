"""How much a site keeps."""

from __future__ import annotations

import pytest

from runyard import errors
from runyard.model import cache_limit
from runyard.model.site import SiteSpec


@pytest.mark.parametrize(("text", "size"), [("", 20 << 30), ("0", 0), ("50G", 50 << 30), ("1024", 1024)])
def test_limits(text: str, size: int) -> None:
    assert cache_limit.parse(text) == size


@pytest.mark.parametrize("kind", ["local", "slurm"])
def test_a_site_with_a_wrong_limit_is_refused(kind: str) -> None:
    with pytest.raises(errors.InvalidInput, match="cache_limit"):
        SiteSpec.parse({"kind": kind, "options": {"cache_limit": "much"}})
