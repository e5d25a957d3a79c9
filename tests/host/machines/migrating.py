"""Two hosts on one machine, and the guest that goes from one to the other: what the tests of live migration share."""

import asyncio
import datetime
import os
from pathlib import Path

from msgspec import structs

from paddock.engine.machine import livelinks
from paddock.engine.machine.config import DiskConfig, DiskLayer, MachineConfig
from paddock.engine.machine.livelinks import Credentials
from paddock.engine.machine.livesource import SendRequest
from paddock.engine.machine.livetarget import ReceiveRequest
from paddock.engine.machine.machine import QemuMachine
from paddock.server.security import signing
from tests.host.machines import bootsector
from tests.host.machines.conftest import Place, until_guest_runs, until_phase

MIB = 1 << 20
SIZE = 16 * MIB
# The guest writes 64 KiB to its second disk whenever it is told to.
MARK = bootsector.marker(1)
ADDRESS = "127.0.0.1"


def blank(path: Path, size: int = SIZE) -> DiskLayer:
    path.write_bytes(b"")
    os.truncate(path, size)
    return DiskLayer(path, "raw")


def credentials(folder: Path) -> tuple[Credentials, Credentials]:
    """Of the target and of the source; each authority signs one certificate."""
    folder.mkdir(exist_ok=True)
    now = datetime.datetime.now(datetime.UTC)
    made = []
    for name in ("target", "source"):
        certificate, key = folder / f"{name}.crt", folder / f"{name}.key"
        for path, content in zip((certificate, key), signing.new_authority(f"paddock-live-{name}", now), strict=True):
            path.write_bytes(content)
        signer = signing.CertificateSigner(certificate, key, lambda: now)
        pair = signer.server(name, [livelinks.TARGET_NAME]) if name == "target" else signer.client(name, ())
        made.append((*pair, certificate.read_bytes()))
    authorities = b"".join(authority for *_, authority in made)
    target, source = (Credentials(certificate, key, authorities) for certificate, key, _ in made)
    return target, source


def beside(place: Place, name: str = "there") -> Place:
    """Another host."""
    (place.root / name).mkdir(exist_ok=True)
    return Place(place.root / name)


def sends_to(config: MachineConfig, folder: Path) -> MachineConfig:
    """The same machine with empty disks of its own in another folder; what it only reads is the same."""
    disks = [
        structs.replace(disk, layer=blank(folder / f"{disk.name}.img", disk.layer.path.stat().st_size)) if disk.layer else disk
        for disk in config.disks
    ]
    return structs.replace(config, disks=tuple(disks))


async def started(place: Place) -> QemuMachine:
    """A machine whose guest writes to its second disk, `data`, with something on it."""
    machines = place.open()
    await machines.adopt()
    data = blank(place.root / "data.img")
    with data.path.open("r+b") as file:
        for at in range(MIB, SIZE, 4 * MIB):
            file.seek(at)
            file.write(os.urandom(64 << 10))
    config = place.guest(disks=(DiskConfig("data", data, boot_order=2),))
    (place.root / "guest.img").write_bytes(MARK.ljust(MIB, b"\x00"))
    machine = await machines.define("a", config)
    await machine.start()
    await until_guest_runs(machine)
    await until_phase(machine, "running")
    return machine


async def expects(
    place: Place, source: QemuMachine, migration: str = "m1", theirs: Credentials | None = None
) -> tuple[QemuMachine, SendRequest]:
    """A target that waits for the guest, and what its source has to know. `theirs`: what it shows instead of what it should."""
    made, ours = credentials(place.root / "credentials")
    machines = place.open()
    await machines.adopt()
    target = await machines.define("a", sends_to(source.config, place.root))
    receiver_address = await target.receive(ReceiveRequest(migration, await source.describe_leaving(), theirs or made, ADDRESS))
    return target, SendRequest(migration, receiver_address, ours)


async def writes(machine: QemuMachine) -> None:
    """The guest writes the next 64 KiB to its disk."""
    said = machine.directory.serial_log().count(b"w")
    console = machine.console()
    await console.write(b"w")
    async with asyncio.timeout(30):
        while machine.directory.serial_log().count(b"w") <= said:
            await asyncio.sleep(0.01)
    console.close()


def marks(machine: QemuMachine) -> int:
    """Return how often the guest wrote to its disk."""
    held = (machine.config.disks[1].layer or DiskLayer(Path(), "raw")).path.read_bytes()
    return sum(held[at : at + len(MARK)] == MARK for at in range(0, len(held), 64 << 10))
