"""Many files in one request each way, and large ones piece by piece."""

from __future__ import annotations

import hashlib
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from runyard.model import packs
from runyard.model.roles import Role
from runyard.model.tree import Tree, TreeFile
from tests.integration.server.api import PREFIX, Api, Served
from tests.labs.disks import small_disk
from tests.labs.waiting import until


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def some(size: int = 20) -> bytes:
    """Bytes that no other test has sent."""
    return os.urandom(size)


def pack(api: Api, *files: bytes) -> None:
    reply = api.request("POST", "/blobs/pack", packs.pack((digest(data), data) for data in files))
    assert (reply.status, reply.json) == (200, {"stored": len(set(files))})


def missing(api: Api, *digests: str) -> list[str]:
    reply = api.post("/blobs/missing", {"digests": list(digests)})
    assert reply.status == 200, reply.body
    return list(reply.json["missing"])


def test_what_was_packed_is_there_and_comes_back_in_order(api: Api) -> None:
    files = [some(), b"", some(100_000), some(1)]
    known = [digest(data) for data in files]
    asked = [known[2], digest(b"never sent"), known[0], known[2]]
    assert set(missing(api, *known)) >= {known[0], known[2]}
    pack(api, *files)
    assert missing(api, *asked) == [digest(b"never sent")]
    reply = api.post("/blobs/fetch", {"digests": [known[2], known[1], known[0]]})
    assert dict(packs.unpack([reply.body])) == {known[2]: files[2], known[1]: b"", known[0]: files[0]}
    assert [name for name, _ in packs.unpack([reply.body])] == [known[2], known[1], known[0]]
    assert api.get(f"/blobs/{known[2]}").body == files[2]


def test_one_wrong_digest_stores_nothing_of_the_pack(api: Api) -> None:
    good, bad = some(), some()
    body = packs.pack([(digest(good), good), (digest(bad), bad[:-1] + b"!")])
    reply = api.request("POST", "/blobs/pack", body)
    assert reply.status == 400
    assert "have the digest" in reply.error["message"]
    assert missing(api, digest(good), digest(bad)) == [digest(good), digest(bad)]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"x", 400),
        (packs.header("sha256:" + "0" * 64, 5) + b"abc", 400),
        (packs.header("sha256:" + "0" * 64, packs.LARGE + 1), 400),
        (packs.header("sha256:" + "0" * 64, (1 << 64) - 1), 400),
    ],
)
def test_a_body_that_is_no_pack_is_refused(api: Api, body: bytes, status: int) -> None:
    assert api.request("POST", "/blobs/pack", body).status == status


def test_a_pack_that_is_too_large_is_refused(api: Api) -> None:
    assert api.request("POST", "/blobs/pack", bytes(packs.LARGEST_PACK + 1)).status == 413


@pytest.mark.parametrize("body", [{}, {"digests": "x"}, {"digests": ["x"]}, {"digests": [3]}, {"digests": [], "x": 1}])
@pytest.mark.parametrize("path", ["/blobs/missing", "/blobs/fetch"])
def test_bad_questions_are_refused(api: Api, path: str, body: object) -> None:
    assert api.post(path, body).status == 400


def test_too_many_digests_in_one_question(serve_yard: Callable[..., Served]) -> None:
    reply = serve_yard().api.post("/blobs/missing", {"digests": ["sha256:" + "0" * 64] * (packs.MOST_ASKED + 1)})
    assert reply.status == 400


def test_what_is_not_there_or_too_large_is_not_fetched_in_packs(api: Api) -> None:
    large = some(packs.LARGE + 1)
    assert api.put(f"/blobs/{digest(large)}", large).status == 201
    assert api.post("/blobs/fetch", {"digests": [digest(b"never sent")]}).status == 404
    reply = api.post("/blobs/fetch", {"digests": [digest(large)]})
    assert (reply.status, digest(large) in reply.error["fix"]) == (400, True)


