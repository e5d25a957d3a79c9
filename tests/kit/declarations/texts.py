"""Texts that fit a declared syntax, and texts that do not: from patterns and formats, without chance."""

from collections.abc import Callable, Iterator, Sequence
from re import _constants as op  # type: ignore[attr-defined]  # the standard library's own reading of a pattern
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

from paddock.kubernetes.schema.field import Field
from paddock.kubernetes.schema.formats import FORMATS, compiled

GOOD: dict[str, str] = {
    "dns1123-label": "web-1",
    "dns1123-subdomain": "web.example-1",
    "namespaced-name": "apps/web",
    "label-key": "example.com/part",
    "label-value": "Value_1",
    "image": "quay.io:443/containerdisks/fedora:38",
    "duration": "1h30m",
    "ipv4": "192.0.2.7",
    "ip": "2001:db8::7",
    "cidr4": "192.0.2.0/24",
    "cidr": "2001:db8::/32",
    "mac": "02:00:00:00:00:2a",
    "data-key": "tls.crt",
    "date-time": "2026-01-31T12:00:00Z",
}
BAD: dict[str, tuple[str, ...]] = {
    "dns1123-label": ("Web", "-web", "web-", "we.b", "web\n", "wéb", "a" * 64),
    "dns1123-subdomain": ("Web", ".web", "web..x", "web_x", "web\n", "a" * 254),
    "namespaced-name": ("a/b/c", "/web", "apps/", "a.b/web", "Apps/web"),
    "label-key": ("-part", "a/b/c", "/part", "Example.com/part", "x" * 64, "part\n"),
    "image": ("quay.io/UPPER Bad", "a b", "quay.io/", "Upper/x", "a@sha256:1", "a:"),
    "label-value": ("-x", "x-", "a b", "x" * 64, "x\n"),
    "duration": ("5", "1 h", "h", "1d", "-", "1h30", "9999999h", "1h\n"),
    "ipv4": ("192.0.2", "192.0.2.256", "192.0.2.07", "2001:db8::7", "192.0.2.7\n"),
    "ip": ("192.0.2", "2001:db8::g", "fe80::1%eth0", "localhost"),
    "cidr4": ("192.0.2.0", "192.0.2.0/33", "192.0.2.0/255.255.255.0", "192.0.2.0/", "2001:db8::/32"),
    "cidr": ("192.0.2.0", "192.0.2.0/33", "2001:db8::/129", "192.0.2.0/255.255.255.0", "x/8"),
    "mac": ("02:00:00:00:00", "02:00:00:00:00:2g", "0200.0000.002a", "02:00:00:00:00:2a:00", "02:00:00:00:00:2a\n"),
    "data-key": ("a/b", "a b", "..", "", "x" * 254, "key\n"),
    "date-time": ("2026-01-31", "2026-02-31T12:00:00Z", "2026-01-31 12:00:00Z", "2026-01-31T24:00:00Z", "2026-01-31T12:00:00", "now"),
}
# Something of every sort: whatever a pattern refuses, it refuses one of these, or a good text with something around it.
_CANDIDATES = ("", " ", "!", "-", "_", ".", "/", "A", "a", "é", "0", "x y", "\n", "https://", "ABC def", "0" * 300)


def good(field: Field, named: str = "") -> str:
    """A text that a field takes."""
    if field.enum:
        return field.enum[0]
    form = named or field.format or ""
    text = GOOD[form] if form else matching(field.pattern) if field.pattern else "text"
    if field.format and field.pattern and compiled(field.pattern).search(text) is None:
        text = matching(field.pattern)
    if field.min_length is not None and len(text) < field.min_length:
        text = _lengthened(text, field)
    return text[: field.max_length] if field.max_length is not None and not field.pattern and not form else text


def _lengthened(text: str, field: Field) -> str:
    """A longer text that still fits: one of its characters repeated."""
    assert field.min_length is not None
    missing = field.min_length - len(text)
    for at in range(len(text), 0, -1):
        longer = text[:at] + text[at - 1] * missing + text[at:]
        if fits(field, longer):
            return longer
    return "x" * field.min_length


def fits(field: Field, text: str, named: str = "") -> bool:
    """Return whether pattern and format of a field accept a text."""
    form = named or field.format
    if field.pattern and compiled(field.pattern).search(text) is None:
        return False
    return not form or FORMATS[form].accepts(text)


def bad(field: Field, named: str = "") -> Iterator[str]:
    """Texts that pattern or format of a field refuse."""
    seen = set()
    for text in _suspects(field, named or field.format or ""):
        if text not in seen and not fits(field, text, named) and not (text == "" and field.empty_is_unset and not field.required):
            seen.add(text)
            yield text


def _suspects(field: Field, form: str) -> Iterator[str]:
    yield from BAD.get(form, ())
    if field.pattern:
        sample = good(field, form)
        yield from (sample + "\n", sample + "!", "!" + sample, sample[:-1], *_CANDIDATES)


def matching(pattern: str) -> str:
    """A short text that a pattern takes."""
    text = _text(parser.parse(pattern))
    assert compiled(pattern).search(text) is not None, f"no text found for {pattern}"
    return text


def _text(parts: Sequence[tuple[Any, Any]]) -> str:
    return "".join(_PARTS[kind](value) for kind, value in parts)


def _literal(value: Any) -> str:
    return chr(value)


def _branch(value: Any) -> str:
    # The longest choice says the most.
    choices: list[str] = [_text(choice) for choice in value[1]]
    return max(choices, key=len)


def _repeat(value: Any) -> str:
    least, most, part = value
    count: int = min(most, max(least, 1))
    return _text(part) * count


def _set(value: Any) -> str:
    if value[0][0] is op.NEGATE:
        refused = compiled("[" + "".join(_source(item) for item in value[1:]) + "]")
        return next(char for char in "abcxyz0-./_ " if refused.match(char) is None)
    # A letter, where the set has one.
    letters: list[str] = [chr(item[0]) for kind, item in value if kind is op.RANGE]
    letters += [chr(item) for kind, item in value if kind is op.LITERAL]
    letters += [_category(item) for kind, item in value if kind is op.CATEGORY]
    return min(letters, key=lambda char: (not char.islower(), not char.isalnum(), char))


def _source(item: tuple[Any, Any]) -> str:
    kind, value = item
    if kind is op.RANGE:
        return f"\\x{value[0]:02x}-\\x{value[1]:02x}"
    return _CLASSES[value] if kind is op.CATEGORY else f"\\x{value:02x}"


_CLASSES = {op.CATEGORY_DIGIT: r"\d", op.CATEGORY_WORD: r"\w", op.CATEGORY_SPACE: r"\s"}


def _category(value: Any) -> str:
    return {op.CATEGORY_DIGIT: "7", op.CATEGORY_WORD: "w", op.CATEGORY_SPACE: " "}.get(value, "x")


_PARTS: dict[Any, Callable[[Any], str]] = {
    op.LITERAL: _literal,
    op.NOT_LITERAL: lambda value: "a" if value != ord("a") else "b",
    op.ANY: lambda value: "a",
    op.AT: lambda value: "",
    op.IN: _set,
    op.BRANCH: _branch,
    op.MAX_REPEAT: _repeat,
    op.MIN_REPEAT: _repeat,
    op.SUBPATTERN: lambda value: _text(value[-1]),
    op.CATEGORY: _category,
}
