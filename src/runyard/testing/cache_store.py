"""A cache on a host, for tests: attempts beside it, and a yard that has everything which was ever put into it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from runyard.hosts.base import CHUNK, BuildPlan, BuildResult, Cache, DataFolder, Host, MissingFile, Parcel
from runyard.model.tree import Tree, TreeFile, TreeLink


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def tree_of(files: dict[str, bytes], executable: Iterable[str] = (), links: dict[str, str] | None = None) -> Tree:
    return Tree.build(
        [TreeFile(path, digest(data), len(data), path in set(executable)) for path, data in files.items()],
        [TreeLink(path, target) for path, target in (links or {}).items()],
    )


class CacheLab:
    """A cache on a host, attempts beside it, and everything that was ever put into the yard."""

    def __init__(self, host: Host, root: str, agent: str = "one") -> None:
        self.host, self.root, self.agent = host, root, agent
        self.known: dict[str, bytes] = {}
        self.brought: list[str] = []
        self._number = 0
        host.put(root, {}, ["runs"])

    @property
    def cache(self) -> Cache:
        self._number += 1
        return Cache(path=f"{self.root}/cache", agent=self.agent, at=(1, self._number))

    def tree(self, files: dict[str, bytes], executable: Iterable[str] = (), links: dict[str, str] | None = None) -> str:
        made = tree_of(files, executable, links)
        self.known.update({digest(data): data for data in files.values()})
        return self.file(made.encode())

    def file(self, data: bytes) -> str:
        self.known[digest(data)] = data
        return digest(data)

    def plan(
        self, run: int, code: str | None = None, data: Iterable[DataFolder] = (), inputs: Iterable[tuple[str, str]] = ()
    ) -> BuildPlan:
        self.host.put(self.root, {}, ["runs", f"runs/{run}", f"runs/{run}/a1"])
        home = f"{self.root}/runs/{run}/a1"
        return BuildPlan(name=f"{run}-a1", directory=home, code=code, data=tuple(data), inputs=tuple(inputs))

    def stage(self, *plans: BuildPlan) -> BuildResult:
        """Like an agent: send missing files until none is missing."""
        for _ in range(4):
            built = self.host.build(self.cache, plans)
            wanted = [one for rows in built.missing.values() for one in rows]
            if not wanted:
                return built
            self.bring(wanted)
        raise AssertionError(f"still missing: {built.missing}")

    def bring(self, wanted: Iterable[MissingFile]) -> None:
        parcels = []
        for one in {one.digest: one for one in wanted}.values():
            self.brought.append(one.digest)
            rest = self.known[one.digest][one.held :]
            parcels.append(Parcel(digest=one.digest, offset=one.held, pieces=[rest[:CHUNK], rest[CHUNK:]]))
        self.host.deliver(self.cache, parcels)

    def tidy(self, limit: int, living: Iterable[str] | None = None) -> int:
        alive = None if living is None else list(living)
        return self.host.tidy(self.cache, limit, runs=f"{self.root}/runs", living=alive)

    def blob(self, name: str) -> str:
        found = name.removeprefix("sha256:")
        return f"{self.root}/cache/blobs/{found[:2]}/{found[2:]}"

    def shell(self, script: str, *words: str) -> str:
        done = self.host.run(["sh", "-ec", f'cd "$0"; {script}', self.root, *words], timeout=90)
        assert done.ok, done.stderr
        return done.stdout.decode()

    def has(self, name: str) -> bool:
        return self.host.run(["test", "-e", self.blob(name)], timeout=90).ok
