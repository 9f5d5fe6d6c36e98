"""A dialect on a host: the scheduler's commands, with our own time-outs.

Its clients block for 9 to 49 seconds when a daemon is down, so every command has a time-out here; it is enforced on the
far side too, where a lost connection would leave the command running.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from runyard.backends.batch.dialect import (
    ClusterFacts,
    Dialect,
    Native,
    Order,
    SubmitAnswer,
    SubmitReply,
    Unanswered,
    first_line,
)
from runyard.backends.batch.options import BatchSettings
from runyard.hosts.base import Host, Result

KILL_AFTER_S = 2
TIMED_OUT, NOT_STARTED = 124, (126, 127)  # timeout(1)
TRANSFER_S = 10.0  # for the way to the host and back
ACCOUNTS_PATIENCE = 3  # times the usual time-out: an accounting file may be large


class Scheduler:
    def __init__(self, dialect: Dialect, host: Host, settings: BatchSettings) -> None:
        self.dialect, self._host, self._settings = dialect, host, settings
        self._user = ""

    def submit(self, order: Order) -> SubmitAnswer:
        """Raises InvalidInput for requests that this scheduler does not support."""
        command = self.dialect.submit_command(order)
        result = self.run(command, self._settings.submit_timeout, self.dialect.submit_sees)
        return self._without(command[0], result) or self.dialect.parse_submit(result)

    def _without(self, program: str, result: Result) -> SubmitAnswer | None:
        """If the program could not be started, nothing is in doubt: the jobs wait until that is fixed."""
        if result.code not in NOT_STARTED:
            return None
        fix = "name its directory with: runyard site edit --option bin=DIRECTORY"
        return SubmitAnswer(
            reply=SubmitReply.LIMITED, text=f"there is no program {program} where the site's commands run; {fix}"
        )

    def would_take(self, order: Order) -> bool:
        """Whether the request leaves a node on which it could ever run. Without an answer: no."""
        return self.run(self.dialect.trial_command(order)).ok

    def queue(self) -> list[Native]:
        """All jobs of the user. Raises Unanswered."""
        return self.dialect.parse_queue(self.run(self.dialect.queue_command(self.user())))

    def accounts(self, names: Iterable[str]) -> list[Native]:
        """Ended native jobs with these names; none without accounting. Raises Unanswered."""
        wanted = set(names)
        if not wanted or not self._settings.accounting:
            return []
        command = self.dialect.accounting_command(self.user(), wanted)
        found = self.dialect.parse_accounting(self.run(command, self._settings.command_timeout * ACCOUNTS_PATIENCE))
        return [native for native in found or () if native.name in wanted]

    def keeps_accounts(self) -> bool:
        """Raises Unanswered."""
        result = self.run(self.dialect.accounting_command(self.user(), ["runyard-site-test"]))
        return self._settings.accounting and self.dialect.parse_accounting(result) is not None

    def cancel(self, natives: Sequence[Native]) -> bool:
        """Whether the scheduler accepted it. Jobs that had already ended are no failure."""
        return self.dialect.parse_cancel(self.run(self.dialect.cancel_command(natives)))

    def explain(self, natives: Sequence[Native]) -> dict[str, str]:
        return self.dialect.parse_explain(self.run(self.dialect.explain_command(natives))) if natives else {}

    def facts(self) -> ClusterFacts | None:
        """As much as is answered; None if the first query fails."""
        try:
            first, *others = self.dialect.fact_commands(self.user())
        except Unanswered:
            return None
        told = self.run(first)
        return self.dialect.parse_facts([told, *map(self.run, others)]) if told.ok else None

    def user(self) -> str:
        """Our account on the host. Raises Unanswered."""
        if not self._user:
            result = self._host.run(["id", "-un"], timeout=self._settings.command_timeout)
            if not result.ok:
                raise Unanswered(first_line(result.stderr) or "the host does not answer")
            self._user = result.stdout.decode().strip()
        return self._user

    def run(self, command: Sequence[str], patience: float | None = None, sees: str = "*") -> Result:
        """`sees` is a pattern of sh for the names of variables."""
        limit = patience or self._settings.command_timeout
        words = [*([] if sees == "*" else _seeing(sees)), *self._wrapped(command, limit)]
        result = self._host.run(words, timeout=limit + KILL_AFTER_S + TRANSFER_S)
        if result.code == TIMED_OUT:
            said = f"{command[0]}: no answer within {limit:g} seconds".encode()
            return dataclasses.replace(result, code=None, stderr=said)
        return result

    def _wrapped(self, command: Sequence[str], limit: float) -> list[str]:
        hidden = [word for name in self.dialect.hidden_variables for word in ("-u", name)]
        timed = ["timeout", "-k", str(KILL_AFTER_S), f"{limit:g}"]
        program = f"{self._settings.bin}/{command[0]}" if self._settings.bin else command[0]
        variables = ["LC_ALL=C", *self.dialect.variables, *self._settings.client_env]
        return ["env", *hidden, *variables, *timed, program, *command[1:]]


def _seeing(pattern: str) -> list[str]:
    """Words before a command that restrict its environment to those variables, on any machine."""
    names = r"env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'"
    drop = f'for name in $({names}); do case $name in {pattern}) ;; *) unset "$name" 2>/dev/null;; esac; done'
    return ["sh", "-c", f'{drop}; exec "$@"', "sh"]
