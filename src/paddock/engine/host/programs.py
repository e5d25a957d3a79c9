"""The paths of the programs that machines need."""

import os
import shutil
from collections.abc import Iterable
from pathlib import Path

from paddock.engine.machine.argv.view import VirtioFs

QEMU_NAMES = {"amd64": "qemu-system-x86_64", "arm64": "qemu-system-aarch64"}
QEMU_PACKAGES = {"amd64": "qemu-system-x86", "arm64": "qemu-system-arm"}
# Some distributions keep programs that no person starts out of PATH.
_BESIDE_PATH = ("/usr/libexec", "/usr/lib/qemu", "/usr/lib", "/usr/sbin", "/sbin")
_CLASSIC_VIRTIOFSD = Path("/usr/lib/qemu/virtiofsd")


def find(name: str, extra: Iterable[str] = _BESIDE_PATH) -> Path | None:
    path = os.pathsep.join((os.environ.get("PATH", os.defpath), *extra))
    found = shutil.which(name, path=path)
    return Path(found) if found else None


def virtiofsd() -> VirtioFs | None:
    """The program that shares directories; the one that is a project of its own is preferred."""
    found = find("virtiofsd", ("/usr/libexec", "/usr/lib", "/usr/lib/virtiofsd"))
    if found is not None:
        return VirtioFs(found, classic=found == _CLASSIC_VIRTIOFSD)
    return VirtioFs(_CLASSIC_VIRTIOFSD, classic=True) if os.access(_CLASSIC_VIRTIOFSD, os.X_OK) else None
