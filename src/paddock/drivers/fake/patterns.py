"""Patterns of names, with * and ?."""

from collections.abc import Iterable
from fnmatch import fnmatchcase


def matches_any(name: str, patterns: Iterable[str]) -> bool:
    """Return True if one of the patterns matches; an empty one matches nothing."""
    return any(each and fnmatchcase(name, each) for each in patterns)
