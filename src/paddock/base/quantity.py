"""Kubernetes quantities (`2Gi`, `500m`, `1.5e3`), exact to a billionth, which is as fine as Kubernetes keeps them.

Translators carry over the words that a user wrote, and only comparisons look at the value; a server writes the quantities of its
built-in kinds in their canonical form. Values are whole numbers of billionths, so that nothing depends on floating point.
"""

import re
from functools import lru_cache

from paddock.base.errors import Terminal, UsageError

UNIT = 10**9
_PATTERN = re.compile(r"([+-]?)(?:(\d+)(?:\.(\d*))?|\.(\d+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?\d{1,3}))?\Z", re.ASCII)
_UNIT_SLIP = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgtpe])(i?)(?:b|byte|bytes)?\s*\Z", re.ASCII | re.IGNORECASE)
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_UNITS = {power: unit for unit, power in _DECIMAL.items()} | {0: ""}
# Longer texts are refused unread: nobody writes them, and parsing cost grows with the square of their length.
_LONGEST = 64


class NotAQuantity(Terminal):
    """The text is not a Kubernetes quantity."""

    def __init__(self, text: int | str) -> None:
        super().__init__(f"{text!r} is not a Kubernetes quantity", fix="write a number with an optional unit such as 10Gi or 500M")
        self.text = text


def parse(text: int | str) -> int:
    """The value in billionths, rounded away from zero; raises `NotAQuantity`."""
    if isinstance(text, int):
        return text * UNIT
    if len(text) > _LONGEST:
        raise NotAQuantity(text)
    return _parse(text)


# Many rules read an object's amounts, and most objects ask for the same few.
@lru_cache(maxsize=1024)
def _parse(text: str) -> int:
    match = _PATTERN.match(text)
    if match is None:
        raise NotAQuantity(text)
    sign, whole_digits, fraction, bare_fraction, in_binary, in_decimal, exponent = match.groups()
    digits = fraction or bare_fraction or ""
    value: int = int((whole_digits or "") + digits) * _BINARY.get(in_binary, 1)
    power = 9 - len(digits) + (_DECIMAL[in_decimal] if in_decimal else int(exponent or 0))
    scale: int = 10 ** abs(power)
    value = value * scale if power >= 0 else -(-value // scale)
    return -value if sign == "-" else value


def meant(text: object) -> tuple[str, ...]:
    """Return suggestions for an invalid amount such as `4GB`: with the decimal and with the binary unit."""
    match = _UNIT_SLIP.match(text) if isinstance(text, str) and len(text) <= _LONGEST else None
    if match is None:
        return ()
    number, unit, binary_mark = match.groups()
    letter = unit.upper()
    decimal, in_binary = f"{number}{'k' if letter == 'K' else letter}", f"{number}{letter}i"
    return (in_binary,) if binary_mark else (decimal, in_binary)


def is_quantity(text: int | str) -> bool:
    """Return True if `parse` would succeed."""
    try:
        parse(text)
    except NotAQuantity:
        return False
    return True


def whole(text: int | str) -> int:
    """The value rounded up to a whole number, as Kubernetes does when it needs bytes."""
    return -(-parse(text) // UNIT)


def amount(text: str, example: str) -> int:
    """Return the bytes of an amount such as 4Gi. Raises `UsageError` with what was probably meant."""
    if is_quantity(text) and parse(text) >= UNIT:
        return whole(text)
    guesses = meant(text)
    fix = f"did you mean {' or '.join(guesses)}?" if guesses else f"write a number with a unit: {example}"
    raise UsageError(f'"{text}" is no amount', fix=fix)


def binary(size: int) -> str:
    """The shortest exact binary form of a number of bytes: 2147483648 -> 2Gi."""
    for unit, factor in reversed(_BINARY.items()):
        if size and size % factor == 0:
            return f"{size // factor}{unit}"
    return str(size)


def readable(size: int) -> str:
    """Return a number of bytes for people: exact, or to three digits if that is shorter: 33554432 -> 32Mi, 35567698 -> 33.9Mi."""
    exact = binary(size)
    unit, factor = next(((unit, factor) for unit, factor in reversed(_BINARY.items()) if size >= factor), ("", 1))
    value = size / factor
    digits = 2 if value < 10 else 1 if value < 100 else 0
    rounded = f"{value:.{digits}f}"
    return min(exact, f"{rounded.rstrip('0').rstrip('.') if digits else rounded}{unit}", key=len)


def is_binary(text: int | str) -> bool:
    """Return True if an amount has a binary unit (`1Gi`)."""
    return isinstance(text, str) and text.endswith(tuple(_BINARY))


def respelled(text: int | str) -> int | str:
    """An amount in its canonical form; what is no quantity stays as it is."""
    return canonical(parse(text), in_binary=is_binary(text)) if is_quantity(text) else text


def canonical(value: int, *, in_binary: bool = False) -> str:
    """A value in billionths as Kubernetes prints it: the largest unit that leaves a whole number, no fraction."""
    if in_binary and value % UNIT == 0 and abs(value) >= 1024 * UNIT:
        return binary(value // UNIT) if value > 0 else "-" + binary(-value // UNIT)
    power = -9
    while value and value % 1000 == 0 and power < 18:
        value, power = value // 1000, power + 3
    return f"{value}{_DECIMAL_UNITS[power]}" if value else "0"
