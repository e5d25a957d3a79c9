"""The syntaxes Kubernetes has for names, labels and annotations: plain predicates, and what a server says of those that fail."""

import re
from collections.abc import Iterator
from functools import lru_cache

from paddock.base.errors import Terminal

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z", re.ASCII)
_LONGEST_QUALIFIED = 253 + 1 + 63
_QUALIFIED = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]\Z", re.ASCII)

# What Kubernetes says of a key that is none.
WHY_QUALIFIED = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)


def is_label(text: str) -> bool:
    """A DNS-1123 label: lower-case letters, digits and `-`, at most 63 characters."""
    return len(text) <= 63 and _LABEL.match(text) is not None


def is_subdomain(text: str) -> bool:
    """A DNS-1123 subdomain: labels joined by dots, at most 253 characters."""
    return len(text) <= 253 and _SUBDOMAIN.match(text) is not None


def is_qualified(text: str) -> bool:
    """The key of a label or an annotation: `name` or `prefix/name`."""
    return len(text) <= _LONGEST_QUALIFIED and _is_qualified(text)


# Objects carry the same few keys over and over.
@lru_cache(maxsize=2048)
def _is_qualified(text: str) -> bool:
    prefix, slash, name = text.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return len(name) <= 63 and _QUALIFIED.match(name) is not None


def is_label_value(text: str) -> bool:
    """The value of a label; the empty text is one."""
    return text == "" or (len(text) <= 63 and _QUALIFIED.match(text) is not None)


_SUBDOMAIN_WORDS = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_NAME_WORDS = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or "
    "'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_WORDS = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def wrong_subdomain(text: str) -> Iterator[str]:
    """Yield the faults of a DNS-1123 subdomain."""
    if len(text) > 253:
        yield "must be no more than 253 bytes"
    if _SUBDOMAIN.match(text) is None:
        yield _SUBDOMAIN_WORDS


def wrong_qualified(text: str) -> Iterator[str]:
    """Yield the faults of the key of a label or an annotation."""
    prefix, slash, name = text.partition("/")
    if "/" in name:
        yield f"a qualified name {_NAME_WORDS} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return
    if not slash:
        name = prefix
    elif not prefix:
        yield "prefix part must be non-empty"
    else:
        yield from (f"prefix part {why}" for why in wrong_subdomain(prefix))
    if not name:
        yield "name part must be non-empty"
    elif len(name) > 63:
        yield "name part must be no more than 63 bytes"
    if _QUALIFIED.match(name) is None:
        yield f"name part {_NAME_WORDS}"


def wrong_label_value(text: str) -> Iterator[str]:
    """Yield the faults of the value of a label."""
    if len(text) > 63:
        yield "must be no more than 63 bytes"
    if text and _QUALIFIED.match(text) is None:
        yield _VALUE_WORDS


def wrong_segment(text: str) -> Iterator[str]:
    """Yield the reasons why a text cannot be a path segment."""
    if text in (".", ".."):
        yield f"may not be '{text}'"
    else:
        yield from (f"may not contain '{each}'" for each in "/%" if each in text)


def check_name(word: str) -> None:
    """Raise `Terminal` for a name that would change the path of a request."""
    if not word or set(word) & set("/?#% "):
        raise Terminal(f'"{word}" is no name')
