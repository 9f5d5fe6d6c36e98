"""How both tools' flags are written."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard import errors
from runyard.bridges.scripts import directives, flags
from runyard.bridges.scripts.flags import Given
from runyard.bridges.scripts.gridengine import QDEL, QSTAT, QSUB
from runyard.bridges.scripts.slurm import SBATCH, SCANCEL, SQUEUE

TABLES = (SBATCH, SQUEUE, SCANCEL, QSUB, QSTAT, QDEL)


def sbatch(*words: str) -> Given:
    return flags.parse(words, SBATCH)


def qsub(*words: str) -> Given:
    return flags.parse(words, QSUB)


@pytest.mark.parametrize(
    "words",
    [
        ["--cpus-per-task=4"], ["--cpus-per-task", "4"], ["-c", "4"], ["-c4"], ["--cpus-per-t=4"], ["-Qc4"],
        ["--cpus-per-task=2", "-c", "4"],
    ],
)  # fmt: skip
def test_each_way_to_write_a_flag_of_slurm(words: list[str]) -> None:
    assert sbatch(*words, "x.sh").get("cpus_per_task") == "4"


def test_words_after_the_script_are_its_own() -> None:
    given = sbatch("-n", "2", "x.sh", "--cpus-per-task=4", "-x", "--", "y")
    assert (given.words, "cpus_per_task" in given) == (["x.sh", "--cpus-per-task=4", "-x", "--", "y"], False)
    assert qsub("-cwd", "x.sh", "-N", "y").words == ["x.sh", "-N", "y"]
    assert sbatch("-n1", "--", "-odd-name.sh").words == ["-odd-name.sh"]


def test_an_optional_value_comes_after_an_equals_sign_only() -> None:
    assert (sbatch("--nice", "x.sh").get("nice"), sbatch("--nice=5", "x.sh").get("nice")) == ("", "5")
    assert sbatch("--nice", "x.sh").words == ["x.sh"]


def test_flags_of_grid_engine() -> None:
    given = qsub("-cwd", "-pe", "smp", "4", "-l", "h_rt=60", "-l", "gpu=1", "-p", "-10", "-", "a")
    assert (given.get("pe"), given.all("l"), given.get("p"), given.words) == (
        "smp 4", ["h_rt=60", "gpu=1"], "-10", ["-", "a"],
    )  # fmt: skip


def test_queries_take_flags_anywhere() -> None:
    assert flags.parse(["42", "-t", "1-3", "43"], QDEL).words == ["42", "43"]
    assert flags.parse(["-hj42"], SQUEUE).values == {"noheader": [""], "jobs": ["42"]}


def test_words_for_the_scheduler_itself_are_kept_by_their_names_there() -> None:
    assert sbatch("-A", "def-lab", "--exclusive", "-s").native == {
        "account": "def-lab", "exclusive": "", "oversubscribe": "",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("words", "sentence", "fix"),
    [
        (["--arry=1-3"], "sbatch: there is no option --arry", "did you mean '--array'?"),
        (["--n"], "sbatch: there is no option --n", ""),
        (["-Z"], "sbatch: there is no option -Z", "runyard sbatch --help"),
        (["--parsable=yes"], "sbatch: --parsable takes no value", "write --parsable alone"),
        (["--time"], "sbatch: --time needs a value", "--time TIME"),
        (["--begin=now"], "sbatch: --begin is not supported", "submit it then"),
        (["-H"], "sbatch: --hold is not supported", ""),
    ],
)
def test_an_unsupported_flag_is_an_error_that_names_it(words: list[str], sentence: str, fix: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        sbatch(*words)
    assert sentence in caught.value.message
    assert fix in caught.value.fix


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["-foo"], "qsub: there is no option -foo"),
        (["-cw"], "qsub: there is no option -cw"),
        (["-pe", "smp"], "qsub: -pe needs a value"),
        (["-now", "y"], "qsub: -now is not supported"),
        (["-xml"], "qsub: there is no option -xml"),
    ],
)
def test_and_so_it_is_for_grid_engine(words: list[str], sentence: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        qsub(*words)
    assert sentence in caught.value.message


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.program)
def test_a_table_says_each_thing_once(table: flags.FlagTable) -> None:
    names = [name for flag in table.flags for name in flag.names]
    assert len(names) == len(set(names))
    assert len({flag.field for flag in table.flags}) == len(table.flags)


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.program)
@given(words=st.lists(st.text(alphabet="-=abcjnoptxNV1 ", max_size=6), max_size=6))
def test_anything_is_read_or_refused(table: flags.FlagTable, words: list[str]) -> None:
    try:
        flags.parse(words, table)
    except errors.InvalidInput as error:
        assert error.message.startswith(table.program)


def test_slurm_reads_the_lines_before_the_first_command() -> None:
    text = """#!/bin/sh
    # an indented comment
# SBATCH --job-name=spaced
##SBATCH --job-name=double
#SBATCH --job-name=one # a comment
#SBATCH-o 'q uote.txt' --time=1:00

#SBATCHING is another word
echo hello
#SBATCH -c 2
"""
    given = directives.read_sbatch(text, SBATCH)
    assert given.values == {"job_name": ["one"], "output": ["q uote.txt"], "time": ["1:00"]}
    assert directives.late_sbatch_lines(text) == [10]


def test_grid_engine_reads_lines_anywhere() -> None:
    text = "#!/bin/sh\n#$ -cwd\n#$ -N named # a comment\n#$ -v A='x y',B=2\necho\n#$-j y\n#$HOME is no flag\n"
    given = directives.read_qsub(text, QSUB, "#$")
    assert given.values == {"cwd": [""], "N": ["named"], "v": ["A=x y,B=2"], "j": ["y"]}
    assert directives.read_qsub("#@ -cwd\n#$ -V", QSUB, "#@").values == {"cwd": [""]}
    assert directives.read_qsub("#$ -cwd", QSUB, "").values == {}


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("#SBATCH --foo=1", "line 2 of the script: sbatch: there is no option --foo"),
        ("#SBATCH --comment='half", "line 2 of the script: no closing quotation"),
        ("#SBATCH --ntasks 1 2", "line 2 of the script: '2' is no option"),
    ],
)
def test_a_wrong_line_is_named(line: str, sentence: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        directives.read_sbatch(f"#!/bin/sh\n{line}\n", SBATCH)
    assert caught.value.message == sentence


def test_the_command_line_goes_over_the_script() -> None:
    script = directives.read_sbatch("#!/bin/sh\n#SBATCH -c 2 -A one\n", SBATCH)
    whole = script.with_stronger(sbatch("-c", "4", "--account=two"))
    assert (whole.get("cpus_per_task"), whole.native) == ("4", {"account": "two"})
