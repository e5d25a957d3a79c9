"""Containers of the images that a test built, by podman with runc, in a storage of their own."""

import resource
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Podman:
    """A storage of images and containers."""

    folder: Path
    _running: list[str] = field(default_factory=list)

    def attempt(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command, and leave its verdict to the caller."""
        places = ["--root", str(self.folder / "root"), "--runroot", str(self.folder / "run"), "--storage-driver", "vfs"]
        # Control groups without systemd, and events without its journal.
        how = ["--runtime", "runc", "--cgroup-manager", "cgroupfs", "--events-backend", "file"]
        return subprocess.run(["podman", *places, *how, *words], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)

    def ok(self, *words: str) -> str:
        """Return the output of a command that must succeed."""
        done = self.attempt(*words)
        assert done.returncode == 0, f"podman {' '.join(words)}: {done.stderr[-3000:]}"
        return done.stdout

    def load(self, archive: Path) -> str:
        """Return the name of an archive's image."""
        return self.ok("load", "--input", str(archive)).strip().rpartition(" ")[2]

    def start(self, name: str, image: str, options: Sequence[str], words: Sequence[str]) -> None:
        """Start a container in the background, with a root file system that nobody writes to."""
        self._running.append(name)
        self.ok("run", "--detach", "--log-driver=k8s-file", "--name", name, *CONFINED, *limits(), *options, image, *words)

    def logs(self, name: str) -> str:
        """Return what a container has printed."""
        done = self.attempt("logs", name)
        return done.stdout + done.stderr

    def close(self) -> None:
        """End the containers, and remove everything."""
        for name in self._running:
            self.attempt("rm", "--force", "--time", "5", name)
        self.attempt("system", "reset", "--force")


# The restricted profile of Kubernetes' Pod security standards, with a read-only root file system.
CONFINED = ("--read-only", "--read-only-tmpfs=false", "--cap-drop=all", "--security-opt=no-new-privileges", "--network=host")


def limits() -> Sequence[str]:
    """Limits that need no right to raise them, as podman's own do where we have less."""
    found = [(name, resource.getrlimit(kind)[1]) for name, kind in (("nofile", resource.RLIMIT_NOFILE), ("nproc", resource.RLIMIT_NPROC))]
    return [f"--ulimit={name}={few}:{few}" for name, few in ((name, min(most, 4096) if most > 0 else 4096) for name, most in found)]
