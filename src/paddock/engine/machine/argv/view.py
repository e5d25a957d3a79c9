"""The facts about the host that a command line needs, as data. `engine/host` reads them; nothing is read here."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct, field

Accelerator = Literal["kvm", "tcg"]
_UP = Path("../../..")


class EfiFiles(Struct, frozen=True):
    """EFI's code and the variables it starts with."""

    code: Path
    variables: Path


class FileView(Struct, frozen=True):
    """The host's access to a file."""

    # O_DIRECT works
    direct: bool = True
    # every block is allocated, or it is a device: the kernel's asynchronous reads and writes do not wait
    solid: bool = False
    # a block device
    device: bool = False


class VirtioFs(Struct, frozen=True):
    """The program that shares directories. `classic` is the one that came with QEMU until 7.2; it has other options."""

    program: Path
    classic: bool = False


class HostView(Struct, frozen=True):
    """The host, as far as one machine needs it."""

    qemu: Path
    accelerator: Accelerator
    version: tuple[int, int, int] = (7, 2, 0)
    # names of the devices this QEMU has; empty: not known, so nothing is refused for it
    devices: frozenset[str] = frozenset()
    efi: EfiFiles | None = None
    secure_efi: EfiFiles | None = None
    swtpm: Path | None = None
    virtiofs: VirtioFs | None = None
    vhost_net: bool = False
    io_uring: bool = False
    # the model of the host's processor
    processor: str = ""
    # what is known of the files that hold disks; a file that is not in it is an ordinary one
    files: Mapping[Path, FileView] = field(default_factory=dict)

    # the engine's directory: files below it are named by the way from where QEMU is started, `machines/ID/run`, because whoever QEMU runs
    # as may not be allowed to walk down to it from the root of the host
    root: Path | None = None

    def named(self, path: Path) -> str:
        """The name of a file for QEMU."""
        if self.root is not None and path.is_relative_to(self.root):
            return str(_UP / path.relative_to(self.root))
        return str(path)

    def file(self, path: Path) -> FileView:
        """Return the facts about a file."""
        return self.files.get(path, FileView())
