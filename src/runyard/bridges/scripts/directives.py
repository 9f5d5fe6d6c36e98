"""The flags inside a script: `#SBATCH` lines before its first command, `#$` lines anywhere."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from runyard import errors
from runyard.bridges.scripts import flags
from runyard.bridges.scripts.flags import FlagTable, Given

_SBATCH = re.compile(r"#SBATCH(?=[\s-])(.*)")


def read_sbatch(text: str, table: FlagTable) -> Given:
    return _read(sbatch_lines(text), table)


def read_qsub(text: str, table: FlagTable, prefix: str) -> Given:
    return _read(qsub_lines(text, prefix), table)


def sbatch_lines(text: str) -> Iterator[tuple[int, str]]:
    """Number and flags of each line that counts: Slurm stops looking at the first line that is neither blank nor a
    comment."""
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("#"):
            return
        match = _SBATCH.match(line)
        if match:
            yield number, match[1]


def late_sbatch_lines(text: str) -> list[int]:
    """Directives after the first command, which are ignored."""
    counted = {number for number, _ in sbatch_lines(text)}
    written = {number for number, line in enumerate(text.splitlines(), 1) if _SBATCH.match(line)}
    return sorted(written - counted)


def qsub_lines(text: str, prefix: str = "#$") -> Iterator[tuple[int, str]]:
    if not prefix:
        return
    for number, line in enumerate(text.splitlines(), 1):
        rest = line.removeprefix(prefix).strip()
        if line.startswith(prefix) and rest.startswith("-"):
            yield number, rest


def _read(lines: Iterator[tuple[int, str]], table: FlagTable) -> Given:
    given = Given()
    for number, text in lines:
        try:
            found = flags.parse(shlex.split(text, comments=True), table)
        except ValueError as error:
            raise errors.InvalidInput(f"line {number} of the script: {str(error).lower()}") from None
        except errors.InvalidInput as error:
            raise errors.InvalidInput(f"line {number} of the script: {error.message}", error.fix) from None
        if found.words:
            raise errors.InvalidInput(f"line {number} of the script: {found.words[0]!r} is no option")
        given = given.with_stronger(found)
    return given
