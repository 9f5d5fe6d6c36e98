"""What the yard has of checkpoints that went: it goes, too, about an hour later, unless anything refers to it."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from runyard import errors
from runyard.model.recipe import Recipe
from runyard.model.spec import RunSpec
from runyard.model.states import AttemptState
from runyard.model.sweep import SweepSpec
from runyard.model.tree import Tree, TreeFile
from runyard.model.wire import Claim, Report
from runyard.store import blob_deletions, blob_references, checkpoints, requests
from runyard.store.blob_deletions import DeletionState
from runyard.yard import blobs as yard_blobs
from runyard.yard.blobs import GRACE_S
from runyard.yard.checkpoints.blob_cleanup import FORGET_S, LATE_S, TAKE_OVER_S, BlobCleanup
from tests.integration.yard.conftest import NOTHING, Driver, ended, running

LATER = GRACE_S + 1


class Saver:
    """A run of which the yard keeps one checkpoint."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        [self.run] = driver.submit(checkpoint={"keep": 1})
        [claim] = [claim for claim in driver.sync().claims if claim.key.run == self.run]
        self.claim: Claim = claim
        driver.sync(running(claim), free=NOTHING)

    def save(self, *contents: bytes) -> str:
        """As an agent does: what the yard lacks is sent, then the tree is told of."""
        tree = folder(*contents)
        for data in (*contents, tree.encode()):
            self._send(data)
        told = {"tree": tree.digest, "size": tree.size, "files": len(tree.files)}
        self.driver.sync(Report(key=self.claim.key, state=AttemptState.RUNNING, checkpoint=told), free=NOTHING)
        return tree.digest

    def _send(self, data: bytes) -> None:
        if not self.driver.yard.blobs.has(digest(data)):
            self.driver.yard.blobs.put(digest(data), [data])


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def folder(*contents: bytes) -> Tree:
    return Tree.build(TreeFile(f"{data.decode()}.pt", digest(data), len(data), False) for data in contents)


def add_folder(driver: Driver, *contents: bytes) -> Tree:
    """Only what the yard lacks is sent."""
    tree = folder(*contents)
    texts = {digest(data): data for data in (*contents, tree.encode())}
    driver.yard.blobs.put_many({name: texts[name] for name in driver.yard.blobs.missing(texts)})
    return tree


@pytest.fixture
def saver(driver: Driver) -> Saver:
    return Saver(driver)


@pytest.fixture
def cleanup(driver: Driver) -> BlobCleanup:
    return BlobCleanup(driver.yard)


def fates(driver: Driver) -> dict[str, str]:
    with driver.yard.store.read() as connection:
        return {found: fate for fate in DeletionState for found in blob_deletions.in_state(connection, fate, 100)}


def are_there(driver: Driver, *contents: bytes) -> list[bool]:
    """In the store itself: nobody looks at them by that."""
    return [driver.yard.blob_store.blobs.has(digest(data)) for data in contents]


def pass_time(driver: Driver, cleanup: BlobCleanup) -> None:
    """What was pruned is condemned, and an hour later it is looked for."""
    cleanup.tick()
    driver.clock.now += LATER
    cleanup.tick()


def test_what_was_pruned_is_gone_an_hour_later(driver: Driver, saver: Saver, cleanup: BlobCleanup) -> None:
    first = saver.save(b"one", b"both")
    second = saver.save(b"two", b"both")
    assert fates(driver) == {first: DeletionState.PRUNED}
    cleanup.tick()
    assert fates(driver) == dict.fromkeys([first, digest(b"one"), digest(b"both")], DeletionState.CONDEMNED)
    driver.clock.now += GRACE_S - 1
    cleanup.tick()
    assert are_there(driver, b"one", b"both", b"two") == [True, True, True]
    driver.clock.now += 2
    cleanup.tick()
    assert are_there(driver, b"one", b"both", b"two") == [False, True, True]
    blobs = driver.yard.blob_store.blobs
    assert not blobs.has(first) and blobs.has(second)
    assert fates(driver) == dict.fromkeys([first, digest(b"one")], DeletionState.GONE)
    driver.clock.now += FORGET_S + 1
    cleanup.tick()
    assert fates(driver) == {}


def test_a_retry_afresh_sets_everything_aside(driver: Driver, saver: Saver, cleanup: BlobCleanup) -> None:
    saver.save(b"one")
    driver.sync(ended(saver.claim, exit_code=1), free=NOTHING)
    driver.yard.retry(driver.alice, [saver.run], "afresh").result()
    pass_time(driver, cleanup)
    assert are_there(driver, b"one") == [False]


