"""JSON beyond YAML: characters written as two escapes, and values that follow each other without a separator."""

import re
from collections.abc import Iterator

from paddock.kubernetes.meta.manifests.decode import place_in
from paddock.kubernetes.meta.manifests.document import Position

# An escaped backslash is matched first, so that what follows it is not taken for an escape.
_ESCAPES = re.compile(r"\\\\|\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")
_HALF = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F]", re.ASCII)
_BRACKETS = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\]]', re.DOTALL)


def readable(text: str) -> str:
    """The text with pairs of surrogate escapes (how JSON writes an emoji) as the one character they mean."""
    if _HALF.search(text) is None:
        return text
    return _ESCAPES.sub(_join, text)


def _join(match: re.Match[str]) -> str:
    high, low = match.groups()
    if high is None:
        return match[0]
    return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + (int(low, 16) - 0xDC00))


def goes_on(text: str, index: int) -> bool:
    """Return whether the stream ended because another JSON value follows there."""
    return text.startswith("{", index) and text[:index].rstrip().endswith("}")


def split(text: str, index: int) -> Iterator[tuple[str, Position]]:
    """The JSON values from there on, each with what stands before it, and the place where that begins."""
    depth, start = 0, index
    line, column = place_in(text, index)
    for found in _BRACKETS.finditer(text, index):
        if found[0] in "{[":
            depth += 1
        elif found[0] in "}]":
            depth -= 1
            if depth <= 0:
                depth, end = 0, found.end()
                yield text[start:end], Position(line, column)
                line += text.count("\n", start, end)
                column = end - text.rfind("\n", 0, end)
                start = end
    if text[start:].strip():
        yield text[start:], Position(line, column)
