"""Tokens for uploads: for one claim, for five minutes, from here."""

import pytest

from paddock.app.uploads.tokens import UploadTokens

TOKENS = UploadTokens(b"k" * 32)


def test_a_token_says_what_it_was_made_for() -> None:
    token = TOKENS.issue("ns", "disk", "uid", 1000.0)
    found = TOKENS.read(token, 1299.0)
    assert found is not None and (found.namespace, found.name, found.uid, found.operation) == ("ns", "disk", "uid", "Upload")
    assert TOKENS.read(token, 1300.0) is None
    assert UploadTokens().read(token, 1000.0) is None


@pytest.mark.parametrize(
    "spoil", [lambda t: t[:-1], lambda t: t + "A", lambda t: "." + t, lambda t: t.replace(".", "", 1), lambda t: "", lambda t: "ä.ö.ü"]
)
def test_what_was_changed_is_not_believed(spoil) -> None:  # type: ignore[no-untyped-def]
    assert TOKENS.read(spoil(TOKENS.issue("ns", "disk", "uid", 1000.0)), 1000.0) is None
