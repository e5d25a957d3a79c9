"""An ordinary user of a host, and Paddock as that user runs it."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

import paddock
from tests.host import reach

# Nobody has this number.
USER = 61_234
SECONDS = 120


def become(user: int) -> tuple[str, ...]:
    """Return the words before a command by which root becomes a user."""
    # setpriv itself starts a program with the rights that it takes away; env does not have them any more.
    rights = ("--clear-groups", "--inh-caps=-all", "--bounding-set=-all", "--no-new-privs")
    return ("setpriv", f"--reuid={user}", f"--regid={user}", *rights, "env")


class Unprivileged:
    """A user with a home of its own, and the program as an installation of the host's Python would start it."""

    def __init__(self, home: Path, words: Sequence[str] = (), user: int = USER) -> None:
        """`words`: those before each command, by which root becomes the user."""
        self.home = home
        home.mkdir()
        home.parent.chmod(0o755)
        os.chown(home, user, user)
        self._become = (*reach.words(), *(words or become(user)))
        self.root = home / ".local" / "state" / "paddock"
        packages = [str(Path(paddock.__file__).parents[1]), str(Path(yaml.__file__).parents[1])]
        # A name or an entry in /etc/passwd is not needed either.
        self._environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(packages), "PYTHONDONTWRITEBYTECODE": "1"}
        self._python = self._find_python()

    def _find_python(self) -> str:
        """This Python, if that user may start it; otherwise the host's of the same version."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        for program in (sys.executable, shutil.which(version, path="/usr/bin:/usr/local/bin") or ""):
            if program and self.run([program, "-c", "import msgspec, paddock.app.main"]).returncode == 0:
                return program
        pytest.skip(f"needs python: no {version} here may be started by another user")

    def run(self, argv: Sequence[str]) -> "subprocess.CompletedProcess[str]":
        """A command of that user's."""
        words = [*self._become, *argv]
        return subprocess.run(words, capture_output=True, text=True, check=False, env=self._environment, cwd=self.home, timeout=SECONDS)

    @property
    def program(self) -> tuple[str, ...]:
        """The words that start the program."""
        return (self._python, "-m", "paddock.app")

    def hide(self, name: str) -> None:
        """Have the host's programs without one of them."""
        place = self.home / "programs"
        place.mkdir()
        for each in Path("/usr/bin").iterdir():
            if each.name != name:
                (place / each.name).symlink_to(each)
        self._environment["PATH"] = str(place)

    def qemus_alive(self) -> set[int]:
        """Return the processes of the machines."""
        records = (json.loads(path.read_text()) for path in self.root.glob("engine/machines/*/process.json"))
        return {each["pid"] for each in records if Path(f"/proc/{each['pid']}/exe").exists()}

    def paddock(self, *words: str, code: int = 0) -> "subprocess.CompletedProcess[str]":
        """A command of the program."""
        said = self.run([*self.program, *words])
        assert said.returncode == code, said.stdout + said.stderr
        return said

    def qemus(self) -> set[int]:
        """Return the users that the machines of this server run as."""
        records = (json.loads(path.read_text()) for path in self.root.glob("engine/machines/*/process.json"))
        return {Path(f"/proc/{each['pid']}").stat().st_uid for each in records}

    def kubectl(self, *words: str) -> str:
        """kubectl of that user's."""
        said = self.run(["kubectl", f"--kubeconfig={self.root / 'kubeconfig'}", *words])
        assert said.returncode == 0, said.stderr
        return said.stdout
