"""The bare guest: its ROM, which the machine takes for EFI firmware, and talks with it on the serial console."""

import asyncio
import re
import stat
import subprocess
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from paddock.engine.machine.argv.view import EfiFiles
from paddock.engine.machine.config import CpuConfig, DiskConfig, DiskLayer, FirmwareConfig, MachineConfig, MemoryConfig
from paddock.engine.machine.host import MachineEnvironment
from paddock.engine.machine.machine import QemuMachine
from paddock.engine.machine.users import UserRange
from tests.host.machines.conftest import look, surroundings, until

_SOURCES = Path(__file__).parent
_COMPILE = (
    *("cc", "-m32", "-march=i386", "-Os", "-ffreestanding", "-fno-pic", "-fno-stack-protector", "-fno-asynchronous-unwind-tables"),
    *("-fcf-protection=none", "-fno-tree-loop-distribute-patterns", "-Wall", "-Wextra", "-Werror", "-nostdlib", "-static", "-no-pie"),
)
ACCELERATOR: Literal["kvm", "tcg"] = "kvm"
# Where `w` writes, and what.
MARKED, WRITTEN = 64 << 10, b"written\0"
MEMORY = MemoryConfig(32 << 20, 32 << 20)


def rom(folder: Path) -> None:
    """Build the guest, with variables that it never reads."""
    program, code, variables = folder / "guest.elf", folder / "guest.rom", folder / "variables.fd"
    sources = (_SOURCES / "reset.s", _SOURCES / "guest.c")
    link = ("-Wl,--build-id=none", f"-Wl,-T,{_SOURCES / 'rom.ld'}")
    subprocess.run([*_COMPILE, *link, "-o", str(program), *map(str, sources)], check=True)
    subprocess.run(["objcopy", "-O", "binary", "--gap-fill", "0", str(program), str(code)], check=True)
    variables.write_bytes(bytes(4096))


def environment(root: Path, efi: EfiFiles | None = None) -> MachineEnvironment:
    """A host whose guests run under KVM; without other firmware, the bare guest's ROM below `root` takes its place."""
    firmware = efi or EfiFiles(root / "guest.rom", root / "variables.fd")
    around = surroundings()
    return replace(
        around,
        host_view=lambda config: replace(look(config), accelerator=ACCELERATOR, efi=firmware, root=root),
        users=around.users if _is_shared() else UserRange(),
    )


def _is_shared() -> bool:
    # A device for root alone, as in a container, opens to no user of a machine's own.
    status = Path("/dev/kvm").stat() if Path("/dev/kvm").exists() else None
    return status is not None and (status.st_gid != 0 or bool(status.st_mode & stat.S_IWOTH))


def guest(root: Path, cpu: CpuConfig | None = None) -> MachineConfig:
    """The machine, with a disk."""
    path = root / "root.img"
    path.write_bytes(bytes(1 << 20))
    disk = DiskConfig("root", DiskLayer(path, "raw"))
    return MachineConfig(
        "ns_bare", cpu or CpuConfig(model="qemu64", max_sockets=2), MEMORY, firmware=FirmwareConfig(kind="efi"), disks=(disk,)
    )


async def until_it_runs(machine: QemuMachine, times: int = 1) -> None:
    """It says so itself, once after each reset."""
    await until(machine, lambda one: one.directory.serial_tail(100_000).count(b"R") == times, f"the guest ran {times} times", 60)


async def asked(machine: QemuMachine, letter: str, pattern: str) -> str:
    """Return what the guest answers to a letter; a question that came too early is asked again."""
    console = machine.console()
    answer: re.Match[bytes] | None = None
    before = len(machine.directory.serial_tail(100_000))
    try:
        async with asyncio.timeout(60):
            while answer is None:
                await console.write(letter.encode())
                await asyncio.sleep(0.3)
                answer = re.search(pattern.encode(), machine.directory.serial_tail(100_000)[before:])
    finally:
        console.close()
    return answer.group().decode()


async def ticks(machine: QemuMachine) -> int:
    """Return how often the guest's clock has ticked since its reset."""
    return int(await asked(machine, "c", "[0-9a-f]{8}"), 16)


async def sees(machine: QemuMachine, disks: int, nics: int) -> None:
    """Wait until the guest finds so many disks and network cards on its buses."""
    await asked(machine, "n", f"{disks}{nics}")


async def writes(machine: QemuMachine, disk: Path, offset: int = MARKED) -> None:
    """The guest writes, and the bytes are in the file."""
    await asked(machine, "w", "w")
    with disk.open("rb") as file:
        file.seek(offset)
        assert file.read(len(WRITTEN)) == WRITTEN
