"""An agent with real runners and a yard in memory: the life of attempts, tick by tick."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from runyard import errors
from runyard.backends.local import LocalBackend
from runyard.hosts.local import LocalHost
from runyard.model.resources import Gpu
from runyard.model.states import AttemptState
from runyard.model.wire import AttemptKey, SyncRequest
from runyard.runner import json_files
from runyard.testing.backend_contract import is_alive
from tests.integration.agent.conftest import WAIT, Crew
from tests.integration.agent.fake_yard import FakeYard


def test_a_run_from_claim_to_settled_end(crew: Crew) -> None:
    agent = crew.agent()
    key = crew.yard.submit(["sh", "-c", "echo hello; echo result > $OUTPUT_DIR/result.txt; exit 3"])
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    report = crew.yard.ended[key]
    assert report.record is not None
    assert (report.record["ending"], report.record["exit_code"]) == ("exit", 3)
    assert (report.node, report.granted) == (os.uname().nodename, {"cpus": 1, "memory": None, "gpus": []})
    assert report.started_at is not None
    assert crew.yard.log(key) == "hello\n"
    [output] = report.outputs
    assert (output["path"], output["size"], crew.yard.blobs[output["digest"]]) == ("result.txt", 7, b"result\n")


def test_a_short_run_is_reported_once_as_ended(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runyard.agent.sync.LINGER_S", 60.0)  # on a busy machine no run is short
    agent = crew.agent()
    key = crew.yard.submit(["true"])
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert [report.state for report in crew.yard.reports] == [AttemptState.ENDED]


def test_a_longer_run_is_reported_as_running_first(crew: Crew) -> None:
    agent = crew.agent()
    key = crew.yard.submit(["sh", "-c", WAIT])
    crew.drive(agent, lambda: crew.yard.reports, "a report")
    crew.let_go_on(key)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert [report.state for report in crew.yard.reports] == [AttemptState.RUNNING, AttemptState.ENDED]
    assert crew.yard.reports[0].started_at == crew.yard.ended[key].started_at


def test_runs_never_exceed_the_slots(crew: Crew, tmp_path: Path) -> None:
    agent = crew.agent(cpus=2)
    script = f"echo + >> {tmp_path}/marks; sleep 0.2; echo - >> {tmp_path}/marks"
    keys = [crew.yard.submit(["sh", "-c", script]) for _ in range(12)]
    crew.drive(agent, lambda: all(key in crew.yard.ended for key in keys), "all ends")
    running = most = 0
    for mark in (tmp_path / "marks").read_text().split():
        running += 1 if mark == "+" else -1
        most = max(most, running)
    assert most == 2


def test_a_big_run_is_not_overtaken_by_small_ones_behind_it(crew: Crew, tmp_path: Path) -> None:
    agent = crew.agent(cpus=2)
    crew.drive_a_short_run(agent)
    names = [("small", 1), ("big", 2), ("late", 1), ("later", 1)]
    keys = [
        crew.yard.submit(["sh", "-c", f"echo {name} >> {tmp_path}/order; sleep 0.1"], resources={"cpus": cpus})
        for name, cpus in names
    ]
    crew.drive(agent, lambda: all(key in crew.yard.ended for key in keys), "all ends")
    assert (tmp_path / "order").read_text().split()[:2] == ["small", "big"]


def test_the_next_run_starts_in_the_tick_that_sees_the_end(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runyard.agent.run.pace.SHORT_S", 600.0)  # on a busy machine no run is short
    agent = crew.agent(cpus=1)
    crew.drive_a_short_run(agent)
    crew.yard.submit(["true"])  # while it ends, what comes behind it is taken ahead
    keys = [crew.yard.submit(["sh", "-c", WAIT]) for _ in range(2)]
    crew.drive(agent, lambda: crew.directory(keys[0]).joinpath("started").exists(), "the first start")
    crew.drive(agent, lambda: crew.directory(keys[1]).exists(), "the second is staged ahead")
    assert not crew.directory(keys[1]).joinpath("spec.json").exists()
    crew.yard.reachable = False
    crew.let_go_on(keys[0])
    crew.drive(agent, lambda: crew.directory(keys[1]).joinpath("status.json").exists(), "no yard is needed for it")
    crew.let_go_on(keys[1])


def test_gpus_are_pinned_one_by_one(crew: Crew) -> None:
    gpus = (Gpu(uuid="GPU-a", type="A100", memory=40), Gpu(uuid="GPU-b", type="A100", memory=40))
    agent = crew.agent(cpus=4, gpus=gpus)
    show = ["sh", "-c", 'echo "<$CUDA_VISIBLE_DEVICES>"; sleep 0.2']
    keys = [crew.yard.submit(show, resources={"gpus": 1}) for _ in range(3)]
    none = crew.yard.submit(show)
    crew.drive(agent, lambda: all(key in crew.yard.ended for key in [*keys, none]), "all ends")
    shown = [crew.yard.log(key) for key in keys]
    assert set(shown[:2]) == {"<GPU-a>\n", "<GPU-b>\n"}
    assert shown[2] in shown[:2]
    assert crew.yard.log(none) == "<>\n"


def test_the_environment_arrives_unchanged(crew: Crew) -> None:
    agent = crew.agent()
    value = "spaces  and 'quotes' \"double\"\nnewline ü € \udcff"
    program = "import os, sys; sys.stdout.buffer.write(os.fsencode(os.environ['VALUE'] + sys.argv[1]))"
    key = crew.yard.submit([sys.executable, "-c", program, value], env={"VALUE": value})
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.files[key, "log"] == os.fsencode(value * 2)


def test_parameters_and_seed_arrive(crew: Crew) -> None:
    agent = crew.agent()
    key = crew.yard.submit(["sh", "-c", "cat $RUNYARD_PARAMS; echo; echo $RUNYARD_SEED"], params={"lr": 0.5}, seed=7)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.log(key) == '{"lr": 0.5}\n7\n'


def test_stdout_and_stderr_come_apart_when_asked(crew: Crew) -> None:
    agent = crew.agent()
    key = crew.yard.submit(["sh", "-c", "echo out; echo err >&2"], split_output=True)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert crew.yard.files[key, "stdout"] == b"out\n"
    assert crew.yard.files[key, "stderr"] == b"err\n"
    assert sorted(crew.yard.log(key).splitlines()) == ["err", "out"]


def test_an_output_directory_that_the_user_names_is_followed(crew: Crew, tmp_path: Path) -> None:
    agent = crew.agent()
    (tmp_path / "named").mkdir()
    (tmp_path / "named" / "old.txt").write_text("from an earlier run")
    script = "echo new > $OUTPUT_DIR/new.txt; mkdir $OUTPUT_DIR/sub; echo deep > $OUTPUT_DIR/sub/deep.txt"
    key = crew.yard.submit(["sh", "-c", script], env={"OUTPUT_DIR": str(tmp_path / "named")})
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert [output["path"] for output in crew.yard.ended[key].outputs] == ["new.txt", "sub/deep.txt"]


def test_checkpoints_survive_attempts(crew: Crew) -> None:
    agent = crew.agent()
    script = "echo resume=$RUNYARD_RESUME; echo x > $CHECKPOINT_DIR/step"
    first = crew.yard.submit(["sh", "-c", script])
    crew.drive(agent, lambda: first in crew.yard.ended, "the first end")
    second = crew.yard.submit(["sh", "-c", script], key=AttemptKey(run=first.run, attempt=2))
    crew.drive(agent, lambda: second in crew.yard.ended, "the second end")
    assert (crew.yard.log(first), crew.yard.log(second)) == (
        "resume=\n", f"resume={crew.site}/runs/{first.run}/checkpoints\n",
    )  # fmt: skip


def test_a_gigantic_line_is_relayed_completely(crew: Crew) -> None:
    agent = crew.agent()
    size = 40 << 20
    key = crew.yard.submit([sys.executable, "-c", f"import sys; sys.stdout.write('x' * {size})"])
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert len(crew.yard.files[key, "log"]) == size


def test_other_peoples_files_stay_private(crew: Crew) -> None:
    agent = crew.agent()
    key = crew.yard.submit(["true"], keep="all")
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    directory = crew.directory(key)
    assert [path.stat().st_mode & 0o777 for path in (directory, directory.parent)] == [0o700, 0o700]
    assert (directory / "spec.json").stat().st_mode & 0o777 == 0o600


# --- what goes wrong ------------------------------------------------------------------------------------------------


def test_a_command_that_cannot_start(crew: Crew) -> None:
    agent = crew.agent()
    key = crew.yard.submit(["no-such-program"])
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    record = crew.yard.ended[key].record
    assert record is not None
    assert record["ending"] == "launch"
    assert "no-such-program" in record["message"]


def test_a_killed_runner_ends_the_run_as_lost(crew: Crew) -> None:
    agent = crew.agent()
    key = crew.yard.submit(["sh", "-c", "echo before; exec sleep 600"])
    crew.drive(agent, lambda: crew.yard.log(key) == "before\n", "the log")
    child = json_files.read(f"{crew.directory(key)}/started/runner.json")["pid"]
    os.kill(child, 9)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    report = crew.yard.ended[key]
    assert report.record is None
    assert "runner died" in str(report.gone)
    later = crew.yard.submit(["true"], resources={"cpus": 2})
    crew.drive(agent, lambda: later in crew.yard.ended, "the slots are free again")


class FullDisk(LocalHost):
    """A disk on which nothing can be written any more."""

    full = True

    def put(self, root: str, files: Mapping[str, bytes], directories: Iterable[str] = ()) -> None:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), root)
        super().put(root, files, directories)


def test_a_full_disk_is_told_and_no_more_work_is_taken(crew: Crew) -> None:
    backend = LocalBackend(crew.site)
    backend.host = FullDisk()
    agent = crew.agent(backend=backend)
    keys = [crew.yard.submit(["true"], resources={"cpus": 2}) for _ in range(3)]
    crew.drive(agent, lambda: keys[0] in crew.yard.ended, "the end")
    record = crew.yard.ended[keys[0]].record
    assert record is not None
    assert (record["ending"], record["exit_code"]) == ("disk", None)
    assert "no space" in record["message"]
    for _ in range(5):
        agent.wake()
        agent.tick()
    assert keys[1] not in crew.yard.owned
    assert crew.yard.requests[-1].free.cpus == 0


class NoRoom(FakeYard):
    """A yard whose disk is full."""

    full = True

    def put_blob(self, digest: str, path: Path, movable: bool) -> None:
        if self.full:
            raise errors.DiskFull
        super().put_blob(digest, path, movable)


def test_outputs_wait_for_a_yard_that_has_no_room_and_that_is_told(crew: Crew) -> None:
    crew.yard = yard = NoRoom()
    agent = crew.agent()
    key = yard.submit(["sh", "-c", "echo x > $OUTPUT_DIR/x; exit 3"])
    crew.drive(agent, lambda: any(_tells_of_full_disk(request, key) for request in yard.requests), "that it is told")
    assert key not in yard.ended
    yard.full = False
    crew.drive(agent, lambda: key in yard.ended, "the end")
    assert [output["path"] for output in yard.ended[key].outputs] == ["x"]


def _tells_of_full_disk(request: SyncRequest, key: AttemptKey) -> bool:
    return any(report.key == key and "the disk is full" in (report.detail or "") for report in request.reports)


def test_a_directory_that_cannot_be_built_is_told(crew: Crew) -> None:
    agent = crew.agent()
    (crew.site / "runs").write_text("a file where a directory should be")
    key = crew.yard.submit(["true"])
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    record = crew.yard.ended[key].record
    assert record is not None
    assert record["ending"] == "staging"


def test_a_run_that_the_site_became_too_small_for_is_told(crew: Crew) -> None:
    crew.agent(cpus=8)
    key = crew.yard.submit(["true"], resources={"cpus": 8})
    crew.yard.owned[key] = crew.yard.queue.pop()
    agent = crew.agent(cpus=2)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    record = crew.yard.ended[key].record
    assert record is not None
    assert "8 cpus" in record["message"] and "2 cpus" in record["message"]


def test_a_spec_of_a_newer_yard_is_told_and_stops_nobody(crew: Crew) -> None:
    agent = crew.agent()
    strange, plain = crew.yard.submit(["true"]), crew.yard.submit(["true"])
    crew.yard.queue[0].spec["hologram"] = True
    crew.drive(agent, lambda: {strange, plain} <= set(crew.yard.ended), "both ends")
    assert (crew.yard.ended[strange].record or {})["ending"] == "staging"
    assert (crew.yard.ended[plain].record or {})["exit_code"] == 0


# --- stops ----------------------------------------------------------------------------------------------------------


def test_a_run_is_stopped_with_its_signal_first(crew: Crew) -> None:
    agent = crew.agent()
    script = "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.05; done"
    key = crew.yard.submit(["sh", "-c", script])
    crew.drive(agent, lambda: crew.yard.log(key) == "ready\n", "ready")
    crew.yard.cancel(key)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    record = crew.yard.ended[key].record
    assert record is not None
    assert (record["ending"], record["stop_reason"]) == ("stopped", "user")
    assert crew.yard.log(key).endswith("bye\n")


def test_a_run_that_waits_for_slots_is_stopped_before_it_starts(
    crew: Crew, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("runyard.agent.run.pace.SHORT_S", 600.0)  # on a busy machine no run is short
    agent = crew.agent(cpus=1)
    crew.drive_a_short_run(agent)
    crew.yard.submit(["true"])  # while it ends, what comes behind it is taken ahead
    running = crew.yard.submit(["sleep", "600"])
    waiting = crew.yard.submit(["touch", str(tmp_path / "began")])
    crew.drive(agent, lambda: waiting in crew.yard.owned, "both claimed")
    crew.yard.cancel(waiting)
    crew.drive(agent, lambda: waiting in crew.yard.ended, "the end of the waiting one")
    assert (crew.yard.ended[waiting].record or {})["ending"] == "stopped"
    crew.yard.cancel(running)
    crew.drive(agent, lambda: running in crew.yard.ended, "the end of the running one")
    assert not (tmp_path / "began").exists()


def test_a_tree_that_ignores_the_signal_is_gone_when_the_end_is_reported(crew: Crew, tmp_path: Path) -> None:
    agent, pids = crew.agent(), tmp_path / "pids"
    inner = f"trap '' TERM; echo $$ >> {pids}; while :; do sleep 0.1; done"
    key = crew.yard.submit(["sh", "-c", f'setsid sh -c "{inner}" & {inner}'], stop={"grace": 1})
    crew.drive(agent, lambda: pids.exists() and len(pids.read_text().split()) == 2, "both processes")
    crew.yard.cancel(key)
    crew.drive(agent, lambda: key in crew.yard.ended, "the end")
    assert (crew.yard.ended[key].record or {})["tree_gone"] is True
    assert not [pid for pid in map(int, pids.read_text().split()) if is_alive(pid)]


def test_an_attempt_that_the_yard_gave_up_is_ended_without_a_report(crew: Crew) -> None:
    agent = crew.agent()
    key = crew.yard.submit(["sleep", "600"])
    crew.drive(agent, lambda: key in crew.yard.owned and crew.runner(key), "it runs")
    pid = crew.runner(key)["pid"]
    crew.yard.give_up(key)
    crew.yard.cancel(key, "superseded")
    crew.drive(agent, lambda: not is_alive(pid), "the runner is gone")
    crew.drive(agent, lambda: crew.yard.requests[-1].free.cpus == 2, "its slots are free")
    assert key not in crew.yard.ended


def test_an_attempt_whose_bytes_are_refused_asks_what_became_of_it(crew: Crew) -> None:
    """The yard gave it up while the agent was silent; no stop order was ever sent."""
    agent = crew.agent()
    key = crew.yard.submit(["sh", "-c", "while :; do echo x; sleep 0.05; done"])
    crew.drive(agent, lambda: crew.yard.log(key) and crew.yard.reports, "it runs")
    pid = crew.runner(key)["pid"]
    crew.yard.give_up(key)
    crew.drive(agent, lambda: not is_alive(pid), "the runner is gone")
    assert key not in crew.yard.ended
