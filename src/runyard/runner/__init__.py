"""The program around the user's process on the compute node: standard library only, python3 ≥ 3.6.

It runs from a copy of this directory (see `install`), started as `python3 <directory> run|zygote|sweep …`. The contract
with the agent is in docs/internals/run-directory.md. The modules import each other relatively; `__main__.py` gives a
copy its package name.
"""

import os
from typing import Dict

HERE = os.path.dirname(os.path.abspath(__file__))


def files() -> Dict[str, bytes]:
    """Name and content of every file that a copy needs."""
    return {name: _content(name) for name in sorted(os.listdir(HERE)) if name.endswith(".py")}


def digest() -> str:
    """Names this version of the runner: equal digests, equal files."""
    import hashlib  # here, because what the package imports is in every process that a zygote forks

    total = hashlib.sha256()
    for name, content in files().items():
        total.update(b"%s\0%d\0" % (name.encode(), len(content)))
        total.update(content)
    return total.hexdigest()[:16]


def install(site_directory: str) -> str:
    """Copies the runner to `<site directory>/runner-<digest>`, unless it is there, and returns that path."""
    target = os.path.join(site_directory, "runner-" + digest())
    draft = "%s.%d" % (target, os.getpid())
    if os.path.isdir(target):
        return target
    os.mkdir(draft, 0o755)
    for name, content in files().items():
        with open(os.path.join(draft, name), "wb") as file:
            file.write(content)
    _settle(draft, target)
    return target


def _settle(draft: str, target: str) -> None:
    """By a rename, so that nobody ever sees half a copy; whoever comes second keeps the first one's."""
    try:
        os.rename(draft, target)
    except OSError:
        if not os.path.isdir(target):
            raise
        for name in os.listdir(draft):
            os.unlink(os.path.join(draft, name))
        os.rmdir(draft)


def _content(name: str) -> bytes:
    with open(os.path.join(HERE, name), "rb") as file:
        return file.read()
