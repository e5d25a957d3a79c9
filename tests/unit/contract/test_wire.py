"""Messages survive the wire, and hostile bytes end in one typed error."""

import contextlib
import dataclasses
import enum
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddock.base import protobuf
from paddock.contract import messages as m
from paddock.contract import wire
from paddock.contract.methods import EXTENSIONS, METHODS

TEXTS = st.text(st.characters(codec="utf-8"), max_size=8)


def values(hint: Any, bits: int) -> st.SearchStrategy[Any]:
    """Values of a field, whose annotation says nothing else about them."""
    if get_origin(hint) is dict:
        return st.dictionaries(TEXTS, TEXTS, max_size=3)
    if get_origin(hint) is tuple:
        return st.lists(values(get_args(hint)[0], bits), max_size=3).map(tuple)
    if args := get_args(hint):
        (inner,) = (each for each in args if each is not NoneType)
        return st.none() | values(inner, bits)
    if issubclass(hint, enum.Enum):
        return st.sampled_from(hint)
    if issubclass(hint, m.WireMessage):
        return messages(hint)
    edge = 1 << (bits - 1)
    plain = {str: TEXTS, bytes: st.binary(max_size=8), bool: st.booleans(), int: st.integers(-edge, edge - 1)}
    return plain[hint]


def messages(kind: type[m.WireMessage]) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind, include_extras=True)
    return st.builds(kind, **{name: values(get_args(hints[name])[0], field.bits) for name, field in kind.wire_fields().items()})


KINDS = sorted({cls for method in (*METHODS, *EXTENSIONS) for cls in (method.request, method.response)}, key=lambda cls: cls.__name__)


@given(st.sampled_from(KINDS).flatmap(messages))
def test_round_trip(message: m.WireMessage) -> None:
    data = wire.encode(message)
    assert wire.decode(data, type(message)) == message
    assert wire.encode(wire.decode(data, type(message))) == data


@given(st.sampled_from(KINDS).flatmap(lambda kind: st.tuples(st.just(kind), messages(kind), st.data())))
def test_broken_messages(drawn: tuple[type[m.WireMessage], m.WireMessage, st.DataObject]) -> None:
    kind, message, data = drawn
    raw = bytearray(wire.encode(message) or b"\0")
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(wire.MalformedMessage):
        assert isinstance(wire.decode(bytes(raw[: data.draw(st.integers(0, len(raw)))]), kind), kind)


@given(st.sampled_from(KINDS), st.binary(max_size=200))
def test_any_bytes(kind: type[m.WireMessage], data: bytes) -> None:
    with contextlib.suppress(wire.MalformedMessage):
        assert isinstance(wire.decode(data, kind), kind)


@dataclasses.dataclass(frozen=True)
class Case:
    message: m.WireMessage
    hexadecimal: str


# What Go's protobuf writes (tests/reference/test_provider.py asks it).
CASES = (
    Case(
        m.CreateRequest(name="web", user_data=b"\x00\xff", tags=("a", ""), owner=m.ObjectIdentity(uid="u")),
        "0a03776562120200ff42016142005a030a0175",
    ),
    Case(
        m.PowerRequest(id="1", op=m.PowerOp.SHUTDOWN_GRACEFUL, graceful_timeout_seconds=-1),
        "0a013110041 8ffffffffffffffffff01".replace(" ", ""),
    ),
    Case(m.TaskResponse(task=m.TaskRef()), "0a00"),
    Case(m.ExportDiskRequest(credentials={"k": "v"}), "3a060a016b120176"),
    Case(m.VMInfo(memory_mib=1 << 40, disks=(m.VMDiskInfo(size_gib=7),)), "3080808080802 03a021807".replace(" ", "")),
)


@pytest.mark.parametrize("case", CASES)
def test_known_bytes(case: Case) -> None:
    assert wire.encode(case.message).hex() == case.hexadecimal
    assert wire.decode(bytes.fromhex(case.hexadecimal), type(case.message)) == case.message


def field(number: int, kind: int, value: bytes) -> bytes:
    out = bytearray()
    protobuf.append_varint(out, number << 3 | kind)
    return bytes(out) + value


def test_unknown_fields_are_skipped() -> None:
    data = field(99, 0, b"\x05") + field(99, 1, b"12345678") + field(99, 5, b"1234") + field(99, 2, b"\x01x") + field(1, 2, b"\x01a")
    assert wire.decode(data, m.DeleteRequest) == m.DeleteRequest(id="a")


def test_a_field_of_another_wire_type_is_unknown() -> None:
    assert wire.decode(field(1, 0, b"\x05") + field(1, 1, b"12345678"), m.DeleteRequest) == m.DeleteRequest()


def test_the_last_scalar_counts_and_messages_merge() -> None:
    data = field(1, 2, b"\x01a") + field(1, 2, b"\x01b") + field(3, 2, b"\x03\x0a\x01u") + field(3, 2, b"\x03\x1a\x01n")
    assert wire.decode(data, m.DeleteRequest) == m.DeleteRequest(id="b", owner=m.ObjectIdentity(uid="u", name="n"))


def test_numbers_are_cut_as_go_cuts_them() -> None:
    big = b"\xff" * 9 + b"\x01"
    assert wire.decode(field(3, 0, big), m.PowerRequest).graceful_timeout_seconds == -1
    assert wire.decode(field(3, 0, b"\x80\x80\x80\x80\x10"), m.PowerRequest).graceful_timeout_seconds == 0
    assert wire.decode(field(2, 0, b"\x09"), m.PowerRequest).op is m.PowerOp.UNSPECIFIED
    assert wire.decode(field(1, 0, b"\x02"), m.ValidateResponse).ok is True


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"\x0a", "too early"),
        (b"\x0a\x05ab", "too early"),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "too early"),
        (b"\x80" * 11, "too long"),
        (b"\x00\x00", "number 0"),
        (b"\x0b", "wire type 3"),
        (b"\x0f", "wire type 7"),
        (b"\x0a\x01\xff", "not UTF-8"),
        (b"\x09123", "too early"),
    ],
)
def test_malformed(data: bytes, why: str) -> None:
    with pytest.raises(wire.MalformedMessage, match=why):
        wire.decode(data, m.DeleteRequest)


def test_limits() -> None:
    vms = m.ListVMsResponse(vms=(m.VMInfo(disks=(m.VMDiskInfo(id="a"),)),) * 10)
    data = wire.encode(vms)
    assert wire.decode(data, m.ListVMsResponse, wire.WireLimits(size=len(data), depth=3, fields=30)) == vms
    for limits in (wire.WireLimits(size=len(data) - 1), wire.WireLimits(depth=2), wire.WireLimits(fields=29)):
        with pytest.raises(wire.MalformedMessage):
            wire.decode(data, m.ListVMsResponse, limits)


def test_fields_of_map_entries_count() -> None:
    data = wire.encode(m.GetDiskInfoResponse(metadata={str(number): "" for number in range(10)}))
    with pytest.raises(wire.MalformedMessage, match="more than 29 fields"):
        wire.decode(data, m.GetDiskInfoResponse, wire.WireLimits(fields=29))


@pytest.mark.parametrize(
    "message",
    [m.PowerRequest(graceful_timeout_seconds=1 << 31), m.VMInfo(memory_mib=-(1 << 63) - 1), m.DeleteRequest(id="\ud800hunter2")],
)
def test_what_has_no_bytes(message: m.WireMessage) -> None:
    with pytest.raises(wire.MalformedMessage) as error:
        wire.encode(message)
    assert "hunter2" not in str(error.value)
