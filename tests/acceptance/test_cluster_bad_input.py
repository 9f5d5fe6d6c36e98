"""What is wrong with a site or with what a run asks of it: one clear sentence with the fix, and nothing tried in vain.

Connections that are cut, and host keys that changed, are in test_clusters_over_ssh.py.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.cluster_yard import ClusterYard
from tests.acceptance.witness import until
from tests.labs.accounts import NODE_PYTHON
from tests.labs.disks import small_disk

GetYard = Callable[..., ClusterYard]

REFUSED = {
    ("slurm", "partition"): "Invalid partition name specified",
    ("slurm", "account"): "Invalid account or account/partition combination specified",
    ("gridengine", "queue"): 'unknown queue "nosuch"',
    ("gridengine", "P"): 'project "nosuch" does not exist',
}


@pytest.fixture(params=["slurm", "gridengine"])
def yard(request: pytest.FixtureRequest, cluster_yard: GetYard) -> ClusterYard:
    return cluster_yard(request.param, **({"isolate": True} if request.param == "slurm" else {}))


@contextlib.contextmanager
def another_site(yard: ClusterYard, *words: str) -> Iterator[str]:
    name = f"site{len(yard.cli('site', 'list', '--json').stdout)}"
    added = yard.cli("site", "add", name, "--kind", yard.lab.kind, "--python", NODE_PYTHON, *words)
    assert added.returncode == 0, added.stderr
    try:
        yield name
    finally:
        yard.cli("site", "remove", name)


def submit(yard: ClusterYard, site: str) -> int:
    """With a rule by which it would be tried again, if anything of it could be."""
    answer = yard.cli("submit", "--quiet", "--site", site, "--retry", "2", "--", "true")
    assert answer.returncode == 0, answer.stderr
    return int(answer.stdout)


def findings(yard: ClusterYard, site: str) -> tuple[int, str]:
    answer = yard.cli("site", "test", site)
    return answer.returncode, " ".join(answer.stdout.split())


def ending(shown: dict[str, Any]) -> tuple[Any, Any, Any]:
    return shown["state"], shown["reason"], shown["attempt"]


@pytest.mark.parametrize(("kind", "option"), list(REFUSED))
def test_what_the_scheduler_refuses(cluster_yard: GetYard, kind: str, option: str) -> None:
    yard = cluster_yard(kind, **({"accounting": True} if kind == "slurm" else {}))
    shown = yard.ended(yard.submit("--retry", "2", "--option", f"{option}=nosuch", "--", "true"))
    assert ending(shown) == ("failed", "rejected", 1), shown
    assert REFUSED[kind, option] in shown["detail"]
    with another_site(yard, "--dir", str(yard.home / "other"), "--option", f"{option}=nosuch") as site:
        code, told = findings(yard, site)
    assert (code, REFUSED[kind, option] in told) == (1, True), told


def test_programs_that_are_missing(yard: ClusterYard) -> None:
    """The run waits, and says for what: somebody may mend it."""
    with another_site(yard, "--dir", str(yard.home / "bare"), "--option", "bin=/nowhere") as site:
        code, told = findings(yard, site)
        assert code == 1
        assert re.search(r"there is no (sbatch|qsub).* --option bin=DIRECTORY", told)
        run = submit(yard, site)
        wanted = r"not handed to .* there is no program (sbatch|qsub) .* runyard site edit --option bin=DIRECTORY"
        until(lambda: re.match(wanted, yard.show(run)["detail"] or ""), timeout=240, what=wanted)
        assert yard.cli("site", "edit", site, "--option", f"bin={_programs(yard)}").returncode == 0
        assert ending(yard.ended(run)) == ("succeeded", None, 1)


def _programs(yard: ClusterYard) -> str:
    name = "sbatch" if yard.lab.kind == "slurm" else "qsub"
    return str(Path(yard.lab.ask("sh", "-c", f"command -v {name}").strip()).parent)


@pytest.mark.component("root")
def test_a_directory_that_cannot_be_written(yard: ClusterYard) -> None:
    place = yard.lab.root / "of-root"
    place.mkdir(mode=0o755, exist_ok=True)
    with another_site(yard, "--dir", str(place)) as site:
        code, told = findings(yard, site)
        assert code == 1
        assert f"{place} cannot be written: permission denied fix: choose another with --dir" in told
        shown = yard.ended(submit(yard, site))
    assert ending(shown) == ("failed", "staging", 1), shown
    assert re.fullmatch(
        rf"{place}/runs: permission denied; choose .* runyard site edit --dir DIRECTORY", shown["detail"]
    )


def test_a_directory_that_is_not_shared(yard: ClusterYard) -> None:
    """Nodes have one of that name, and another one."""
    place = yard.lab.unshared / "site"
    place.mkdir(exist_ok=True)
    yard.lab.user.own(place)
    with another_site(yard, "--dir", str(place)) as site:
        code, told = findings(yard, site)
        assert code == 1, told
        assert "choose a directory that all nodes share with --dir" in told
        shown = yard.ended(submit(yard, site))
    assert ending(shown) == ("failed", "launch", 1), shown
    assert re.search(r"may not see the site's directory: .*site test|can't chdir to .*: No such file", shown["detail"])


@pytest.mark.component("root")
def test_a_full_quota(yard: ClusterYard) -> None:
    options = f"size=1m,mode=700,uid={yard.lab.user.uid}"
    with small_disk(yard.home / "tiny", options) as place:
        with (place / "full").open("wb") as file, contextlib.suppress(OSError):
            file.write(bytes(2 << 20))
        # Without a reserve, because a quota is not seen before it is met.
        with another_site(yard, "--dir", str(place), "--option", "disk_reserve=0") as site:
            code, told = findings(yard, site)
            assert (code, "no space left on device fix: choose another with --dir" in told) == (1, True), told
            shown = yard.ended(submit(yard, site))
    assert ending(shown) == ("failed", "disk", 1), shown
    assert re.search(r"no space left on device; free some space there, or choose another .* --dir", shown["detail"])
