"""Files from the web: what is sent where, and what is said of what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runyard.agent.bring import web_files as fetching
from runyard.agent.bring.web_files import NotFetched, WebFetcher
from runyard.model.secret import Secret
from tests.labs.web import WebServer

VALUE = "s3cr3t-value"


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as made:
        yield made


@pytest.fixture
def secret_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text(f"{VALUE}\n")
    path.chmod(0o600)
    return path


def fetcher(web: WebServer, secret_file: Path, **changes: object) -> WebFetcher:
    known = Secret(name="store", file=str(secret_file), hosts=(web.host,))
    settings = {"secrets": {"store": known}, "limit": 1 << 20, "sleep": lambda pause: None, **changes}
    return WebFetcher(**settings)  # type: ignore[arg-type]


def fetch(made: WebFetcher, url: str, target: Path, secret: str = "") -> bytes:
    made.fetch(url, secret, target, lambda seen: None)
    return target.read_bytes()


def refusal(made: WebFetcher, url: str, target: Path, secret: str = "") -> str:
    with pytest.raises(NotFetched) as error:
        made.fetch(url, secret, target, lambda seen: None)
    assert VALUE not in str(error.value)
    return str(error.value)


def test_a_file_comes_whole(web: WebServer, secret_file: Path, tmp_path: Path) -> None:
    data = b"x" * (1 << 20)
    web.answers["/a"] = (200, {}, data)
    assert fetch(fetcher(web, secret_file), web.url("/a?key=1"), tmp_path / "a") == data
    assert web.asked == [("/a?key=1", None)]


def test_the_secret_is_shown_to_its_host(web: WebServer, secret_file: Path, tmp_path: Path) -> None:
    web.answers["/a"] = (200, {}, b"x")
    fetch(fetcher(web, secret_file), web.url("/a"), tmp_path / "a", "store")
    token = Secret(name="store", file=str(secret_file), hosts=(web.host,), scheme="Token")
    fetch(fetcher(web, secret_file, secrets={"store": token}), web.url("/a"), tmp_path / "a", "store")
    assert [who for _, who in web.asked] == [f"Bearer {VALUE}", f"Token {VALUE}"]


def test_a_redirect_carries_it_only_to_the_same_host(web: WebServer, secret_file: Path, tmp_path: Path) -> None:
    with WebServer() as other:
        web.answers["/a"] = (302, {"Location": web.url("/b")}, b"")
        web.answers["/b"] = (302, {"Location": other.url("/c")}, b"")
        other.answers["/c"] = (200, {}, b"there")
        assert fetch(fetcher(web, secret_file), web.url("/a"), tmp_path / "a", "store") == b"there"
        assert web.asked == [("/a", f"Bearer {VALUE}"), ("/b", f"Bearer {VALUE}")]
        assert other.asked == [("/c", None)]


@pytest.mark.parametrize("there", ["file:///etc/passwd", "ftp://127.0.0.1/x", "/a"])
def test_redirects_lead_neither_elsewhere_nor_round(
    web: WebServer, secret_file: Path, tmp_path: Path, there: str
) -> None:
    web.answers["/a"] = (302, {"Location": there}, b"")
    assert "answers 302" in refusal(fetcher(web, secret_file), web.url("/a"), tmp_path / "a")
    assert len(web.asked) <= 10


def test_a_secret_is_not_for_every_server(web: WebServer, secret_file: Path, tmp_path: Path) -> None:
    with WebServer() as other:
        told = refusal(fetcher(web, secret_file), other.url("/a"), tmp_path / "a", "store")
        assert told == f"{other.url('/a')}: the secret 'store' is not for {other.host}"
        assert other.asked == []


def test_a_secret_is_not_sent_in_the_clear(secret_file: Path, tmp_path: Path) -> None:
    known = {"store": Secret(name="store", file=str(secret_file), hosts=("data.example",))}
    told = refusal(WebFetcher(secrets=known, limit=1), "http://data.example/a", tmp_path / "a", "store")
    assert "over https only" in told


def test_a_secret_that_others_may_read_is_not_used(web: WebServer, secret_file: Path, tmp_path: Path) -> None:
    secret_file.chmod(0o640)
    assert "chmod 600" in refusal(fetcher(web, secret_file), web.url("/a"), tmp_path / "a", "store")
    secret_file.unlink()
    assert "cannot be read" in refusal(fetcher(web, secret_file), web.url("/a"), tmp_path / "a", "store")
    assert web.asked == []


def test_a_name_that_nobody_knows(web: WebServer, secret_file: Path, tmp_path: Path) -> None:
    assert "[secrets.other]" in refusal(fetcher(web, secret_file), web.url("/a"), tmp_path / "a", "other")


def test_a_refusal_is_told_without_the_query(web: WebServer, secret_file: Path, tmp_path: Path) -> None:
    told = refusal(fetcher(web, secret_file), web.url("/no?key=abc"), tmp_path / "a")
    assert told == f"{web.url('/no')}: its server answers 404 Not Found"
    assert len(web.asked) == 1


def test_what_passes_is_tried_again(web: WebServer, secret_file: Path, tmp_path: Path) -> None:
    answers = iter([(503, {}, b""), (200, {"Content-Length": "9"}, b"cut"), (200, {}, b"whole")])
    web.answers["/a"] = lambda headers: next(answers)
    assert fetch(fetcher(web, secret_file), web.url("/a"), tmp_path / "a") == b"whole"
    web.answers["/b"] = (503, {}, b"")
    assert "answers 503" in refusal(fetcher(web, secret_file), web.url("/b"), tmp_path / "b")
    assert len(web.asked) == 3 + 1 + len(fetching.PAUSES_S)


@pytest.mark.parametrize("length", [{}, {"Content-Length": ""}])
def test_one_that_is_too_large_is_refused(
    web: WebServer, secret_file: Path, tmp_path: Path, length: dict[str, str]
) -> None:
    web.answers["/a"] = (200, length, b"x" * 2000)
    told = refusal(fetcher(web, secret_file, limit=1000), web.url("/a"), tmp_path / "a")
    assert "input_limit" in told


def test_nobody_listens(web: WebServer, secret_file: Path, tmp_path: Path) -> None:
    with WebServer() as gone:
        url = gone.url("/a")
    assert "cannot be reached: Connection refused" in refusal(fetcher(web, secret_file), url, tmp_path / "a")
