"""Patterns: RE2's syntax, and no text that takes long."""

import pytest

from paddock.kubernetes.schema import patterns


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^a+$", "aa", True),
        ("^a+$", "aa\n", False),
        ("b", "abc", True),
        (r"^\d$", "٣", False),
        ("^[[:alpha:]]+$", "abc", True),
        ("^[[:alpha:]]+$", ":a]", False),
        (r"^\pL+$", "é", True),
        ("^(a|b){2}$", "ab", True),
        ("^([a-z0-9]([-a-z0-9]*[a-z0-9])?)$", "a-b", True),
        ("^([a-z0-9]([-a-z0-9]*[a-z0-9])?)$", "a-", False),
        (r"\Aa\z", "a", True),
        ("(?i)^A$", "a", True),
        ("^.$", "\n", False),
    ],
)
@pytest.mark.spec("kube-api", 106)
def test_matches(pattern: str, text: str, found: bool) -> None:
    patterns.check(pattern)
    assert patterns.matcher(pattern)(text) is found


@pytest.mark.parametrize("pattern", ["(?=a)", "(?!a)", r"(a)\1", "(", "a{2,1}", "[b-a]", "a" * 20_000, "*"])
def test_refused(pattern: str) -> None:
    with pytest.raises(patterns.BadPattern):
        patterns.check(pattern)


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|a)*$", "^(a*)*$", "^(([a-z])+.)+[A-Z]([a-z])+$", "^(.*a){20}$"])
@pytest.mark.spec("kube-api", 106)
def test_no_pattern_is_slow(pattern: str) -> None:
    """With Python's own engine each of these would run for longer than anybody waits."""
    assert patterns.matcher(pattern)("a" * 5000 + "!") is False
