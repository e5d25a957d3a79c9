"""Values as the texts QEMU's parsers read them from, so that no value can be read as another option.

Two syntaxes are used. JSON, where QEMU takes it: a value is a value whatever is in it. Lists of `key=value`, where it does
not: that parser reads a doubled comma as a part of the value.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paddock.engine.machine.argv.errors import unusable

# The kernel refuses longer arguments; a bit of room for what stands around a value.
LONGEST = 120_000

Value = str | int | bool | Path


def checked(of: str, text: str) -> str:
    """The text, if a program can be given it at all."""
    if "\0" in text:
        raise unusable(of, "it holds a NUL character")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise unusable(of, "it is not valid Unicode") from None
    if size > LONGEST:
        raise unusable(of, f"it is longer than {LONGEST} bytes")
    return text


def as_json(value: Mapping[str, Any]) -> str:
    """A value for the options that take JSON; paths become texts."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)


def keyed(*words: str, **members: Value | None) -> str:
    """`word,key=value,...` with the members that are not None; `_` in a key stands for `-`."""
    pairs = [f"{key.replace('_', '-')}={_text(key, value)}" for key, value in members.items() if value is not None]
    return ",".join([*words, *pairs])


def pairs(*members: tuple[str, Value]) -> str:
    """The same for keys that are no Python names."""
    return ",".join(f"{key}={_text(key, value)}" for key, value in members)


def _text(key: str, value: Value) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return checked(key, str(value)).replace(",", ",,")