def test_a_checkpoint_that_a_retry_goes_on_from_stays(driver: Driver, saver: Saver, cleanup: BlobCleanup) -> None:
    saver.save(b"one")
    tree = saver.save(b"two")
    driver.sync(ended(saver.claim, exit_code=1), free=NOTHING)
    driver.yard.retry(driver.alice, [saver.run], "resume").result()
    [again] = driver.sync().claims
    assert again.resume is not None and again.resume.tree == tree
    pass_time(driver, cleanup)
    assert are_there(driver, b"one", b"two", folder(b"two").encode()) == [False, True, True]


def test_what_comes_and_goes_again_is_removed_in_the_end(driver: Driver, saver: Saver, cleanup: BlobCleanup) -> None:
    """A file that was found to be wanted is looked at anew when the last one who wanted it is gone."""
    other = Saver(driver)
    for each in (saver, other):
        each.save(b"shared")
    saver.save(b"own")
    pass_time(driver, cleanup)
    assert are_there(driver, b"shared") == [True] and fates(driver) == {}
    other.save(b"others")
    pass_time(driver, cleanup)
    assert are_there(driver, b"shared", b"own", b"others") == [False, True, True]


# --- what refers to it ------------------------------------------------------------------------------------------------


def as_input(driver: Driver, data: bytes) -> None:
    driver.submit(inputs=[{"digest": digest(data), "to": "x"}])


def as_code(driver: Driver, data: bytes) -> None:
    tree = add_folder(driver, data, b"more")
    driver.submit(code={"tree": tree.digest, "files": 2, "size": tree.size})


def as_data(driver: Driver, data: bytes) -> None:
    driver.submit(data=[{"tree": add_folder(driver, data, b"more").digest, "to": "d"}])


def as_diff(driver: Driver, data: bytes) -> None:
    tree = add_folder(driver, b"more")
    git = {"head": "a" * 40, "dirty": True, "diff": digest(data)}
    driver.submit(code={"tree": tree.digest, "files": 1, "size": tree.size, "git": git})


def as_output(driver: Driver, data: bytes) -> None:
    [run] = driver.submit()
    [claim] = [claim for claim in driver.sync().claims if claim.key.run == run]
    files = [{"path": "model.pt", "size": len(data), "digest": digest(data), "mode": 0o644}]
    report = ended(claim)
    driver.sync(dataclasses.replace(report, outputs=files), free=NOTHING)
    assert driver.yard.outputs(run)[0]["digest"] == digest(data)


def as_recipe(driver: Driver, data: bytes) -> None:
    recipe = Recipe.parse({"command": ["true"], "inputs": [{"digest": digest(data), "to": "x"}]})
    driver.yard.recipes.put(driver.admin, "train", recipe, default=False).result()


def as_sweep(driver: Driver, data: bytes) -> None:
    run = {"command": ["train", "{lr}"], "inputs": [{"digest": digest(data), "to": "x"}]}
    sweep = {**run, "method": "random", "trials": 2, "space": {"lr": [1, 2]}}
    driver.yard.sweeps.submit(driver.alice, SweepSpec.parse(sweep)).result()


def as_request(driver: Driver, data: bytes) -> None:
    """Of another program, that waits for more files."""
    facts = {"queue": "q", "identity": "i", "digest": "d", "run_count": 0, "is_group": 0, "received_at": 0.0}
    waiting = json.dumps([{"model": digest(data)}])
    work = functools.partial(requests.add, id=1, waiting=waiting, next_try=0.0, **facts)
    driver.yard.store.write(work).result()


def as_checkpoint(driver: Driver, data: bytes) -> None:
    Saver(driver).save(data, b"more")


REFERENCES = (as_output, as_checkpoint, as_input, as_code, as_data, as_diff, as_recipe, as_sweep, as_request)
SHARED = {refer.__name__.encode(): refer for refer in REFERENCES}


@pytest.mark.parametrize("when", ["before", "condemned"])
def test_what_something_refers_to_stays(driver: Driver, saver: Saver, cleanup: BlobCleanup, when: str) -> None:
    saver.save(*SHARED, b"old")
    if when == "before":
        refer_to_all(driver)
    saver.save(b"new")
    cleanup.tick()
    assert {digest(data) for data in SHARED} <= set(fates(driver))
    if when == "condemned":
        driver.clock.now += GRACE_S - 1
        refer_to_all(driver)
    for _ in range(3):
        driver.clock.now += LATER
        cleanup.tick()
    assert [data for data in SHARED if are_there(driver, data) != [True]] == []
    assert [data for data in SHARED if digest(data) in fates(driver)] == []
    assert are_there(driver, b"old") == [False]


