"""Where a server keeps its files (docs/dev/on-disk.md)."""

import os
from pathlib import Path

import msgspec


class Places(msgspec.Struct, frozen=True):
    """The files below one directory."""

    root: Path

    @property
    def store(self) -> Path:
        """All objects."""
        return self.root / "store.db"

    @property
    def pki(self) -> Path:
        """Authority, certificates, signing keys."""
        return self.root / "pki"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's way in."""
        return self.root / "kubeconfig"

    @property
    def pid(self) -> Path:
        """Process id, start time and address of the running server."""
        return self.root / "server.json"

    @property
    def log(self) -> Path:
        """What a detached server says."""
        return self.root / "server.log"

    @property
    def engine(self) -> Path:
        """Machines, images, volumes, networks."""
        return self.root / "engine"

    @property
    def audit(self) -> Path:
        """The audit log."""
        return self.root / "audit.log"


def default_root() -> Path:
    """`/var/lib/paddock` for root, otherwise below the user's own state."""
    given = os.environ.get("PADDOCK_DIR")
    if given:
        return Path(given)
    if os.geteuid() == 0:
        return Path("/var/lib/paddock")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "paddock"
