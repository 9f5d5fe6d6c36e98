"""Exit codes of `runyard wait` and `submit --follow`.

A command's own exit code is passed on unchanged. Other endings have their own codes.
"""

from __future__ import annotations

from runyard.model.states import Reason, RunState

CANCELLED = 200
TIMEOUT = 201
OOM = 202
LOST = 203
OTHER_FAILURE = 204

_BY_REASON = {Reason.TIMEOUT: TIMEOUT, Reason.OOM: OOM, Reason.LOST: LOST, Reason.NODE_LOST: LOST}


def wait_code(state: str, reason: str | None, exit_code: int | None) -> int:
    """The exit code for a finished run; `exit_code` is the command's own (128+n after signal n)."""
    if state == RunState.SUCCEEDED:
        return 0
    if state == RunState.CANCELLED:
        return CANCELLED
    if reason in (Reason.ERROR, Reason.DISK) and exit_code:
        return exit_code
    return _BY_REASON.get(Reason(reason), OTHER_FAILURE) if reason else OTHER_FAILURE
