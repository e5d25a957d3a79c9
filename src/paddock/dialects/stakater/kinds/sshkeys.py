"""Public keys as a user pastes them: raw OpenSSH lines, or the same in base64 (docs/spec/stakater.md section 5.5)."""

import base64
import binascii

from paddock.base.errors import Terminal

_TYPES = (
    "ssh-ed25519",
    "ssh-rsa",
    "ssh-dss",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
)


class NotAPublicKey(Terminal):
    """The text holds no usable public key. The text itself is never part of the error."""


def parse(text: str) -> tuple[str, ...]:
    """The normalized key lines of raw or base64 text; raises `NotAPublicKey`."""
    raw = _lines(text)
    if raw and raw[0].split(None, 1)[0] in _TYPES:
        return tuple(_checked(line) for line in raw)
    if "PRIVATE KEY" in text:
        raise NotAPublicKey("this looks like a private key", fix="give the public half, usually the file that ends in .pub")
    return tuple(_checked(line) for line in _decoded(text))


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip() and not line.strip().startswith("#")]


def _decoded(text: str) -> list[str]:
    try:
        decoded = base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError):
        raise NotAPublicKey("not an OpenSSH public key, raw or base64") from None
    if decoded[4:].startswith(tuple(kind.encode() for kind in _TYPES)):
        raise NotAPublicKey(
            "not an OpenSSH public key, raw or base64",
            fix='put the type in front of the key, such as "ssh-ed25519 AAAA..."',
        )
    try:
        lines = _lines(decoded.decode())
    except UnicodeDecodeError:
        raise NotAPublicKey("not an OpenSSH public key, raw or base64") from None
    if any("PRIVATE KEY" in line for line in lines):
        raise NotAPublicKey("this looks like a private key", fix="give the public half, usually the file that ends in .pub")
    if not lines:
        raise NotAPublicKey("not an OpenSSH public key, raw or base64")
    return lines


def _checked(line: str) -> str:
    """Return the line, if its key is whole and of the type that stands in front of it."""
    words = line.split(None, 2)
    if len(words) < 2 or words[0] not in _TYPES:
        raise NotAPublicKey("not an OpenSSH public key, raw or base64")
    try:
        blob = base64.b64decode(words[1], validate=True)
    except (binascii.Error, ValueError):
        raise NotAPublicKey("not an OpenSSH public key, raw or base64") from None
    length = int.from_bytes(blob[:4], "big")
    if blob[4 : 4 + length].decode(errors="replace") != words[0]:
        raise NotAPublicKey("not an OpenSSH public key, raw or base64", why=f"the key is not of the type {words[0]}")
    # Loading it takes longer than most commands that meet no key.
    from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_ssh_public_key  # noqa: PLC0415

    try:
        load_ssh_public_key(" ".join(words[:2]).encode())
    except (ValueError, UnsupportedAlgorithm):
        fix = "copy the whole line of the .pub file"
        raise NotAPublicKey("not an OpenSSH public key, raw or base64", why="the key is cut off or damaged", fix=fix) from None
    return " ".join(words)
