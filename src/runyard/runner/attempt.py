"""The life of one attempt: start the user's process, watch it, end its whole tree, record how it ended.

The current directory is the attempt's, so that every file here has a short name, whatever the path above it.
"""

import gc
import os
import signal
import time
from typing import Any, Callable, Dict, List, Optional, TypeVar

from . import (
    checkpoints,
    child,
    hanging_calls,
    json_files,
    kernel,
    memory,
    output,
    permit,
    setup,
    spec,
    timers,
    tree,
    usage,
)
from .metrics import watch

STATUS = "status.json"
Answer = TypeVar("Answer")

_FIRST_BEAT_S = 0.1  # a run that is over sooner costs no status but the last
_FIRST_SAMPLE_S = 0.2
_MERGE_S = 0.1
_PRUNE_S = 30.0
_ANSWER_S = 5.0  # for a file system that may hang
_LAST_METRICS_S, _LAST_METRICS_HURRIED_S = 20.0, 5.0  # a client may wait for the end of a run that was stopped
_GOODBYE_S = 0.5  # for what the first process leaves behind, such as a `tee` that still writes
_LEFTOVER_GRACE_S = 2.0
_OWN_TURN_S = 3.0  # until a signal to all processes has reached the runner too; a busy node takes its time
_BEFORE_KILL_S = 25.0  # from a scheduler's SIGTERM to its SIGKILL: thirty seconds, unless its owner chose otherwise
_KILL_AGAIN_S, _KILL_AGAIN_MOST_S = 0.05, 1.0


