"""The user of each QEMU. With root's rights: a user of its own for each machine, a number from a range that nobody else uses.

A directory has a block of numbers (`engine/claims.py`): users, one group for files that machines share for writing, and groups of layers.
"""

import contextlib
import grp
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from msgspec import Struct

from paddock.base.errors import Terminal
from paddock.engine.claims import BLOCK, FIRST
from paddock.engine.machine.config import DiskConfig, MachineConfig, MemoryConfig

COUNT = 50_000
# users of the programs of Providers, and groups of their namespaces
_PROGRAMS = 2048


class NoUser(Terminal):
    """There is no number left, or this host does not have them."""


class UserRange(Struct, frozen=True):
    """The range of numbers. `first` 0: machines run as whoever runs Paddock."""

    first: int = 0
    count: int = COUNT
    # a file with the group that was given to a layer last; None: layers have no groups of their own
    counter: Path | None = None

    @property
    def shared(self) -> int:
        """The group of shareable disks."""
        return self.first + self.count

    @property
    def layer_groups(self) -> range:
        return range(self.shared + 1, self.first + BLOCK - _PROGRAMS) if self.counter is not None else range(0)

    @property
    def programs(self) -> range:
        """The numbers of programs beside the machines, which are users and groups; none where programs run as whoever runs Paddock."""
        if not self.first:
            return range(0)
        end = self.first + (BLOCK if self.counter is not None else self.count)
        return range(end - min(_PROGRAMS, self.count // 4), end)

    def next_group(self) -> int:
        """A group that no layer has; after some hundred thousand the oldest again."""
        if self.counter is None:
            raise NoUser("cannot give a layer a group of its own", why="this host has no groups for layers")
        known = self.layer_groups
        try:
            last = int(self.counter.read_text())
        except (FileNotFoundError, ValueError):
            last = known.start - 1
        group = last + 1 if last + 1 in known else known.start
        # In place and of one width: to replace a file by its name makes the disk write, and this is the event loop.
        handle = os.open(self.counter, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.pwrite(handle, f"{group:>20}\n".encode(), 0)
        finally:
            os.close(handle)
        return group

    def __contains__(self, number: int) -> bool:
        return self.first <= number < self.first + self.count

    def choose(self, taken: Iterable[int]) -> int:
        """The lowest number that is free."""
        if not self.first:
            return 0
        used = set(taken)
        for number in range(self.first, self.first + self.count):
            if number not in used and number not in self.programs:
                return number
        raise NoUser("cannot give a machine a user of its own", why=f"all {self.count} numbers are in use", fix="delete machines")


def on_this_host(claim: Callable[[], int], counter: Path | None = None) -> UserRange:
    """The range that `claim` gives where Paddock is root and the numbers exist; else none. `counter` is a file for `UserRange`."""
    if os.geteuid() != 0:
        return UserRange()
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/uid_map").read_text().splitlines():
            start, _, length = map(int, line.split())
            if start <= FIRST and start + length >= 2**31:
                return UserRange(claim(), counter=counter)
            # A user namespace that maps fewer: the upper half of what there is. Nobody outside has its numbers.
            if start == 0 and length >= 2000:
                return UserRange(length // 2, min(COUNT, length // 2 - 1))
    return UserRange()


def groups(config: MachineConfig, users: UserRange, *, kvm: bool) -> tuple[int, ...]:
    """The groups QEMU needs besides its own."""
    found = []
    if kvm and (group := _group_of_kvm()) is not None:
        found.append(group)
    if users.first and (config.memory.private or any(disk.shareable for disk in config.disks)):
        found.append(users.shared)
    return (
        *found,
        *sorted({group for disk in config.disks for path in read_only(disk) if (group := _group_of(path)) in users.layer_groups}),
    )


def read_only(disk: DiskConfig) -> list[Path]:
    """The layers of a disk that its machine only reads."""
    found = []
    layer = disk.layer
    if layer is not None and not (disk.readonly or disk.role == "cdrom"):
        layer = layer.backing
    while layer is not None:
        found.append(layer.path)
        layer = layer.backing
    return found


def lent(disk: DiskConfig, user: int, users: UserRange) -> list[Path]:
    """The layers that QEMU got no group for when it started. Those of the disk's own volume become the machine's, as they may be merged."""
    found = []
    for path in read_only(disk):
        if _group_of(path) not in users.layer_groups:
            continue
        if disk.layer is not None and path.parent == disk.layer.path.parent:
            os.chown(path, user, -1, follow_symlinks=False)
        else:
            found.append(path)
    return found


def _group_of(path: Path) -> int:
    try:
        return os.stat(path, follow_symlinks=False).st_gid
    except OSError:
        return 0


def _group_of_kvm() -> int | None:
    try:
        status = os.stat("/dev/kvm")
    except OSError:
        return None
    if status.st_mode & stat.S_IRWXO == stat.S_IROTH | stat.S_IWOTH or status.st_gid == 0:
        return None
    with contextlib.suppress(KeyError):
        return grp.getgrgid(status.st_gid).gr_gid
    return status.st_gid


def hand_over(path: Path, user: int, group: int | None = None, mode: int = 0o600) -> None:
    """A file becomes the machine's, if it is an ordinary one and not somebody's besides us or another machine."""
    if not user:
        return
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(handle)
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            return
        if (status.st_uid, status.st_gid) != (user, group or user):
            os.fchown(handle, user, user if group is None else group)
        if stat.S_IMODE(status.st_mode) != mode:
            os.fchmod(handle, mode)
    finally:
        os.close(handle)


def hand_over_disk(disk: DiskConfig, user: int, users: UserRange) -> None:
    """The layer that the guest writes becomes the machine's. Those below can be read by the machines that have them below."""
    if disk.layer is None or not user:
        return
    for path in read_only(disk):
        show(path, users)
    if disk.readonly or disk.role == "cdrom":
        return
    if disk.shareable:
        hand_over(disk.layer.path, user, users.shared, 0o660)
    else:
        hand_over(disk.layer.path, user)


def hand_over_memory(memory: MemoryConfig, user: int, users: UserRange) -> None:
    """The file that is the machine's memory is made, or becomes what all its clones map.

    QEMU up to 8.1 opens a file for writing even where it maps it privately and never writes it, so clones may.
    """
    if memory.file is None:
        return
    if not memory.private:
        with contextlib.suppress(FileNotFoundError):
            memory.file.unlink()
        os.close(os.open(memory.file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        hand_over(memory.file, user)
    elif user:
        os.chown(memory.file, 0, users.shared, follow_symlinks=False)
        os.chmod(memory.file, 0o660)


def show(path: Path, users: UserRange) -> None:
    """Makes a layer readable for the machines that only read it: by a group of its own, or where there is none for everybody.

    What everybody may read already, such as an image, stays so. The owner keeps the right to write: a QEMU that runs on the layer opens
    its files anew when it goes on in another one.
    """
    with contextlib.suppress(OSError):
        status = os.stat(path, follow_symlinks=False)
        mode = stat.S_IMODE(status.st_mode)
        if not stat.S_ISREG(status.st_mode) or mode & stat.S_IROTH:
            return
        if not users.layer_groups:
            os.chmod(path, mode | 0o444)
            return
        if status.st_gid not in users.layer_groups:
            os.chown(path, -1, users.next_group(), follow_symlinks=False)
        if mode & 0o077 != 0o040:
            os.chmod(path, mode & 0o700 | 0o440)