def refer_to_all(driver: Driver) -> None:
    for data, refer in SHARED.items():
        refer(driver, data)


def test_what_it_has_read_once_it_knows(
    driver: Driver, saver: Saver, cleanup: BlobCleanup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Specs are read once by a process; nothing at all is read while nothing is due."""
    read: list[int] = []
    specs = blob_references.specs

    def noted(connection: Any, after: int, limit: int) -> list[tuple[int, str]]:
        page = specs(connection, after, limit)
        read.extend(run for run, _ in page)
        return page

    monkeypatch.setattr(blob_references, "specs", noted)
    as_data(driver, b"shared")
    cleanup.tick()
    driver.clock.now += LATER
    cleanup.tick()
    assert read == []
    saver.save(b"shared", b"one")
    saver.save(b"two")
    cleanup.tick()
    assert read == []
    driver.clock.now += LATER
    cleanup.tick()
    assert read == [saver.run, saver.run + 1]
    saver.save(b"shared", b"three")
    saver.save(b"four")
    pass_time(driver, cleanup)
    assert read == [saver.run, saver.run + 1], "what was read is remembered"
    assert are_there(driver, b"shared", b"one", b"three", b"four") == [True, False, False, True]


def test_nothing_is_removed_while_something_cannot_be_read(
    driver: Driver, saver: Saver, cleanup: BlobCleanup, monkeypatch: pytest.MonkeyPatch
) -> None:
    as_data(driver, b"shared")
    saver.save(b"shared", b"one")
    saver.save(b"two")
    cleanup.tick()
    driver.clock.now += LATER
    blobs, tree = driver.yard.blob_store.blobs, folder(b"shared", b"more").digest
    read = blobs.read

    def broken(digest: str, offset: int, limit: int) -> bytes:
        if digest == tree:
            raise errors.BlobStoreError("no answer")
        return read(digest, offset, limit)

    with monkeypatch.context() as patched:
        patched.setattr(blobs, "read", broken)
        assert not cleanup.tick()
    assert are_there(driver, b"shared", b"one") == [True, True]
    cleanup.tick()
    assert are_there(driver, b"shared", b"one") == [True, False]


# --- who wants it again -----------------------------------------------------------------------------------------------


def put(driver: Driver, data: bytes, tmp_path: Path) -> None:
    driver.yard.blobs.put(digest(data), [data])


def put_many(driver: Driver, data: bytes, tmp_path: Path) -> None:
    driver.yard.blobs.put_many({digest(data): data, digest(b"more"): b"more"})


def add(driver: Driver, data: bytes, tmp_path: Path) -> None:
    driver.yard.blobs.add([data])


def upload(driver: Driver, data: bytes, tmp_path: Path) -> None:
    driver.yard.blobs.append_partial(digest(data), len(data), 0, data)
    driver.yard.blobs.commit_partial(digest(data), len(data))


def adopt(driver: Driver, data: bytes, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(data)
    driver.yard.blobs.adopt(digest(data), tmp_path / "file", link=True)


def come_to_send(driver: Driver, data: bytes, tmp_path: Path) -> None:
    if not driver.yard.blobs.is_sent(digest(data)):
        put(driver, data, tmp_path)


SENDING = (put, put_many, add, upload, adopt, come_to_send)
SENT = {send.__name__.encode(): send for send in SENDING}


@pytest.mark.parametrize("state", [DeletionState.CONDEMNED, DeletionState.GONE])
def test_what_is_sent_again_stays(
    driver: Driver, saver: Saver, cleanup: BlobCleanup, tmp_path: Path, state: DeletionState
) -> None:
    saver.save(*SENT, b"other")
    saver.save(b"two")
    cleanup.tick()
    driver.clock.now += LATER
    if state == DeletionState.GONE:
        cleanup.tick()
    assert {fates(driver)[digest(data)] for data in SENT} == {state}
    for data, send in SENT.items():
        send(driver, data, tmp_path)
    for _ in range(3):
        cleanup.tick()
        driver.clock.now += LATER
    assert [data for data in SENT if are_there(driver, data) != [True]] == []
    assert are_there(driver, b"other") == [False]
    assert driver.yard.blobs.missing(digest(data) for data in SENT) == set()


def test_who_asks_has_time_to_refer_to_it(driver: Driver, saver: Saver, cleanup: BlobCleanup) -> None:
    """It need not be sent again. In the end, it goes if nobody does."""
    saver.save(b"one", b"other")
    saver.save(b"two")
    cleanup.tick()
    driver.clock.now += GRACE_S - 1
    assert driver.yard.blobs.missing([digest(b"one")]) == set()
    driver.clock.now += GRACE_S - 1
    cleanup.tick()
    assert are_there(driver, b"one", b"other") == [True, False]
    driver.clock.now += 2
    cleanup.tick()
    assert are_there(driver, b"one") == [False]
    assert driver.yard.blobs.missing([digest(b"one")]) == {digest(b"one")}


def test_a_file_that_all_checkpoints_have_is_never_sent_again(
    driver: Driver, saver: Saver, cleanup: BlobCleanup
) -> None:
    for number in range(12):
        data = b"%d" % number
        saver.save(b"base", data)
        cleanup.tick()
        assert driver.yard.blobs.missing([digest(b"base")]) == set()
        driver.clock.now += 1200
    assert are_there(driver, b"base", b"0", b"11") == [True, False, True]


def test_what_was_found_whole_is_not_remembered_for_longer_than_it_is(
    driver: Driver, saver: Saver, cleanup: BlobCleanup
) -> None:
    tree = add_folder(driver, b"shared", b"more")
    spec = RunSpec.parse({"command": ["true"], "data": [{"tree": tree.digest, "to": "d"}], "site": "nowhere"})
    with pytest.raises(errors.InvalidInput, match="no site 'nowhere'"):
        driver.yard.submit(driver.alice, [spec]).result()  # so the yard has the folder, and nothing refers to it
    saver.save(b"shared")
    saver.save(b"new")
    pass_time(driver, cleanup)
    assert are_there(driver, b"shared", b"more") == [False, True]
    with pytest.raises(errors.InvalidInput, match=r"lacks 1 of the tree's files, such as 'shared\.pt'"):
        driver.submit(data=[{"tree": tree.digest, "to": "d"}])
    assert driver.yard.blobs.missing([tree.digest]) == {tree.digest}, "whoever has it sends all of it again"
    add_folder(driver, b"shared", b"more")
    driver.submit(data=[{"tree": tree.digest, "to": "d"}])


# --- killed between two lines -----------------------------------------------------------------------------------------


class Killed(BaseException):
    pass


class Mortal(BlobCleanup):
    """Ends once, before or after it has done something to the rows or to the blobs."""

    def __init__(self, driver: Driver, step: str, moment: str) -> None:
        super().__init__(driver.yard)
        self._step, self._moment, self._driver = step, moment, driver
        self.killed = False

    def _write(self, work: Any, *args: Any, **named: Any) -> Any:
        return self._do(work.__name__, lambda: super(Mortal, self)._write(work, *args, **named))

    def _remove(self, going: Collection[str]) -> None:
        with pytest.MonkeyPatch.context() as patch:
            remove = self._blobs.remove
            patch.setattr(self._blobs, "remove", lambda digests: self._do("remove", lambda: remove(digests)))
            super()._remove(going)

    def _do(self, name: str, work: Callable[[], Any]) -> Any:
        if name != self._step or self.killed:
            return work()
        self.killed = True
        if self._moment == "after":
            work()
        raise Killed


@pytest.mark.parametrize("moment", ["before", "after"])
@pytest.mark.parametrize("step", ["condemn", "expanded", "acquit", "claim", "remove", "removed", "forget"])
def test_killed_at_any_step(driver: Driver, saver: Saver, step: str, moment: str) -> None:
    """Whoever comes next ends it: nothing is lost that is referred to, and nothing stays for ever."""
    driver.yard.blobs.add([b"kept"])
    as_input(driver, b"kept")
    saver.save(b"one", b"kept")
    saver.save(b"two")
    cleanup: BlobCleanup = Mortal(driver, step, moment)
    killed = 0
    for _ in range(8):
        try:
            cleanup.tick()
        except Killed:
            killed, cleanup = killed + 1, BlobCleanup(driver.yard)
        fate = fates(driver).get(digest(b"one"))
        assert are_there(driver, b"one") == [True] or fate in (DeletionState.GOING, DeletionState.GONE, None)
        assert are_there(driver, b"one") == [False] or fate != DeletionState.GONE
        assert are_there(driver, b"kept", b"two") == [True, True]
        driver.clock.now += LATER
    assert killed == 1
    assert are_there(driver, b"one") == [False]
    assert fates(driver) == {}


def test_what_is_being_removed_is_missing_and_not_sent_before_it_is_gone(
    driver: Driver, saver: Saver, cleanup: BlobCleanup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(yard_blobs, "PATIENCE_S", 0.2)
    saver.save(b"one")
    saver.save(b"two")
    cleanup.tick()
    driver.clock.now += LATER
    with pytest.raises(Killed):
        Mortal(driver, "remove", "before").tick()
    assert fates(driver)[digest(b"one")] == DeletionState.GOING
    blobs = driver.yard.blobs
    assert not blobs.has(digest(b"one")), "although it is there at this moment"
    with pytest.raises(errors.YardUnreachable, match="is being removed from the yard"):
        blobs.put(digest(b"one"), [b"one"])
    driver.clock.now += TAKE_OVER_S - 1
    cleanup.tick()
    assert are_there(driver, b"one") == [True], "whoever removes it may only be slow"
    driver.clock.now += 2
    cleanup.tick()
    assert are_there(driver, b"one") == [False]
    blobs.put(digest(b"one"), [b"one"])
    assert blobs.has(digest(b"one"))


def test_a_look_while_it_is_looked_for_saves_it(
    driver: Driver, saver: Saver, cleanup: BlobCleanup, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever asks after references were looked for, and before it is taken away."""
    saver.save(b"one", b"other")
    saver.save(b"two")
    cleanup.tick()
    driver.clock.now += LATER
    claim = blob_deletions.claim

    def looked_at(connection: Any, now: float, digests: Any, before: float) -> list[str]:
        blob_deletions.renew(connection, now, [digest(b"one")])  # in the turn before
        return claim(connection, now, digests, before)

    monkeypatch.setattr(blob_deletions, "claim", looked_at)
    cleanup.tick()
    assert are_there(driver, b"one", b"other") == [True, False]


def test_who_sends_while_it_is_removed_has_sent_it(driver: Driver, cleanup: BlobCleanup) -> None:
    """Whoever comes first: what was sent is there afterwards."""
    contents = {digest(data): data for data in (b"%d" % number for number in range(20))}
    store = driver.yard.store
    for turn in range(15):
        driver.yard.blobs.put_many(contents)
        store.write(lambda connection: blob_deletions.condemn(connection, store.now(), contents)).result()
        driver.clock.now += LATER
        with ThreadPoolExecutor(2) as pool:
            waiting = [pool.submit(send_slowly, driver, contents, turn * 0.002), pool.submit(cleanup.tick)]
            for each in waiting:
                each.result(60)
        assert driver.yard.blob_store.blobs.missing(contents) == set()
        assert fates(driver) == {}
    assert driver.yard.blobs.missing(contents) == set()


def send_slowly(driver: Driver, contents: dict[str, bytes], pause: float) -> None:
    time.sleep(pause)  # so that it comes before, between and after
    for name, data in contents.items():
        driver.yard.blobs.put(name, [data])


def test_a_process_that_knows_nothing_waits_until_it_is_worth_it(driver: Driver, saver: Saver) -> None:
    saver.save(b"one")
    saver.save(b"two")
    BlobCleanup(driver.yard, LATE_S).tick()
    driver.clock.now += LATER
    BlobCleanup(driver.yard, LATE_S).tick()
    assert are_there(driver, b"one") == [True]
    driver.clock.now += LATE_S
    BlobCleanup(driver.yard, LATE_S).tick()
    assert are_there(driver, b"one") == [False]


def test_a_tree_that_is_none_or_was_never_sent(driver: Driver, saver: Saver, cleanup: BlobCleanup) -> None:
    for told in (driver.yard.blobs.add([b"no tree"]), digest(b"absent")):
        report = Report(
            key=saver.claim.key, state=AttemptState.RUNNING, checkpoint={"tree": told, "size": 1, "files": 1}
        )
        driver.sync(report, free=NOTHING)
    saver.save(b"one")
    pass_time(driver, cleanup)
    assert are_there(driver, b"no tree", b"one") == [False, True]
    with driver.yard.store.read() as connection:
        assert checkpoints.trees(connection) == {folder(b"one").digest}
