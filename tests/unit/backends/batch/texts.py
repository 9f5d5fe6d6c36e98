"""What real clusters said, as hosts bring it."""

from __future__ import annotations

from pathlib import Path

from runyard.backends.batch.dialect import ClusterFacts, Order
from runyard.hosts.base import Result
from runyard.model.resources import Resources

RECORDED = Path(__file__).parent / "recorded"


def recorded(name: str) -> Result:
    return Result(code=0, stdout=(RECORDED / name).read_bytes())


def said(stdout: str = "", stderr: str = "", code: int | None = 0) -> Result:
    return Result(code=code, stdout=stdout.encode(), stderr=stderr.encode())


def order(*tasks: int, resources: Resources | None = None, facts: ClusterFacts | None = None, **options: str) -> Order:
    return Order(
        name="ry-1-1-7",
        directory="/scratch/my site/batches/ry-1-1-7",
        tasks=tasks or (1,),
        arguments=("0",),
        resources=resources or Resources(),
        options=options,
        facts=facts or ClusterFacts(),
    )
