"""The agent as a daemon, with a real yard: in the same process, and over HTTP."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from runyard import errors
from runyard.agent.agent import Agent
from runyard.agent.http import HttpLink
from runyard.agent.link import Link
from runyard.backends import capacity
from runyard.backends.local import LocalBackend
from runyard.model import packs
from runyard.model.roles import NewToken, Role
from runyard.model.spec import RunSpec
from runyard.model.tree import Tree, TreeFile
from runyard.server.embedded import DirectLink
from runyard.server.serve import serve
from runyard.settings import Settings
from runyard.testing.backend_contract import is_alive, until
from runyard.yard import Yard
from tests.integration.agent.conftest import WAIT, dismiss_zygote
from tests.integration.server.api import Served
from tests.labs.waiting import free_ports

MakeLink = Callable[[], Link]


class Site:
    """A yard, and an agent that is started, stopped and started again."""

    def __init__(self, yard: Yard, make_link: MakeLink, home: Path) -> None:
        self.yard, self._make_link = yard, make_link
        self.settings = Settings(home=home, cpus=2)
        self.agent: Agent | None = None
        self._stop, self._thread = threading.Event(), threading.Thread()

    def start(self) -> Agent:
        directory = self.settings.site_dir("local")
        total = capacity.of_this_machine(cpus=2)
        agent = self.agent = Agent(self._make_link(), LocalBackend(directory), directory, "local", total)
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=(agent, self._stop))
        self._thread.start()
        return agent

    def stop(self) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(90)
        assert not self._thread.is_alive(), "the agent does not stop"

    def submit(self, command: list[str], **fields: Any) -> int:
        spec = RunSpec.parse({"command": command, **fields})
        return self.yard.submit(self.yard.owner(), [spec]).result()[0].id

    def state(self, run: int) -> str:
        return self.yard.run_states([run])[run]

    def finish(self, run: int) -> dict[str, Any]:
        until(lambda: self.state(run) in ("succeeded", "failed", "cancelled"), f"the end of run {run}")
        return self.yard.get_run(run)

    def log(self, run: int) -> bytes:
        return self.yard.read_log(run, 0, 1 << 20)

    def let_go_on(self, run: int) -> None:
        """For one that waits by `WAIT`."""
        (self.settings.site_dir("local") / "runs" / str(run) / "a1" / "work" / "go-on").touch()

    def _serve(self, agent: Agent, stop: threading.Event) -> None:
        with contextlib.closing(agent):
            agent.run_forever(stop)


@pytest.fixture(params=["direct", "http"])
def site(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    with contextlib.ExitStack() as stack:
        made = Site(*_yard_and_link(request.param, tmp_path, stack), tmp_path)
        yield made
        made.stop()
        dismiss_zygote(made.settings.site_dir("local"))


def _yard_and_link(kind: str, home: Path, stack: contextlib.ExitStack) -> tuple[Yard, MakeLink]:
    if kind == "direct":
        yard = Yard.open(Settings(home=home))
        stack.callback(yard.close)
        yard.sites.ensure("local", "local").result()
        return yard, lambda: DirectLink(yard, yard.owner())
    served = Served(home)
    stack.callback(served.end)
    agents = served.api.new_token("node", Role.AGENT, "local")
    return served.yard, lambda: HttpLink(served.api.url, str(agents.token))


def test_a_run_ends_with_log_and_outputs(site: Site) -> None:
    site.start()
    run = site.submit(["sh", "-c", "echo hello; mkdir $OUTPUT_DIR/d; echo out > $OUTPUT_DIR/d/f; exit 4"])
    ended = site.finish(run)
    assert (ended["state"], ended["reason"], ended["exit_code"]) == ("failed", "error", 4)
    assert site.log(run) == b"hello\n"
    [output] = site.yard.outputs(run)
    assert (output["path"], output["size"]) == ("d/f", 4)
    assert b"".join(site.yard.blobs.chunks(output["digest"])) == b"out\n"


def test_many_short_runs(site: Site) -> None:
    site.start()
    spec = RunSpec.parse({"command": ["true"]})
    runs = [one.id for one in site.yard.submit(site.yard.owner(), [spec] * 60).result()]
    until(lambda: site.yard.counts()["succeeded"] == 60, "all of them")
    for run in runs:
        assert [attempt["number"] for attempt in site.yard.get_run(run)["attempts"]] == [1]


def test_work_that_comes_later_is_noticed(site: Site) -> None:
    agent = site.start()
    first = site.submit(["true"])
    site.finish(first)
    until(lambda: agent.next_due() - agent._context.clock() > 5, "the agent sleeps")
    site.finish(site.submit(["true"]))


def test_a_run_is_cancelled(site: Site, tmp_path: Path) -> None:
    site.start()
    run = site.submit(["sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 600"])
    pid = tmp_path / "pid"
    until(lambda: site.state(run) == "running" and pid.exists() and pid.read_text(), "it runs")
    site.yard.cancel(site.yard.owner(), [run]).result()
    ended = site.finish(run)
    assert (ended["state"], ended["reason"]) == ("cancelled", "user")
    assert not is_alive(int(pid.read_text()))


def test_a_restarted_agent_goes_on(site: Site) -> None:
    site.start()
    running = site.submit(["sh", "-c", f"echo one; {WAIT}; echo two"])
    until(lambda: site.log(running) == b"one\n", "the first line")
    site.stop()
    waiting = site.submit(["echo", "later"])
    site.start()
    site.let_go_on(running)
    for run, log in ((running, b"one\ntwo\n"), (waiting, b"later\n")):
        assert site.finish(run)["state"] == "succeeded"
        assert site.log(run) == log
        assert len(site.yard.get_run(run)["attempts"]) == 1


def test_a_lively_log_arrives_while_the_run_runs(site: Site) -> None:
    site.start()
    run = site.submit(["sh", "-c", "for i in 1 2 3; do echo $i; sleep 0.3; done; exec sleep 600"])
    until(lambda: site.log(run) == b"1\n2\n3\n", "all lines")
    assert site.state(run) in ("starting", "running")
    site.yard.cancel(site.yard.owner(), [run]).result()
    site.finish(run)


def test_a_newer_agent_of_the_same_name_takes_over(site: Site) -> None:
    old = site.start()
    run = site.submit(["sh", "-c", f"{WAIT}; echo done"])
    until(lambda: site.state(run) == "running", "it runs")
    thread = site._thread
    site.start()
    site.let_go_on(run)
    thread.join(90)
    assert old.stale
    assert site.finish(run)["state"] == "succeeded"
    assert site.log(run) == b"done\n"


def test_an_http_agent_survives_its_yard(tmp_path: Path) -> None:
    """The server goes away and comes back at the same address; the run and its log do not care."""
    settings = Settings(home=tmp_path, port=free_ports(1)[0], cpus=2)
    with _served(settings) as yard:
        token = yard.access.create(NewToken(name="node", role=Role.AGENT, site="local")).result()["secret"]
        site = Site(yard, lambda: HttpLink(f"http://127.0.0.1:{settings.port}", token), tmp_path)
        site.start()
        run = site.submit(["sh", "-c", f"echo one; {WAIT}; echo two"])
        until(lambda: site.log(run) == b"one\n", "the first line")
    site.let_go_on(run)
    with _served(settings) as site.yard:
        assert site.finish(run)["state"] == "succeeded"
        assert site.log(run) == b"one\ntwo\n"
        site.stop()
    dismiss_zygote(settings.site_dir("local"))


@contextlib.contextmanager
def _served(settings: Settings) -> Iterator[Yard]:
    yard, stop, listening = Yard.open(settings), threading.Event(), threading.Event()
    yard.sites.ensure("local", "local").result()
    options = {"stop": stop, "on_listening": lambda url: listening.set()}
    thread = threading.Thread(target=serve, args=(yard,), kwargs=options)
    thread.start()
    assert listening.wait(90)
    try:
        yield yard
    finally:
        stop.set()
        thread.join(90)
        yard.close()


def test_inputs_travel_from_the_yard_to_the_run(site: Site) -> None:
    data = b"0123456789" * 300_000  # more than a piece
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    site.yard.blobs.put(digest, [data])
    site.start()
    run = site.submit(["sh", "-c", 'cmp "$RUNYARD_INPUTS/a" "$RUNYARD_INPUTS/b/c" && sha256sum < "$RUNYARD_INPUTS/a"'],
                      inputs=[{"digest": digest, "to": "a"}, {"digest": digest, "to": "b/c"}])  # fmt: skip
    assert site.finish(run)["state"] == "succeeded", site.log(run)
    assert site.log(run).split()[0].decode() == digest.removeprefix("sha256:")


def test_code_and_data_travel_from_the_yard_to_the_run(site: Site) -> None:
    large = secrets.token_bytes(packs.LARGE + 5)
    files = {f"src/{number}.txt": b"%d\n" % number for number in range(200)}
    code = _folder(
        site.yard, {**files, "large": large, "run.sh": b"#!/bin/sh\ncat src/*.txt large | sha256sum\n"}, "run.sh"
    )
    data = [{"tree": _folder(site.yard, {"words": b"1"})["tree"], "to": "corpora"}]
    site.start()
    runs = [site.submit(["sh", "-c", "./run.sh; cat corpora/words"], code=code, data=data) for _ in range(2)]
    whole = b"".join(data for _, data in sorted(files.items())) + large
    for run in runs:
        assert site.finish(run)["state"] == "succeeded", site.log(run)
        assert site.log(run).decode() == f"{hashlib.sha256(whole).hexdigest()}  -\n1"


def test_a_large_file_goes_on_where_it_was(site: Site) -> None:
    data = secrets.token_bytes(packs.LARGE + 5)
    digest = site.yard.blobs.add([data])
    link = site._make_link()
    with contextlib.closing(link):
        assert b"".join(link.get_blob(digest, 1000)) == data[1000:]
        assert b"".join(link.get_blob(digest, len(data))) == b""
        with pytest.raises(errors.NotFound):
            next(iter(link.get_blob(f"sha256:{'0' * 64}")))
        with pytest.raises(errors.NotFound):
            next(iter(link.get_blobs([f"sha256:{'0' * 64}"])))
        assert link.missing_blobs([digest, f"sha256:{'0' * 64}"]) == {f"sha256:{'0' * 64}"}


def _folder(yard: Yard, files: dict[str, bytes], *executable: str) -> dict[str, Any]:
    stored = [TreeFile(path, yard.blobs.add([data]), len(data), path in executable) for path, data in files.items()]
    tree = Tree.build(stored)
    return {"tree": yard.blobs.add([tree.encode()]), "files": len(files), "size": tree.size}
