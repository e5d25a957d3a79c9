"""Small calls on objects of either side, each of which may be repeated."""

import asyncio
import json

from paddock.base.errors import Transient
from paddock.base.jsondata import Data
from paddock.fleet.machines.claims import CLAIMS, DATA_VOLUMES
from paddock.fleet.moves.sides import MoveSide
from paddock.kubernetes.client.client import Client
from paddock.kubernetes.client.errors import Forbidden, NotFound
from paddock.kubernetes.client.options import DeletionOptions
from paddock.kubernetes.client.target import Key, Target

POLL_SECONDS, LONG_SECONDS = 0.5, 600.0


class NotGone(Transient):
    """A deleted object is still there."""


def key_of(data: Data) -> Key:
    """Return the place of an object."""
    return Key(data["metadata"].get("namespace") or "", data["metadata"]["name"])


async def serves(client: Client, target: Target[Data]) -> bool:
    """Return whether discovery has a kind. A list would not tell: for a missing kind, most users get Forbidden instead of NotFound."""
    try:
        found = json.loads(await client.request("GET", f"/apis/{target.group}/{target.version}"))
    except NotFound:
        return False
    except Forbidden:
        return True
    return any(each.get("name") == target.plural for each in found.get("resources") or ())


async def delete(client: Client, target: Target[Data], data: Data) -> None:
    """Delete an object, and no later one of its name."""
    try:
        await client.delete(target, key_of(data), DeletionOptions(uid=data["metadata"]["uid"]))
    except NotFound:
        return


async def gone(client: Client, target: Target[Data], data: Data) -> None:
    """Wait until an object is gone. Raises `NotGone`."""
    end = asyncio.get_running_loop().time() + LONG_SECONDS
    while (found := await client.find(target, key_of(data))) is not None and found["metadata"]["uid"] == data["metadata"]["uid"]:
        if asyncio.get_running_loop().time() > end:
            fix = "see what holds its finalizers, and say the same command again"
            raise NotGone(f"{target.kind} {data['metadata']['name']} does not go away", fix=fix)
        await asyncio.sleep(POLL_SECONDS)


async def drop_disk(side: MoveSide, name: str) -> None:
    """Delete a claim with its data and the DataVolume that filled it, and wait until both are gone."""
    found = [(target, await side.client.find(target, Key(side.namespace, name))) for target in (DATA_VOLUMES, CLAIMS)]
    for target, data in found:
        if data is not None:
            await delete(side.client, target, data)
    for target, data in found:
        if data is not None:
            await gone(side.client, target, data)
