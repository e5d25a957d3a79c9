"""Frames are cut out of a stream, however it arrives; large ones are refused at once, and what does no work is counted."""

import h2.exceptions
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.contract import frames
from paddock.contract.frames import FrameBudget, FrameBuffer, Http2Frame

DATA = bytes.fromhex("000028000000000001") + b"x" * 40
PING = bytes.fromhex("000008060000000000") + b"12345678"
# With a text after the last stream and the code.
GOODBYE = bytes.fromhex("00000b0700000000008000000700000000") + b"why"
KINDS = {"data": Http2Frame(0, 1, DATA), "ping": Http2Frame(6, 0, PING), "goodbye": Http2Frame(7, 0, GOODBYE)}


def test_goodbye() -> None:
    assert frames.goodbye(7, 2).hex() == "0000080700000000000000000700000002"
    assert frames.last_stream(Http2Frame(7, 0, frames.goodbye(7, 2))) == 7
    assert frames.last_stream(KINDS["goodbye"]) == 7


@given(st.sampled_from([0, 24]), st.lists(st.sampled_from(list(KINDS)), max_size=8), st.lists(st.integers(1, 60), max_size=40))
def test_cut(preface: int, kinds: list[str], cuts: list[int]) -> None:
    stream = b"p" * preface + b"".join(KINDS[kind].data for kind in kinds)
    found: list[Http2Frame] = []
    buffer = FrameBuffer(preface)
    for cut in [*cuts, len(stream)]:
        buffer.feed(stream[:cut])
        stream = stream[cut:]
        while (frame := buffer.next()) is not None:
            found.append(frame)
    assert b"".join(frame.data for frame in found if frame.kind is None) == b"p" * preface
    assert [frame for frame in found if frame.kind is not None] == [KINDS[kind] for kind in kinds]


def test_a_goaway_that_is_too_short() -> None:
    with pytest.raises(h2.exceptions.ProtocolError):
        frames.last_stream(Http2Frame(7, 0, (7).to_bytes(3, "big") + b"\x07" + bytes(5) + bytes(7)))


def test_a_large_frame_is_refused_by_its_head() -> None:
    buffer = FrameBuffer()
    buffer.feed((1 << 14).to_bytes(3, "big") + bytes(6))
    assert buffer.next() is None
    buffer = FrameBuffer()
    buffer.feed(((1 << 14) + 1).to_bytes(3, "big") + bytes(6))
    with pytest.raises(h2.exceptions.ProtocolError):
        buffer.next()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def spent(budget: FrameBudget, size: int = 0, *, awaited: bool = False) -> int:
    """How many frames pass."""
    return next((number for number in range(100_000) if not budget.spend(size, awaited=awaited)), 100_000)


def test_frames_that_do_nothing_are_bounded_and_time_gives_some_back() -> None:
    clock = Clock()
    budget = FrameBudget(clock)
    assert spent(budget) == FrameBudget.MOST
    clock.now = 2.0
    assert spent(budget) == pytest.approx(2 * FrameBudget.A_SECOND, abs=2)
    clock.now = 1e6
    assert spent(budget) <= FrameBudget.MOST + 1, "patience does not pile up"


@pytest.mark.parametrize(("size", "passes"), [(1, False), (512, False), (1024, True), (16_384, True)])
def test_frames_of_a_body_pass_unless_they_are_tiny(size: int, passes: bool) -> None:
    assert (spent(FrameBudget(Clock()), size, awaited=True) == 100_000) is passes


def test_what_was_on_its_way_when_calls_were_given_up_is_allowed_and_no_body_without_end() -> None:
    frames_of_all_windows = (8 << 20) >> 14
    assert frames_of_all_windows < spent(FrameBudget(Clock()), 1 << 14) < 2 * frames_of_all_windows


def test_answered_calls_pay_for_their_frames() -> None:
    budget = FrameBudget(Clock())
    for _ in range(10_000):
        assert all(budget.spend(9, awaited=False) for _ in range(10))
        budget.earn()
