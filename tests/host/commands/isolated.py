"""A server in a network namespace of its own, and a user with a key and a home."""

import os
import subprocess
from pathlib import Path

from paddock.base.images.build import places
from tests.host.commands.terminals import PADDOCK, Terminal
from tests.host.networks.namespaces import run as system

ROOT = Path(__file__).resolve().parents[3]
SECONDS = 240
# The host's own: a load balancer has the address of the device that the default route names.
ADDRESS = "192.0.2.1"


class IsolatedHost:
    """A server in a network namespace of its own, and a user with a key."""

    def __init__(self, folder: Path, namespace: str) -> None:
        self.place, self.home = folder / "paddock", folder / "home"
        (self.home / ".ssh").mkdir(parents=True)
        (self.home / ".cache" / "paddock").mkdir(parents=True)
        (self.home / ".cache" / "paddock" / "guests").symlink_to(places.cache())
        system("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.home / ".ssh" / "id_ed25519"))
        self.namespace = namespace
        kept = {name: value for name, value in os.environ.items() if name not in ("KUBECONFIG", "XDG_CACHE_HOME", "XDG_STATE_HOME")}
        self._environment = {**kept, "PADDOCK_DIR": str(self.place), "HOME": str(self.home)}

    def start(self, *words: str) -> "subprocess.Popen[str]":
        """Start a command without a terminal."""
        return subprocess.Popen(
            self._within(*words),
            cwd=ROOT,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def call(self, *words: str) -> tuple[int, str, str]:
        """Run a command to its end."""
        process = self.start(*words)
        out, err = process.communicate(timeout=SECONDS)
        return process.returncode, out, err

    def good(self, *words: str) -> str:
        """Run a command that has to succeed."""
        code, out, err = self.call(*words)
        assert code == 0, f"{words}: {out}{err}"
        return out

    def terminal(self, *words: str, **variables: str) -> Terminal:
        """Start a command in a terminal."""
        return Terminal(self._within(*words), {**self._environment, **variables})

    @property
    def machines(self) -> list[Path]:
        """The machines that the engine has."""
        return sorted((self.place / "engine" / "machines").glob("*/process.json"))

    @property
    def volumes(self) -> list[str]:
        """The IDs of the volumes that the engine has."""
        return sorted(each.parent.name for each in (self.place / "engine" / "volumes").glob("*/volume.json"))

    def _within(self, *words: str) -> list[str]:
        return ["ip", "netns", "exec", self.namespace, *PADDOCK, *words]
