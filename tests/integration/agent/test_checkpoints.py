"""What runs save comes to the yard, and to where they go on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from runyard import errors
from runyard.agent.attempts import Book, Phase
from runyard.agent.bring.cache import CacheStore
from runyard.agent.clean.old_checkpoints import OldCheckpoints
from runyard.agent.errands import InlineErrands
from runyard.agent.report.ending import FRESH_S
from runyard.hosts.local import LocalHost
from runyard.model.tree import Tree
from runyard.model.wire import CHECKPOINTS, AttemptKey, OutputWish, Report, Resume, SyncRequest, SyncResponse
from tests.integration.agent.conftest import Crew

SAVES = "cd $CHECKPOINT_DIR; mkdir -p deep; echo 1 >step; echo x >deep/w; echo half >last.pt.tmp"
SHOWS = 'echo "resume=$RUNYARD_RESUME"; cd $CHECKPOINT_DIR; find . -type f | sort; cat step 2>/dev/null; true'


def contents(crew: Crew, report: Report) -> dict[str, bytes]:
    assert report.checkpoint is not None and report.checkpoint["tree"] is not None
    tree = Tree.parse(crew.yard.blobs[report.checkpoint["tree"]])
    assert (report.checkpoint["size"], report.checkpoint["files"]) == (tree.size, len(tree.files))
    return {file.path: crew.yard.blobs[file.digest] for file in tree.files}


def run(crew: Crew, script: str, **fields: Any) -> Report:
    agent = crew.agent()
    key = crew.yard.submit(["sh", "-c", script], **fields)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    return crew.yard.ended[key]


def told(crew: Crew) -> list[Report]:
    return [report for report in crew.yard.reports if report.checkpoint is not None]


def test_at_its_end_the_yard_has_what_an_attempt_saved(crew: Crew) -> None:
    assert contents(crew, run(crew, SAVES)) == {"step": b"1\n", "deep/w": b"x\n"}


def test_an_attempt_that_saves_nothing_says_nothing(crew: Crew) -> None:
    assert run(crew, "true").checkpoint is None
    assert run(crew, "echo half >$CHECKPOINT_DIR/last.pt.tmp").checkpoint is None
    assert crew.yard.blobs == {}


def test_what_has_not_changed_is_not_sent_again(crew: Crew) -> None:
    first = run(crew, SAVES)
    before = dict(crew.yard.blobs)
    again = run(crew, "echo 2 >$CHECKPOINT_DIR/step", key=AttemptKey(run=first.key.run, attempt=2))
    assert contents(crew, again) == {"step": b"2\n", "deep/w": b"x\n"}
    assert len(crew.yard.blobs) == len(before) + 2, "a file, and the tree that names it"


def test_a_policy_may_leave_them_where_they_are(crew: Crew, tmp_path: Path) -> None:
    there = {"tree": None, "size": 0, "files": 0}
    assert run(crew, SAVES, checkpoint={"every": "never"}).checkpoint == there
    (tmp_path / "mine").mkdir()
    mine = run(crew, "echo 1 >$CHECKPOINT_DIR/step", env={"CHECKPOINT_DIR": str(tmp_path / "mine")})
    assert mine.checkpoint == there, "a directory that the user names is the user's"
    assert crew.yard.blobs == {}


def test_they_come_while_it_runs(crew: Crew, tmp_path: Path) -> None:
    agent, go = crew.agent(), tmp_path / "go"
    script = f"echo 1 >$CHECKPOINT_DIR/step; while ! test -e {go}; do sleep 0.05; done; echo 2 >$CHECKPOINT_DIR/step"
    key = crew.yard.submit(["sh", "-c", script], checkpoint={"every": "1s"})
    crew.drive(agent, lambda: told(crew), "a first one")
    assert contents(crew, told(crew)[0]) == {"step": b"1\n"}
    assert key not in crew.yard.ended
    go.touch()
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert contents(crew, crew.yard.ended[key]) == {"step": b"2\n"}


def test_they_come_when_somebody_asks(crew: Crew) -> None:
    agent = crew.agent()
    key = crew.yard.submit(["sh", "-c", "echo 1 >$CHECKPOINT_DIR/step; echo saved; sleep 300"])
    crew.drive(agent, lambda: "saved" in crew.yard.log(key), "its word")
    assert not told(crew)
    crew.yard.wanted = [OutputWish(key=key, number=1, what=CHECKPOINTS)]
    crew.drive(agent, lambda: any(report.saved == 1 for report in crew.yard.reports), "an answer")
    assert contents(crew, told(crew)[0]) == {"step": b"1\n"}
    assert not any(report.brought for report in crew.yard.reports), "nobody asked for outputs"
    crew.yard.cancel(key)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")


def test_an_end_that_could_not_be_told_for_long_is_brought_once_more(crew: Crew) -> None:
    """What the yard had when it was asked, it may have removed since."""
    crew.yard.settles = False
    agent = crew.agent()
    key = crew.yard.submit(["sh", "-c", f"echo result >$OUTPUT_DIR/result; {SAVES}"])
    crew.drive(agent, lambda: agent._context.book.in_phase(Phase.TOLD), "its end")
    crew.yard.reachable = False
    crew.drive(agent, lambda: agent._sync.incarnation is None, "silence")
    crew.yard.blobs.clear()
    for attempt in agent._context.book:
        assert attempt.ending.found_at is not None
        attempt.ending.found_at -= FRESH_S
    crew.yard.reachable = crew.yard.settles = True
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    report = crew.yard.ended[key]
    assert contents(crew, report) == {"step": b"1\n", "deep/w": b"x\n"}
    assert [crew.yard.blobs[file["digest"]] for file in report.outputs] == [b"result\n"]


def test_what_could_not_be_told_while_it_runs_is_brought_once_more(crew: Crew) -> None:
    agent = crew.agent()
    key = crew.yard.submit(["sh", "-c", "echo 1 >$CHECKPOINT_DIR/step; echo saved; sleep 300"])
    crew.drive(agent, lambda: "saved" in crew.yard.log(key), "its word")
    sync, crew.yard.sync = crew.yard.sync, unreachable  # type: ignore[method-assign]
    [attempt] = agent._context.book
    agent._checkpoints.heard(SyncResponse(wanted=[OutputWish(key=key, number=1, what=CHECKPOINTS)]))
    crew.drive(agent, lambda: attempt.untold, "what is to be told")
    crew.drive(agent, lambda: agent._sync.incarnation is None, "silence")
    crew.yard.blobs.clear()
    crew.yard.sync = sync  # type: ignore[method-assign]
    crew.drive(agent, lambda: told(crew), "the checkpoint")
    assert contents(crew, told(crew)[0]) == {"step": b"1\n"}
    crew.yard.cancel(key)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")


def unreachable(request: SyncRequest) -> SyncResponse:
    raise errors.YardUnreachable("nobody answers")


def test_another_place_gets_the_newest_first(crew: Crew) -> None:
    place = crew.site / "runs/7/checkpoints"
    place.mkdir(parents=True)
    (place / "stale").write_text("of an attempt before the last")
    tree = crew.yard.store_folder({"step": b"41\n", "deep/w": b"x"})
    key = AttemptKey(run=7, attempt=3)
    run(crew, SHOWS, key=key, resume=Resume(tree=tree))
    assert crew.yard.log(key).split() == [f"resume={place}", "./deep/w", "./step", "41"]


def test_what_lies_here_is_newer_than_what_the_yard_has(crew: Crew) -> None:
    first = run(crew, "echo 5 >$CHECKPOINT_DIR/step")
    tree = crew.yard.store_folder({"step": b"4\n"})
    again = run(crew, SHOWS, key=AttemptKey(run=first.key.run, attempt=2), resume=Resume(tree=tree, held=True))
    assert crew.yard.log(again.key).split()[1:] == ["./step", "5"]


def test_to_begin_anew_nothing_is_there(crew: Crew) -> None:
    first = run(crew, "echo 5 >$CHECKPOINT_DIR/step")
    again = run(crew, SHOWS, key=AttemptKey(run=first.key.run, attempt=2), resume=Resume(afresh=True))
    assert crew.yard.log(again.key) == "resume=\n"


def test_a_checkpoint_that_the_yard_has_lost_is_no_reason_to_fail(crew: Crew) -> None:
    tree = crew.yard.store_folder({"step": b"41\n"})
    lost = next(digest for digest, data in crew.yard.blobs.items() if data == b"41\n")
    del crew.yard.blobs[lost]
    report = run(crew, SHOWS, key=AttemptKey(run=7, attempt=2), resume=Resume(tree=tree))
    assert report.record is not None and report.record["exit_code"] == 0
    assert crew.yard.log(report.key) == "resume=\n"
    assert f"started from the beginning: its checkpoint cannot be staged: the yard has no blob {lost}" in (
        report.detail or ""
    )


def test_pruning_at_the_site(crew: Crew) -> None:
    script = "cd $CHECKPOINT_DIR; for i in 1 2 3 4; do echo $i >step-$i.pt; sleep 0.05; done; echo b >best.pt"
    report = run(crew, script, checkpoint={"keep": 2, "prune": ["step-*.pt"]})
    assert set(contents(crew, report)) == {"step-3.pt", "step-4.pt", "best.pt"}
    assert {path.name for path in (crew.site / f"runs/{report.key.run}/checkpoints").iterdir()} == {
        "step-3.pt", "step-4.pt", "best.pt",
    }  # fmt: skip


def test_what_has_expired_goes(crew: Crew) -> None:
    first, second = run(crew, SAVES), run(crew, SAVES)
    homes = {report.key.run: crew.site / f"runs/{report.key.run}/checkpoints" for report in (first, second)}
    now, asked = [0.0], list[int]()

    def ask(runs: Sequence[int]) -> dict[int, int]:
        asked.extend(runs)
        return {first.key.run: 1}

    store = CacheStore(str(crew.site / "runs"), "agent", Book(), lambda: 1)
    expiry = OldCheckpoints(LocalHost(), InlineErrands(), store, ask, lambda: now[0])
    expiry.advance()
    assert not asked
    now[0] = expiry.next_due()
    expiry.advance()
    assert sorted(asked) == [first.key.run, second.key.run]
    assert (homes[first.key.run].exists(), homes[second.key.run].exists()) == (False, True)
