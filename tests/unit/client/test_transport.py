"""HTTP as it happens: connections that are kept, dropped, refused, cut short."""

from __future__ import annotations

import os
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from runyard import errors
from runyard.client.sweep import check_space
from runyard.client.transport import NotConnected, Transport, check_url


def echo(request) -> None:
    request.reply(200, {"method": request.command, "path": request.path, "body": request.body().decode()})


def test_a_request_carries_token_body_and_query(serve) -> None:
    server = serve(echo)
    transport = Transport(server.url, "secret")
    answer = transport.json("POST", "/runs", {"a": 1}, query={"x": "a b", "none": None, "zero": 0})
    assert answer == {"method": "POST", "path": "/api/v1/runs?x=a+b&zero=0", "body": '{"a": 1}'}
    headers = server.seen[0][2]
    assert headers["Authorization"] == "Bearer secret"
    assert headers["Content-Type"] == "application/json"


def test_a_path_in_the_address_is_kept(serve) -> None:
    server = serve(echo)
    assert Transport(f"{server.url}/lab/").json("GET", "/health")["path"] == "/lab/api/v1/health"


def test_one_connection_serves_many_requests(serve) -> None:
    server = serve(echo)
    transport = Transport(server.url)
    for _ in range(5):
        transport.json("GET", "/health")
    assert len({port for *_, port in server.seen}) == 1


def test_threads_share_a_transport(serve) -> None:
    server = serve(echo)
    transport = Transport(server.url)
    with ThreadPoolExecutor(8) as threads:
        answers = list(threads.map(lambda number: transport.json("POST", "/x", number), range(200)))
    assert [answer["body"] for answer in answers] == [str(number) for number in range(200)]


def test_a_connection_closed_while_idle_is_replaced_for_any_method(serve) -> None:
    def once(request) -> None:
        request.close_connection = True  # without saying so
        echo(request)

    server = serve(once)
    transport = Transport(server.url)
    for method in ("GET", "POST", "POST"):
        assert transport.json(method, "/x")["method"] == method
        assert server.hung_up.acquire(timeout=90)


def drop_second(request) -> None:
    """Answer the first request of a test, and hang up on the second when it has been read."""
    if len(request.server.seen) == 2:
        request.body()
        request.connection.shutdown(socket.SHUT_RDWR)
        request.close_connection = True
    else:
        echo(request)


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_what_is_harmless_twice_is_repeated_when_the_connection_drops(serve, method: str) -> None:
    server = serve(drop_second)
    transport = Transport(server.url)
    transport.json("GET", "/x")
    assert transport.json(method, "/x")["method"] == method
    assert len(server.seen) == 3


def test_a_post_is_not_repeated(serve) -> None:
    server = serve(drop_second)
    transport = Transport(server.url)
    transport.json("GET", "/x")
    with pytest.raises(errors.YardUnreachable, match="broke before its answer"):
        transport.json("POST", "/runs", {})
    assert len(server.seen) == 2


def test_a_post_that_says_it_is_harmless_is_repeated(serve) -> None:
    server = serve(drop_second)
    transport = Transport(server.url)
    transport.json("GET", "/x")
    assert transport.json("POST", "/runs", {}, repeatable=True)["method"] == "POST"


def test_a_fresh_connection_that_drops_is_not_tried_again(serve) -> None:
    def hang_up(request) -> None:
        request.close_connection = True

    server = serve(hang_up)
    with pytest.raises(errors.YardUnreachable):
        Transport(server.url).json("GET", "/x")
    assert len(server.seen) == 1


def test_errors_arrive_as_the_class_that_was_raised(serve) -> None:
    problem = errors.Unsatisfiable("no site has 99 cpus", "the most is 8")
    server = serve(lambda request: request.reply(422, problem.to_json()))
    with pytest.raises(errors.Unsatisfiable) as caught:
        Transport(server.url).json("GET", "/x")
    assert (caught.value.message, caught.value.fix) == ("no site has 99 cpus", "the most is 8")


@pytest.mark.parametrize("status", [200, 404, 500])
def test_another_program_at_that_address_is_told_so(serve, status: int) -> None:
    server = serve(lambda request: request.reply(status, raw=b"<html>It works!</html>"))
    with pytest.raises(errors.RunyardError, match="but not as a yard does"):
        Transport(server.url).json("GET", "/x")


def test_a_redirect_is_not_followed(serve) -> None:
    server = serve(lambda request: request.reply(302, raw=b"", Location="http://elsewhere.example/"))
    with pytest.raises(errors.RunyardError, match="answered 302"):
        Transport(server.url, "secret").json("GET", "/x")
    assert len(server.seen) == 1


def test_the_connection_is_kept_after_an_error(serve) -> None:
    server = serve(lambda request: request.reply(404, errors.NotFound("no run 1").to_json()))
    transport = Transport(server.url)
    for _ in range(2):
        with pytest.raises(errors.NotFound):
            transport.json("GET", "/x")
    assert len({port for *_, port in server.seen}) == 1


def test_nobody_listening() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(NotConnected, match="connection refused") as caught:
            Transport(url).json("GET", "/x")
    assert caught.value.fix == "runyard up -d"
    assert caught.value.exit_code == 205


