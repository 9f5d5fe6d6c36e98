"""Folders as one blob: the same folder gives the same bytes, and nothing in it leads out."""

from __future__ import annotations

import hashlib
import os
import posixpath
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard import errors
from runyard.model.tree import Tree, TreeFile, TreeLink

DIGEST = "sha256:" + "ab" * 32
OTHER = "sha256:" + "cd" * 32


def file(path: str, digest: str = DIGEST, size: int = 3, executable: bool = False) -> TreeFile:
    return TreeFile(path, digest, size, executable)


def test_a_tree_is_canonical_json_and_known_by_its_digest() -> None:
    tree = Tree.build([file("src/train.py", size=5), file("run.sh", OTHER, 7, True)], [TreeLink("latest", "src")])
    text = '{"files":[["run.sh","' + OTHER + '",7,1],["src/train.py","' + DIGEST + '",5,0]],"links":[["latest","src"]]}'
    assert tree.encode() == text.encode()
    assert tree.digest == f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
    assert tree.size == 12
    assert tree.digests() == {DIGEST: 5, OTHER: 7}
    assert Tree.parse(tree.encode()) == tree


def test_the_empty_tree_is_a_tree() -> None:
    assert Tree.parse(b'{"files":[],"links":[]}') == Tree.build([])


NAMES = st.text(st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="/"), min_size=1, max_size=20)
PATHS = st.lists(NAMES.filter(lambda name: name not in (".", "..")), min_size=1, max_size=4).map("/".join)


@given(st.lists(st.tuples(PATHS, st.integers(0, 1 << 40), st.booleans()), max_size=8), st.randoms())
def test_what_was_built_comes_back_whatever_the_order(entries: list[tuple[str, int, bool]], random: object) -> None:
    files = [file(path, size=size, executable=executable) for path, size, executable in entries]
    try:
        tree = Tree.build(files)
    except errors.InvalidInput:
        return  # two at one place, or one below another
    random.shuffle(files)  # type: ignore[attr-defined]
    assert Tree.build(files).digest == tree.digest
    assert Tree.parse(tree.encode()) == tree


BAD_PATHS = ("", "/etc/passwd", "../x", "a/../b", "a//b", "./a", "a/", "a\nb", "a\tb", "a\x7fb", "a\x85b", "n" * 256)


@pytest.mark.parametrize("path", [*BAD_PATHS, "/".join(["d" * 200] * 6), "\udcff", "a\0b", None, 3])
def test_paths_that_mean_another_place_or_none_are_refused(path: str) -> None:
    with pytest.raises(errors.InvalidInput):
        Tree.build([file(path)])


@pytest.mark.parametrize("target", ["/etc", "..", "../..", "../../x", "b/../../..", "x/..", "a\nb", "", None])
def test_links_that_may_lead_out_are_refused(target: str) -> None:
    with pytest.raises(errors.InvalidInput):
        Tree.build([], [TreeLink("a" if target == ".." else "a/l", target)])


def test_links_inside_are_kept() -> None:
    links = [TreeLink("a/b/up", "../../c"), TreeLink("self", "."), TreeLink("dangling", "nowhere/at/all")]
    assert Tree.build([file("c")], links).links == tuple(sorted(links))


@pytest.mark.parametrize(
    ("files", "links"),
    [
        ([file("a"), file("a", OTHER)], []),
        ([file("a"), file("a/b")], []),
        ([file("a/b/c")], [TreeLink("a", "x")]),
        ([file("a")], [TreeLink("a", "b")]),
    ],
)
def test_no_two_are_at_one_place_and_none_is_below_a_file(files: list[TreeFile], links: list[TreeLink]) -> None:
    with pytest.raises(errors.InvalidInput):
        Tree.build(files, links)


@pytest.mark.parametrize(
    "text",
    [
        b"[]",
        b"{}",
        b"\xff",
        b'{"files":[]}',
        b'{"files":[],"links":[],"more":[]}',
        b'{"files":[["a"]],"links":[]}',
        b'{"files":{},"links":[]}',
        b'{"files":[], "links":[]}',
        b'{"links":[],"files":[]}',
        b'{"files":[["b","%s",1,0],["a","%s",1,0]],"links":[]}' % (DIGEST.encode(), DIGEST.encode()),
        b'{"files":[["a","%s",-1,0]],"links":[]}' % DIGEST.encode(),
        b'{"files":[["a","%s",1.0,0]],"links":[]}' % DIGEST.encode(),
        b'{"files":[["a","%s",1,true]],"links":[]}' % DIGEST.encode(),
        b'{"files":[["a","%s",1,2]],"links":[]}' % DIGEST.encode(),
        b'{"files":[["a","md5:1",1,0]],"links":[]}',
        b'{"files":[["\\u0061","%s",1,0]],"links":[]}' % DIGEST.encode(),
        b'{"files":[["a",["x"],1,0]],"links":[]}',
    ],
)
def test_any_other_spelling_is_refused(text: bytes) -> None:
    with pytest.raises(errors.InvalidInput):
        Tree.parse(text)


PARTS = st.lists(st.sampled_from(["a", "b", "c", "..", "."]), min_size=1, max_size=5).map("/".join)
LINK_PATHS = st.lists(st.sampled_from(["a", "b", "c"]), min_size=1, max_size=3).map("/".join)


@given(st.dictionaries(LINK_PATHS, PARTS, min_size=1, max_size=6))
def test_no_set_of_links_that_is_accepted_leads_out(
    tmp_path_factory: pytest.TempPathFactory, links: dict[str, str]
) -> None:
    """Made for real in a folder, and followed by the operating system."""
    try:
        tree = Tree.build([], [TreeLink(path, target) for path, target in links.items()])
    except errors.InvalidInput:
        return
    root = tmp_path_factory.mktemp("tree") / "root"
    for link in tree.links:
        place = root / link.path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(link.target)
    for link in tree.links:
        assert _stays(root, root / link.path)


def _stays(root: Path, link: Path) -> bool:
    try:
        found = os.path.realpath(link, strict=True)
    except (FileNotFoundError, OSError):
        return True  # it leads nowhere, or in a circle
    return posixpath.commonpath([found, os.path.realpath(root)]) == os.path.realpath(root)
