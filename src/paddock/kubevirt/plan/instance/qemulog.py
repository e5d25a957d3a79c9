"""QEMU's last words, short enough for an event: it repeats the whole option that it complains about, which may be a page of JSON."""

import json
import re

_OPTION = re.compile(r"(-[a-z-]+) (?=\{)")


def legible(text: str) -> str:
    """The text with each option that QEMU repeats as JSON brought down to its name."""
    found, rest = "", text
    while match := _OPTION.search(rest):
        try:
            option, length = json.JSONDecoder().raw_decode(rest[match.end() :])
        except ValueError:
            break
        name = option.get("id") or option.get("node-name") or option.get("driver") or "{}"
        found += f"{rest[: match.end()]}{name}"
        rest = rest[match.end() + length :]
    return found + rest
