"""The files of a child: its certificates and credentials, which its user may read and nobody else, and its staging directory."""

import contextlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from paddock.contract.tls import TlsMaterial

_TLS, _CREDENTIALS = "tls", "credentials"


class ChildFolder:
    """A directory that lives as long as a child. `user` 0: the files belong to whoever runs Paddock."""

    def __init__(self, path: Path, user: int) -> None:
        self.path = path
        self._user = user

    @property
    def tls(self) -> Path:
        return self.path / _TLS

    @property
    def credentials(self) -> Path:
        """A file for each credential."""
        return self.path / _CREDENTIALS

    @property
    def account(self) -> Path:
        """The record of the child's user, as /etc/passwd has them: libraries of hypervisors ask who they run as."""
        return self.path / "passwd"

    def write(self, material: TlsMaterial | None, credentials: Mapping[str, bytes]) -> None:
        """Make the directory with its files."""
        self.remove()
        self.path.parent.mkdir(mode=0o711, parents=True, exist_ok=True)
        self._make(self.path)
        if self._user:
            self.account.write_text(f"provider:x:{self._user}:{self._user}::/:/usr/sbin/nologin\n")
            self.account.chmod(0o644)
        files = {}
        if material is not None:
            files = {"tls.crt": material.certificate, "tls.key": material.key, "ca.crt": material.authority}
        for place, content in ((self.tls, files), (self.credentials, credentials)):
            self._make(place)
            for name, data in content.items():
                # Keys of Secrets are file names: they have no slash, and are neither . nor ..
                handle = os.open(place / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o400)
                with os.fdopen(handle, "wb") as file:
                    file.write(data)
                    self._give(handle, 0o440)

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def _make(self, path: Path) -> None:
        path.mkdir(mode=0o700)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            self._give(handle, 0o550)
        finally:
            os.close(handle)

    def _give(self, handle: int, mode: int) -> None:
        """Let the user's group read; the user cannot change what is not its own."""
        if self._user:
            os.fchown(handle, 0, self._user)
            os.fchmod(handle, mode)


class StagingFolders:
    """The staging directories: one for each namespace, with a subdirectory for each claim; children of a namespace share a group.

    `groups` has the numbers to choose from; none where children run as whoever runs Paddock.
    """

    def __init__(self, root: Path, groups: range) -> None:
        self._root = root
        self._groups = groups

    def path(self, namespace: str) -> Path:
        """The directory of a namespace."""
        return self._root / namespace

    def prepare(self, namespace: str) -> int:
        """Make the directory of a namespace; returns its group, 0 if it has none of its own."""
        path = self.path(namespace)
        self._root.mkdir(mode=0o711, parents=True, exist_ok=True)
        path.mkdir(mode=0o700, exist_ok=True)
        if not self._groups:
            return 0
        group = path.stat().st_gid
        if group not in self._groups:
            used = {each.stat().st_gid for each in self._root.iterdir()}
            group = next(number for number in self._groups if number not in used)
            os.chown(path, 0, group, follow_symlinks=False)
        # What is made inside gets the group, too.
        os.chmod(path, 0o2770)
        return group

    def remove_empty(self) -> None:
        """Delete the directories that nobody has put anything into."""
        with contextlib.suppress(FileNotFoundError):
            for each in self._root.iterdir():
                with contextlib.suppress(OSError):
                    each.rmdir()
