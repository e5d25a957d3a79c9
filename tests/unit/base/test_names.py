"""The syntaxes of names, labels and their keys, at their edges."""

import pytest

from paddock.base import names

LABELS = ("a", "0", "web-1", "a" * 63, "a-b", "1a")
NO_LABELS = ("", "-a", "a-", "A", "a.b", "a_b", "a b", "a\n", "a" * 64, "é", "\u0661")
SUBDOMAINS = (*LABELS, "a.b", "a-1.b-2.c", ".".join(["a" * 63] * 3), "a" * 253)
NO_SUBDOMAINS = ("", ".a", "a.", "a..b", "a.-b", "A.b", "a_b", "a.b\n", "a" * 254)
KEYS = ("a", "A", "a_b", "a.b", "a-b", "A" * 63, "example.com/a", "example.com/A_b.c-d", f"{'a' * 253}/b")
NO_KEYS = ("", "/", "a/", "/a", "a/b/c", "-a", "a-", "_a", "a ", "a\n", "A" * 64, "Example.com/a", f"{'a' * 254}/b")
VALUES = ("", "a", "A_b.c-D", "1", "A" * 63)
NO_VALUES = ("-a", "a-", "a b", "a/b", "A" * 64, "a\n", "é")


@pytest.mark.parametrize(
    ("accepts", "good", "bad"),
    [
        (names.is_label, LABELS, NO_LABELS),
        (names.is_subdomain, SUBDOMAINS, NO_SUBDOMAINS),
        (names.is_qualified, KEYS, NO_KEYS),
        (names.is_label_value, VALUES, NO_VALUES),
    ],
    ids=["label", "subdomain", "key", "value"],
)
def test_syntax(accepts: object, good: tuple[str, ...], bad: tuple[str, ...]) -> None:
    assert callable(accepts)
    assert [text for text in good if not accepts(text)] == []
    assert [text for text in bad if accepts(text)] == []
