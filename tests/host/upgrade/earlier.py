"""Hosts whose server is of an earlier version for a while: the sources of a commit, run with the packages of today."""

import subprocess
import tarfile
import tomllib
from io import BytesIO
from pathlib import Path

from msgspec import Struct, convert

from tests.host.runs.conftest import Host

_LIST = Path(__file__).with_name("commits.toml")
_ROOT = Path(__file__).resolve().parents[3]


class Upgrade(Struct, frozen=True):
    """A version to come from, and the kind of its networks."""

    commit: str
    mode: str
    reason: str

    def __str__(self) -> str:
        return f"{self.commit}-{self.mode}"


class _Commit(Struct, frozen=True, forbid_unknown_fields=True):
    id: str
    date: object
    modes: list[str]
    reason: str


def upgrades() -> list[Upgrade]:
    """Return what commits.toml lists, in its order."""
    commits = convert(tomllib.loads(_LIST.read_text())["commit"], list[_Commit])
    return [Upgrade(each.id, mode, each.reason) for each in commits for mode in each.modes]


def sources(commit: str, folder: Path) -> str:
    """Unpack the sources of a commit. Returns why this clone does not have them; "" when it does."""
    done = subprocess.run(["git", "-C", str(_ROOT), "archive", commit, "src"], capture_output=True, check=False)
    if done.returncode:
        return f"this clone has no commit {commit}: {done.stderr.decode().strip()}"
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return ""


class VersionedHost(Host):
    """A host whose server is of one version, and then of another."""

    def __init__(self, root: Path, registry: str, mode: str) -> None:
        super().__init__(root, registry)
        self.network = mode

    def start_of(self, earlier: Path | None) -> None:
        """Start the version whose sources are there; without any, this one."""
        # They come before the sources that are installed.
        self.environment = {"PYTHONPATH": str(earlier / "src")} if earlier is not None else {}
        self.start()
