"""A script as it was submitted: its text, and its interpreter."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass

from runyard import errors

SHELLS = re.compile(r"(ba|da|z|k|mk|c|tc)?sh")
_SHEBANG = re.compile(r"#![ \t]*(\S+)[ \t]*(.*)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    name: str  # the file's name, or what the tool calls one that came by standard input
    text: str

    @property
    def interpreter(self) -> str:
        """The program that the first line names; /bin/sh when it names none. `env` stands for what it looks up."""
        match = _SHEBANG.match(self.text)
        if match is None:
            return "/bin/sh"
        words = [word for word in match[2].split() if not word.startswith("-") and "=" not in word]
        return words[0] if os.path.basename(match[1]) == "env" and words else match[1]

    @property
    def is_shell(self) -> bool:
        return bool(SHELLS.fullmatch(os.path.basename(self.interpreter)))

    @property
    def lines(self) -> list[str]:
        return self.text.splitlines()

    def with_interpreter(self, program: str) -> Script:
        """The same under another first line."""
        body = self.text.partition("\n")[2] if self.text.startswith("#!") else self.text
        return Script(name=self.name, text=f"#!{program}\n{body}")


def load(path: str) -> Script:
    """Copied now: what happens to the file afterwards does not matter."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except IsADirectoryError:
        raise errors.InvalidInput(f"{path} is a directory", "name the script in it") from None
    except OSError as error:
        raise errors.InvalidInput(f"unable to open {path}: {(error.strerror or str(error)).lower()}") from None
    return made(os.path.basename(path), data)


def made(name: str, data: bytes) -> Script:
    """Checked for what no interpreter can use."""
    if not data.strip():
        raise errors.InvalidInput(f"the script {name} is empty")
    if b"\r\n" in data:
        raise errors.InvalidInput(
            f"the script {name} has DOS line breaks", f"make them Unix ones: sed -i 's/\\r$//' {name}"
        )
    if b"\0" in data:
        raise errors.InvalidInput(f"{name} is no script but a program", "submit it as a command: qsub -b y, --wrap")
    return Script(name=name, text=data.decode("utf-8", "surrogateescape"))
