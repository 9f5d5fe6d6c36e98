"""Code, data and files that runs ask for are there before they start, or the run says why not."""

from __future__ import annotations

import itertools
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from runyard import errors
from runyard.agent.errands import ThreadedErrands
from runyard.backends.local import LocalBackend
from runyard.hosts.base import Cache, Parcel, Unreachable
from runyard.hosts.local import LocalHost
from runyard.model import packs
from runyard.model.site import SiteSpec
from runyard.model.wire import AttemptKey
from tests.integration.agent.conftest import Crew
from tests.labs.disks import small_disk

SHOW = 'cd "$RUNYARD_INPUTS"; cat one two/three; stat -c %a one'
READ_CODE = ["sh", "-c", 'test "$PWD" = "$RUNYARD_CODE" && cat main.py']
LARGE = packs.LARGE + 1


def code(crew: Crew, files: dict[str, bytes], *executable: str) -> dict[str, object]:
    tree = crew.yard.store_folder(files, *executable)
    return {"tree": tree, "files": len(files), "size": sum(map(len, files.values()))}


def message(crew: Crew, key: AttemptKey) -> tuple[str, str]:
    record = crew.yard.ended[key].record or {}
    return record["ending"], record["message"]


# --- code -------------------------------------------------------------------------------------------------------


def test_a_run_works_in_a_copy_of_its_code(crew: Crew) -> None:
    files = {"main.sh": b"#!/bin/sh\n. ./lib/words; echo $1 > written; cat written lib/words\n", "lib/words": b"x=1\n"}
    agent = crew.agent(cpus=4)
    staged = code(crew, files, "main.sh")
    keys = [crew.yard.submit(["./main.sh", str(number)], code=staged) for number in range(4)]
    crew.drive(agent, lambda: all(key in crew.yard.ended for key in keys), "all ends")
    assert [crew.yard.log(key) for key in keys] == [f"{number}\nx=1\n" for number in range(4)]


def test_twenty_runs_have_their_code_brought_once(crew: Crew) -> None:
    files = {"main.py": b"print()\n", "large": secrets.token_bytes(LARGE), "same": b"print()\n"}
    agent, staged = crew.agent(cpus=4), code(crew, files)
    keys = [crew.yard.submit(READ_CODE, code=staged) for _ in range(20)]
    crew.drive(agent, lambda: all(key in crew.yard.ended for key in keys), "all ends")
    assert [crew.yard.log(key) for key in keys] == ["print()\n"] * 20
    assert len(crew.yard.fetched) == 3, "the tree, and each file once"


def test_where_it_is_said_the_run_works_elsewhere(crew: Crew, tmp_path: Path) -> None:
    staged = code(crew, {"main.py": b"x"})
    agent = crew.agent()
    key = crew.yard.submit(["sh", "-c", 'pwd; cat "$RUNYARD_CODE/main.py"'], code=staged, cwd=str(tmp_path))
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key) == f"{tmp_path}\nx"
    assert not (crew.directory(key) / "work").exists()


def test_what_was_staged_goes_when_the_run_is_settled(crew: Crew) -> None:
    agent, staged = crew.agent(), code(crew, {"main.py": b"x"})
    inputs = [{"digest": crew.yard.store(b"1"), "to": "one"}]
    data = [{"path": "/etc", "to": "etc"}]
    held = crew.yard.submit(["sleep", "600"], code=staged, data=data, inputs=inputs)
    over = crew.yard.submit(READ_CODE, code=staged, data=data, inputs=inputs)
    crew.drive(agent, lambda: over in crew.yard.ended, "the end of one")
    crew.drive(agent, lambda: not crew.directory(over).exists(), "its directory is gone")
    crew.drive(agent, lambda: not (crew.site / "cache" / "pins" / f"{over.run}-a1.json").exists(), "so is its pin")
    assert {path.name for path in (crew.site / "cache" / "pins").glob("*.json")} == {f"{held.run}-a1.json"}
    assert {"code", "data", "inputs"} <= {path.name for path in crew.directory(held).iterdir()}
    crew.yard.cancel(held)
    crew.drive(agent, lambda: held in crew.yard.ended, "the other end")


# --- data -------------------------------------------------------------------------------------------------------