class RunnerAttempt:
    def __init__(self, wanted: spec.Spec, judge: Optional[memory.Judge]) -> None:
        self._spec = wanted
        self._judge = judge
        self._meter = memory.Meter()
        self._output = output.ProcessOutput(wanted)
        self._sampler = usage.Sampler(wanted.gpus)
        self._ended = usage.Ended()
        self._timers = timers.Timers()
        self._metrics = watch.MetricsCollector(wanted)
        self._permit = permit.Permit(wanted.permit) if wanted.permit is not None else None
        self._child: Optional[child.Child] = None
        self._first_lives = False
        self._started_at, self._begun = time.time(), time.monotonic()
        self._ended_at, self._wall_time = 0.0, 0.0
        self._beats = 0
        self._ending: Optional[str] = None  # the first cause; later ones change nothing
        self._message = ""
        self._stop_reason: Optional[str] = None
        self._exit_code: Optional[int] = None
        self._signal: Optional[int] = None
        self._leftovers = 0
        self._kill_again = _KILL_AGAIN_S
        self._disk_full = False
        self._full: Optional[bytes] = None  # where it could save nothing any more when it failed
        self._saved_before = checkpoints.look(wanted.checkpoint.directory) if wanted.checkpoint is not None else {}

    def run(self) -> None:
        """Returns when no process of the tree is alive."""
        self._read_control()
        self._heed_permit()
        if self._ending is None and self._start():
            self._arm()
            self._watch()
        self._ended_at, self._wall_time = time.time(), time.monotonic() - self._begun
        self._finish_output()
        if self._ending == "exit" and self._exit_code != 0:
            self._full = self._full_place()
        if self._judge is not None:
            self._judge.close()

    def record(self) -> Dict[str, Any]:
        """The contents of the final status.json."""
        record = self._status("ended")
        record.update(
            ended_at=self._ended_at,
            exit_code=self._exit_code,
            signal=self._signal,
            message=self._message,
            stop_reason=self._stop_reason,
            tree_gone=True,
            leftovers=self._leftovers,
            wall_time=round(self._wall_time, 6),
            cpu_time=round(self._ended.cpu_time, 6),
            peak_memory=self._peak_memory(),
            sizes=output.sizes(),
        )
        if self._full is not None:
            record["full_directory"] = self._full.decode("utf-8", "replace")
        if self._spec.checkpoint is not None:
            self._prune()
            record["checkpoint_changed"] = checkpoints.look(self._spec.checkpoint.directory) != self._saved_before
        return record

    @property
    def is_brief(self) -> bool:
        """It ended so soon that only the log's descriptor is left in this process, which `close` closes."""
        return self._child is not None and self._beats == 0 and self._judge is None and self._output.is_plain

    def close(self) -> None:
        self._output.close()

    # Starting and waiting

    def _start(self) -> bool:
        try:
            group = self._judge.cgroup if self._judge is not None else None
            self._child = child.Child(self._spec, self._output.stdout, self._output.stderr, group)
            self._first_lives = True
            return True
        except OSError as error:
            self._end_as("launch", "could not start a process: %s" % error.strerror)
            return False

    def _arm(self) -> None:
        self._timers.set("beat", _FIRST_BEAT_S, self._beat)
        self._timers.set("sample", _FIRST_SAMPLE_S, self._sample)
        if self._judge is not None:
            self._timers.set("memory", _FIRST_BEAT_S, self._see_who_judges)
        self._timers.set("metrics", watch.PAUSE_S, self._read_metrics)
        if self._spec.checkpoint is not None and self._spec.checkpoint.prune:
            self._timers.set("prune", _PRUNE_S, self._prune)
        if not self._output.is_plain:
            self._timers.set("merge", _MERGE_S, self._merge)
        if self._spec.time_limit is not None:
            grace = self._grace_within(self._spec.time_limit)
            self._timers.set("warning", self._spec.time_limit - grace, lambda: self._time_is_up(grace))

    def _grace_within(self, limit: float) -> float:
        checkpoint = self._spec.checkpoint
        return spec.saving_time(checkpoint.grace, limit) if checkpoint else min(self._spec.grace, limit / 10)

    def _grace_before_kill(self) -> float:
        """The time that the scheduler gives us, minus the time to write the record."""
        checkpoint = self._spec.checkpoint
        return max(self._spec.grace, min(checkpoint.grace, _BEFORE_KILL_S)) if checkpoint else self._spec.grace

    @property
    def _warning_signal(self) -> int:
        checkpoint = self._spec.checkpoint
        return checkpoint.signal if checkpoint is not None else self._spec.stop_signal

    def _watch(self) -> None:
        while not self._reap():
            heard = kernel.wait_signal(self._timers.timeout())
            self._heed_permit()
            self._heed(heard)
            self._timers.run_due()
            self._heed(kernel.wait_signal(0, kernel.FROM_OUTSIDE))  # before the end that it may have caused is seen

    def _reap(self) -> bool:
        """True when no child is left. Orphans become our children, so then there is no descendant either."""
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            self._ended.add(used)
            if self._child is not None and pid == self._child.pid:
                self._first_ended(self._child, status)

    # Endings

    def _first_ended(self, first: child.Child, status: int) -> None:
        self._first_lives = False
        failure = first.failure()
        if failure is not None:
            self._end_as("launch", failure)
        elif os.WIFSIGNALED(status):
            self._signal = os.WTERMSIG(status)
        else:
            self._exit_code = os.WEXITSTATUS(status)
        if self._spec.signals is not None and self._ended_by() in kernel.FROM_OUTSIDE:
            self._heed(kernel.wait_signal(_OWN_TURN_S, kernel.FROM_OUTSIDE))
        unready = setup.failure(self._spec.setup, self._exit_code) if self._ending is None else None
        if unready is not None:
            self._end_as("launch", unready)
        self._judge_memory_at_the_end()
        self._timers.cancel("warning")
        self._timers.set("leftovers", 0 if self._ending else _GOODBYE_S, self._end_leftovers)
        self._end_as("exit", "")

    def _ended_by(self) -> Optional[int]:
        """The signal that ended the first process, or its last command: a shell then exits with 128 and its number."""
        if self._signal is not None:
            return self._signal
        return self._exit_code - 128 if self._exit_code is not None else None

    def _end_as(self, ending: str, message: str) -> bool:
        """False if the attempt is already ending for an earlier reason."""
        if self._ending is not None:
            return False
        self._ending, self._message = ending, message
        return True

    def _read_control(self) -> None:
        control = json_files.read("control.json")
        if self._permit is not None:
            self._permit.take(control)
        stop = control.get("stop") if isinstance(control, dict) else None
        if isinstance(stop, dict):
            grace = stop.get("grace")
            self._stop(str(stop.get("reason")), grace if isinstance(grace, (int, float)) else self._spec.grace)

    def _heed(self, heard: Optional[int]) -> None:
        """An external signal. A request in control.json takes precedence: its author may have signalled the scheduler
        too."""
        if heard is None or heard == signal.SIGCHLD:
            return
        from . import scheduler_signals  # here: few runs ever get one, and an interpreter start is paid for each

        self._read_control()
        meaning, warning = scheduler_signals.meaning(self._spec.signals, heard), self._warning_signal
        is_known = scheduler_signals.reached_all(self._spec.signals, heard)
        number = None if is_known and heard == warning else warning
        if meaning == scheduler_signals.END:
            self._begin_end("stopped", "", number, self._grace_before_kill(), "external")
        elif meaning == scheduler_signals.WARNING and self._spec.checkpoint is not None:
            limit, grace = self._spec.time_limit, self._spec.checkpoint.grace
            message = "the scheduler warned it of its end by %s" % signal.Signals(heard).name
            self._begin_end("timeout", message, number, self._grace_within(limit) if limit else grace, "external")
        elif meaning == scheduler_signals.WARNING and not is_known:  # for the run, whatever it makes of it
            self._tell(heard)

    def _heed_permit(self) -> None:
        """Called first after each wait: after a sleep or a SIGSTOP the permit may have expired. Then the run has that
        much less time to end."""
        if self._permit is None:
            return
        if self._permit.left() <= 0:
            self._read_control()
        left = self._permit.left()
        if left > 0:
            self._timers.set("permit", left, self._heed_permit)
            return
        self._begin_end("lost", self._permit.explain(), self._spec.stop_signal, max(0.0, self._spec.grace + left))
        self._permit = None  # ended once and for all

    def _stop(self, reason: str, grace: float) -> None:
        self._begin_end("stopped", "", self._spec.stop_signal, grace, reason)

    def _time_is_up(self, grace: float) -> None:
        limit = self._spec.time_limit or 0
        message = "reached its time limit of %g second%s" % (limit, "" if limit == 1 else "s")
        self._begin_end("timeout", message, self._warning_signal, grace)

    def _begin_end(
        self, ending: str, message: str, number: Optional[int], grace: float, reason: Optional[str] = None
    ) -> None:
        """May be repeated with a shorter grace: the signal is sent once, the earliest kill counts."""
        if self._end_as(ending, message):
            self._stop_reason = reason
            if number is not None:
                self._tell(number)
            self._timers.set("beat", 0, self._beat)  # the status says at once that the end has begun
        self._timers.set_sooner("kill", grace, self._kill)

    def _tell(self, number: int) -> None:
        """To the process group of the user's process, which may be stopped by SIGSTOP.

        A user signal is for the first process alone: its child processes do not handle it, and it would kill them.
        """
        if self._child is not None and self._first_lives:
            alone = number in (signal.SIGUSR1, signal.SIGUSR2)
            tree.send([self._child.pid if alone else -self._child.pid], number)
            tree.send([-self._child.pid], signal.SIGCONT)

    def _end_leftovers(self) -> None:
        left = [process.pid for process in self._processes() if process.alive]
        self._leftovers = len(left)
        tree.send(left, signal.SIGTERM)
        tree.send(left, signal.SIGCONT)
        self._timers.set_sooner("kill", _LEFTOVER_GRACE_S, self._kill)

    def _kill(self) -> None:
        """Repeated until no child is left: a process that cannot be killed, as in a hanging system call, keeps us
        waiting."""
        tree.end_all(lambda: tree.descendants(os.getpid()))
        self._timers.set("kill", self._kill_again, self._kill)
        self._kill_again = min(self._kill_again * 2, _KILL_AGAIN_MOST_S)

    # Periodic duties

    def _beat(self) -> None:
        gc.enable()  # the zygote had it off for the sake of short runs
        self._beats += 1
        self._read_control()
        status = self._status("running")
        self._try(lambda: json_files.write(STATUS, status), None)
        self._disk_full = self._disk_full or "disk_full" in status
        self._timers.set("beat", self._spec.beat, self._beat)

    def _sample(self) -> None:
        processes = self._processes()
        self._meter.see([process for process in processes if process.alive])
        self._try(lambda: self._sampler.write(processes, self._ended.cpu_time), None)
        self._timers.set("sample", self._spec.sample, self._sample)

    def _merge(self) -> None:
        more = self._try(self._output.merge, False)
        self._timers.set("merge", 0 if more else _MERGE_S, self._merge)

    def _read_metrics(self) -> None:
        self._timers.set("metrics", self._try(self._metrics.look, watch.PAUSE_S), self._read_metrics)

    def _prune(self) -> None:
        rule = self._spec.checkpoint
        if rule is not None and rule.prune:
            checkpoints.prune(rule.directory, rule.prune, rule.keep)
        self._timers.set("prune", _PRUNE_S, self._prune)

    def _finish_output(self) -> None:
        """The record names the lengths of the files: after this they do not grow."""
        most = _LAST_METRICS_S if self._ending == "exit" else _LAST_METRICS_HURRIED_S
        self._try(self._output.finish, None)
        self._try(lambda: self._metrics.finish(self._exit_code == 0, most), None)

    def _see_who_judges(self) -> None:
        """The user's process enters its control group by itself; if it may not, the memory is measured."""
        if self._child is not None and not self._child.is_launched:
            self._timers.set("memory", _FIRST_BEAT_S, self._see_who_judges)
        elif self._judge is not None:
            self._judge = self._judge.or_substitute()
            self._judge_memory()

    def _judge_memory(self) -> None:
        if self._judge is None:
            return
        exceeded = self._judge.verdict(self._processes())
        if exceeded is not None and self._end_as("oom", exceeded):
            self._kill()
        self._timers.set("memory", self._judge.delay, self._judge_memory)

    def _judge_memory_at_the_end(self) -> None:
        """The kernel may have killed the first process, or made it fail, since we last looked."""
        exceeded = self._judge.last_word() if self._judge is not None else None
        if exceeded is not None:
            self._end_as("oom", exceeded)

    # Facts

    def _processes(self) -> List[tree.Process]:
        return tree.below(os.getpid())

    def _peak_memory(self) -> int:
        judged = self._judge.peak if self._judge is not None else 0
        return max(self._meter.peak, judged, self._ended.largest)

    def _status(self, state: str) -> Dict[str, Any]:
        status = {
            "state": state,
            "beat": self._beats + (state == "ended"),
            "pid": os.getpid(),
            "node": kernel.node_name(),
            "child": self._child.pid if self._child is not None else None,
            "started_at": self._started_at,
            "ending": self._ending,
            "memory_judge": self._judge.name if self._judge is not None else None,
        }
        if self._disk_full:
            status["disk_full"] = True
        return status

    def _full_place(self) -> Optional[bytes]:
        places = [self._spec.env.get(name) for name in (b"CHECKPOINT_DIR", b"OUTPUT_DIR")]
        return hanging_calls.within(_ANSWER_S, lambda: checkpoints.full(place for place in places if place), None)

    def _try(self, action: Callable[[], Answer], otherwise: Answer) -> Answer:
        """A failed write must not end the run."""
        try:
            return action()
        except OSError as error:
            self._disk_full = self._disk_full or error.errno in json_files.FULL
            return otherwise
