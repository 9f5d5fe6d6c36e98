"""What a run reports: lines that are whole, whatever it hands in and however many processes do."""

from __future__ import annotations

import json
import math

from tests.unit.job.conftest import Place

HEAD = "from runyard import job\n"


def test_lines_are_what_the_yard_reads(place: Place) -> None:
    place.run(HEAD + "job.log(step=3, loss=0.1, **{'val/acc': 0.5}); job.log(loss=2); job.summary(acc=0.9, name='x')")
    first, second, last = place.lines()
    assert (first["step"], first["m"]) == (3, {"loss": 0.1, "val/acc": 0.5})
    assert first["t"] > 1.7e9
    assert "step" not in second
    assert last["summary"] == {"acc": 0.9, "name": "x"}


def test_nan_and_infinities_are_numbers(place: Place) -> None:
    place.run(HEAD + "job.log(a=float('nan'), b=float('inf'), c=float('-inf'), d=1e-300, e=10**400)")
    (found,) = place.logged()
    assert math.isnan(found["a"])
    assert (found["b"], found["c"], found["d"]) == (math.inf, -math.inf, 1e-300)
    assert "e" not in found, "too large for any float"


def test_numbers_of_other_libraries(place: Place) -> None:
    code = "import numpy as np\njob.log(step=np.int64(7), a=np.float32(0.5), b=np.array(2), c=np.bool_(True), d=True)\n"
    _, complained = place.run(HEAD + code + "job.log(step=np.float64(0.5), a=1)")
    assert complained == ""
    assert [line["step"] for line in place.lines()] == [7, 0.5]
    assert place.logged() == [{"a": 0.5, "b": 2.0, "c": 1.0, "d": 1.0}, {"a": 1.0}]


def test_what_is_no_number_is_told_once_and_ends_nothing(place: Place) -> None:
    code = "for i in range(3): job.log(step=i, good=1, none=None, text='0.5', odd=[1], worse=Worse())\nprint('on')"
    worse = "class Worse:\n    def __float__(self): raise RuntimeError('out of memory')\n"
    said, complained = place.run(HEAD + worse + code)
    assert said == "on\n"
    assert place.logged() == [{"good": 1.0}] * 3
    assert len(complained.splitlines()) == 4
    assert 'runyard: metric "worse" is a Worse, which cannot be reported: out of memory' in complained


def test_a_bad_step_loses_the_step_alone(place: Place) -> None:
    _, complained = place.run(HEAD + "job.log(step='one', a=1)")
    assert (place.lines()[0]["step"], place.logged()) == (None, [{"a": 1.0}])
    assert '"step"' in complained


def test_complaints_have_an_end(place: Place) -> None:
    _, complained = place.run(HEAD + "for i in range(1000): job.log(**{'m%d' % i: None})")
    assert len(complained.splitlines()) == 20
    assert not place.metrics.exists() or place.metrics.read_text() == ""


def test_odd_names(place: Place) -> None:
    names = ["val/acc", "", " ", "Verlust ü", 'quote"', "line\nbreak", "\x00", "☃" * 300, "\ud800", "step", "self"]
    code = f"names = {names!r}\nfor name in names:\n    if name != 'step': job.log(**{{name: 1}})\n"
    _, complained = place.run(HEAD + code)
    found = [next(iter(point)) for point in place.logged()]
    assert found == [name[:250] for name in names if name != "step"]
    assert "is cut to 250 characters" in complained


def test_a_million_names_are_not_remembered(place: Place) -> None:
    code = "from runyard.job import metrics\nfor i in range(10500): job.log(**{'m%d' % i: 1})\n"
    said, _ = place.run(HEAD + code + "print(len(metrics._names) <= 10000)")
    assert said == "True\n"
    assert len(place.logged()) == 10500


def test_eight_processes_at_once(place: Place) -> None:
    """Forked ones, after the first line was written: they share nothing but the file."""
    code = """
import os
job.log(who=-1)
children = [os.fork() for _ in range(3)]  # eight processes
me = os.getpid()
for i in range(500): job.log(step=i, who=me, filling=0.1234567891234)
for child in children:
    if child: os.waitpid(child, 0)
"""
    place.run(HEAD + code)
    steps: dict[float, list[int]] = {}
    for line in place.lines()[1:]:
        steps.setdefault(line["m"]["who"], []).append(line["step"])
    assert len(steps) == 8
    assert all(found == list(range(500)) for found in steps.values())


def test_a_child_that_closed_everything_writes_to_no_other_file(place: Place) -> None:
    code = """
import os
job.log(a=1)
if os.fork() == 0:
    os.closerange(3, 100)
    file = open("other", "w")
    job.log(a=2)
    os._exit(0)
os.wait()
"""
    place.run(HEAD + code)
    assert (place.directory / "other").read_text() == ""
    assert place.logged() == [{"a": 1.0}, {"a": 2.0}]


def test_a_line_that_was_cut_costs_no_other(place: Place) -> None:
    """As on a disk that was full for a moment: here the process may write no more than 100 bytes."""
    code = """
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def limit(size): resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
job.log(a=1); limit(60); job.log(a=2); job.log(a=3); limit(10000); job.log(a=4); job.log(a=5)
print("on")
"""
    said, complained = place.run(HEAD + code)
    assert said == "on\n"
    assert complained.count("runyard: metrics cannot be reported") == 1
    first, cut, *others = place.metrics.read_text().splitlines()
    assert not cut.endswith("}")
    assert [json.loads(line)["m"]["a"] for line in (first, *others)] == [1, 4, 5]


def test_a_directory_that_is_gone_ends_nothing(place: Place) -> None:
    said, complained = place.run(HEAD + "job.log(a=1); job.log(a=2); print('on')", RUNYARD_METRICS="/nowhere/m.jsonl")
    assert said == "on\n"
    assert complained.count("metrics cannot be reported") == 1


def test_a_closed_standard_error_ends_nothing(place: Place) -> None:
    said, _ = place.run(
        HEAD + "import sys; sys.stderr.close(); job.log(a=None); sys.stderr = None; job.log(b=None)\nprint(1)"
    )
    assert said == "1\n"


def test_outside_of_a_run_nothing_happens(place: Place) -> None:
    code = "job.log(step=1, loss=None); job.summary(x=object())\n"
    code += "print(job.params(), job.seed(), job.index(), job.should_stop())"
    assert place.outside(HEAD + code) == "{} None 1 False\n"
    assert list(place.directory.iterdir()) == []
