"""The whole way back to a snapshot: the guest stops, its disks change, and it starts again."""

from paddock.base.errors import Terminal
from paddock.base.jsondata import Data
from paddock.fleet.machines import snapshots, waiting, writing
from paddock.fleet.machines.finding import MachineView, find
from paddock.fleet.servers.session import ServerSession


async def usable(server: ServerSession, machine: MachineView, snapshot: str) -> Data:
    """Return a snapshot of a machine. Raises `Terminal` for one that cannot be restored."""
    found = await snapshots.named(server, machine, snapshot)
    if snapshots.state_of(found) != "ready":
        raise Terminal(f"the snapshot {snapshot} cannot be restored", why=f"it is {snapshots.state_of(found)}", fix="take another one")
    return found


async def carry_out(
    server: ServerSession, machine: MachineView, snapshot: str, seconds: float, *, start: bool, disks_only: bool = False
) -> None:
    """Bring a machine back. With `start`, a machine that ran runs again afterwards, also if the restore failed."""
    # Providers stop and start the machine themselves.
    by_hand = waiting.runs(machine) and machine.kind.adapter.snapshot_kind is None
    if by_hand:
        await snapshots.stopped(server, machine, seconds)
    name = f"{snapshot}-{int(server.clock.seconds())}"
    try:
        await snapshots.restore(server, machine, snapshot, name, seconds, disks_only=disks_only)
    finally:
        if by_hand and start:
            now = await find(server.client, str(machine), machine.namespace)
            if not waiting.runs(now):
                await writing.send(server.client, writing.power(now, "start"))
