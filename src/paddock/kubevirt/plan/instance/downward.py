"""The text of facts in the downward API: labels one a line, sorted, and quoted as in Go; resources in units of a divisor, rounded up."""

from collections.abc import Mapping
from fractions import Fraction

_ESCAPES = {'"': '\\"', "\\": "\\\\", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}


def mapping(values: Mapping[str, str]) -> bytes:
    return "\n".join(f"{key}={quoted(values[key])}" for key in sorted(values)).encode(errors="surrogatepass")


def quoted(text: str) -> str:
    """A text in quotes, with what cannot be printed escaped."""
    return '"' + "".join(_ESCAPES.get(letter) or _escaped(letter) for letter in text) + '"'


def _escaped(letter: str) -> str:
    if letter.isprintable():
        return letter
    number = ord(letter)
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number <= 0xFFFF else f"\\U{number:08x}"


def resource(amount: Fraction, divisor: Fraction) -> bytes:
    """An amount of processors or bytes; a divisor of nothing is one."""
    return str(-(-amount // (divisor or Fraction(1)))).encode()
