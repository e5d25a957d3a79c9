"""The version of the installed program, and the commit that it was built from."""

import json
import subprocess
from importlib.metadata import version
from pathlib import Path

import msgspec

_STAMP = Path(__file__).with_name("build.json")


class BuildInfo(msgspec.Struct, frozen=True):
    """The version and commit of this program. `commit` is empty if nobody knows it."""

    version: str
    commit: str

    def __str__(self) -> str:
        return f"{self.version} (commit {self.commit[:12]}{'-dirty' * self.commit.endswith('-dirty')})" if self.commit else self.version


def read(stamp: Path = _STAMP) -> BuildInfo:
    """Return the stamp of the build; a checkout has none, and git knows its commit."""
    if stamp.exists():
        return BuildInfo(version("paddock"), str(json.loads(stamp.read_text()).get("commit", "")))
    return BuildInfo(version("paddock"), _checked_out(Path(__file__).parents[3]))


def _checked_out(root: Path) -> str:
    if not (root / ".git").exists():
        return ""
    try:
        done = subprocess.run(["git", "-C", str(root), "rev-parse", "HEAD"], capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
