"""Values from an agent's answers. Pure. All of it comes from the guest, and the guest is nobody's friend.

A value that is missing, of a wrong type or too much becomes nothing; texts are cut and lose every character that a terminal would act on.
"""

import base64
import binascii
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

import msgspec

from paddock.engine.machine import guest

# Of one answer, in bytes: a file's content or a program's output may be in it.
LONGEST = 8 << 20
_DEEPEST = 16
# Each becomes an object here, so this bounds the time that reading takes.
_PARTS = 20_000
_BEGINNINGS = (b",", b"[", b"{")
# Of an answer that is no UTF-8: to replace what is wrong in it takes long.
_LONGEST_BROKEN = 1 << 16
_TEXT = 1024
_ENTRIES = 1024
_NUMBER = 2**63


class MalformedAgentData(ValueError):
    """It is no answer of an agent."""


def parse(line: bytes) -> Mapping[str, Any]:
    """An answer: an object, of bounded depth. Raises `MalformedAgentData`."""
    if sum(map(line.count, _BEGINNINGS)) > _PARTS:
        raise MalformedAgentData("it has too many parts")
    try:
        value = msgspec.json.decode(line.decode("utf-8", "replace") if len(line) <= _LONGEST_BROKEN else line)
    except (msgspec.DecodeError, RecursionError, ValueError) as error:
        raise MalformedAgentData("it is not JSON") from error
    if not isinstance(value, dict):
        raise MalformedAgentData("it is no object")
    _measure(value)
    return value


def _measure(value: Any) -> None:
    level: list[Any] = [value]
    for _ in range(_DEEPEST):
        level = [inner for one in level for inner in _inside(one)]
        if not level:
            return
    raise MalformedAgentData("it is nested too deeply")


def _inside(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def text(value: Any) -> str:
    """A text without anything but printable characters; "" for what is no text."""
    if not isinstance(value, str):
        return ""
    return "".join(one if one.isprintable() else "?" for one in value[:_TEXT])


def number(value: Any) -> int:
    """A whole number of 64 bits that is not negative; 0 for what is none."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < _NUMBER:
        return 0
    return value


def _seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 2**53:
        return 0.0
    return float(value)


def _entries(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, list):
        yield from (one for one in islice(value, _ENTRIES) if isinstance(one, dict))


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def info(value: Any) -> guest.AgentInfo:
    commands = ((text(one.get("name")), one.get("enabled") is True) for one in _entries(_object(value).get("supported_commands")))
    return guest.AgentInfo(text(_object(value).get("version")), tuple(commands))


def os(value: Any) -> guest.GuestOs:
    """`guest-get-osinfo`."""
    members = {name: text(_object(value).get(name.replace("_", "-"))) for name in guest.GuestOs.__struct_fields__}
    return guest.GuestOs(**members)


def timezone(value: Any) -> guest.Timezone:
    offset = _object(value).get("offset")
    plain = isinstance(offset, int) and not isinstance(offset, bool) and abs(offset) <= 86_400
    return guest.Timezone(text(_object(value).get("zone")), offset if plain and isinstance(offset, int) else 0)


def users(value: Any) -> tuple[guest.GuestUser, ...]:
    return tuple(
        guest.GuestUser(text(one.get("user")), text(one.get("domain")), _seconds(one.get("login-time"))) for one in _entries(value)
    )


def load(value: Any) -> tuple[float, ...]:
    """`guest-get-load`: over one, five and fifteen minutes."""
    loads = value if isinstance(value, dict) else {}
    return tuple(_seconds(loads.get(f"load{span}m")) for span in (1, 5, 15))


def filesystems(value: Any) -> tuple[guest.GuestFilesystem, ...]:
    """`guest-get-fsinfo`."""
    return tuple(
        guest.GuestFilesystem(
            text(one.get("name")),
            text(one.get("mountpoint")),
            text(one.get("type")),
            number(one.get("used-bytes")),
            number(one.get("total-bytes")),
            tuple((text(disk.get("serial")), text(disk.get("bus-type"))) for disk in _entries(one.get("disk"))),
        )
        for one in _entries(value)
    )


def interfaces(value: Any) -> tuple[guest.GuestInterface, ...]:
    """`guest-network-get-interfaces`."""
    return tuple(
        guest.GuestInterface(
            text(one.get("name")),
            text(one.get("hardware-address")),
            tuple((text(address.get("ip-address")), number(address.get("prefix"))) for address in _entries(one.get("ip-addresses"))),
        )
        for one in _entries(value)
    )


def keys(value: Any) -> tuple[str, ...]:
    """`guest-ssh-get-authorized-keys`."""
    found = _object(value).get("keys")
    if not isinstance(found, list):
        return ()
    # Keys may be longer than other texts, and none of them has a line break in it.
    return tuple(one[:16_384] for one in islice(found, _ENTRIES) if isinstance(one, str) and one.isprintable())


def data(value: Any) -> bytes:
    """Bytes in Base64; nothing for what is not."""
    if not isinstance(value, str):
        return b""
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return b""


def executed(value: Any) -> guest.GuestExecResult | None:
    """`guest-exec-status`; None: it still runs."""
    answer = _object(value)
    if answer.get("exited") is not True:
        return None
    code = -number(answer.get("signal")) if "signal" in answer else number(answer.get("exitcode"))
    return guest.GuestExecResult(code, data(answer.get("out-data")), data(answer.get("err-data")))


def file_part(value: Any, count: int) -> tuple[bytes, bool]:
    """`guest-file-read`: at most so many bytes, and whether the file ends there."""
    answer = _object(value)
    return data(answer.get("buf-b64"))[:count], answer.get("eof") is True
