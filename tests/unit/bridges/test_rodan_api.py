"""Rodan's HTTP interface, against a server that stands for it: logins in both forms, files, and what goes wrong."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runyard.bridges.rodan.api import Api, NotEver, TemporaryRodanError
from runyard.bridges.rodan.credentials import Credentials
from tests.labs.rodan import RodanApi

MOST = 1 << 20


@pytest.fixture
def rodan() -> Iterator[RodanApi]:
    with RodanApi() as made:
        yield made


def api(rodan: RodanApi, *, address: str = "", **changes: str) -> Api:
    known = {"rodan": address or rodan.address, "user": rodan.user, "password": rodan.password, **changes}
    return Api(Credentials(broker="", broker_password="", **known))


def fetch(client: Api, path: str, most: int = MOST) -> bytes:
    return b"".join(client.download(path, most))


@pytest.mark.parametrize("form", ["username", "email"])
@pytest.mark.parametrize("user", ["trainer", "trainer@example.org"])
def test_both_forms_of_the_login_are_known(form: str, user: str) -> None:
    with RodanApi(form) as rodan:
        rodan.user = user
        client, path = api(rodan), rodan.upload(b"page" * 1000)
        assert fetch(client, path) == fetch(client, path) == b"page" * 1000
        assert [one.token for one in rodan.downloads()] == [f"Token {rodan.token}"] * 2
        assert rodan.logins()[-1] == {form: user, "password": rodan.password}
        assert len(rodan.logins()) <= 2, "the token is kept"


def test_a_rodan_that_moves_is_found_again(rodan: RodanApi) -> None:
    """The login lay elsewhere before April 2020, and names its user otherwise since the middle of 2023."""
    client, path = api(rodan), rodan.upload(b"x")
    for login, form in (("/auth/token/", "username"), ("/api/auth/token/", "username"), ("/api/auth/token/", "email")):
        rodan.login, rodan.form, rodan.token = login, form, f"{form}{len(login)}"
        assert fetch(client, path) == b"x"
        assert rodan.logins()[-1] == {form: rodan.user, "password": rodan.password}


def test_a_token_that_was_changed_is_asked_for_again(rodan: RodanApi) -> None:
    client, path = api(rodan), rodan.upload(b"x")
    fetch(client, path)
    rodan.token = "another"
    assert fetch(client, path) == b"x"
    assert len(rodan.logins()) == 3  # with an address that looks like mail, both forms once


def test_a_wrong_password_is_told_and_never_shown(rodan: RodanApi) -> None:
    with pytest.raises(
        TemporaryRodanError, match=r"refuses user .* \(401\): correct RODAN_USER or RODAN_PASSWORD"
    ) as caught:
        api(rodan, password="wr0ng").login()
    assert "wr0ng" not in str(caught.value)


def test_a_user_who_is_not_active_is_told(rodan: RodanApi) -> None:
    rodan.is_active = False
    with pytest.raises(TemporaryRodanError, match=r"is not active \(403\)"):
        api(rodan).login()


def test_a_login_is_not_sent_on_to_others(rodan: RodanApi) -> None:
    with RodanApi() as other:
        rodan.redirects["/api/auth/token/"] = f"{other.address}/api/auth/token/"
        with pytest.raises(TemporaryRodanError, match=r"sends the login on to http://localhost:.*correct RODAN_HOST"):
            api(rodan).login()
        assert other.asked == []


def test_what_is_no_rodan_is_told(rodan: RodanApi) -> None:
    rodan.answers["/api/auth/token/"] = 404
    with pytest.raises(TemporaryRodanError, match="answers the login with 404: correct RODAN_HOST"):
        api(rodan).login()
    rodan.answers["/api/auth/token/"] = 200
    with pytest.raises(TemporaryRodanError, match="is no Rodan: its answer to the login has no token"):
        api(rodan).login()


def test_nobody_there_may_pass(rodan: RodanApi) -> None:
    with pytest.raises(TemporaryRodanError, match="cannot be reached: Connection refused"):
        api(rodan, address="http://127.0.0.1:9").login()


def test_redirects_keep_the_token_only_at_rodan(rodan: RodanApi) -> None:
    with RodanApi() as other:
        other.open_to_all = True
        far = other.upload(b"far")
        near = rodan.upload(b"near")
        rodan.redirects |= {
            "/near": near,
            "/far": f"{other.address}{far}",
            "/loop": "/loop",
            "/file": "file:///etc/passwd",
        }
        client = api(rodan)
        assert fetch(client, "/near") == b"near"
        assert fetch(client, "/far") == b"far"
        assert [one.token for one in other.asked] == [None]
        for path in ("/loop", "/file"):
            with pytest.raises(NotEver, match="302"):
                fetch(client, path)


@pytest.mark.parametrize(
    ("status", "kind", "sentence"),
    [(404, NotEver, "answers 404 Not Found"), (410, NotEver, "410 Gone"), (403, NotEver, "does not let this user"),
     (500, TemporaryRodanError, "answers 500"), (503, TemporaryRodanError, "answers 503"),
     (429, TemporaryRodanError, "answers 429")],
)  # fmt: skip
def test_what_trying_again_helps_against_is_told_apart(
    rodan: RodanApi, status: int, kind: type[Exception], sentence: str
) -> None:
    rodan.answers["/x"] = status
    with pytest.raises(kind, match=sentence):
        fetch(api(rodan), "/x")


def test_a_file_that_comes_in_part_is_no_file(rodan: RodanApi) -> None:
    path = rodan.upload(b"x" * 100_000)
    rodan.cut.add(path)
    with pytest.raises(TemporaryRodanError, match=r"50000 of 100000 bytes|broke"):
        fetch(api(rodan), path)


def test_a_file_over_the_limit_is_refused_before_it_comes(rodan: RodanApi) -> None:
    path = rodan.upload(b"x" * 5000)
    with pytest.raises(NotEver, match="raise input_limit of"):
        fetch(api(rodan), path, 4999)
    assert fetch(api(rodan), path, 5000) == b"x" * 5000
