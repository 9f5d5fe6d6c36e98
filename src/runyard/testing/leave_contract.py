"""What every host must do with directories of attempts that are settled: the part of `HostContract` about leaving."""

from __future__ import annotations

import pytest

from runyard.hosts.base import Host
from runyard.testing.cache_store import CacheLab

EVERYTHING = ("log", "outputs/model", "spec.json", "work/notes")


class LeaveContract:
    @pytest.fixture
    def store(self, host: Host, root: str) -> CacheLab:
        return CacheLab(host, root)

    def attempt(self, store: CacheLab, run: int) -> None:
        directories = [f"{run}", f"{run}/checkpoints", f"{run}/a1", f"{run}/a1/outputs", f"{run}/a1/work"]
        files = {f"{run}/a1/{name}": b"x" for name in EVERYTHING}
        store.host.put(f"{store.root}/runs", {**files, f"{run}/checkpoints/step": b"x"}, directories)

    def leave(self, store: CacheLab, run: int, what: str, seconds: int | None = None) -> None:
        store.host.leave(store.cache, f"{store.root}/runs", {f"{run}-a1": (what, seconds)})

    def left(self, store: CacheLab, run: int) -> set[str]:
        return {path.removeprefix("./a1/") for path in store.shell(f"cd runs/{run}; find . -path './a1*'").split()}

    @pytest.mark.parametrize(
        ("what", "stays"),
        [
            ("none", set()),
            ("unsaved", {"./a1", "work", "work/notes"}),
            ("outputs", {"./a1", "work", "work/notes", "outputs", "outputs/model"}),
        ],
    )
    def test_what_is_not_kept_goes(self, store: CacheLab, what: str, stays: set[str]) -> None:
        self.attempt(store, 1)
        self.attempt(store, 2)
        for _ in range(2):  # as after an answer that was lost
            self.leave(store, 1, what)
        assert self.left(store, 1) == stays
        assert self.left(store, 2) > set(EVERYTHING)
        assert store.shell("ls runs/1/checkpoints").split() == ["step"], "another attempt may go on from there"

    def test_an_empty_working_directory_is_nothing_to_keep(self, store: CacheLab) -> None:
        self.attempt(store, 1)
        store.shell("rm runs/1/a1/work/notes")
        self.leave(store, 1, "unsaved")
        assert self.left(store, 1) == set()

    def test_links_are_not_followed(self, store: CacheLab) -> None:
        self.attempt(store, 1)
        store.shell("mkdir elsewhere; touch elsewhere/precious; ln -s ../../../elsewhere runs/1/a1/data")
        self.leave(store, 1, "none")
        assert store.shell("ls elsewhere").split() == ["precious"]

    def test_no_folder_is_too_deep_to_go(self, store: CacheLab) -> None:
        self.attempt(store, 1)
        deep = "/".join(["d"] * 1200)
        store.shell(f"cd runs/1/a1/work; mkdir -p {deep} ../more/{deep}; mv ../more {deep}/")  # no path is so long
        self.leave(store, 1, "none")
        assert self.left(store, 1) == set()

    def test_everything_stays_for_as_long_as_it_should(self, store: CacheLab) -> None:
        self.attempt(store, 1)
        self.leave(store, 1, "all", 86400)
        store.tidy(1 << 30, living=[])
        assert self.left(store, 1) > set(EVERYTHING)
        store.shell("touch -d '2 days ago' cache/kept/*")
        store.host.leave(store.cache, f"{store.root}/runs", {})
        assert self.left(store, 1) == set()
        assert store.shell("ls cache/kept").split() == ["looked"]

    def test_what_was_staged_stays_with_everything(self, store: CacheLab) -> None:
        plan = store.plan(1, code=store.tree({"train.py": b"x"}))
        store.stage(plan)
        self.leave(store, 1, "all")
        store.tidy(1 << 30, living=[])
        assert store.shell("ls runs/1/a1/code cache/pins").split() == ["cache/pins:", "runs/1/a1/code:", "train.py"]

    def test_a_name_that_is_no_attempt_is_no_path(self, store: CacheLab) -> None:
        self.attempt(store, 1)
        with pytest.raises((OSError, ValueError)):
            store.host.leave(store.cache, f"{store.root}/runs", {"../1-a1": ("none", None)})
        assert self.left(store, 1) > set(EVERYTHING)
