"""Files that are hashed while they are written."""

import hashlib
from typing import IO


class HashedFile:
    """A file to write to, with the digest and size of what was written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        """Write, and count."""
        self._hash.update(data)
        self.size += len(data)
        return self._file.write(data)

    @property
    def digest(self) -> str:
        """The digest so far, as registries write it."""
        return f"sha256:{self._hash.hexdigest()}"
