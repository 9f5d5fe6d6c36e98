"""What every host must do with a cache of code and data: the part of `HostContract` that is about staging."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from runyard import errors
from runyard.hosts.base import CHUNK, BuildResult, Cache, DataFolder, Host, MissingFile, Parcel
from runyard.testing.cache_store import CacheLab, digest

WEIRD = 'it\'s a "näme"\nwith $HOME `and` !more \\ ☃ %C'
OUTSIDE = [
    {"files": [["../x", "D", 1, 0]], "links": []},
    {"files": [["/x", "D", 1, 0]], "links": []},
    {"files": [["a//x", "D", 1, 0]], "links": []},
    {"files": [["a\0b", "D", 1, 0]], "links": []},
    {"files": [["a", "D", 1, 0], ["a/b", "D", 1, 0]], "links": []},
    {"files": [["a", "D", 1, 0], ["a", "D", 1, 0]], "links": []},
    {"files": [["a/x", "D", 1, 0]], "links": [["a", "elsewhere"]]},
    {"files": [["x", "../../etc/passwd", 1, 0]], "links": []},
    {"files": [], "links": [["a", "/etc"]]},
    {"files": [], "links": [["a", ".."]]},
    {"files": [], "links": [["d/a", "../.."]]},
    {"files": [], "links": [["d/a", ".."], ["b", "d/a/.."]]},
    {"files": [], "links": [["../a", "b"]]},
    {"files": "x", "links": []},
    {"links": []},
    [],
]


class CacheContract:
    @pytest.fixture
    def store(self, host: Host, root: str) -> CacheLab:
        return CacheLab(host, root)

    # --- bytes --------------------------------------------------------------------------------------------------

    def test_parcels_appear_whole_and_read_only(self, host: Host, store: CacheLab) -> None:
        large = [secrets.token_bytes(CHUNK), b"", secrets.token_bytes(3)]
        whole, empty = b"".join(large), digest(b"")
        for _ in range(2):  # as after an answer that was lost
            host.deliver(
                store.cache, iter([Parcel(digest=digest(whole), pieces=large), Parcel(digest=empty, pieces=())])
            )
        host.deliver(store.cache, [])
        paths = [store.blob(digest(whole)), store.blob(empty)]
        assert host.fetch_many(paths) == dict(zip(paths, [whole, b""], strict=True))
        assert host.run(["stat", "-c", "%a", *paths], timeout=90).stdout.split() == [b"400"] * 2
        assert host.run(["ls", "-A", f"{store.root}/cache/parts"], timeout=90).stdout == b""

    def test_bytes_that_are_not_those_of_the_digest_leave_nothing(self, host: Host, store: CacheLab) -> None:
        with pytest.raises(OSError, match="the bytes are not those of sha256:"):
            host.deliver(store.cache, [Parcel(digest=digest(b"right"), pieces=[b"wrong"])])
        assert store.shell("find cache -type f") == ""

    def test_a_name_that_is_no_digest_is_no_path(self, host: Host, store: CacheLab) -> None:
        for name in ("../../x", "sha256:../x", "sha256:" + "A" * 64, ""):
            with pytest.raises(OSError):
                host.deliver(store.cache, [Parcel(digest=name, pieces=[b"x"])])
        assert store.shell("find . -type f") == ""

    def test_a_transfer_that_is_cut_goes_on_where_it_ended(self, host: Host, store: CacheLab) -> None:
        data = secrets.token_bytes(3 * CHUNK)
        name = store.file(data)

        def broken() -> Iterator[bytes]:
            yield data[: 2 * CHUNK]
            raise errors.YardUnreachable("the connection broke")

        with pytest.raises(errors.YardUnreachable):
            host.deliver(store.cache, [Parcel(digest=name, pieces=broken())])
        wait = 'until [ "$(cat cache/parts/* | wc -c)" = "$1" ]; do sleep 0.1; done'  # the other end may be behind
        store.shell(wait, str(2 * CHUNK))
        plan = store.plan(1, inputs=[(name, "x")])
        assert host.build(store.cache, [plan]).missing == {name: [MissingFile(name, None, 2 * CHUNK)]}
        assert not store.stage(plan).problems
        assert host.fetch(f"{plan.directory}/inputs/x") == data

    def test_a_part_that_was_damaged_is_begun_again(self, host: Host, store: CacheLab) -> None:
        data = secrets.token_bytes(1000)
        name, plan = store.file(data), store.plan(1, inputs=[(digest(data), "x")])
        with pytest.raises(OSError, match="the bytes are not those"):
            host.deliver(store.cache, [Parcel(digest=name, offset=500, pieces=[data[500:]])])
        assert host.build(store.cache, [plan]).missing == {name: [MissingFile(name, None, 0)]}

    def test_what_cannot_be_put_down_is_an_error_that_names_the_place(self, host: Host) -> None:
        large = [bytes(CHUNK)] * 8
        parcel = Parcel(digest=digest(b"".join(large)), pieces=large)
        with pytest.raises(FileNotFoundError) as caught:
            host.deliver(Cache(path="/proc/nothing", agent="one"), [parcel])
        assert "/proc" in str(caught.value)

    # --- attempts -----------------------------------------------------------------------------------------------

    def test_code_is_a_private_copy(self, host: Host, store: CacheLab) -> None:
        files = {"a/b/train.py": b"print()", "run": b"#!/bin/sh\n", "empty": b"", f"a/{'n' * 255}": b"x" * 3 * CHUNK}
        code = store.tree(files, executable=["run"], links={"a/up": "../run", "latest": "a/b"})
        plans = [store.plan(run, code=code) for run in (1, 2)]
        assert store.stage(*plans) == BuildResult()
        for plan in plans:
            there = {f"{plan.directory}/code/{path}": data for path, data in files.items()}
            assert host.fetch_many(list(there)) == there
        assert store.shell("cd runs/1/a1/code; stat -c %a run empty; readlink a/up latest") == "700\n600\n../run\na/b\n"
        store.shell("echo changed > runs/1/a1/code/a/b/train.py; echo new > runs/1/a1/code/a/new")
        again = store.plan(3, code=code)
        assert store.stage(again) == BuildResult()
        for plan in (plans[1], again):
            assert host.fetch(f"{plan.directory}/code/a/b/train.py") == b"print()"
        assert len(store.brought) == 5, "each once: the description and the files"

    def test_data_is_shared_and_read_only(self, host: Host, store: CacheLab) -> None:
        tree = store.tree({"deep/words.txt": b"words", "tool": b"#!"}, executable=["tool"], links={"l": "tool"})
        code = store.tree({"main.py": b"", "taken/x": b"its own"})
        store.shell("mkdir there; echo 1 > there/file")
        data = [
            DataFolder(to="corpora", tree=tree),
            DataFolder(to="sets/taken", tree=tree),
            DataFolder(to="taken", tree=tree),
            DataFolder(to="site", path=f"{store.root}/there"),
        ]
        plans = [store.plan(1, code, data), store.plan(2, None, data)]
        assert store.stage(*plans) == BuildResult()
        for place in ("1/a1/data", "2/a1/data", "1/a1/code"):
            assert store.shell(f"cd runs/{place}; cat corpora/deep/words.txt sets/taken/l site/file") == "words#!1\n"
        assert store.shell("cat runs/1/a1/code/taken/x") == "its own"
        store.shell("test runs/1/a1/data/corpora/tool -ef runs/2/a1/data/corpora/tool")
        modes = store.shell("cd runs/2/a1/data/corpora/; stat -c %a . deep deep/words.txt tool")
        assert modes.split() == ["500", "500", "400", "500"]

    def test_inputs_are_read_only_files(self, host: Host, store: CacheLab) -> None:
        named = [(store.file(b"1"), f"a/{WEIRD}"), (store.file(b""), "empty"), (store.file(b"1"), "same")]
        plans = [store.plan(run, inputs=named) for run in (1, 2)]
        assert store.stage(*plans) == BuildResult()
        for plan in plans:
            paths = [f"{plan.directory}/inputs/{to}" for _, to in named]
            assert list(host.fetch_many(paths).values()) == [b"1", b"", b"1"]
            assert host.run(["stat", "-c", "%a", *paths], timeout=90).stdout.split() == [b"400"] * 3
        assert store.brought == [digest(b"1"), digest(b"")]

    def test_what_is_missing_is_told_by_source(self, host: Host, store: CacheLab) -> None:
        code, data = store.tree({"x": b"12"}), store.tree({"x": b"12", "y": b"3"})
        lost = store.file(b"input")
        plans = [store.plan(1, code), store.plan(2, code, [DataFolder(to="d", tree=data)], [(lost, "i")])]
        first = host.build(store.cache, plans)
        assert first.missing == {name: [MissingFile(name, None, 0)] for name in (code, data, lost)}
        assert not first.is_done(plans[0])
        store.bring([MissingFile(code, None, 0), MissingFile(data, None, 0)])
        second = host.build(store.cache, plans)
        x, y = MissingFile(digest(b"12"), 2, 0), MissingFile(digest(b"3"), 1, 0)
        assert second.missing == {code: [x], data: [x, y], lost: [MissingFile(lost, None, 0)]}
        store.bring([x])
        third = host.build(store.cache, plans)
        assert third.missing == {data: [y], lost: [MissingFile(lost, None, 0)]}
        assert third.is_done(plans[0]) and not third.is_done(plans[1])
        assert host.filled([f"{plan.directory}/code" for plan in plans]) == {f"{plans[0].directory}/code"}

    def test_a_path_that_the_site_does_not_have_is_a_problem_of_its_own_plan(self, host: Host, store: CacheLab) -> None:
        good, bad = store.plan(1), store.plan(2, store.tree({"x": b""}), [DataFolder(to="d", path="/no/such/place")])
        built = host.build(store.cache, [bad, good])
        [(name, problem)] = built.problems.items()
        assert (name, problem.filename, problem.strerror) == ("2-a1", "/no/such/place", "does not exist at this site")
        assert built.is_done(good) and built.missing == {}, "nothing is transferred for a run that cannot start"

    @pytest.mark.parametrize("wrong", OUTSIDE)
    def test_nothing_is_made_outside(self, host: Host, store: CacheLab, wrong: object) -> None:
        text = json.dumps(wrong).replace('"D"', json.dumps(store.file(b"x"))).encode()
        plan = store.plan(1, store.file(text))
        store.bring([MissingFile(digest(text), None, 0), MissingFile(digest(b"x"), 1, 0)])
        before = store.shell("find . -path ./cache -prune -o -print")
        built = host.build(store.cache, [plan])
        assert list(built.problems) == ["1-a1"]
        assert store.shell("find . -path ./cache -prune -o -print") == before
        assert store.shell("find cache -name '*.tmp'") == ""

    @pytest.mark.parametrize("to", ["../x", "/x", "a/../../x", "", "."])
    def test_names_of_data_and_inputs_lead_nowhere_else(self, host: Host, store: CacheLab, to: str) -> None:
        plan = store.plan(1, inputs=[(store.file(b"x"), to)])
        assert list(store.stage(plan).problems) == ["1-a1"]
        plan = store.plan(1, data=[DataFolder(to=to, path="/")])
        assert list(store.stage(plan).problems) == ["1-a1"]
        assert store.shell("ls -A runs/1/a1") == ""

    # --- interruptions ------------------------------------------------------------------------------------------

    def test_what_was_left_half_made_is_made_again(self, host: Host, store: CacheLab) -> None:
        code, data = store.tree({"x": b"1", "y/z": b"2"}), store.tree({"deep/er": b"3"})
        plan = store.plan(1, code, [DataFolder(to="d", tree=data)])
        store.shell("mkdir -p runs/1/a1/code.part/y; echo half > runs/1/a1/code.part/x; touch runs/1/a1/data.part")
        assert store.stage(plan) == BuildResult()
        assert store.shell("cd runs/1/a1; cat code/x code/y/z data/d/deep/er; ls") == "123code\ndata\n"
        store.shell("echo mine > runs/1/a1/code/x")
        assert store.stage(plan) == BuildResult()
        assert store.shell("cat runs/1/a1/code/x") == "mine\n", "what is made stays"

    def test_a_damaged_file_is_wanted_again(self, host: Host, store: CacheLab) -> None:
        code = store.tree({"x": b"right", "y": b"other"})
        store.stage(store.plan(1, code))
        store.brought.clear()
        store.shell('chmod u+w "$1"; printf wrong > "$1"; rm "$2"', store.blob(digest(b"right")), store.blob(code))
        plan = store.plan(2, code)
        assert store.stage(plan) == BuildResult()
        assert host.fetch(f"{plan.directory}/code/x") == b"right"
        assert store.brought == [code, digest(b"right")]

    def test_a_file_that_was_only_touched_is_used(self, host: Host, store: CacheLab) -> None:
        code = store.tree({"x": b"right"})
        store.stage(store.plan(1, code))
        store.shell('touch "$1"', store.blob(digest(b"right")))
        assert host.build(store.cache, [store.plan(2, code)]) == BuildResult()

    @pytest.mark.parametrize("harm", ["rm x", "chmod u+w x; echo changed > x", "rm l", "rm x; mkdir x"])
    def test_damaged_data_is_made_again(self, host: Host, store: CacheLab, harm: str) -> None:
        data = store.tree({"x": b"right", "y": b"other"}, links={"l": "x"})
        plan = store.plan(1, data=[DataFolder(to="d", tree=data)])
        store.stage(plan)
        store.shell(f"cd runs/1/a1/data/d/; chmod u+w .; {harm}")
        assert store.stage(store.plan(2, data=[DataFolder(to="d", tree=data)])) == BuildResult()
        for run in (1, 2):
            assert store.shell(f"cd runs/{run}/a1/data/d/; cat x l y") == "rightrightother"
        assert store.shell("ls cache/trees").split() == [data.removeprefix("sha256:")]

    def test_many_may_make_the_same(self, host: Host, store: CacheLab) -> None:
        data = store.tree({f"{n}/x": str(n).encode() for n in range(50)})
        folder = DataFolder(to="d", tree=data)
        plans = [store.plan(run, data, [folder]) for run in range(1, 7)]
        store.bring([MissingFile(name, None, 0) for name in store.known])
        with ThreadPoolExecutor(6) as pool:
            built = list(pool.map(lambda plan: host.build(store.cache, [plan]), plans))
        assert built == [BuildResult()] * 6
        for plan in plans:
            assert host.fetch(f"{plan.directory}/data/d/49/x") == b"49"
        assert store.shell("ls cache/trees").split() == [data.removeprefix("sha256:")]

    # --- upkeep -------------------------------------------------------------------------------------------------

    def test_a_cache_that_is_not_there_is_tidy(self, store: CacheLab) -> None:
        assert store.tidy(0, []) == 0
        assert store.shell("ls") == "runs\n"

    def test_what_was_used_least_recently_goes_first(self, host: Host, store: CacheLab) -> None:
        sizes = {run: store.file(bytes([run]) * 1000) for run in (1, 2, 3)}
        for run, name in sizes.items():
            store.stage(store.plan(run, inputs=[(name, "x")]))
        for run, when in ((1, "00:03"), (2, "00:01"), (3, "00:02")):
            store.shell('touch -a -d "2020-01-01 $2" "$1"', store.blob(sizes[run]), when)
        assert store.tidy(2500, []) == 2000
        assert [store.has(sizes[run]) for run in (1, 2, 3)] == [True, False, True]
        assert store.tidy(1999) == 1000
        assert [store.has(sizes[run]) for run in (1, 2, 3)] == [True, False, False]

    def test_what_an_attempt_needs_stays(self, host: Host, store: CacheLab) -> None:
        data, code, waiting = store.tree({"d": b"1" * 1000}), store.tree({"c": b"2" * 1000}), store.tree({"w": b"3"})
        store.stage(store.plan(1, code, [DataFolder(to="d", tree=data)]))
        store.bring([MissingFile(waiting, None, 0), MissingFile(digest(b"3"), 1, 0)])
        incomplete = store.plan(2, waiting, inputs=[(store.file(b"not there"), "x")])
        assert not host.build(store.cache, [incomplete]).is_done(incomplete)
        left = store.tidy(0, ["1-a1", "2-a1"])
        assert not store.has(digest(b"2" * 1000)), "it is copied"
        assert store.has(waiting) and store.has(digest(b"3")), "it is still needed"
        assert store.shell("cat runs/1/a1/data/d/d") == "1" * 1000
        assert store.shell("cat runs/1/a1/code/c") == "2" * 1000
        assert 1000 < left < 2000
        assert store.tidy(0, []) == 0
        assert store.shell("find cache/trees cache/blobs cache/pins -type f") == ""

    def test_what_was_made_for_attempts_goes_with_them(self, host: Host, store: CacheLab) -> None:
        code = store.tree({"c": b"2", "d/e": b"3"})
        plans = [store.plan(run, code, [DataFolder(to="site", path="/")], [(store.file(b"i"), "i")]) for run in (1, 2)]
        store.stage(*plans)
        store.shell("mkdir runs/1/a1/outputs; touch runs/1/a1/log; chmod 500 runs/1/a1/code/d")
        assert store.tidy(1 << 30, ["2-a1"]) > 0
        assert store.shell("ls runs/1/a1 runs/2/a1 cache/pins").split() == [
            "cache/pins:", "2-a1.json", "runs/1/a1:", "log", "outputs", "runs/2/a1:", "code", "data", "inputs",
        ]  # fmt: skip
        assert store.has(code)

    def test_nobody_is_released_by_somebody_else(self, host: Host, store: CacheLab) -> None:
        code = store.tree({"c": b"2"})
        late = store.cache
        store.stage(store.plan(1, code))
        host.tidy(late, 0, runs=f"{store.root}/runs", living=[])
        store.agent = "another"
        store.tidy(0, [])
        store.agent = "one"
        assert store.shell("cat runs/1/a1/code/c") == "2"
        store.tidy(0, [])
        assert store.shell("ls runs/1/a1") == ""

    def test_one_file_counts_once(self, host: Host, store: CacheLab) -> None:
        data = store.tree({"x": b"1" * 5000})
        other = store.tree({"x": b"1" * 5000, "y": b"2" * 1000})
        store.stage(store.plan(1, data=[DataFolder(to="a", tree=data), DataFolder(to="b", tree=other)]))
        manifests = len(store.known[data]) + len(store.known[other])
        assert store.tidy(1 << 30) == 6000 + manifests
        assert store.tidy(6000 + manifests, []) == 6000 + manifests

    def test_what_was_left_in_the_middle_goes_after_a_while(self, store: CacheLab) -> None:
        store.stage(store.plan(1, data=[DataFolder(to="d", tree=store.tree({"x": b"1"}))]))
        made = (
            "cd cache; mkdir -p trees/a.tmp/b parts; touch trees/a.tmp/b/c parts/p pins/1-a1.json.9.tmp pins/2-a1.json"
        )
        store.shell(made)
        store.tidy(1 << 30)
        assert store.shell("cd cache; ls parts pins").split() == [
            "parts:", "p", "pins:", "1-a1.json", "1-a1.json.9.tmp", "2-a1.json",
        ]  # fmt: skip
        store.shell("cd cache; touch -d 2020-01-01 trees/a.tmp parts/p pins/*")
        store.tidy(1 << 30)
        assert store.shell("cd cache; ls parts pins; ls trees | wc -l").split() == ["parts:", "pins:", "1-a1.json", "1"]
