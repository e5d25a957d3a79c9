"""The syntaxes Kubernetes has for names, labels and annotations, as plain predicates."""

import re

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?\Z", re.ASCII)
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z", re.ASCII)
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
    prefix, slash, name = text.rpartition("/")
    if slash and not is_subdomain(prefix):
        return False
    return len(name) <= 63 and _QUALIFIED.match(name) is not None


def is_label_value(text: str) -> bool:
    """The value of a label; the empty text is one."""
    return text == "" or (len(text) <= 63 and _QUALIFIED.match(text) is not None)