def test_data_is_found_by_name_and_beside_the_code(crew: Crew, tmp_path: Path) -> None:
    (tmp_path / "words").write_text("at the site\n")
    data = [
        {"tree": crew.yard.store_folder({"deep/words": b"brought\n"}), "to": "corpora"},
        {"path": str(tmp_path), "to": "there"},
    ]
    script = 'cat corpora/deep/words there/words; cd "$RUNYARD_DATA"; cat corpora/deep/words there/words'
    agent = crew.agent(cpus=4)
    key = crew.yard.submit(["sh", "-c", script], code=code(crew, {"main.py": b""}), data=data)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key) == "brought\nat the site\n" * 2


def test_a_path_that_is_not_at_the_site_is_told(crew: Crew) -> None:
    agent = crew.agent()
    data = [{"path": "/no/such/place", "to": "x"}]
    key = crew.yard.submit(["true"], data=data, code=code(crew, {"main.py": b""}))
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert message(crew, key) == ("staging", "/no/such/place: does not exist at this site")
    assert crew.yard.fetched == []


# --- inputs -----------------------------------------------------------------------------------------------------


def test_inputs_are_there_before_the_run(crew: Crew) -> None:
    inputs = [{"digest": crew.yard.store(b"1\n"), "to": "one"}, {"digest": crew.yard.store(b"3\n"), "to": "two/three"}]
    agent, key = crew.agent(), crew.yard.submit(["sh", "-c", SHOW], inputs=inputs)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key) == "1\n3\n400\n"
    assert crew.yard.ended[key].outputs == []


def test_runs_that_ask_for_the_same_file_have_it_brought_once(crew: Crew) -> None:
    inputs = [{"digest": crew.yard.store(b"x"), "to": "one"}]
    agent = crew.agent(cpus=4)
    keys = [crew.yard.submit(["sh", "-c", 'cat "$RUNYARD_INPUTS/one"'], inputs=inputs) for _ in range(4)]
    crew.drive(agent, lambda: all(key in crew.yard.ended for key in keys), "all ends")
    assert [crew.yard.log(key) for key in keys] == ["x"] * 4
    assert len(crew.yard.fetched) == 1


# --- what goes wrong --------------------------------------------------------------------------------------------


def test_a_file_that_the_yard_lost_fails_only_the_runs_that_ask_for_it(crew: Crew) -> None:
    agent = crew.agent(cpus=8)
    lost = crew.yard.submit(["true"], inputs=[{"digest": f"sha256:{'0' * 64}", "to": "one"}])
    good = crew.yard.submit(["true"], inputs=[{"digest": crew.yard.store(b"x"), "to": "one"}])
    broken = crew.yard.submit(["true"], code=code(crew, {"a": b"a", "b": b"b"}))
    del crew.yard.blobs[crew.yard.store(b"b")]
    crew.drive(agent, lambda: {lost, good, broken} <= set(crew.yard.ended), "all ends")
    assert message(crew, lost) == ("staging", f"its inputs cannot be staged: the yard has no blob sha256:{'0' * 64}")
    ending, text = message(crew, broken)
    assert ending == "staging" and text.startswith("its code cannot be staged: the yard has no blob sha256:")
    assert (crew.yard.ended[good].record or {})["ending"] == "exit"


def test_bytes_that_were_damaged_are_not_trained_on(crew: Crew) -> None:
    digest = crew.yard.store(b"right")
    crew.yard.blobs[digest] = b"wrong"
    agent, key = crew.agent(), crew.yard.submit(["true"], inputs=[{"digest": digest, "to": "one"}])
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    ending, text = message(crew, key)
    assert ending == "staging" and "the bytes are not those of" in text
    assert not (crew.directory(key) / "started").exists()


def test_bytes_that_are_damaged_once_are_brought_again(crew: Crew) -> None:
    digest = crew.yard.store(b"right")
    real = crew.yard.get_blob

    def wrong_at_first(asked: str, offset: int = 0) -> Iterator[bytes]:
        crew.yard.get_blob = real  # type: ignore[method-assign]
        return iter([b"wrong"])

    crew.yard.get_blob = wrong_at_first  # type: ignore[method-assign]
    command = ["sh", "-c", 'cat "$RUNYARD_INPUTS/one"']
    agent, key = crew.agent(), crew.yard.submit(command, inputs=[{"digest": digest, "to": "one"}])
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key) == "right"


