"""Paths of a server's files (docs/reference/on-disk.md)."""

from pathlib import Path

import msgspec

from paddock.base import directories


class DataPaths(msgspec.Struct, frozen=True):
    """The files below one directory."""

    root: Path

    @property
    def store(self) -> Path:
        return self.root / "store.db"

    @property
    def pki(self) -> Path:
        return self.root / "pki"

    @property
    def kubeconfig(self) -> Path:
        return self.root / directories.KUBECONFIG

    @property
    def pid(self) -> Path:
        """Process id, start time and address of the running server."""
        return self.root / directories.SERVER

    @property
    def log(self) -> Path:
        """The log of a detached server."""
        return self.root / "server.log"

    @property
    def stacks(self) -> Path:
        """The file with the stacks of all threads, which the watchdog writes before it ends the server."""
        return self.root / "stacks.log"

    @property
    def engine(self) -> Path:
        return self.root / "engine"

    @property
    def audit(self) -> Path:
        return self.root / "audit.log"
