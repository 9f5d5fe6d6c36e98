"""The program around the user's process on the compute node: standard library only, python3 ≥ 3.6.

It runs from a copy of this directory (see `install`), started as `python3 <directory> run|zygote|sweep …`. The contract
with the agent is in docs/internals/run-directory.md. The modules import each other relatively; `__main__.py` gives a
copy its package name.
"""

import os
from typing import Dict, Iterator

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = "packages"  # in a copy only: what runs find at the end of their PYTHONPATH, `runyard` with `job` in it
_JOB = os.path.join(os.path.dirname(HERE), "job")


def files() -> Dict[str, bytes]:
    """Path and content of every file that a copy needs."""
    sources = {path: os.path.join(HERE, path) for path in _paths(HERE)}
    if not os.path.isdir(os.path.join(HERE, PACKAGES)):
        sources.update(_carried())
    return {path: _content(sources[path]) for path in sorted(sources)}


def _carried() -> Dict[str, str]:
    """The package that user code may import. `standalone` replaces the rest of runyard, which may not be installed."""
    package = os.path.join(PACKAGES, "runyard")
    found = {os.path.join(package, "job", path): os.path.join(_JOB, path) for path in _paths(_JOB)}
    found[os.path.join(package, "__init__.py")] = found.pop(os.path.join(package, "job", "standalone.py"))
    return found


def digest() -> str:
    """Names this version of the runner: equal digests, equal files."""
    import hashlib  # here and below: what the package itself imports is in every process that a zygote forks

    total = hashlib.sha256()
    for name, content in files().items():
        total.update(b"%s\0%d\0" % (name.encode(), len(content)))
        total.update(content)
    return total.hexdigest()[:16]


def install(site_directory: str) -> str:
    """Copies the runner to `<site directory>/runner-<digest>`, unless it exists, and returns that path."""
    target = os.path.join(site_directory, "runner-" + digest())
    if not os.path.isdir(target):
        _copy(site_directory, target)
    return target


def _copy(site_directory: str, target: str) -> None:
    """By a rename, so that no copy is ever seen incomplete; a second process keeps the first one's copy."""
    import shutil
    import tempfile

    draft = tempfile.mkdtemp(prefix=".runner-", dir=site_directory)
    try:
        for name, content in files().items():
            os.makedirs(os.path.dirname(os.path.join(draft, name)), exist_ok=True)
            with open(os.path.join(draft, name), "wb") as file:
                file.write(content)
        os.rename(draft, target)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        if not os.path.isdir(target):
            raise


def _paths(root: str) -> Iterator[str]:
    """Of the modules, from here."""
    for folder, _, names in os.walk(root):
        yield from (os.path.relpath(os.path.join(folder, name), root) for name in names if name.endswith(".py"))


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()
