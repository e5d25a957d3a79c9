"""The whole way to a clone: its name is free, it is made, and it starts where that is wanted."""

import msgspec

from paddock.fleet.kinds import VM
from paddock.fleet.machines import snapshots, writing
from paddock.fleet.machines.edits import ChangeRefused
from paddock.fleet.machines.finding import MachineView, find
from paddock.fleet.servers.session import ServerSession
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import WriteOptions
from paddock.kubernetes.client.target import Key


class MachineCloneOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a clone. `seconds` is 0 where nothing is waited for."""

    as_kubevirt: bool = False
    start: bool = False
    seconds: float = 0.0
    dry_run: bool = False


async def carry_out(server: ServerSession, machine: MachineView, new: str, options: MachineCloneOptions) -> str:
    """Make a clone; return its `WORD/NAME`. Raises `ChangeRefused` and `SnapshotNotTaken`."""
    name = f"{new}-{int(server.clock.seconds())}"
    target, wanted = snapshots.clone_wish(machine, new, name, as_kubevirt=options.as_kubevirt, start=options.start)
    kind = machine.kind if machine.kind.adapter.clone_kind is not None else VM
    if options.start and not options.seconds and kind is VM:
        raise ChangeRefused("cannot start a clone without waiting for it", fix="leave out --start or --no-wait")
    key = Key(wanted["metadata"]["namespace"], new)
    try:
        await server.client.get(kind.target, key)
        raise ChangeRefused(f"cannot make the clone {new}", why=f"there is {kind.word}/{new} already", fix="choose another name")
    except NotFound:
        pass
    if options.dry_run:
        await server.client.create(target, wanted, key.namespace, WriteOptions(dry_run=True))
        return f"{kind.word}/{new}"
    await snapshots.clone(server, target, wanted, options.seconds)
    if options.start and kind is VM:
        made = await find(server.client, f"{kind.word}/{new}", key.namespace)
        await writing.send(server.client, writing.power(made, "start"))
    return f"{kind.word}/{new}"
