"""The directories that a machine shares with the host, as its objects name them."""

import msgspec

from paddock.base import ownnames
from paddock.base.jsondata import Data
from paddock.base.lines import one_line
from paddock.fleet.diagnosis.scene import at, texts
from paddock.fleet.machines import parts
from paddock.fleet.machines.finding import MachineView
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.target import Key, Target
from paddock.kubernetes.targets import kind_target

CLAIMS = kind_target("", "PersistentVolumeClaim")
VOLUMES = kind_target("", "PersistentVolume")


class MachineShare(msgspec.Struct, frozen=True, kw_only=True):
    """A shared claim. `directory` is empty where it is none of the host, or where the user may not read PersistentVolumes."""

    name: str
    claim: str
    volume: str = ""
    directory: str = ""
    readonly: bool = False
    # `paddock run --mount` made its objects for this machine
    made: bool = False

    def __str__(self) -> str:
        mode = "read-only" if self.readonly else ""
        return one_line(f"{self.name}: {', '.join(filter(None, (self.directory or f'PersistentVolumeClaim {self.claim}', mode)))}")


async def of(client: Client, machine: MachineView) -> tuple[MachineShare, ...]:
    """Return what a machine shares, read from the server."""
    found = []
    for name, claim, readonly in parts.directories(machine):
        data = await _get(client, CLAIMS, Key(machine.namespace, claim))
        volume = texts(data, "spec", "volumeName")
        behind = await _get(client, VOLUMES, Key("", volume)) if volume else None
        only = readonly or (at(data, "spec", "accessModes") or []) == ["ReadOnlyMany"]
        label = (at(data, "metadata", "labels") or {}).get(ownnames.MOUNT_OF.name)
        directory, made = texts(behind, "spec", "hostPath", "path"), label == machine.name
        found.append(MachineShare(name=name, claim=claim, volume=volume, directory=directory, readonly=only, made=made))
    return tuple(found)


async def delete(client: Client, namespace: str, shares: tuple[MachineShare, ...]) -> None:
    """Delete the objects that `paddock run --mount` made. They go when no machine uses them; the files stay."""
    for each in shares:
        for target, key in ((CLAIMS, Key(namespace, each.claim)), (VOLUMES, Key("", each.volume))):
            try:
                await client.delete(target, key)
            except (NotFound, Forbidden):
                # Without an administrator's rights the volume stays, released, as in Kubernetes.
                continue


async def _get(client: Client, target: Target[Data], key: Key) -> Data | None:
    try:
        return await client.get(target, key)
    except (NotFound, Forbidden):
        return None