def test_an_answer_that_does_not_come(serve) -> None:
    release = threading.Event()
    server = serve(lambda request: release.wait(90) and None)
    with pytest.raises(errors.YardUnreachable, match="did not answer in time"):
        Transport(server.url).json("GET", "/x", timeout=0.1)
    release.set()


def test_a_refusal_before_the_body_was_read_is_heard(serve) -> None:
    def refuse(request) -> None:
        request.reply(413, errors.TooLarge("the body is larger than 1 KB").to_json(), Connection="close")
        request.close_connection = True

    server = serve(refuse)
    with pytest.raises(errors.TooLarge, match="larger than 1 KB"):
        Transport(server.url).json("POST", "/runs", "x" * (8 << 20))


def test_pieces_are_given_as_they_arrive(serve) -> None:
    first_was_read = threading.Event()

    def stream(request) -> None:
        request.send_response(200)
        request.send_header("Transfer-Encoding", "chunked")
        request.end_headers()
        request.wfile.write(b"5\r\nfirst\r\n")
        assert first_was_read.wait(90)
        request.wfile.write(b"6\r\nsecond\r\n0\r\n\r\n")

    server = serve(stream)
    with Transport(server.url).open("GET", "/log", timeout=None) as answer:
        pieces = iter(answer)
        assert next(pieces) == b"first"
        first_was_read.set()
        assert list(pieces) == [b"second"]


@pytest.mark.parametrize(
    ("head", "body"),
    [(b"Content-Length: 10", b"half"), (b"Transfer-Encoding: chunked", b"4\r\nhalf\r\n")],
    ids=["length", "chunked"],
)
def test_a_body_that_is_cut_short_is_an_error(serve, head: bytes, body: bytes) -> None:
    def cut(request) -> None:
        request.wfile.write(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + body)
        request.close_connection = True

    server = serve(cut)
    received = []
    with pytest.raises(errors.YardUnreachable), Transport(server.url).open("GET", "/log") as answer:
        received.extend(answer)
    assert received == [b"half"]


def test_an_answer_that_was_not_read_to_its_end_costs_its_connection(serve) -> None:
    server = serve(lambda request: request.reply(200, raw=b"x" * (1 << 22)))
    transport = Transport(server.url)
    with transport.open("GET", "/x") as answer:
        next(iter(answer))
    with transport.open("GET", "/x") as answer:
        assert len(answer.read()) == 1 << 22
    assert len({port for *_, port in server.seen}) == 2


def test_a_file_is_sent_as_it_is(serve, tmp_path: Path) -> None:
    received = []

    def take(request) -> None:
        received.append(request.body())
        request.reply(201, {})

    server = serve(take)
    path = tmp_path / "blob"
    path.write_bytes(os.urandom(3 << 20))
    with Transport(server.url).open("PUT", "/blobs/x", body=path) as answer:
        assert answer.status == 201
    assert received == [path.read_bytes()]


def test_a_child_process_does_not_speak_on_its_parents_line(serve) -> None:
    server = serve(echo)
    transport = Transport(server.url)
    transport.json("GET", "/parent")
    pid = os.fork()
    if pid == 0:
        os._exit(0 if transport.json("GET", "/child") else 1)
    assert os.waitpid(pid, 0)[1] == 0
    transport.json("GET", "/parent")
    ports = {path: port for _, path, _, port in server.seen}
    assert ports["/api/v1/parent"] != ports["/api/v1/child"]


def test_values_of_numpy_and_paths_are_written(serve) -> None:
    server = serve(echo)
    values = [np.int64(3), np.float32(0.5), np.arange(2), range(2), Path("/data")]
    assert Transport(server.url).json("POST", "/x", values)["body"] == '[3, 0.5, [0, 1], [0, 1], "/data"]'


def test_a_space_may_have_them_as_well() -> None:
    check_space({"space": {"width": [np.int64(3)], "lr": np.logspace(-3, -1, 3), "id": range(8)}})
    with pytest.raises(errors.InvalidInput, match=r"space.lr\[0\]"):
        check_space({"space": {"lr": [np.nan]}})


def test_what_is_not_json_is_refused_before_it_is_sent() -> None:
    with pytest.raises(errors.InvalidInput, match="set is not a JSON value"):
        Transport("http://127.0.0.1:1").json("POST", "/x", {"a": {1, 2}})


@pytest.mark.parametrize(
    "url", ["", "127.0.0.1:9090", "ftp://x", "http://", "http://x:notaport", "http://[::1", "http://x/ü"]
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        check_url(url)
    assert "http://127.0.0.1:9090" in caught.value.fix


def test_a_line_break_is_no_part_of_a_token(serve) -> None:
    server = serve(lambda request: request.reply(200, {"said": request.headers["Authorization"]}))
    assert Transport(server.url, "ry_secret\r\n").json("GET", "/x") == {"said": "Bearer ry_secret"}


@pytest.mark.parametrize("token", ["ry_one\nry_two", "ry_sécret", "ry_€"])
def test_what_cannot_be_a_token_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(errors.Unauthorized) as caught:
        Transport("http://127.0.0.1:1", token)
    assert "ry_" not in str(caught.value)
