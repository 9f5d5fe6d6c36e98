"""Shell lines that a site wants run before each command, in the process that then becomes the command."""

import os
import shlex
from typing import List, Optional

DONE = "setup.done"  # in the attempt's directory; made when all lines went well

_TAIL_BYTES = 2000
# Where clusters define `module`. A login shell would read these too, and the user's own profile with its noise.
_MODULES = b"""command -v module >/dev/null || for file in /etc/profile.d/*module*.sh /etc/profile.d/*lmod*.sh; do
[ -r "$file" ] && . "$file"
done"""


def wrap(lines: List[bytes], argv: List[bytes], programs: bytes = b"") -> List[bytes]:
    """A shell that ends with an exec of the command. `programs`: a directory that comes first in PATH, whatever the
    lines put there."""
    if not lines:
        return argv
    steps = [b"{\n" + line + b"\n} || exit $?" for line in lines]
    if programs:
        steps.append(b"PATH=" + os.fsencode(shlex.quote(os.fsdecode(programs))) + b":$PATH")
    script = b"\n".join([_MODULES, *steps, b': > "$0"', b'exec "$@"'])
    return [b"/bin/bash", b"-c", script, os.path.join(os.getcwdb(), DONE.encode()), *argv]


def failure(lines: List[bytes], exit_code: Optional[int]) -> Optional[str]:
    """Why the command never ran, when it was one of these lines."""
    if not lines or os.path.exists(DONE):
        return None
    return "a setup line of the site failed (exit code %s): %s" % (exit_code, _last_words())


def _last_words() -> str:
    try:
        with open("log", "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - _TAIL_BYTES))
            lines = log.read().decode("utf-8", "replace").split("\n")
    except OSError:
        lines = []
    return next((line.strip() for line in reversed(lines) if line.strip()), "it said nothing")