def test_who_may_send_and_fetch(roles: dict[Role, Api]) -> None:
    data = some()
    body = packs.pack([(digest(data), data)])
    for role, api in roles.items():
        sends = role in (Role.ADMIN, Role.MEMBER, Role.AGENT)
        assert (api.request("POST", "/blobs/pack", body).status == 200) == sends, role
        assert (api.post("/blobs/missing", {"digests": []}).status == 200) == sends, role
        assert (api.request("PATCH", f"/blobs/{digest(data)}?offset=0&size=20", data).status == 200) == sends, role
        assert api.post("/blobs/fetch", {"digests": [digest(data)]}).status == 200, role
    assert roles[Role.ADMIN].as_(None).request("POST", "/blobs/pack", body).status == 401


def send(api: Api, name: str, offset: int, size: int, data: bytes) -> tuple[int, bool]:
    reply = api.request("PATCH", f"/blobs/{name}?offset={offset}&size={size}", data)
    assert reply.status == 200, reply.body
    return reply.json["held"], reply.json["complete"]


def test_a_text_by_what_differs_from_another_one(api: Api) -> None:
    base, text = some(1000).hex().encode(), b""
    text = base[:500] + "é new ".encode() + base[400:]
    api.request("POST", "/blobs/pack", packs.pack([(digest(base), base)]))
    asked = {"digest": digest(text), "base": digest(base), "pieces": [[0, 500], "é new ", [400, 2000]]}
    assert api.post("/blobs/edit", asked).status == 200
    assert api.get(f"/blobs/{digest(text)}").body == text
    other = {**asked, "digest": digest(b"other")}
    assert api.post("/blobs/edit", other).status == 400
    assert missing(api, digest(b"other")) == [digest(b"other")]
    assert api.post("/blobs/edit", {**asked, "base": digest(b"other")}).status == 404
    assert api.post("/blobs/edit", {**asked, "pieces": [[0, 5000]]}).status == 400
    assert api.post("/blobs/edit", {**asked, "base": "../passwd"}).status == 400


def test_a_large_file_in_pieces(api: Api) -> None:
    data = some(3 << 20)
    name, size = digest(data), len(data)
    assert send(api, name, 0, size, b"") == (0, False)
    assert send(api, name, 0, size, data[:1_500_000]) == (1_500_000, False)
    assert send(api, name, 2_000_000, size, data[2_000_000:]) == (1_500_000, False)  # there would be a hole
    assert send(api, name, 0, size, data[:1000]) == (1_500_000, False)  # known already
    assert missing(api, name) == [name]
    assert send(api, name, 1_000_000, size, data[1_000_000:]) == (size, True)  # overlaps
    assert api.get(f"/blobs/{name}").body == data
    assert send(api, name, 0, size, b"") == (size, True)


