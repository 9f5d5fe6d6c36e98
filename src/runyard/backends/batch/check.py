"""`runyard site test` for a batch cluster: what works and what does not, from the client programs to a compute node."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from runyard import errors
from runyard.backends.base import Check
from runyard.backends.batch import options, script
from runyard.backends.batch.dialect import (
    ClusterFacts,
    Native,
    Order,
    Stage,
    SubmitReply,
    Unanswered,
    first_line,
    one_line,
)
from runyard.backends.batch.files import Files
from runyard.backends.batch.options import BatchSettings
from runyard.backends.batch.scheduler import Scheduler
from runyard.hosts.base import Host
from runyard.model.resources import Resources

PROBE_S = 60.0
SHARED = "choose a directory that all nodes share with --dir"
CONFIGURED = "see whether its client programs are configured here"
RELAY = "relay: "  # begins the lines of a probe's answer that come from the agent's script
OLDEST_PYTHON = (3, 6)


def examine(
    scheduler: Scheduler, files: Files, host: Host, directory: str, settings: BatchSettings, *, probe: bool
) -> list[Check]:
    """In order; checks that depend on a failed one are skipped."""
    bench = _Bench(scheduler=scheduler, files=files, host=host, directory=directory, settings=settings)
    needed: list[Callable[[], Check]] = [bench.commands, bench.queue, bench.shared_directory, bench.interpreter]
    found = []
    for step in needed:
        found.append(step())
        if found[-1].ok is False:
            return found
    found += [bench.accounting(), *bench.limits()]
    return [*found, *bench.probe()] if probe else found


@dataclass(frozen=True, kw_only=True)
class _Bench:
    scheduler: Scheduler
    files: Files
    host: Host
    directory: str
    settings: BatchSettings

    def commands(self) -> Check:
        dialect = self.scheduler.dialect
        tried = {name: self.scheduler.run([name, "--help"]) for name in dialect.commands}
        missing = [name for name, result in tried.items() if result.code == 127]
        if all(result.code is None for result in tried.values()):  # the way there is at fault, and says how
            return Check(name="commands", ok=False, text=first_line(next(iter(tried.values())).stderr))
        if missing:
            fix = "run the agent where they are, or name their directory with --option bin=DIRECTORY"
            return Check(name="commands", ok=False, text=f"there is no {', no '.join(missing)} here", fix=fix)
        return self._version()

    def _version(self) -> Check:
        """Client programs without their configuration do not even print their version: only an error, and nothing on
        standard output."""
        command = self.scheduler.dialect.version_command()
        said = self.scheduler.run(command)
        if said.ok or first_line(said.stdout):
            return Check(name="commands", ok=True, text=first_line(said.stdout + b"\n" + said.stderr))
        why = first_line(said.stderr) or f"it ended with {said.code}"
        return Check(name="commands", ok=False, text=f"{command[0]} does not work: {why}", fix=CONFIGURED)

    def queue(self) -> Check:
        title = self.scheduler.dialect.title
        try:
            jobs = [native for native in self.scheduler.queue() if native.ending is None]
        except Unanswered as error:
            text = f"{title} does not answer: {error}"
            return Check(name="scheduler", ok=False, text=text, fix=f"{CONFIGURED}, and whether the cluster is up")
        return Check(name="scheduler", ok=True, text=f"{title} answers; {self.scheduler.user()} has {len(jobs)} jobs")

    def shared_directory(self) -> Check:
        token = secrets.token_hex(8).encode()
        try:
            self.host.put(self.directory, {"site-test": token})
            same = self.host.fetch(f"{self.directory}/site-test") == token
        except OSError as error:
            text = f"{self.directory} cannot be written: {(error.strerror or str(error)).lower()}"
            return Check(name="directory", ok=False, text=text, fix="choose another with --dir")
        text = f"{self.directory} is writable" if same else f"{self.directory} does not keep what is written to it"
        return Check(name="directory", ok=same, text=text)

    def interpreter(self) -> Check:
        python = self.settings.python
        told = "import sys; print('%d.%d.%d' % sys.version_info[:3])"
        result = self.host.run([python, "-I", "-S", "-c", told], timeout=self.settings.command_timeout)
        return _python_check("interpreter", python, result.stdout.decode().strip() or first_line(result.stderr))

    def accounting(self) -> Check:
        try:
            kept = self.scheduler.keeps_accounts()
        except Unanswered as error:
            fix = "if this cluster has none: --option accounting=no"
            return Check(name="accounting", ok=None, text=f"the accounts do not answer: {error}", fix=fix)
        if kept:
            return Check(name="accounting", ok=True, text="accounts are kept")
        text = "no accounts are kept: how a run ended is known only while the scheduler remembers it"
        return Check(name="accounting", ok=None, text=text)

    def limits(self) -> Iterator[Check]:
        facts = self.scheduler.facts()
        if facts is None:
            yield Check(name="limits", ok=None, text="the cluster's configuration cannot be read; defaults are assumed")
            return
        yield Check(name="limits", ok=True, text=_limits_text(facts))
        proposal = self.scheduler.dialect.propose(facts)
        if proposal:
            yield Check(name="memory", ok=None, text=proposal)

    def probe(self) -> list[Check]:
        """One small job through the queue: it sees the directory, has an interpreter, and can relay if asked to."""
        name = f"ry-probe-{secrets.token_hex(4)}"
        place = self.files.batch_directory(name)
        token = secrets.token_hex(8)
        program = script.render(
            script.template("probe.sh"), batch=name, directory=place, runner="", python=self.settings.python
        )
        try:
            self.host.put(place, {"job.sh": program.encode(), "token": token.encode()})
            answer = self.scheduler.submit(self._probe_order(name, place))
        except (errors.InvalidInput, OSError) as error:
            return [Check(name="probe", ok=False, text=f"no probe could be submitted: {error}")]
        if answer.reply is not SubmitReply.ACCEPTED:
            text = f"the probe was not accepted: {answer.text}"
            fix = "most often an account, a partition or a queue is missing"
            return [Check(name="probe", ok=False, text=text, fix=fix)]
        return self._wait_for(name, f"{place}/result", token)

    def _probe_order(self, name: str, place: str) -> Order:
        asked = Resources(time=60)
        native = options.combined(self.settings, {}, asked, self.scheduler.dialect)
        return Order(name=name, directory=place, tasks=(1,), arguments=(), resources=asked, options=native)

    def _wait_for(self, name: str, result: str, token: str) -> list[Check]:
        deadline = time.monotonic() + PROBE_S
        while time.monotonic() < deadline:
            is_dead = bool(self._dead(name))  # asked first: what it wrote is then there
            try:
                said = self.host.fetch(result).decode(errors="replace").splitlines()
            except OSError:
                if is_dead:
                    break
                time.sleep(1.0)
                continue
            told = [line.removeprefix(RELAY) for line in said if line.startswith(RELAY)]
            seen = [line for line in said if not line.startswith(RELAY)]
            return [_probe_check(seen, token, self.settings.python), *_relay_checks(seen[0], told)]
        return [self._give_up(name)]

    def _give_up(self, name: str) -> Check:
        try:
            natives = [native for native in self.scheduler.queue() if native.name == name]
        except Unanswered as error:
            return Check(name="probe", ok=None, text=f"the probe's fate is unknown: {error}")
        dead = self._dead(name)
        reasons = self.scheduler.explain([native for native in dead if native.stage is Stage.STUCK])
        self.scheduler.cancel(natives)
        if dead:
            text = f"the probe came to nothing: {'; '.join([_states(dead), *reasons.values()])}"
            return Check(name="probe", ok=False, text=text, fix=f"most often the nodes do not see it: {SHARED}")
        return Check(name="probe", ok=None, text=f"no compute node ran the probe within a minute: {_states(natives)}")

    def _dead(self, name: str) -> list[Native]:
        """The probe, if the scheduler has given it up."""
        try:
            natives = [native for native in self.scheduler.queue() if native.name == name]
        except Unanswered:
            return []
        return [native for native in natives if native.is_over or native.stage is Stage.STUCK]


def _states(natives: list[Native]) -> str:
    told = [f"{native.word} ({native.why})" if native.why else native.word for native in natives]
    return ", ".join(told) or "it is not in the queue"


def _probe_check(said: list[str], token: str, python: str) -> Check:
    node, *lines = said
    if token not in lines:
        text = f"the compute node {node} does not see the site's directory: {lines[0] if lines else 'it is empty'}"
        return Check(name="probe", ok=False, text=text, fix=SHARED)
    return _python_check("probe", f"{python} on {node}", lines[-1])


def _relay_checks(node: str, told: list[str]) -> Iterator[Check]:
    """The output of the agent's own script on a compute node, with relay=node."""
    if told and told[0].startswith("runyard "):
        yield Check(name="relay", ok=True, text=f"{node}: {told[0]}")
    elif told:
        fix = "install runyard and keep its home where the nodes see them, or leave relay=node out"
        yield Check(name="relay", ok=False, text=f"{node} cannot report the ends of runs: {told[0]}", fix=fix)


def _python_check(name: str, python: str, said: str) -> Check:
    numbers = re.fullmatch(r"(\d+)\.(\d+)\.\d+", said)
    fix = "name an interpreter with --python"
    if numbers is None:
        return Check(name=name, ok=False, text=f"{python} does not start: {one_line(said.encode())}", fix=fix)
    if (int(numbers[1]), int(numbers[2])) < OLDEST_PYTHON:
        return Check(name=name, ok=False, text=f"{python} is version {said}, and 3.6 is needed", fix=fix)
    return Check(name=name, ok=True, text=f"{python} is version {said}")


def _limits_text(facts: ClusterFacts) -> str:
    parts = [f"arrays of up to {facts.array_size} tasks"]
    if facts.task_limit is not None:
        parts.append(f"{facts.task_limit} tasks a user")
    if facts.job_limit is not None:
        parts.append(f"{facts.job_limit} jobs a user")
    return ", ".join(parts)
