"""The directories of builds' downloads and results: everything there may be removed at any time, and is made again."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def cache() -> Path:
    """Below the user's cache directory."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if base.startswith("/") else Path.home() / ".cache") / "paddock" / "guests"


@contextmanager
def alone(folder: Path, name: str) -> Iterator[None]:
    """One of a name at a time in a cache; another process waits for its turn."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
