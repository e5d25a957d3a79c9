"""Bytes to text. YAML and JSON are UTF-8; UTF-16 is read too when it says so with a byte order mark, as kubectl does."""

import codecs
import re

from paddock.kubernetes.meta.manifests.limits import ManifestLimits
from paddock.kubernetes.meta.manifests.unreadable import UnreadableManifest

# What YAML 1.1 calls printable; carriage returns, tabs and NEL are.
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_TEXT = "a manifest is text in UTF-8; is this the right file?"
_MAGIC = {b"\x1f\x8b": "gzip data", b"PK\x03\x04": "a zip archive", b"QFI\xfb": "a qcow2 image", b"\x7fELF": "a program"}


def decode(data: bytes, source: str, limits: ManifestLimits) -> str:
    """The text of an input; raises `UnreadableManifest`."""
    if len(data) > limits.size:
        raise UnreadableManifest(source, f"larger than {size_text(limits.size)}", fix="split it into several files")
    for magic, what in _MAGIC.items():
        if data.startswith(magic):
            raise UnreadableManifest(source, f"is {what}", fix=_TEXT)
    if data.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        raise UnreadableManifest(source, "is written in UTF-32", fix="save it as UTF-8")
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return _decode(data, "utf-16", source)
    return _decode(data.removeprefix(codecs.BOM_UTF8), "utf-8", source)


def _decode(data: bytes, encoding: str, source: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        before = data[: error.start].decode(encoding, errors="replace")
        line, column = place_in(before, len(before))
        if b"\0" in data[:4096] and encoding == "utf-8":
            raise UnreadableManifest(source, "is binary data", fix=_TEXT) from None
        what = f"byte {error.start} (0x{data[error.start]:02x}) is not {encoding.upper()}"
        raise UnreadableManifest(source, what, fix="save it as UTF-8", line=line, column=column) from None


def refuse_unprintable(text: str, source: str) -> None:
    """Raise `UnreadableManifest` for the first character that no YAML reader takes, if there is one."""
    found = _UNPRINTABLE.search(text)
    if found is None:
        return
    line, column = place_in(text, found.start())
    code = ord(found[0])
    name = "NUL" if code == 0 else f"U+{code:04X}"
    what = f"the control character {name} cannot stand in YAML or JSON"
    raise UnreadableManifest(source, what, fix='remove it, or write it as an escape in a quoted text ("\\u....")', line=line, column=column)


def place_in(text: str, index: int) -> tuple[int, int]:
    """Line and column, from 1, of a character."""
    return text.count("\n", 0, index) + 1, index - text.rfind("\n", 0, index)


def size_text(size: int) -> str:
    """A number of bytes for people."""
    for unit, factor in (("MiB", 2**20), ("KiB", 2**10)):
        if size >= factor:
            return f"{size / factor:.4g} {unit}"
    return f"{size} bytes"
