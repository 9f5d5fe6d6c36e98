"""Small languages: arrays, file patterns, job ids, dependencies."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard import errors
from runyard.bridges.scripts import arrays, jobs, patterns
from runyard.bridges.scripts.jobs import Dependency, Reference
from runyard.model import output_file, ranges


@pytest.mark.parametrize(
    ("text", "indexes", "step", "limit"),
    [
        ("1-8", (1, 2, 3, 4, 5, 6, 7, 8), 1, None),
        ("0-15:4%2", (0, 4, 8, 12), 4, 2),
        ("7", (7,), 1, None),
        ("1,3,5-7", (1, 3, 5, 6, 7), 1, None),
        ("1-3,3", (1, 2, 3), 1, None),
        ("2-7:5", (2, 7), 5, None),
        ("1-4%0", (1, 2, 3, 4), 1, None),
        ("9,1-4:2", (1, 3, 9), 2, None),
    ],
)
def test_arrays_of_slurm(text: str, indexes: tuple[int, ...], step: int, limit: int | None) -> None:
    tasks = arrays.parse_slurm(text)
    assert (tasks.indexes, tasks.step, tasks.limit) == (indexes, step, limit)


@pytest.mark.parametrize("text", ["", "x", "5-3", "1-", "-3", "1-4:0", "1-4%x", "1-4%", "1;2", "1-200000", "1e3"])
def test_what_is_no_array(text: str) -> None:
    with pytest.raises(errors.InvalidInput, match="--array"):
        arrays.parse_slurm(text)


def test_arrays_of_grid_engine() -> None:
    assert arrays.parse_gridengine("2-6:2", 1).indexes == (2, 4, 6)
    uneven = arrays.parse_gridengine("1-10:4", None)
    assert (uneven.indexes, uneven.last, uneven.mappings()[0]["last"]) == ((1, 5, 9), 10, 10), "what SGE_TASK_LAST is"
    assert arrays.parse_slurm("1-10:4").last == 9
    assert arrays.parse_gridengine("5", None).indexes == (5,)
    assert arrays.parse_gridengine("5-3", None).indexes == (3, 4, 5), "Grid Engine puts it into order"
    for text in ("0-3", "x", "1,2", ""):
        with pytest.raises(errors.InvalidInput, match="-t"):
            arrays.parse_gridengine(text, None)


def test_each_task_knows_its_place() -> None:
    one, two = arrays.parse_slurm("2-6:4%1").mappings()
    assert one == {"index": 2, "first": 2, "last": 6, "step": 4, "offset": 0, "count": 2, "limit": 1}
    assert (two["index"], two["offset"]) == (6, 1)


@given(st.sets(st.integers(0, 60), min_size=1))
def test_what_is_shown_can_be_read_again(indexes: set[int]) -> None:
    assert arrays.parse_slurm(ranges.show(indexes)).indexes == tuple(sorted(indexes))


@pytest.mark.parametrize(
    ("pattern", "spec"),
    [
        ("slurm-%j.out", "slurm-%j.out"),
        ("%A_%a-%x.%u", "%A_%a-train.ann"),
        ("%N/%J.%t%n%s", "%N/%j.00batch"),
        ("%5j_%3a", "%5j_%3a"),
        ("100%%_%q_%", "100%%_%%q_%%"),
        ("\\plain_%j", "plain_%%j"),
    ],
)
def test_patterns_of_slurm(pattern: str, spec: str) -> None:
    assert patterns.from_slurm(pattern, name="train", user="ann") == spec


def test_a_percent_sign_in_a_name_stays_one() -> None:
    assert patterns.from_slurm("%x.out", name="50%j", user="ann") == "50%%j.out"


@pytest.mark.parametrize(
    ("path", "spec"),
    [
        ("$HOME/$JOB_NAME.$JOB_ID.$TASK_ID", "/home/ann/train.%A.%a"),
        ("$USER@$HOSTNAME.$FOO", "ann@%N.$FOO"),
        ("$JOB_IDS.50%", "$JOB_IDS.50%%"),
    ],
)
def test_patterns_of_grid_engine(path: str, spec: str) -> None:
    assert patterns.from_gridengine(path, name="train", user="ann", home="/home/ann") == spec


def test_the_task_is_filled_in_last() -> None:
    assert patterns.for_task("%A_%a", 7, 0) == "%A_7"
    assert patterns.for_task("%A_%3a%%a", 7, 0) == "%A_007%%a"
    assert patterns.for_task("%A_%a", None, patterns.NO_TASK) == "%A_4294967294"


@pytest.mark.parametrize(
    ("pattern", "tasks", "jobs_"),
    [
        ("x.txt", False, False),
        ("%A.txt", False, True),
        ("%a.txt", True, False),
        ("%4j", True, True),
        ("%%a", False, False),
    ],
)
def test_who_shares_a_file(pattern: str, tasks: bool, jobs_: bool) -> None:
    assert (patterns.tells_tasks_apart(pattern), patterns.tells_jobs_apart(pattern)) == (tasks, jobs_)


@given(st.text(alphabet="%Aajx5N$_.", max_size=12))
def test_every_pattern_becomes_one_that_specs_know(text: str) -> None:
    for pattern in (
        patterns.from_slurm(text, name="%x", user="u"),
        patterns.from_gridengine(text, name="%x", user="u", home="/h"),
    ):
        output_file.parse("/" + patterns.for_task(pattern, 1, 0), "stdout")


def test_jobs_of_both_tools() -> None:
    assert jobs.read_slurm_job("42") == jobs.read_slurm_job("42_*") == Reference(number=42)
    assert jobs.read_slurm_job("42_3") == Reference(number=42, tasks=(3,))
    assert jobs.read_slurm_job("42_[1-2,4]") == Reference(number=42, tasks=(1, 2, 4))
    assert jobs.read_gridengine_job("42.3") == Reference(number=42, tasks=(3,))
    assert jobs.read_gridengine_job("train.sh") == Reference(name="train.sh")
    with pytest.raises(errors.InvalidInput, match="Invalid job id x"):
        jobs.read_slurm_job("x")


@pytest.mark.parametrize(
    ("wanted", "is_it"), [("train", True), ("tr*n", True), ("*", True), ("train?", False), ("other", False)]
)
def test_names_of_grid_engine_may_be_patterns(wanted: str, is_it: bool) -> None:
    assert jobs.is_called({"name": "train", "command": []}, wanted) is is_it


def test_brackets_in_a_name_match_themselves() -> None:
    assert jobs.is_called({"name": "lr[1]", "command": []}, "lr[1]")


def test_dependencies_of_slurm() -> None:
    text = "afterok:1:2_3,afterany:4,aftercorr:5,singleton"
    assert list(jobs.read_slurm_dependencies(text, "train")) == [
        Dependency(kind="ok", job=Reference(number=1)),
        Dependency(kind="ok", job=Reference(number=2, tasks=(3,))),
        Dependency(kind="any", job=Reference(number=4)),
        Dependency(kind="ok", job=Reference(number=5), each=True),
        Dependency(kind="any", job=Reference(name="train")),
    ]


@pytest.mark.parametrize("kind", ["after:1", "afternotok:1", "afterburstbuffer:1", "expand:1", "afterok:1?afterok:2"])
def test_a_kind_of_dependency_that_there_is_not_is_named(kind: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        list(jobs.read_slurm_dependencies(kind, "x"))
    assert repr(kind.partition(":")[0]) in caught.value.message or "`?`" in caught.value.message


def test_dependencies_of_grid_engine() -> None:
    assert list(jobs.read_gridengine_dependencies(["1,train", "2.3"], each=True)) == [
        Dependency(kind="any", job=Reference(number=1), each=True),
        Dependency(kind="any", job=Reference(name="train"), each=True),
        Dependency(kind="any", job=Reference(number=2, tasks=(3,)), each=True),
    ]
