"""A Python with clients and nothing of the project: made once per list of requirements, in the cache."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from paddock.base.errors import Terminal
from tests.reference.build import cache_root, locked

SCRIPTS = Path(__file__).parent / "python"
REQUIREMENTS = SCRIPTS / "requirements.txt"
ANSIBLE = Path(__file__).parent / "ansible" / "requirements.lock"


class InstallFailed(Terminal):
    """pip could not install the clients."""

    def __init__(self, output: str) -> None:
        super().__init__(
            "cannot install the Python clients",
            why=output.strip()[-2000:],
            fix="check that pip reaches its index, and that the pins still exist",
        )


def python(say: Callable[[str], None] = print, *, requirements: Path = REQUIREMENTS, cache: Path | None = None) -> Path:
    """The interpreter, in an environment that is made first if there is none for these requirements."""
    home = (cache or cache_root()) / "python-clients"
    digest = hashlib.sha256(requirements.read_bytes() + f"{sys.version_info[:2]}{sys.executable}".encode()).hexdigest()
    done = home / digest[:20]
    if not done.is_dir():
        home.mkdir(parents=True, exist_ok=True)
        with locked(home / f"{done.name}.lock", say):
            if not done.is_dir():
                _install(done, requirements, say)
    return done / "bin" / "python"


def _install(done: Path, requirements: Path, say: Callable[[str], None]) -> None:
    say("installing the Python clients (once per list of requirements)")
    partial = done.with_name(f"{done.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    pip = [str(partial / "bin" / "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", str(requirements)]
    for command in ([sys.executable, "-m", "venv", str(partial)], pip):
        ran = subprocess.run(["nice", *command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if ran.returncode:
            raise InstallFailed(ran.stdout)
    # Scripts name their interpreter by its place.
    for script in (partial / "bin").iterdir():
        if not script.is_symlink() and str(partial).encode() in (told := script.read_bytes()):
            script.write_bytes(told.replace(str(partial).encode(), str(done).encode()))
    partial.rename(done)
