"""Files, directories and standard input as manifests."""

import os
import stat
import sys
from collections.abc import Iterator, Sequence

from paddock.kubernetes.meta.manifests.limits import DEFAULT, ManifestLimits
from paddock.kubernetes.meta.manifests.unreadable import UnreadableManifest

STDIN = "-"
_STDIN_NAME = "<stdin>"
_ENDINGS = (".yaml", ".yml", ".json")


def sources(names: Sequence[str]) -> Iterator[str]:
    """The files that are meant, directories read recursively in sorted order. Raises `UnreadableManifest`."""
    for name in names:
        if name != STDIN and os.path.isdir(name):
            yield from _below(name)
        else:
            yield name


def _below(directory: str) -> Iterator[str]:
    def fail(error: OSError) -> None:
        raise _unreadable(error.filename or directory, error)

    found = False
    for folder, folders, files in os.walk(directory, onerror=fail):
        # What is hidden belongs to tools (.git, .github), not to the user's manifests.
        folders[:] = sorted(each for each in folders if not each.startswith("."))
        for file in sorted(files):
            if file.endswith(_ENDINGS) and not file.startswith("."):
                found = True
                yield os.path.normpath(os.path.join(folder, file))
    if not found:
        raise UnreadableManifest(directory, "no *.yaml, *.yml or *.json in this directory", fix="name a file, or another directory")


def read(name: str, limits: ManifestLimits = DEFAULT) -> tuple[str, bytes]:
    """The name to report and the bytes of an input, one more than allowed at most. Raises `UnreadableManifest`."""
    most = limits.size + 1
    try:
        if name == STDIN:
            return _STDIN_NAME, sys.stdin.buffer.read(most)
        with open(name, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_ISBLK(mode):
                raise UnreadableManifest(name, "is a disk, not a manifest", fix="name a file")
            return name, file.read(most)
    except (OSError, ValueError) as error:
        raise _unreadable(name, error) from None


def _unreadable(name: str, error: OSError | ValueError) -> UnreadableManifest:
    if isinstance(error, FileNotFoundError):
        return UnreadableManifest(name, "no such file or directory")
    if isinstance(error, PermissionError):
        return UnreadableManifest(name, "may not be read", fix="check its permissions")
    reason = error.strerror if isinstance(error, OSError) else None
    return UnreadableManifest(name, f"cannot be read: {reason or error}")
