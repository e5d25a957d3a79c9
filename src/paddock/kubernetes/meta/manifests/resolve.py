"""The meaning of unquoted words in a manifest, exactly as kubectl's YAML reader resolves them.

That reader is a YAML 1.1 reader with exceptions of its own: no sexagesimal numbers, dates stay texts, whole numbers may be
written 0x1f, 0o17, 017, 0b101 or 1_000, and a number too large for 64 bits becomes a floating one. Only the words that YAML
1.1 and 1.2 read differently (`on`, `Off`, `yes`, `n`) are kept as written, as `BareWord`s, so that a check can tell the user.
"""

import re
from typing import Any

from paddock.kubernetes.schema.scalars import BareWord

_WORDS: dict[str, Any] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **{
        spelling: BareWord(spelling)
        for word in ("on", "off", "yes", "no", "y", "n")
        for spelling in (word, word.capitalize(), word.upper())
    },
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **{sign + word: float(f"{sign}inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")},
}
# A word that starts otherwise is a text; most do.
_HINTS = frozenset("~nNtTfFoOyY.+-0123456789")
_LETTERS = frozenset("~nNtTfFoOyY")
_DECIMAL = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\Z", re.ASCII)
_BASED = re.compile(r"([-+]?)0(?:[xX]([0-9a-fA-F]+)|[oO]?([0-7]+)|[bB]([01]+))\Z", re.ASCII)
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?\Z", re.ASCII)
_BETWEEN_DIGITS = re.compile(r"(?<=[0-9])_(?=[0-9])", re.ASCII)
# The longest text that can still be a whole number of 64 bits (in binary, with sign and prefix).
_LONGEST_INT = 67
_EXACT = 2**53


def plain(word: str) -> Any:
    """The value of an unquoted word."""
    first = word[:1]
    if first and first not in _HINTS:
        return word
    if word in _WORDS:
        return _WORDS[word]
    return word if first in _LETTERS else _number(word)


def _number(word: str) -> Any:
    """A word that starts with a digit, a sign or a point: a number, or else a text."""
    if word[-1] in "abcdefABCDEF.0123456789_":
        # After a point the reader takes underscores between digits only.
        bare = _BETWEEN_DIGITS.sub("", word) if word[0] == "." else word.replace("_", "")
        if len(bare) <= _LONGEST_INT:
            number = _whole(bare)
            if number is not None:
                return number
        if _FLOAT.match(bare):
            return _floating(bare, word)
    return word


def _whole(bare: str) -> int | None:
    if _DECIMAL.match(bare):
        number = int(bare)
    else:
        based = _BASED.match(bare)
        if based is None:
            return None
        sign, hexadecimal, octal, binary = based.groups()
        number = int(hexadecimal, 16) if hexadecimal else int(octal, 8) if octal else int(binary, 2)
        number = -number if sign == "-" else number
    if -(2**63) <= number < 2**63 or (number < 2**64 and bare[0] not in "+-"):
        return number
    return None


def _floating(bare: str, word: str) -> int | float | str:
    """A floating number; one without a fraction reaches the API as a whole one. Beyond all floating numbers it is a text."""
    number = float(bare)
    if number in (float("inf"), float("-inf")):
        return word
    return int(number) if abs(number) < _EXACT and number.is_integer() else number
