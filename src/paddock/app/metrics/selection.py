"""A part of the page: the families that a client names, as `name[]` does for other exporters. Pure."""

from collections.abc import Collection, Iterator

PARAMETER = "name[]"
_PARTS = ("_bucket", "_sum", "_count")


def selected(text: str, names: Collection[str]) -> str:
    """Return the lines of these families; a name may also be that of a part of a histogram."""
    wanted = {*names, *(name.removesuffix(part) for name in names for part in _PARTS)}
    return "".join(f"{line}\n" for line in _lines(text, wanted))


def _lines(text: str, names: Collection[str]) -> Iterator[str]:
    taken = False
    for line in text.splitlines():
        if line.startswith("# HELP "):
            taken = line.split(" ", 3)[2] in names
        if taken:
            yield line
