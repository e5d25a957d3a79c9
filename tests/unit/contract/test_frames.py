"""GOAWAY frames are taken out of a stream of frames, however it is cut; large ones are refused at once."""

import h2.exceptions
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.contract.frames import FrameFilter, goodbye

DATA = bytes.fromhex("000028000000000001") + b"x" * 40
PING = bytes.fromhex("000008060000000000") + b"12345678"
# With a text after the last stream and the code.
GOODBYE = bytes.fromhex("00000b0700000000008000000700000000") + b"why"


def test_goodbye() -> None:
    assert goodbye(7, 2).hex() == "0000080700000000000000000700000002"
    assert list(FrameFilter().split(goodbye(7, 2))) == [7]


@given(
    st.sampled_from([0, 24]), st.lists(st.sampled_from(["data", "ping", "goodbye"]), max_size=8), st.lists(st.integers(1, 60), max_size=40)
)
def test_split(preface: int, kinds: list[str], cuts: list[int]) -> None:
    frames = {"data": DATA, "ping": PING, "goodbye": GOODBYE}
    stream = b"p" * preface + b"".join(frames[kind] for kind in kinds)
    found: list[bytes | int] = []
    target = FrameFilter(preface)
    for cut in [*cuts, len(stream)]:
        found += target.split(stream[:cut])
        stream = stream[cut:]
    merged: list[bytes | int] = []
    for piece in found:
        if isinstance(piece, bytes) and merged and isinstance(merged[-1], bytes):
            merged[-1] += piece
        else:
            merged.append(piece)
    expected: list[bytes | int] = [b"p" * preface] if preface else []
    for kind in kinds:
        if kind == "goodbye":
            expected.append(7)
        elif expected and isinstance(expected[-1], bytes):
            expected[-1] += frames[kind]
        else:
            expected.append(frames[kind])
    assert merged == expected


def test_a_goaway_that_is_too_short() -> None:
    with pytest.raises(h2.exceptions.ProtocolError):
        list(FrameFilter().split((7).to_bytes(3, "big") + b"\x07" + bytes(5)))


def test_a_large_frame_is_refused_by_its_head() -> None:
    assert list(FrameFilter().split((1 << 14).to_bytes(3, "big") + bytes(6))) != []
    with pytest.raises(h2.exceptions.ProtocolError):
        list(FrameFilter().split(((1 << 14) + 1).to_bytes(3, "big") + bytes(6)))
