"""User data of guests: the key of a Secret that has the document, and the merge of two documents
(docs/spec/virtrigaud.md section 2.1.3)."""

from collections.abc import Iterable, Mapping, Sequence

USER_DATA_KEYS = ("userdata", "user-data", "cloud-init", "cloud-config")
META_DATA_KEYS = ("metadata", "meta-data", "meta_data")
IGNITION_KEYS = ("ignition", "config.ign", *USER_DATA_KEYS)

# The first line of a document decides what it is.
_TYPES = (
    (b"#!", "text/x-shellscript"),
    (b"#include", "text/x-include-url"),
    (b"#cloud-boothook", "text/cloud-boothook"),
    (b"#part-handler", "text/part-handler"),
    (b"## template: jinja", "text/jinja2"),
)
_BOUNDARY = b"===============virtrigaud=="


def key_in(values: Mapping[str, bytes], keys: Iterable[str]) -> str | None:
    """The first of the keys that a Secret has."""
    return next((key for key in keys if key in values), None)


def merged(inline: bytes, from_secret: bytes) -> bytes:
    """Two documents as the parts of one; the boundary is the same every time, so that the same documents give the same text."""
    return combined((inline, from_secret))


def combined(documents: Sequence[bytes]) -> bytes:
    """Documents as the parts of one."""
    boundary = _BOUNDARY
    while any(boundary in each for each in documents):
        boundary += b"="
    text = b'Content-Type: multipart/mixed; boundary="%s"\nMIME-Version: 1.0\n\n' % boundary
    for part in documents:
        text += b'--%s\nContent-Type: %s; charset="utf-8"\nMIME-Version: 1.0\n\n%s\n' % (boundary, _type_of(part).encode(), part)
    return text + b"--%s--\n" % boundary


def _type_of(document: bytes) -> str:
    return next((kind for start, kind in _TYPES if document.startswith(start)), "text/cloud-config")


def parts(document: bytes) -> tuple[bytes, bytes] | None:
    """The two documents of one that `merged` has made; None for any other."""
    start = b'Content-Type: multipart/mixed; boundary="'
    if not document.startswith(start):
        return None
    boundary, quote, rest = document.removeprefix(start).partition(b'"')
    pieces = rest.split(b"--%s" % boundary)
    if not quote or len(pieces) != 4:
        return None
    found = [piece.partition(b"\n\n")[2].removesuffix(b"\n") for piece in pieces[1:3]]
    return (found[0], found[1]) if merged(found[0], found[1]) == document else None


def joined(inline: bytes, from_secret: bytes) -> bytes:
    """Two texts of metadata as one."""
    return b"%s\n%s" % (inline, from_secret)
