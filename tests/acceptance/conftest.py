"""Yards on clusters that several tests share: to start one takes longer than most runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.acceptance.cluster_yard import ClusterYard
from tests.labs.cluster import Cluster


@pytest.fixture(scope="module")
def yards_by_lab() -> Iterator[dict[Cluster, ClusterYard]]:
    yards: dict[Cluster, ClusterYard] = {}
    yield yards
    for yard in yards.values():
        yard.stop()


@pytest.fixture
def cluster_yard(
    request: pytest.FixtureRequest, yards_by_lab: dict[Cluster, ClusterYard]
) -> Callable[..., ClusterYard]:
    """`cluster_yard("slurm", accounting=True)`: a yard with such a lab as its site, which it asks at the usual pace."""

    def get(kind: str, **options: Any) -> ClusterYard:
        lab: Cluster = request.getfixturevalue(f"{kind}_lab")(**options)
        if lab not in yards_by_lab:
            yards_by_lab[lab] = ClusterYard(lab, kind)
            yards_by_lab[lab].start()
            yards_by_lab[lab].add_site(eager=False)
        return yards_by_lab[lab]

    return get