def test_a_damaged_cache_is_mended(crew: Crew) -> None:
    agent, staged = crew.agent(), code(crew, {"main.py": b"right\n", "other": b"1"})
    first = crew.yard.submit(READ_CODE, code=staged)
    crew.drive(agent, lambda: first in crew.yard.ended, "the end")
    crew.yard.fetched.clear()
    digest = crew.yard.store(b"right\n").removeprefix("sha256:")
    blob = crew.site / "cache" / "blobs" / digest[:2] / digest[2:]
    blob.chmod(0o600)
    blob.write_bytes(b"wrong\n")
    second = crew.yard.submit(READ_CODE, code=staged)
    crew.drive(agent, lambda: second in crew.yard.ended, "the end")
    assert crew.yard.log(second) == "right\n"
    assert crew.yard.fetched == [f"sha256:{digest}"]


class Shaky(LocalHost):
    tries = 0

    def deliver(self, cache: Cache, parcels: Iterable[Parcel]) -> None:
        self.tries += 1
        if self.tries == 1:
            raise Unreachable("login1: no answer")
        super().deliver(cache, parcels)


def test_a_site_that_is_away_is_waited_for(crew: Crew, site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runyard.agent.waiting.PAUSE_S", 0.2)
    backend = LocalBackend(site)
    backend.host = host = Shaky()
    inputs = [{"digest": crew.yard.store(b"x"), "to": "one"}]
    agent = crew.agent(backend=backend)
    keys = [crew.yard.submit(["sh", "-c", 'cat "$RUNYARD_INPUTS/one"'], inputs=inputs) for _ in range(2)]
    crew.drive(agent, lambda: all(key in crew.yard.ended for key in keys), "both ends")
    assert ([crew.yard.log(key) for key in keys], host.tries) == (["x", "x"], 2)


def test_a_transfer_that_breaks_goes_on_where_it_was(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runyard.agent.waiting.PAUSE_S", 0.2)
    data = secrets.token_bytes(LARGE)
    real, offsets = crew.yard.get_blob, list[int]()
    staged = code(crew, {"large": data})

    def breaking(asked: str, offset: int = 0) -> Iterator[bytes]:
        if crew.yard.blobs[asked] is not data:
            yield from real(asked, offset)
            return
        offsets.append(offset)
        yield data[offset : offset + (3 << 20)]
        if len(offsets) < 3:
            raise errors.YardUnreachable("the connection broke")
        yield data[offset + (3 << 20) :]

    crew.yard.get_blob = breaking  # type: ignore[method-assign]
    agent, key = crew.agent(), crew.yard.submit(["sh", "-c", "wc -c < large"], code=staged)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key).strip() == str(LARGE)
    assert offsets == [0, 3 << 20, 6 << 20]


def test_nobody_has_to_come_again_for_the_start(crew: Crew) -> None:
    """`runyard check` ticks only while something is due, and may not come again for a minute."""
    agent = crew.agent()
    key = crew.yard.submit(["sleep", "1"], inputs=[{"digest": crew.yard.store(b"x"), "to": "one"}])
    agent.tick()
    while agent.next_due() <= time.monotonic() + 0.1 and not crew.directory(key).exists():
        time.sleep(max(0.0, agent.next_due() - time.monotonic()))
        agent.tick()
    assert (crew.directory(key) / "spec.json").exists()
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")


def test_a_run_that_is_cancelled_while_its_files_travel_never_starts(crew: Crew) -> None:
    digest = crew.yard.store(b"x")
    agent, key = crew.agent(), crew.yard.submit(["true"], inputs=[{"digest": digest, "to": "one"}])
    real = crew.yard.get_blob

    def cancelling(asked: str, offset: int = 0) -> Iterator[bytes]:
        agent._stops.order(key, "user")
        agent._stops.advance()
        return real(asked, offset)

    crew.yard.get_blob = cancelling  # type: ignore[method-assign]
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert (crew.yard.ended[key].record or {})["ending"] == "stopped"
    assert crew.yard.log(key) == ""


# --- people and other runs --------------------------------------------------------------------------------------


def test_people_see_how_far_it_is_and_other_runs_do_not_wait(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runyard.agent.bring.cache.TELL_S", 0.05)
    data = secrets.token_bytes(LARGE)
    slow_code, quick_code = code(crew, {"large": data}), code(crew, {"main.py": b"quick\n"})
    go_on = crew.site / "go-on"
    real = crew.yard.get_blob

    def slow(asked: str, offset: int = 0) -> Iterator[bytes]:
        for piece in real(asked, offset):
            yield piece
            while crew.yard.blobs[asked] is data and not go_on.exists():
                time.sleep(0.02)

    agent = crew.agent(cpus=8, errands=ThreadedErrands(lambda: None))
    first = crew.yard.submit(READ_CODE, code=quick_code)
    crew.drive(agent, lambda: first in crew.yard.ended, "the end of what fills the cache")
    crew.yard.get_blob = slow  # type: ignore[method-assign]
    waits = crew.yard.submit(["true"], code=slow_code)

    def told() -> set[str | None]:
        return {report.detail for report in crew.yard.reports if report.key == waits}

    crew.drive(agent, lambda: "staging code: 1.0 MB of 8.0 MB" in told(), "how far it is")
    same = crew.yard.submit(["true"], code=slow_code)
    quick = {
        crew.yard.submit(READ_CODE, code=quick_code),
        crew.yard.submit(READ_CODE, code=code(crew, {"main.py": b"2"})),
    }
    crew.drive(agent, lambda: quick <= set(crew.yard.ended), "the end of what is in the cache, and of what is small")
    assert not {waits, same} & set(crew.yard.ended)
    go_on.touch()
    crew.drive(agent, lambda: {waits, same} <= set(crew.yard.ended), "the end")
    assert [(crew.yard.ended[key].record or {})["exit_code"] for key in (waits, same)] == [0, 0]
    assert crew.yard.fetched.count(crew.yard.store(data)) == 1


# --- the cache --------------------------------------------------------------------------------------------------


def test_a_cache_keeps_to_its_limit_and_holds_what_is_needed(crew: Crew) -> None:
    described = SiteSpec(options={"cache_limit": "300K"})
    agent = crew.agent(cpus=4, described=described)
    data = [{"tree": crew.yard.store_folder({"words": secrets.token_bytes(200 << 10)}), "to": "corpora"}]
    reader = ["sh", "-c", 'while [ ! -e go-on ]; do sleep 0.1; done; wc -c < "$RUNYARD_DATA/corpora/words"']
    living = crew.yard.submit(reader, data=data)
    crew.drive(agent, lambda: (crew.directory(living) / "started").exists(), "the start")
    for _ in range(4):
        staged = code(crew, {"large": secrets.token_bytes(150 << 10)})
        key = crew.yard.submit(["sh", "-c", "wc -c < large"], code=staged)
        crew.drive(agent, lambda key=key: key in crew.yard.ended, "an end")
        assert crew.yard.log(key).strip() == str(150 << 10)
    agent._cache_cleanup._due_at = 0.0
    crew.drive(agent, lambda: _cached(crew) <= 300 << 10, "only so much is left")
    crew.drive(agent, lambda: _told(crew) == (_cached(crew), 300 << 10), "the yard knows")
    (crew.directory(living) / "work" / "go-on").touch()
    crew.drive(agent, lambda: living in crew.yard.ended, "the end")
    assert crew.yard.log(living).strip() == str(200 << 10)


def _told(crew: Crew) -> tuple[int | None, int | None]:
    """What the yard was told last of the cache, and of its limit."""
    disk = crew.yard.requests[-1].disk
    assert disk is not None
    return disk.cache, disk.cache_limit


def _cached(crew: Crew) -> int:
    found = {}
    for path in (crew.site / "cache").rglob("*"):
        if path.is_file() and path.parent.name != "pins":
            found[path.stat().st_ino] = path.stat().st_size
    return sum(found.values())


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of 8 MB."""
    with small_disk(tmp_path / "small", "size=8m") as place:
        yield place


@pytest.mark.component("root")
def test_a_full_volume_is_cleared_first_and_told_then(crew: Crew, site: Path, small: Path) -> None:
    (site / "cache").symlink_to(small)
    agent = crew.agent(cpus=4)
    wide = [secrets.token_bytes(5 << 20) for _ in range(3)]
    show = ["sh", "-c", 'wc -c < "$RUNYARD_INPUTS/x"']
    for data in wide[:2]:  # the second has no room before the first is gone
        key = crew.yard.submit(show, inputs=[{"digest": crew.yard.store(data), "to": "x"}])
        crew.drive(agent, lambda key=key: key in crew.yard.ended, "an end")
        assert crew.yard.log(key).strip() == str(5 << 20)
    too_much = crew.yard.submit(["true"], inputs=[{"digest": crew.yard.store(secrets.token_bytes(9 << 20)), "to": "x"}])
    crew.drive(agent, lambda: too_much in crew.yard.ended, "the end")
    ending, text = message(crew, too_much)
    assert ending == "disk" and "no space left" in text and "cache" in text
    assert crew.yard.requests[-1].free.cpus == 0, "no more work for now"
    assert not list((site / "cache" / "parts").iterdir()), "what could not be finished is not in the way"


@pytest.mark.component("root")
def test_copies_of_runs_that_are_over_make_room_for_the_next(crew: Crew, site: Path, small: Path) -> None:
    for name in ("cache", "runs"):
        (small / name).mkdir()
        (site / name).symlink_to(small / name)
    agent, staged = crew.agent(cpus=1), code(crew, {"large": secrets.token_bytes(2 << 20)})
    for _ in range(6):  # each copy has a quarter of the disk
        key = crew.yard.submit(["sh", "-c", "wc -c < large"], code=staged)
        crew.drive(agent, lambda key=key: key in crew.yard.ended, "an end")
        assert crew.yard.log(key).strip() == str(2 << 20), crew.yard.ended[key].record


AGENT = """
import sys, time
from pathlib import Path
from runyard.agent.agent import Agent
from runyard.agent.errands import InlineErrands
from runyard.backends.local import LocalBackend
from runyard.model.resources import Capacity
from tests.integration.agent.fake_yard import FakeYard

site, pace = Path(sys.argv[1]), float(sys.argv[2])
yard = FakeYard()
files = {f"{n:03}/x": bytes([n]) * 200_000 for n in range(60)}
tree = yard.store_folder({**files, "large": bytes(range(256)) * 40_000})
real = yard.get_blob
def slow(digest, offset=0):
    for piece in real(digest, offset):
        yield piece
        print("sent", digest, offset, len(piece), flush=True)
        time.sleep(pace)
yard.get_blob = slow
check = ["sh", "-c", "cat */x large | sha256sum"]
key = yard.submit(check, code={"tree": tree, "files": 61, "size": 1}, data=[{"tree": tree, "to": "d"}])
agent = Agent(yard, LocalBackend(site), site, "local", Capacity(cpus=2, memory=1 << 40), errands=InlineErrands())
while key not in yard.ended:
    agent.wake()
    agent.tick()
    time.sleep(0.01)
print("log", yard.log(key).strip(), flush=True)
"""


def test_an_agent_that_is_killed_while_it_stages_goes_on(site: Path) -> None:
    """At many moments, one after the other; what came whole never comes again."""
    sent: list[list[str]] = []
    for pieces in (1, 5, 9, 14, 20, 15):
        sent.append(_killed_after(site, pieces))
    lines = _agent(site, "0").communicate(timeout=120)[0].splitlines()
    sent.append([line for line in lines if line.startswith("sent")])
    want = subprocess.run(
        [sys.executable, "-c", WANTED], capture_output=True, text=True, check=True, timeout=60
    ).stdout.strip()
    assert lines[-1].split()[1] == want
    small = [line.split()[1] for part in sent for line in part if line.split()[3] == "200000"]
    assert len(set(small)) == 60
    assert len(small) <= 60 + 6, "only what was on its way comes again"
    assert {json.loads(pin.read_text())["agent"] for pin in (site / "cache" / "pins").glob("*.json")} <= {_name(site)}


WANTED = """
import hashlib
whole = hashlib.sha256()
for n in range(60):
    whole.update(bytes([n]) * 200_000)
whole.update(bytes(range(256)) * 40_000)
print(whole.hexdigest())
"""


def _killed_after(site: Path, pieces: int) -> list[str]:
    with _agent(site, "0.001") as process:
        assert process.stdout is not None
        lines = list(itertools.islice(process.stdout, pieces))
        os.kill(process.pid, signal.SIGKILL)
        lines += process.stdout
    return [line for line in lines if line.startswith("sent") and line.endswith("\n")]


def _agent(site: Path, pace: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", AGENT, str(site), pace]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3])


def _name(site: Path) -> str:
    return str(json.loads((site / "agent.json").read_text())["name"])
