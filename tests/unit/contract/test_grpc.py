"""What gRPC puts into HTTP/2."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.contract import grpc
from paddock.contract.errors import ErrorKind, StatusCode
from paddock.contract.grpc import StatusError
from paddock.contract.http2 import Http2Stream


def stream(headers: dict[str, str], body: bytes = b"", trailers: dict[str, str] | None = None) -> Http2Stream:
    loop = asyncio.new_event_loop()
    made = Http2Stream(1, loop.create_future())
    loop.close()
    made.headers, made.body, made.trailers = headers, bytearray(body), trailers or {}
    return made


OK = {":status": "200", "content-type": "application/grpc"}


def failure(**parts: Any) -> StatusError:
    with pytest.raises(StatusError) as caught:
        grpc.message_of(stream(**parts))
    return caught.value


def test_an_answer() -> None:
    assert grpc.message_of(stream(OK, grpc.framed(b"abc"), {"grpc-status": "0"})) == b"abc"


@given(st.binary(max_size=50))
def test_frames(message: bytes) -> None:
    assert grpc.unframed(grpc.framed(message)) == message


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", StatusCode.INTERNAL),
        (b"\0\0\0\0", StatusCode.INTERNAL),
        (b"\0\0\0\0\5abc", StatusCode.INTERNAL),
        (b"\0\0\0\0\1abc", StatusCode.INTERNAL),
        (b"\1\0\0\0\3abc", StatusCode.UNIMPLEMENTED),
    ],
)
def test_bad_frames(body: bytes, code: StatusCode) -> None:
    with pytest.raises(StatusError) as caught:
        grpc.unframed(body)
    assert caught.value.code is code


@given(
    st.text(st.characters(codec="utf-8")), st.sampled_from([each for each in StatusCode if each]), st.none() | st.sampled_from(ErrorKind)
)
def test_a_status_travels(text: str, code: StatusCode, kind: ErrorKind | None) -> None:
    trailers = dict(grpc.status_trailers(StatusError(code, text, kind=kind, retry_after=1.5)))
    assert all(0x20 <= ord(each) < 0x7F for value in trailers.values() for each in value)
    error = failure(headers=OK | trailers)
    assert (error.code, error.text, error.kind, error.retry_after) == (code, text, kind, 1.5)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({":status": "404"}, StatusCode.UNIMPLEMENTED),
        ({":status": "503", "content-type": "text/html"}, StatusCode.UNAVAILABLE),
        ({":status": "401"}, StatusCode.UNAUTHENTICATED),
        ({":status": "200", "content-type": "text/html"}, StatusCode.UNKNOWN),
        ({":status": "302"}, StatusCode.UNKNOWN),
        (OK, StatusCode.INTERNAL),
        (OK | {"grpc-status": "99"}, StatusCode.UNKNOWN),
        (OK | {"grpc-status": "x"}, StatusCode.UNKNOWN),
    ],
)
def test_answers_that_are_none(headers: dict[str, str], code: StatusCode) -> None:
    assert failure(headers=headers).code is code


@pytest.mark.parametrize("text", ["-1", "1e9", "nan", "", "9" * 10])
def test_a_retry_hint_that_is_none(text: str) -> None:
    assert failure(headers=OK | {"grpc-status": "8", grpc.RETRY_HEADER: text, grpc.KIND_HEADER: "Odd"}).retry_after is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30S", 30), ("5M", 300), ("1H", 3600), ("1500m", 1.5), ("2000000u", 2), ("99999999n", 0.099999999), (None, None)],
)
def test_timeouts(text: str | None, seconds: float | None) -> None:
    assert grpc.parse_timeout(text) == (seconds if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize("text", ["", "S", "30", "-1S", "1.5S", "123456789S", "1X", "٣S", "1S\n"])
def test_timeouts_that_are_none(text: str) -> None:
    with pytest.raises(StatusError):
        grpc.parse_timeout(text)


@given(st.floats(0, 1e7))
def test_a_timeout_travels(seconds: float) -> None:
    found = grpc.parse_timeout(grpc.format_timeout(seconds))
    assert found is not None
    assert seconds - 1 <= found <= seconds + 1e-6
