"""The names that a new machine cannot have."""

import asyncio
from collections.abc import Sequence

from paddock.base.jsondata import Data
from paddock.fleet.diagnosis.scene import texts
from paddock.fleet.kinds import FRONTS, VM
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import NotFound
from paddock.kubernetes.client.options import Selection
from paddock.kubernetes.client.target import Target
from paddock.kubernetes.targets import kind_target

_VOLUMES = kind_target("cdi.kubevirt.io", "DataVolume")


async def of(client: Client, namespace: str) -> set[str]:
    """Return the names of a namespace that machines or their disks have."""
    lists = await asyncio.gather(*(_list(client, each, namespace) for each in (VM.target, _VOLUMES, *(front.target for front in FRONTS))))
    found = {texts(each, "metadata", "name") for each in (item for items in lists for item in items)}
    # A disk that outlived its machine is somebody's data.
    return found | {name.removesuffix("-root") for name in found if name.endswith("-root")}


async def _list(client: Client, target: Target[Data], namespace: str) -> Sequence[Data]:
    try:
        return (await client.list(target, Selection(namespace=namespace))).items
    except NotFound:
        return ()
