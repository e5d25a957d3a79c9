"""Base64 with and without line breaks."""

import pytest

from paddock.base import base64data


@pytest.mark.parametrize(
    ("text", "bytes_", "stored"), [("YWJj", b"abc", "YWJj"), ("YW\nJj\r\n", b"abc", "YWJj"), ("", b"", ""), ("\n", b"", "")]
)
def test_line_breaks_do_not_count(text: str, bytes_: bytes, stored: str) -> None:
    assert base64data.decode(text) == bytes_ and base64data.unfolded(text) == stored


@pytest.mark.parametrize("text", ["YW Jj", "YWJ", "a*b=", "YW\tJj", "é"])
def test_what_is_not_base64(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        base64data.decode(text)