def test_what_arrived_before_a_cut_stays(served: Served) -> None:
    data = some(4 << 20)
    name, half = digest(data), 2 << 20
    place = urlsplit(served.api.url)
    head = (
        f"PATCH {PREFIX}/blobs/{name}?offset=0&size={len(data)} HTTP/1.1\r\nHost: {place.netloc}\r\n"
        f"Authorization: Bearer {served.api.token}\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    with socket.create_connection((place.hostname or "", place.port or 0)) as connection:
        connection.sendall(head.encode() + data[:half])
        until(lambda: send(served.api, name, 0, len(data), b"")[0] >= 1 << 20, "half of it arrived", timeout_s=60)
    held, complete = send(served.api, name, 0, len(data), b"")
    assert not complete
    assert 0 < held <= half
    assert send(served.api, name, held, len(data), data[held:]) == (len(data), True)


def test_a_large_file_with_another_digest_is_dropped(api: Api) -> None:
    data = some(1 << 20)
    name = digest(data)
    reply = api.request("PATCH", f"/blobs/{name}?offset=0&size={len(data)}", data[:-1] + bytes([data[-1] ^ 1]))
    assert reply.status == 400
    assert "have the digest" in reply.error["message"]
    assert send(api, name, 0, len(data), b"") == (0, False)
    assert send(api, name, 0, len(data), data) == (len(data), True)


def test_who_says_another_size_drops_nothing(api: Api) -> None:
    data = some(1 << 20)
    name, size = digest(data), len(data)
    assert send(api, name, 0, size, data[:1000]) == (1000, False)
    assert api.request("PATCH", f"/blobs/{name}?offset=0&size=0", b"").status == 400
    assert api.request("PATCH", f"/blobs/{name}?offset=1000&size=1000", b"x").status == 400
    assert send(api, name, 0, size, b"") == (1000, False)


@pytest.mark.parametrize("query", ["", "?offset=0", "?size=1", "?offset=-1&size=1", "?offset=x&size=1"])
def test_pieces_say_where_they_belong(api: Api, query: str) -> None:
    assert api.request("PATCH", f"/blobs/{digest(b'x')}{query}", b"x").status == 400


def tree_of(api: Api, files: dict[str, bytes], *, sent: bool = True) -> Tree:
    tree = Tree.build(TreeFile(path, digest(data), len(data), False) for path, data in files.items())
    pack(api, *(files.values() if sent else ()), tree.encode())
    return tree


def code_of(tree: Tree, **changes: object) -> dict[str, object]:
    return {"tree": tree.digest, "files": len(tree.files), "size": tree.size, **changes}


def test_a_run_with_code_and_data_that_the_yard_has(api: Api) -> None:
    tree, diff = tree_of(api, {"train.py": some()}), some()
    pack(api, diff)
    git = {"head": "0" * 40, "branch": "main", "remote": None, "dirty": True, "diff": digest(diff)}
    data = [{"tree": tree.digest, "to": "sets/a"}, {"path": "/x", "to": "b"}]
    run = api.submit(code=code_of(tree, git=git), data=data)
    spec = api.get(f"/runs/{run}").json["spec"]
    assert spec["code"] == code_of(tree, git=git)
    assert spec["data"] == data


def refused(api: Api, **spec: object) -> str:
    reply = api.post("/runs", {"command": ["true"], **spec})
    assert reply.status == 400, reply.body
    return reply.error["message"]


def test_a_run_whose_code_or_data_is_not_there_is_refused(api: Api) -> None:
    whole = tree_of(api, {"a": some()})
    hollow = tree_of(api, {"a": some(), "b": some()}, sent=False)
    unknown = Tree.build([TreeFile("x", digest(some()), 1, False)])
    no_tree = some()
    pack(api, no_tree)
    assert "the yard has no tree" in refused(api, code=code_of(unknown))
    assert "lacks 2 of the tree's files, such as 'a'" in refused(api, data=[{"tree": hollow.digest, "to": "d"}])
    assert "is no tree" in refused(api, data=[{"tree": digest(no_tree), "to": "d"}])
    assert "has 1 files of 20 bytes" in refused(api, code=code_of(whole, size=21))
    assert "code.git.diff" in refused(api, code=code_of(whole, git={"diff": digest(some())}))


def test_a_plan_needs_no_files(api: Api) -> None:
    unknown = Tree.build([TreeFile("x", digest(some()), 1, False)])
    assert api.post("/plan", {"command": ["true"], "code": code_of(unknown)}).status == 200


def test_a_recipe_brings_only_what_the_yard_has(api: Api) -> None:
    unknown = Tree.build([TreeFile("x", digest(some()), 1, False)])
    reply = api.request("PUT", "/recipes/hollow", {"command": ["true"], "code": code_of(unknown)})
    assert reply.status == 400
    assert "the yard has no tree" in reply.error["message"]


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A file system on which 2 MB fit."""
    with small_disk(tmp_path / "small", "size=2m") as place:
        yield place


@pytest.mark.component("root")
def test_a_full_disk_is_told_and_nothing_is_left(small: Path, serve_yard: Callable[..., Served]) -> None:
    api = serve_yard(blobs=str(small)).api
    files = [some(900_000) for _ in range(4)]
    body = packs.pack((digest(data), data) for data in files)
    reply = api.request("POST", "/blobs/pack", body)
    assert (reply.status, reply.error["code"]) == (507, "disk_full")
    large = some(3 << 20)
    reply = api.request("PATCH", f"/blobs/{digest(large)}?offset=0&size={len(large)}", large)
    assert (reply.status, reply.error["code"]) == (507, "disk_full")
    assert missing(api, digest(large)) == [digest(large)]
