"""Texts of a provider, made fit for a condition, an event or a log: without control characters and secrets, and not too long."""

import re
from collections.abc import Iterable

LONGEST = 1024
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]+")
_USERINFO = re.compile(r"(?<=://)[^\s/@]+@")
# Shorter ones are found in harmless words.
_SHORTEST_SECRET = 4


def cleaned(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text in one line of at most 1 KiB, with `<hidden>` in the place of secrets and of the users of URLs."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "<hidden>")
    text = _USERINFO.sub("<hidden>@", _CONTROL.sub(" ", text)).strip()
    data = text.encode("utf-8", "replace")
    return text if len(data) <= LONGEST else data[: LONGEST - 3].decode("utf-8", "ignore") + "..."
