"""The last lines of a log, found from its end; and logs that are followed across breaks."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runyard import errors
from runyard.client import Client, logs
from runyard.client.logs import Log


class Shelf:
    """Serves a log by offset and limit, as a yard does."""

    def __init__(self) -> None:
        self.data = b""

    def answer(self, request) -> None:
        query = {name: values[0] for name, values in parse_qs(urlsplit(request.path).query).items()}
        offset = int(query.get("offset", 0))
        limit = int(query.get("limit", len(self.data)))
        request.reply(200, raw=self.data[offset : offset + limit], X_Log_Size=str(len(self.data)))


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def log(serve, shelf: Shelf, monkeypatch: pytest.MonkeyPatch) -> Log:
    monkeypatch.setattr(logs, "BLOCK", 7)  # so that small texts have several blocks
    return Log(client=Client(serve(shelf.answer).url, "t"), run=1)


@pytest.mark.parametrize(
    ("text", "lines", "tail"),
    [
        (b"", 3, b""),
        (b"a\nb\nc\n", 0, b""),
        (b"a\nb\nc\n", 1, b"c\n"),
        (b"a\nb\nc\n", 2, b"b\nc\n"),
        (b"a\nb\nc\n", 3, b"a\nb\nc\n"),
        (b"a\nb\nc\n", 9, b"a\nb\nc\n"),
        (b"a\nb\nunfinished", 1, b"unfinished"),
        (b"a\nb\nunfinished", 2, b"b\nunfinished"),
        (b"one line that is much longer than a block\n", 1, b"one line that is much longer than a block\n"),
        (b"x\n\n\n", 2, b"\n\n"),
        (b"\n", 1, b"\n"),
        (b"1234567\n", 1, b"1234567\n"),
        (b"123456\n7\n", 1, b"7\n"),
    ],
)
def test_the_last_lines(log: Log, shelf: Shelf, text: bytes, lines: int, tail: bytes) -> None:
    shelf.data = text
    assert text[log.tail_offset(lines) :] == tail


def test_any_text_ends_as_its_lines_say(log: Log, shelf: Shelf) -> None:
    @given(
        st.lists(st.sampled_from([b"", b"a", b"four", b"longer than a block"]), max_size=8),
        st.booleans(),
        st.integers(0, 9),
    )
    def check(lines: list[bytes], ended: bool, wanted: int) -> None:
        shelf.data = b"\n".join(lines) + (b"\n" if ended and lines else b"")
        expected = b"".join(shelf.data.splitlines(keepends=True)[-wanted:]) if wanted else b""
        assert shelf.data[log.tail_offset(wanted) :] == expected

    check()


def test_following_goes_on_where_a_break_was(serve) -> None:
    whole = b"0123456789"

    def answer(request) -> None:
        offset = int(parse_qs(urlsplit(request.path).query)["offset"][0])
        piece = whole[offset : offset + 4]
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        request.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        if offset + len(piece) == len(whole):
            request.wfile.write(b"0\r\n\r\n")
        request.close_connection = True

    server = serve(answer)
    log = Log(client=Client(server.url, "t"), run=1)
    assert b"".join(log.follow()) == whole
    assert [urlsplit(path).query for _, path, _, _ in server.seen] == [
        "offset=0&follow=1",
        "offset=4&follow=1",
        "offset=8&follow=1",
    ]


def test_a_yard_that_never_answered_gets_no_patience() -> None:
    log = Log(client=Client("http://127.0.0.1:1", "t"), run=1)
    with pytest.raises(errors.YardUnreachable):
        next(log.follow())
