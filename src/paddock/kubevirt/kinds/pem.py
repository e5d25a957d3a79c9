"""Certificate authorities as users write them: PEM, plain or once more in base64."""

import base64
import re
from collections.abc import Mapping

_BLOCK = re.compile(r"-----BEGIN CERTIFICATE-----\s*([A-Za-z0-9+/=\s]+?)\s*-----END CERTIFICATE-----")
_LINE = 64
# The keys of a Secret that are tried; the first that is there holds.
AUTHORITIES = ("ca.crt", "ca.pem", "caBundle")
CERTIFICATE = ("tls.crt", "cert")
KEY = ("tls.key", "key")


def first(held: Mapping[str, bytes], keys: tuple[str, ...]) -> bytes:
    """Return the value of the first of these keys that a Secret has; empty when it has none."""
    return next((held[key] for key in keys if held.get(key)), b"")


def bundle(text: str) -> str:
    """The certificates of a bundle in one normal form; the empty text when it is not a PEM bundle."""
    plain = text if "-----BEGIN" in text else _unwrapped(text)
    blocks = [_normal(body) for body in _BLOCK.findall(plain)]
    # What stands between the blocks is comment, but a block that is cut off or of another kind is a mistake.
    if "" in blocks or len(blocks) != plain.count("-----BEGIN"):
        return ""
    return "".join(blocks)


def _unwrapped(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode("ascii")
    except ValueError:
        return ""


def _normal(body: str) -> str:
    packed = "".join(body.split())
    try:
        content = base64.b64decode(packed, validate=True)
    except ValueError:
        return ""
    # Every certificate is a DER sequence.
    if not content.startswith(b"\x30"):
        return ""
    lines = [packed[at : at + _LINE] for at in range(0, len(packed), _LINE)]
    return "\n".join(("-----BEGIN CERTIFICATE-----", *lines, "-----END CERTIFICATE-----", ""))
