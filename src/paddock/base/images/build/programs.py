"""Programs that a build calls: found beforehand, run without a shell, and quoted when they fail."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from paddock.base.errors import Terminal

_PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
_LAST_WORDS = 2000


class BuildError(Terminal):
    """An image cannot be built on this host."""


def need(packages: Mapping[str, str], purpose: str) -> None:
    """Fails when a program is missing; `packages` says which Debian package has it."""
    missing = [name for name in packages if shutil.which(name, path=_PATH) is None]
    if missing:
        install = " ".join(sorted({packages[name] for name in missing}))
        raise BuildError(
            f"cannot {purpose}", why=f"this host has no {', no '.join(missing)}", fix=f"install them: apt-get install {install}"
        )


def run(command: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None) -> bytes:
    """Return the output of a program. Its last words are part of the error when it fails."""
    words = [str(word) for word in command]
    found = shutil.which(words[0], path=_PATH)
    if found is None:
        raise BuildError(f"cannot run {words[0]}", why="this host has no such program", fix="install the package that has it")
    environment = {**os.environ, "PATH": _PATH, "LC_ALL": "C.UTF-8", **(env or {})}
    done = subprocess.run([found, *words[1:]], cwd=cwd, env=environment, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode:
        said = (done.stderr or done.stdout)[-_LAST_WORDS:].decode(errors="replace").strip()
        raise BuildError(f"{words[0]} failed with exit code {done.returncode}", why=said)
    return done.stdout
