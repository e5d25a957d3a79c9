"""The share of a namespace in the processors of its host, as an annotation says it. Pure."""

from collections.abc import Mapping

from paddock.base import ownnames

ANNOTATION = ownnames.CPU_SHARES.name
DEFAULT = 100
LEAST, MOST = 1, 10_000
RULE = f"must be a whole number from {LEAST} to {MOST}; {DEFAULT} is the share of a namespace that says nothing"


def weight_of(annotations: Mapping[str, str]) -> int | None:
    """Return the share that annotations name; None if they name none, or no valid one."""
    text = annotations.get(ANNOTATION, "")
    return int(text) if is_share(text) else None


def is_share(text: str) -> bool:
    """Return whether a text is a share."""
    return text.isascii() and text.isdecimal() and LEAST <= int(text) <= MOST and str(int(text)) == text
