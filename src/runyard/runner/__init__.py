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
    import hashlib  # here and below: what the package itself imports is in every process that a zygote forks

    total = hashlib.sha256()
    for name, content in files().items():
        total.update(b"%s\0%d\0" % (name.encode(), len(content)))
        total.update(content)
    return total.hexdigest()[:16]


def install(site_directory: str) -> str:
    """Copies the runner to `<site directory>/runner-<digest>`, unless it is there, and returns that path."""
    target = os.path.join(site_directory, "runner-" + digest())
    if not os.path.isdir(target):
        _copy(site_directory, target)
    return target


def _copy(site_directory: str, target: str) -> None:
    """By a rename, so that nobody ever sees half a copy; whoever comes second keeps the first one's."""
    import shutil
    import tempfile

    draft = tempfile.mkdtemp(prefix=".runner-", dir=site_directory)
    try:
        for name, content in files().items():
            with open(os.path.join(draft, name), "wb") as file:
                file.write(content)
        os.rename(draft, target)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not os.path.isdir(target):
            raise


def _content(name: str) -> bytes:
    with open(os.path.join(HERE, name), "rb") as file:
        return file.read()
