"""What every host must do with checkpoints of runs: the part of `HostContract` about what survives attempts."""

from __future__ import annotations

import dataclasses

import pytest

from runyard.hosts.base import Host, OutputSearch
from runyard.model import checkpoints
from runyard.testing.cache_store import CacheLab


class CheckpointContract:
    @pytest.fixture
    def store(self, host: Host, root: str) -> CacheLab:
        return CacheLab(host, root)

    def save(self, store: CacheLab, run: int, **files: bytes) -> None:
        store.host.put(f"{store.root}/runs", {}, [str(run), f"{run}/checkpoints"])
        store.host.put(f"{store.root}/runs/{run}/checkpoints", files)

    def look(self, store: CacheLab, run: int) -> OutputSearch:
        return OutputSearch(directory=f"{store.root}/runs/{run}/checkpoints", pattern=checkpoints.WHOLE, whole=True)

    def test_a_checkpoint_takes_the_place_of_what_is_there(self, store: CacheLab) -> None:
        self.save(store, 1, old=b"of another attempt")
        tree = store.tree({"last.pt": b"weights", "more/step": b"7"})
        plan = dataclasses.replace(store.plan(1), checkpoint=tree)
        for _ in range(2):  # as after an answer that was lost
            assert store.stage(plan).is_done(plan)
        assert store.shell("cd runs/1/checkpoints; find . -type f | sort; cat last.pt more/step").split() == [
            "./last.pt", "./more/step", "weights7",
        ]  # fmt: skip
        assert store.shell("ls runs/1").split() == ["a1", "checkpoints"], "nothing is left of making it"

    def test_what_an_attempt_saved_since_is_not_replaced_again(self, store: CacheLab) -> None:
        plan = dataclasses.replace(store.plan(1), checkpoint=store.tree({"step": b"7"}))
        store.stage(plan)
        store.shell("echo 8 >runs/1/checkpoints/step")
        store.stage(plan)
        assert store.shell("cat runs/1/checkpoints/step") == "8\n"

    def test_to_begin_anew_empties_it(self, store: CacheLab) -> None:
        self.save(store, 1, old=b"x")
        plan = dataclasses.replace(store.plan(1), afresh=True)
        assert store.stage(plan).is_done(plan)
        assert store.shell("ls -d runs/1/checkpoints; ls -A runs/1/checkpoints").split() == ["runs/1/checkpoints"]

    def test_half_files_are_no_part_of_a_checkpoint(self, store: CacheLab) -> None:
        store.shell("mkdir -p runs/1/checkpoints/deep; cd runs/1/checkpoints; echo 1 >last.pt; echo 1 >deep/x.part")
        store.shell("cd runs/1/checkpoints; for name in a.tmp b.partial deep/c.tmp .nfs0001 d~; do echo 1 >$name; done")
        [found] = store.host.find([self.look(store, 1)])
        assert ([file.path for file in found.files], found.torn, found.notes) == (["last.pt"], [], [])

    def test_what_has_not_changed_is_not_read_again(self, store: CacheLab) -> None:
        store.shell("mkdir -p runs/1/checkpoints; cd runs/1/checkpoints; echo 1 >a; touch -d yesterday a")
        search = self.look(store, 1)
        [[first]] = [found.files for found in store.host.find([search])]
        assert first.changed > 0
        pretended = (first.size, first.changed, f"sha256:{'0' * 64}")
        [[again]] = [found.files for found in store.host.find([dataclasses.replace(search, known={"a": pretended})])]
        assert again.digest == pretended[2]
        for _ in range(20):  # a busy machine may take its time from one to the other
            store.shell("echo 2 >runs/1/checkpoints/a")
            known = dataclasses.replace(search, known={"a": pretended})
            [[changed]] = [found.files for found in store.host.find([known])]
            assert changed.digest not in (first.digest, pretended[2])
            if changed.changed == 0:
                break
        assert changed.changed == 0, "it was written just now, and may be again within the same tick of a clock"

    def test_they_are_looked_for_once_an_hour(self, store: CacheLab) -> None:
        self.save(store, 3, step=b"x")
        self.save(store, 12, step=b"x")
        store.shell("mkdir -p runs/other/checkpoints runs/4")
        assert sorted(store.host.saved(store.cache, f"{store.root}/runs")) == [3, 12]
        assert store.host.saved(store.cache, f"{store.root}/runs") == []
        store.shell("touch -d '2 hours ago' cache/expiry")
        assert sorted(store.host.saved(store.cache, f"{store.root}/runs")) == [3, 12]

    def test_what_has_expired_goes_unless_there_is_a_new_attempt(self, store: CacheLab) -> None:
        for run in (1, 2):
            self.save(store, run, step=b"x")
        store.shell("mkdir runs/2/a4")
        store.host.forget(f"{store.root}/runs", {1: 3, 2: 3, 5: 1})
        assert store.shell("ls runs; cat runs/2/checkpoints/step").split() == ["2", "x"]
        store.host.forget(f"{store.root}/runs", {2: 4})
        assert store.shell("ls runs/2").split() == ["a4"]
