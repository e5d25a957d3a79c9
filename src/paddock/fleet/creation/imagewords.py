"""What the IMAGE of `paddock run` means, and a name for the machine."""

import re
from collections.abc import Callable, Collection
from typing import Literal

import msgspec

from paddock.base.errors import Terminal
from paddock.base.nearest import nearest

ImageKind = Literal["library", "catalogue", "url", "registry", "file"]
_SCHEMES = ("http://", "https://", "docker://")
_REGISTRY = re.compile(r"(?:[a-z0-9.-]+(?::[0-9]+)?/)?[a-z0-9._/-]+(?::[A-Za-z0-9._-]+)?(?:@sha256:[0-9a-f]{64})?")
_ENDINGS = re.compile(r"(\.(qcow2|raw|img|vmdk|vdi|vhdx?|iso|gz|xz|zst|tar|ova))+$")
_NO_NAME = re.compile(r"[^a-z0-9]+")
# A machine's name is a label of its guest; the number of a copy and the names of disks follow it.
_LONGEST_BASE = 40
_FIRST_LETTER = re.compile(r"[a-z]")


class UnknownImage(Terminal):
    """A word that means no image."""


class ImageWord(msgspec.Struct, frozen=True):
    """An image as the user named it. `text` is a name, an address, a reference or a path."""

    kind: ImageKind
    text: str


def interpret(word: str, library: Collection[str], catalogue: Collection[str], is_file: Callable[[str], bool]) -> ImageWord:
    """Return what a word means: a name of this host's library, then of the catalogue, an address, a file, a container image.

    `library` has the names that need no network. Raises `UnknownImage`.
    """
    if word in library:
        return ImageWord("library", word)
    if word in catalogue:
        return ImageWord("catalogue", word)
    if word.startswith(_SCHEMES):
        return ImageWord("registry" if word.startswith("docker://") else "url", word)
    if is_file(word):
        return ImageWord("file", word)
    # A name with a slash or a tag is a container image, as for docker; a plain word is a misspelt name.
    if not word.startswith((".", "/", "~")) and ("/" in word or ":" in word) and _REGISTRY.fullmatch(word):
        return ImageWord("registry", f"docker://{word}")
    if "/" in word or "." in word.strip("."):
        if meant := nearest(word, [*library, *catalogue]):
            raise UnknownImage(f'there is no image "{word}"', fix=f'did you mean "{meant}"?')
        raise UnknownImage(
            f'there is no file "{word}"', fix="name a file, an http(s) URL, a container image or a name of `paddock image ls --known`"
        )
    meant = nearest(word, [*library, *catalogue])
    fix = f'did you mean "{meant}"?' if meant else "`paddock image ls --known` lists the names; a container image has a slash or a tag"
    raise UnknownImage(f'there is no image "{word}"', fix=fix)


def base_name(image: ImageWord) -> str:
    """Return the beginning of a machine's name: `debian-12` of .../debian-12.qcow2, `fedora` of quay.io/containerdisks/fedora:40."""
    last = image.text.partition("?")[0].rstrip("/").rpartition("/")[2]
    if image.kind == "registry":
        last = last.partition("@")[0].partition(":")[0]
    plain = _NO_NAME.sub("-", _ENDINGS.sub("", last.lower())).strip("-")[:_LONGEST_BASE].strip("-")
    return plain if _FIRST_LETTER.match(plain) else f"vm-{plain}".strip("-")


def unused(base: str, taken: Collection[str]) -> str:
    """Return the first of BASE-1, BASE-2 ... that nothing has."""
    number = 1
    while f"{base}-{number}" in taken:
        number += 1
    return f"{base}-{number}"


def several(name: str, count: int) -> tuple[str, ...]:
    """Return the names of `count` machines: NAME alone, or NAME-1 to NAME-N."""
    return (name,) if count == 1 else tuple(f"{name}-{number}" for number in range(1, count + 1))


def unused_series(base: str, count: int, taken: Collection[str]) -> tuple[str, ...]:
    """Return names for `count` machines that nothing has."""
    names: list[str] = []
    while len(names) < count:
        names.append(unused(base, {*taken, *names}))
    return tuple(names)
