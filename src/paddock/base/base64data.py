"""Base64 as Go reads it in JSON: line breaks do not count. Tools such as kustomize fold long values. Pure."""

import base64

_BREAKS = {ord("\n"): None, ord("\r"): None}


def unfolded(text: str) -> str:
    """Return a text without line breaks, as a server stores it."""
    return text.translate(_BREAKS) if "\n" in text or "\r" in text else text


def decode(text: str) -> bytes:
    """Return the bytes; raises `ValueError` for what is not base64."""
    return base64.b64decode(unfolded(text), validate=True)
