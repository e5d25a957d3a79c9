"""A body of many parts: whole, and in the pieces in which it goes out."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.server.edge.http import HttpResponse, LongBody
from paddock.server.edge.responsewriter import ResponseWriter
from tests.coroutines import run_by


@given(st.lists(st.binary(max_size=12), min_size=1), st.sampled_from([b"", b",", b",{"]), st.integers(1, 40))
def test_the_pieces_are_the_body_and_no_larger_than_they_may_be(parts: list[bytes], separator: bytes, size: int) -> None:
    body = LongBody(parts, separator)
    whole = separator.join(parts)
    assert (bytes(body), len(body)) == (whole, len(whole))
    answer = HttpResponse(200, body)
    assert (answer.body, answer.length) == (whole, len(whole))
    pieces = [bytes(each) for each in answer.pieces(size)]
    assert b"".join(pieces) == whole
    assert max(map(len, pieces)) <= size


def test_small_parts_fill_a_piece() -> None:
    pieces = list(LongBody([b"x" * 9] * 100, b",").pieces(100))
    assert [len(each) for each in pieces] == [100] * 9 + [99]


class _Sent:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def is_closing(self) -> bool:
        return False

    def write(self, data: bytes) -> None:
        self.written.append(bytes(data))


@pytest.mark.parametrize(
    ("parts", "writes"), [([b"x" * 1000] * 10, 1), ([b"x" * 4096] * 1000, 34), ([b"x" * 300_000], 4), ([b"x", b"y" * 300_000, b"z"], 6)]
)
@run_by(asyncio.run)
async def test_a_long_body_goes_out_as_it_is(parts: Sequence[bytes], writes: int) -> None:
    sent = _Sent()
    body = LongBody(parts, b",")
    await ResponseWriter(sent).respond(HttpResponse(200, body), (True, True), 5)  # type: ignore[arg-type]
    head, _, rest = b"".join(sent.written).partition(b"\r\n\r\n")
    assert b"content-length: %d" % len(body) in head
    assert rest == b",".join(parts)
    # The head by itself, and no piece of more than 128 KB.
    assert len(sent.written) == writes
    assert max(map(len, sent.written)) <= 128 * 1024


@run_by(asyncio.run)
async def test_each_who_waits_for_the_end_hears_of_it() -> None:
    writer = ResponseWriter(_Sent())  # type: ignore[arg-type]
    first, second = writer.gone(), writer.gone()
    first.cancel()
    third = writer.gone()
    assert not second.done()
    writer.lose()
    await asyncio.wait_for(asyncio.gather(second, third, writer.gone()), 1)
    assert writer.closed
